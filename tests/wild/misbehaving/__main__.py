"""Run tests that misbehave under ``--explore``, and say how each ended: `python -m tests.wild.misbehaving`.

One run of pytest, in a worker of pytest-xdist, without pytest-timeout.  It fails when a test took more than twice its
limit, when a test that was ended does not name its line, or when the ordinary test at the end was not explored.
``--write`` keeps the table in the docs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[2]
_PAGE = _ROOT / "docs" / "explanation" / "suites.md"
_BEGIN, _END = "<!-- misbehaving -->", "<!-- misbehaving: end -->"

# Wall seconds of each test, and how many an execution that goes on may take beside them.
_SECONDS, _GRACE = 2, 2

# A process that C code keeps is ended so many seconds after that, and a new one begins.
_OF_PROCESS = 4


def main() -> int:
    """Run them, print a row for each, and give 1 where one did not end as it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the table in docs/explanation/suites.md")
    write = parser.parse_args().write
    with tempfile.TemporaryDirectory() as directory:
        found, output = _run(Path(directory))
    rows, wrong = [], []
    names = re.findall(r"^async def test_(\w+)", (_HERE / "suite.py").read_text(encoding="utf-8"), re.MULTILINE)
    for name in names:
        kind, seconds, line, problem = _row(name, found, output)
        rows.append(f"| {name.replace('_', ' ')} | {kind} | {seconds:.1f} | {line} |")
        wrong += [f"{name}: {problem}"] if problem else []
    table = "\n".join(["| test | ended as | seconds | where it stood |", "|---|---|---:|---|", *rows])
    print(table, *wrong, sep="\n")
    if write:
        before, _, rest = _PAGE.read_text(encoding="utf-8").partition(_BEGIN)
        after = rest.partition(_END)[2]
        day = datetime.now(tz=UTC).strftime("%d %B %Y").lstrip("0")
        measured = f"On {day}, load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores:"
        kept = f"{_BEGIN}\n\n{measured}\n\n{table}\n\n{_END}"
        _PAGE.write_text(before + kept + after, encoding="utf-8")
    return int(bool(wrong))


def _run(directory: Path) -> tuple[dict[str, Any], str]:
    """Give what the explorer found of each test, by name, and what pytest and the ended process wrote."""
    kept = directory / "found.json"
    # Not this project's own options, which say that a warning is an error.
    options = ["-q", "-c", "/dev/null", "--rootdir", str(_HERE), "-p", "no:cacheprovider", "-p", "no:timeout"]
    explore = ["-n", "1", "--explore=5", "--explore-seconds", str(_SECONDS), "--explore-json", str(kept)]
    command = [sys.executable, "-m", "pytest", *options, "-p", "no:asyncio", *explore, str(_HERE / "suite.py")]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False, timeout=600)
    tests = json.loads(kept.read_text(encoding="utf-8"))["tests"]
    return {name.rpartition("test_")[2]: test for name, test in tests.items()}, done.stdout + done.stderr


def _row(name: str, found: dict[str, Any], output: str) -> tuple[str, float, str, str]:
    """Give how a test ended, in how many seconds, at which line, and what is wrong with that."""
    test = found.get(name)
    if re.search(rf"crashed while running '\S*::test_{name}'", output):
        # Its process is gone, and with it what it knew.
        place = re.search(rf'suite.py", line (\d+) in test_{name}', output)
        line = f"suite.py:{place[1]}" if place else ""
        seconds = float(_SECONDS + _GRACE + _OF_PROCESS)
        return "ended with its process", seconds, line, "" if place else "no line in what the process wrote"
    if test is None:
        return "not run", 0.0, "", "was not run"
    why, problem = test["why"], ""
    place = re.search(r"\w+\.py:\d+", why)
    # Some are explored twice, with and without tracking; a second is pytest's own.  What lets no thread run is ended by
    # a timer of processor time, which a busy machine makes longer.
    busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    if test["seconds"] > (2 * (_SECONDS + _GRACE) + 1) * busy:
        problem = f"took {test['seconds']:.1f} s"
    elif "could not end within" in why and not place:
        problem = "names no line"
    elif name == "ordinary" and test["kind"] != "explored":
        problem = f"was {test['kind']}"
    return test["kind"], test["seconds"], place[0] if place else "", problem


if __name__ == "__main__":
    sys.exit(main())
