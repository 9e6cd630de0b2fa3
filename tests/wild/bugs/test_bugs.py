"""The folders of bugs are whole, the page tells what was measured, and the quickest is found again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wild.bugs.__main__ import KEPT, PAGE, STRATEGIES, table, told_table
from tests.wild.bugs._folders import HERE, bug, bugs

NAMES = [one.name for one in bugs()]
#: Its environment has few packages, and its program few steps.
QUICKEST = "anyio-lru-cache"


@pytest.mark.parametrize("name", NAMES)
def test_folder_of_a_bug_is_whole(name: str) -> None:
    """It pins its library, and has a program, a report, and a row that was measured."""
    one = bug(name)
    library, version = one.library.split()
    assert any(
        requirement.split("[")[0].split("==")[0] == library and requirement.endswith(f"=={version}")
        for requirement in (*one.requires, *one.alone)
    )
    assert any(requirement.startswith("trio==") for requirement in one.requires)
    program = (one.folder / "program.py").read_text()
    assert "toolrt" not in program.replace("No toolrt is needed.", "").replace("needs no toolrt", "")
    assert "async def program(pause: int" in program
    assert "async def on_plain_trio() -> None" in program
    report = (one.folder / "report.md").read_text()
    assert f"{library} {version}" in report
    found = json.loads(KEPT.read_text())[name]
    assert found["version"] == version
    assert found["confirmed"]["failures"] == found["confirmed"]["of"]
    assert any(found[strategy]["failures"] for strategy in STRATEGIES)
    file = found["told"]["file"]
    assert file["failed"] == file["runs"] == 20
    assert file["is_the_bug"]
    written = report.partition("```python\n")[2].partition("```")[0]
    assert "Fails in 20 of 20 runs on plain Trio" in written
    assert "toolrt" not in written


def test_page_has_the_measured_table() -> None:
    """`python -m tests.wild.bugs --write` made it, and each folder has a row."""
    assert sorted(json.loads(KEPT.read_text())) == NAMES
    assert table(json.loads(KEPT.read_text())) in PAGE.read_text()
    assert told_table(json.loads(KEPT.read_text())) in PAGE.read_text()


@pytest.mark.seldom
@pytest.mark.process
def test_quickest_bug_is_found_again(tmp_path: Path) -> None:
    """In an environment of its own, by exploration and on plain Trio; and its failure is written without toolrt."""
    command = [sys.executable, "-m", "tests.wild.bugs", "--executions", "60", "--cache", str(tmp_path), QUICKEST]
    for more in ([], ["--tell"]):
        done = subprocess.run(
            command + more, cwd=HERE.parents[2], capture_output=True, text=True, timeout=120, check=False
        )
        if "not installed:" in done.stderr:
            pytest.skip("the packages of a bug could not be installed: " + done.stderr.strip()[-200:])
        assert done.returncode == 0, done.stdout + done.stderr
