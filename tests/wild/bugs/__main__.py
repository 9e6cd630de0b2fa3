"""Find each bug again: make its environment, explore its program, and confirm it without toolrt.

    python -m tests.wild.bugs                   all: some minutes, and the network
    python -m tests.wild.bugs httpcore-socks    one
    python -m tests.wild.bugs --write           all, and keep the result for docs/explanation/wild.md
    python -m tests.wild.bugs --tell            write each failure as a file without toolrt, and ask what would mend it
    python -m tests.wild.bugs --list            their names

An environment is made once, in a folder of the user's cache or the one that `--cache` names.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from tests.sim._racy import judged
from tests.wild.bugs._folders import HERE, Bug, bug, bugs

ROOT = HERE.parents[2]
KEPT = ROOT / "docs" / "explanation" / "wild.json"
PAGE = KEPT.with_suffix(".md")
CORE = ("trio", "attrs")
STRATEGIES = ("portfolio", "walk", "hybrid")


def cache() -> Path:
    """The folder for environments when none is named."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "toolrt-wild"


class NotInstalled(Exception):
    """Pip could not install what a program requires: no network, or a Python that it does not support."""


def environment(requires: tuple[str, ...], alone: tuple[str, ...], folder: Path) -> Path:
    """Make a virtual environment with `requires` and what toolrt's core needs, once; return its Python."""
    name = hashlib.sha256("\n".join((sys.version, *requires, "-", *alone)).encode()).hexdigest()[:16]
    python = folder / name / "bin" / "python"
    ready = folder / name / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", folder / name], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q"]
        for wanted in ([*requires, *CORE], ["--no-deps", *alone] if alone else []):
            done = subprocess.run([*pip, *wanted], capture_output=True, text=True, check=False) if wanted else None
            if done is not None and done.returncode:
                raise NotInstalled(done.stderr.strip()[-500:])
        ready.touch()
    return python


def measured(
    one: Bug, folder: Path, executions: int, seed: int, fixed: bool = False, what: str = "_inside"
) -> dict[str, Any]:
    """Run a bug's program in its environment, or in that of the version that has a repair."""
    python = environment(one.fixed if fixed else one.requires, one.alone, folder)
    command = [python, "-m", f"tests.wild.bugs.{what}", one.name, str(executions), str(seed)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _share(found: dict[str, Any], runs: str = "executions") -> str:
    first = f", first {found['first']}" if found["failures"] else ""
    return f"{found['failures']} of {found[runs]:,}{first}"


def _looped(found: dict[str, Any]) -> str:
    """What a plain loop found in as many runs, and in as many seconds when it got further in these."""
    within = f"{found['failures_in_as_many_runs']}"
    return within if found["runs"] <= found["asked"] else f"{within}; {_share(found, 'runs')}"


def _repaired(found: dict[str, Any] | None) -> str:
    return f"{found['version']}: {found['failures']} of {found['executions']}" if found else ""


def row(one: dict[str, Any]) -> str:
    """One line of the table."""
    portfolio, confirmed = one["portfolio"], one["confirmed"]
    return (
        "| "
        + " | ".join(
            [
                f"`{one['name']}`",
                f"{one['library']} {one['version']}",
                _share(portfolio),
                f"{portfolio.get('seconds_to_first', '-')} of {portfolio['seconds']}",
                _share(one["walk"]),
                _share(one["hybrid"]),
                _looped(one["loop"]),
                _looped(one["loop_with_pauses"]),
                f"{confirmed['failures']} of {confirmed['of']}",
                _repaired(one.get("repaired")),
            ]
        )
        + " |"
    )


COLUMNS = (
    "program",
    "release",
    "portfolio",
    "seconds to the first",
    "random walk",
    "hybrid",
    "plain loop",
    "with pauses",
    "confirmed",
    "repaired in",
)
TITLES = "| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|"
BEGIN, END = "<!-- bugs: begin -->\n\n", "\n\n<!-- bugs: end -->"
TOLD_BEGIN, TOLD_END = "<!-- told: begin -->\n\n", "\n\n<!-- told: end -->"


def table(found: dict[str, dict[str, Any]]) -> str:
    """The rows of all, as the page has them."""
    return "\n".join([TITLES, *(row(found[name]) for name in sorted(found))])


def write(found: dict[str, dict[str, Any]]) -> None:
    """Keep what was measured, and put its table into the page."""
    KEPT.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")
    _put(table(found), PAGE, BEGIN, END)
    _put(told_table(found), PAGE, TOLD_BEGIN, TOLD_END)


def _put(text: str, file: Path, begin: str, end: str) -> None:
    head, rest = file.read_text().split(begin)
    file.write_text(head + begin + text + end + rest.split(end)[1])


def told_row(one: Bug, told: dict[str, Any]) -> str:
    """What was written of a bug, and proposed for it."""
    file, repairs = told.get("file"), told["repairs"]
    written = f"{file['failed']} of {file['runs']}" if file else told["refused"]
    order = "" if not file else "Trio's own" if file["is_of_trio"] else "a task for each step"
    first = textwrap.shorten(repairs[0]["text"], 130, placeholder=" ...") if repairs else ""
    said = ", said" if repairs and repairs[0]["may_overfit"] else ""
    known = "maintainers'" if one.repaired_by_maintainers else "ours"
    return f"| `{one.name}` | {written} | {order} | {first} | {verdict(one, repairs)}{said} | {known} |"


def verdict(one: Bug, repairs: list[dict[str, Any]]) -> str:
    """What the first repair is, beside the one that is known."""
    return judged(repairs[0]["code"] if repairs else None, list(one.repair))


TOLD_TITLES = (
    "| program | failed without toolrt | order | first repair proposed | against the repair | which is |\n"
    + "|---" * 6
    + "|"
)


def told_table(found: dict[str, dict[str, Any]]) -> str:
    """The rows of what was told."""
    rows = [told_row(bug(name), one["told"]) for name, one in sorted(found.items()) if "told" in one]
    return "\n".join([TOLD_TITLES, *rows])


def report(one: Bug, told: dict[str, Any]) -> str:
    """What a report has of it."""
    repairs, file = told["repairs"], told.get("file")
    if not repairs:
        mended = "No lock, look, shield or order of its lines was found that mends it."
    elif verdict(one, repairs).startswith("right"):
        mended = f"What mends it: {repairs[0]['text']}."
    else:
        mended = f"What hides it, and is not the repair above: {repairs[0]['text']}."
    if file is None:
        return f"{mended}\n\nNo program was written: {told['refused']}."
    how = f"written by `failure.reproduce()`; it failed in {file['failed']} of {file['runs']} runs"
    return f"{mended}\n\nThe failing schedule as a program of its own, {how}:\n\n```python\n{file['text']}```"


def tell(one: Bug, kept: dict[str, dict[str, Any]], found: dict[str, Any], write_it: bool) -> bool:
    """Print what was told of a bug, and keep it; say whether its file fails with the bug, each time."""
    print(told_row(one, found), flush=True)
    file = found.get("file", {})
    if write_it:
        _put(report(one, found), one.folder / "report.md", TOLD_BEGIN, TOLD_END)
        # The report has the text.
        short = {"file": {key: value for key, value in file.items() if key != "text"}} if file else {}
        kept[one.name]["told"] = found | short | {"repairs": found["repairs"][:1]}
        write(kept)
    return bool(file) and file["is_the_bug"] and file["failed"] == file["runs"]


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.wild.bugs", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--executions", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=cache())
    parser.add_argument("--fixed", action="store_true", help="use the versions that have a repair: all should pass")
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    parser.add_argument("--write", action="store_true", help="keep it for the page, in docs/explanation/wild.json")
    parser.add_argument("--explain", action="store_true", help="print each shrunk failure")
    parser.add_argument("--tell", action="store_true", help="write each failure without toolrt, and what would mend it")
    parser.add_argument("--list", action="store_true", help="print the names and what each does")
    told = parser.parse_args()
    chosen = [bug(name) for name in told.names] or bugs()
    if told.list:
        for one in chosen:
            print(f"{one.name:24} {one.library:24} {one.symptom}")
        return 0
    kept: dict[str, dict[str, Any]] = json.loads(KEPT.read_text()) if told.write and KEPT.exists() else {}
    missed = 0
    if not told.json:
        print(TOLD_TITLES if told.tell else TITLES)
    for one in chosen:
        if told.fixed and not one.fixed:
            continue
        try:
            what = "_told" if told.tell else "_inside"
            found = measured(one, told.cache, told.executions, told.seed, told.fixed, what)
        except NotInstalled as error:
            print(f"{one.name}: not installed: {error}", file=sys.stderr)
            missed += 1
            continue
        if told.tell:
            missed += not tell(one, kept, found, told.write)
            continue
        if told.fixed:
            kept.setdefault(one.name, {})["repaired"] = {
                "version": found["version"],
                "executions": sum(found[strategy]["executions"] for strategy in STRATEGIES),
                "failures": sum(found[strategy]["failures"] for strategy in STRATEGIES),
            }
        else:
            kept[one.name] = found | {
                key: kept[one.name][key] for key in ("repaired", "told") if key in kept.get(one.name, {})
            }
        explored, confirmed = [found[strategy] for strategy in STRATEGIES], found["confirmed"]
        is_found = any(strategy["failures"] for strategy in explored)
        missed += is_found == told.fixed or (not told.fixed and confirmed["failures"] < confirmed["of"])
        if not told.json:
            print(row(kept[one.name] if not told.fixed else found), flush=True)
        if told.explain and "explanation" in found["portfolio"]:
            print(found["portfolio"]["explanation"])
        if told.write:
            write({name: row for name, row in kept.items() if (HERE / name).is_dir() and "portfolio" in row})
    if told.json:
        print(json.dumps(kept, indent=1))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
