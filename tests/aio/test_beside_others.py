"""What the peers page says of toolrt holds in asyncio as it does in Trio."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.seldom
@pytest.mark.process
def test_the_row_of_asyncio_is_the_row_of_trio_and_both_are_shown() -> None:
    """Kept, stable, contained, and nothing after a cancel: in the script's output, and on the page."""
    script = ROOT / "tests/benchmarks/peers.py"
    done = subprocess.run([sys.executable, script, "--json", "toolrt"], capture_output=True, text=True, check=True)
    trio, asyncio = (json.loads(line) for line in done.stdout.splitlines())
    names = trio.pop("engine"), asyncio.pop("engine")
    assert names == ("toolrt", "toolrt in asyncio")
    assert asyncio == trio
    assert (trio["edits"], trio["state"], trio["cancel"]) == ("all kept", "2 and 2", "nothing runs on")
    page = (ROOT / "docs/explanation/peers.md").read_text(encoding="utf-8")
    for name in names:
        assert f"| {' | '.join((name, *trio.values()))} |" in page
