"""Runs the explorer's tests with their big counts, and keeps what came of it in the docs.

    HYPOTHESIS_PROFILE=nightly is set here; arguments are files of tests, all of the explorer's unless given.

Each file is a pytest of its own, so that one that fails or takes too long leaves the others' rows.  The rows stand in
docs/explanation/campaign-runs.json, and as a table in docs/explanation/strategies.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "explanation" / "campaign-runs.json"
PAGE = ROOT / "docs" / "explanation" / "strategies.md"
BEGIN, END = "<!-- runs: .ci/run_campaigns.py writes from here -->", "<!-- to here -->"

#: The tests of the explorer, where no files are given.
FILES = ["tests/sim", "tests/testing/test_parallel.py", "tests/teaching/test_litmus.py"]

# Wall seconds that one file may take.
_LONGEST = 7_200


def files_of(named: list[str]) -> list[str]:
    """Give the files of tests in the folders and files named."""
    found: list[str] = []
    for name in named:
        path = ROOT / name
        files = sorted(path.glob("test_*.py")) if path.is_dir() else [path]
        found += [str(file.relative_to(ROOT)) for file in files if file.is_file()]
    return found


def run(file: str) -> dict[str, object]:
    """Run one file, and give its row."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "0", file]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "HYPOTHESIS_PROFILE": "nightly"},
            stdout=subprocess.PIPE,
            text=True,
            timeout=_LONGEST,
            check=False,
        )
        last = done.stdout.strip().splitlines()[-1:] or ["nothing was printed"]
        result = last[0].partition(" in ")[0]
        ok = done.returncode == 0
    except subprocess.TimeoutExpired:
        result, ok = f"stopped after {_LONGEST} s", False
    print(f"{file}: {result}", flush=True)
    return {"result": result, "ok": ok, "seconds": round(time.perf_counter() - began), "commit": commit()}


def commit() -> str:
    """Give the commit that is run, with a + where files were changed since."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "toolrt", "tests")
    return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")


def table(rows: dict[str, dict[str, object]]) -> str:
    """Give the rows as a table."""
    lines = ["| file | result | seconds | commit |", "|---|---|---|---|"]
    lines += [
        f"| `{file}` | {row['result']} | {row['seconds']} | `{row['commit']}` |" for file, row in sorted(rows.items())
    ]
    return "\n".join(lines)


def main() -> int:
    """Run the files, and write the rows after each."""
    rows: dict[str, dict[str, object]] = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
    ok = True
    for file in files_of(sys.argv[1:] or FILES):
        rows[file] = run(file)
        ok &= bool(rows[file]["ok"])
        KEPT.write_text(json.dumps(rows, indent=2, sort_keys=True) + "\n", "utf-8")
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{rest.partition(END)[2]}", "utf-8")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
