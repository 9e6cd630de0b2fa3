"""Hold agent frameworks to the laws, and keep what was found in docs/explanation/frameworks.{json,md}.

    python -m tests.frameworks                       every row of catalogue.py; some minutes for each framework
    python -m tests.frameworks langgraph strands     the frameworks with these distributions; "toolrt" for those without
    python -m tests.frameworks --examples 20         so many examples for each cell; 100 unless said otherwise
    python -m tests.frameworks --page                run nothing, write the page from the record

Each framework is installed, at its pinned version, in an environment of its own below --environments.  There is no
model and no network: a fake model of the framework's own interface asks for the calls.  The exit code is 1 where a law
is broken for which catalogue.py names no cause, or held although it names one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.frameworks import catalogue, page

ROOT = Path(__file__).parents[2]

#: No telemetry, no warnings, and sets in one order.
_QUIET = {
    "PYTHONWARNINGS": "ignore",
    "PYTHONHASHSEED": "0",
    "OTEL_SDK_DISABLED": "true",
    "CREWAI_DISABLE_TELEMETRY": "true",
}


def environment_of(framework: catalogue.Framework | None, folder: Path) -> Path:
    """Give the Python of an environment that has the framework; make it if need be."""
    if framework is None:
        return Path(sys.executable)
    place = folder / f"{framework.distribution}-{framework.version}"
    python = place / "bin" / "python"
    done = place / "installed"
    if not done.exists():
        subprocess.run([framework.python or sys.executable, "-m", "venv", "--clear", place], check=True)
        wanted = [f"{framework.distribution}=={framework.version}", *framework.beside]
        subprocess.run([python, "-m", "pip", "install", "-q", "attrs", "trio", *wanted], check=True)
        done.touch()
    return python


def asked(row: catalogue.Row, python: Path, examples: int) -> dict[str, Any]:
    """Hold one row to the laws."""
    framework = catalogue.FRAMEWORKS.get(row.framework)
    began = time.perf_counter()
    done = subprocess.run(
        [python, "-m", "tests.frameworks.ask", row.adapter, str(examples)],
        cwd=ROOT,
        env={**os.environ, **_QUIET, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{row.title}: exit code {done.returncode}\n{done.stderr[-3000:]}")
    return {
        "row": row.title,
        "version": framework.version if framework else "",
        "seconds": round(time.perf_counter() - began),
        "laws": json.loads(done.stdout.splitlines()[-1])["laws"],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.frameworks", description="frameworks held to the laws")
    parser.add_argument("names", nargs="*", help="distributions, or toolrt")
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "frameworks")
    parser.add_argument("--page", action="store_true", help="run nothing")
    wanted = parser.parse_args(arguments)
    record = page.read_record()
    for row in () if wanted.page else catalogue.ROWS:
        framework = catalogue.FRAMEWORKS.get(row.framework)
        if wanted.names and (framework.distribution if framework else "toolrt") not in wanted.names:
            continue
        found = asked(row, environment_of(framework, wanted.environments), wanted.examples)
        record[row.title] = found
        broken = [cell["law"] for cell in found["laws"] if cell["verdict"] == "broken"]
        print(f"{row.title}: {found['seconds']} s, broken: {', '.join(broken) or 'none'}", flush=True)
        page.write_record(record, platform.python_version())
    page.write_page(record)
    wrong = page.unexplained(record)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
