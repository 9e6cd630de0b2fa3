"""Explorers head to head: which bugs each finds, how soon, and which verdicts are wrong.

    python -m tests.benchmarks.head_to_head                      the loops and toolrt; some minutes
    python -m tests.benchmarks.head_to_head --frontrun PYTHON    and frontrun, by an environment that has it; an hour
    python -m tests.benchmarks.head_to_head --simloom PYTHON --simloop PYTHON        and these
    python -m tests.benchmarks.head_to_head --only "toolrt DPOR" --only "trio loop"  these rows alone
    python -m tests.benchmarks.head_to_head --page               run nothing, write the page from what is kept

Each tool hunts for the bug of each program with five seeds, and has 1,000 executions or 20 seconds for each; a strategy
that draws nothing, and a correct program, is run once.  The result is kept in docs/explanation/head-to-head.json, and
the tables of head-to-head.md are made from it.  Rows that are not run keep what they have.  To have the others:

    python3.12 -m venv others && others/bin/pip install frontrun simloom simloop
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.head_to_head import page
from tests.benchmarks.head_to_head.hunt import HUNTS
from tests.benchmarks.head_to_head.programs import PROGRAMS

ROOT = Path(__file__).parents[3]

EXECUTIONS = 1_000
SECONDS = 20
SEEDS = (1, 2, 3, 4, 5)

#: Names and versions of what an environment has.
_ASK = """
import importlib.metadata as have, json, platform, sys
known = {name: have.version(name) for name in sys.argv[1:] if name in {one.name for one in have.distributions()}}
print(json.dumps({"python": platform.python_version(), **known}))
"""


def hunted(row: str, program: str, python: str) -> Iterator[dict[str, Any]]:
    """Run one row on one program, in a process of its own; what it did not get to when its time was up is "hung"."""
    seeds = SEEDS if page.draws(row) and PROGRAMS[program].wrong else SEEDS[:1]
    command = [python, "-m", "tests.benchmarks.head_to_head.hunt", row, program, str(EXECUTIONS), str(SECONDS)]
    parts: Sequence[Sequence[int]] = [seeds]
    if page.tool_of(row) == "frontrun":
        # Its command patches locks before anything is imported.  A stuck thread stays, so each seed has a process.
        command = [str(Path(python).with_name("frontrun")), *command]
        parts = [[seed] for seed in seeds]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    for part in parts:
        most = (len(part) + 1) * 2 * SECONDS
        said = ""
        with subprocess.Popen(
            [*command, *map(str, part)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                said, _ = process.communicate(timeout=most)
            except subprocess.TimeoutExpired:
                process.kill()
                said, _ = process.communicate()
        found = {hunt["seed"]: hunt for hunt in map(json.loads, said.splitlines())}
        yield from (found.get(seed, {"seed": seed, "executions": 0, "said": "hung", "seconds": most}) for seed in part)


def main() -> None:
    """Run the rows that the command line names, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.head_to_head", description=__doc__.split("\n")[0])
    for tool in ("frontrun", "simloom", "simloop"):
        parser.add_argument(f"--{tool}", metavar="PYTHON", help=f"the Python of an environment that has {tool}")
    parser.add_argument("--only", action="append", choices=HUNTS, metavar="ROW", help="this row alone; can be repeated")
    parser.add_argument("--program", action="append", choices=PROGRAMS, metavar="NAME", help="on this program alone")
    parser.add_argument("--page", action="store_true", help="run nothing")
    told = vars(parser.parse_args())
    kept = page.kept()
    kept.update(
        executions=EXECUTIONS, seconds=SECONDS, seeds=len(SEEDS), cores=os.cpu_count(), machine=platform.machine()
    )
    for row in [] if told["page"] else told["only"] or HUNTS:
        tool = page.tool_of(row)
        python = told.get(tool, sys.executable)
        if python is None:
            print(f"{row}: not run, --{tool} was not given", file=sys.stderr)
            continue
        asked = [python, "-c", _ASK, tool, "trio"]
        found = kept["rows"].setdefault(row, {"programs": {}})
        found["seconds"] = SECONDS
        found["versions"] = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
        for program in told["program"] or PROGRAMS:
            hunts = list(hunted(row, program, python))
            found["programs"][program] = hunts
            print(f"{row:26} {program:28} {page.cell(PROGRAMS[program].wrong, hunts)}", flush=True)
            page.keep(kept)
    page.keep(kept)
    page.write(kept)


if __name__ == "__main__":
    main()
