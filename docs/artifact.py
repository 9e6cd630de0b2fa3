"""Makes every figure of docs/paper.md again.

    python docs/artifact.py                 with the quick commands: some minutes
    python docs/artifact.py --full          with the full ones: hours
    python docs/artifact.py --only laws     these figures alone; the option can be repeated
    python docs/artifact.py --full --write  and put what the commands print into the paper

A figure of the paper is a block of text behind a comment that names the command:

    <!-- figure: laws
    full: toolrt laws --strategy dpor --calls 3 --jobs 2
    quick: toolrt laws --strategy dpor --calls 2
    keep: ^(PASS|FAIL)
    -->

`keep` is a regular expression: only lines of the output in which it is found stand in the figure.  `varies: times` says
that the machine decides about the figure, so it is shown and not compared.  `committed` names a file that keeps the
result of a full command which takes hours: without --full its lines are compared, and nothing is run.  `same` is a
regular expression: lines of a quick command in which it is found have to stand in the paper.  Where toolrt is not
installed, the script installs this checkout into an environment of its own in a temporary directory, which it deletes.

Exit code: 0 if every command succeeded and printed what the paper shows; 1 if not; 2 for a wrong argument.  A quick
command that is not the full one is compared in the lines that `same` names.  Commands find the temporary directory as
$PLACE.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAPER = ROOT / "docs" / "paper.md"

_FIGURE = re.compile(r"<!-- figure: (?P<name>[\w-]+)\n(?P<fields>.*?)-->\n+```text\n(?P<shown>.*?)```\n", re.DOTALL)

_FIELDS = {"full", "quick", "keep", "varies", "committed", "same"}


@dataclass(frozen=True)
class Figure:
    """A figure as the paper shows it, and the commands that make it."""

    name: str
    full: str
    quick: str
    keep: str
    varies: bool
    shown: str
    committed: str = ""
    same: str = ""


def figures(paper: str) -> list[Figure]:
    """The figures of that text, in its order.

    Raises:
        ValueError: a figure lacks its full command, has a field that is none, or has another one's name.
    """
    found: dict[str, Figure] = {}
    for match in _FIGURE.finditer(paper):
        name = match["name"]
        lines = [line.partition(": ") for line in match["fields"].splitlines() if line]
        fields = {key: value for key, _, value in lines}
        if name in found:
            raise ValueError(f"figure {name}: expected one of that name, got two")
        if "full" not in fields or fields.keys() - _FIELDS:
            raise ValueError(f"figure {name}: expected full and at most {sorted(_FIELDS)}, got {sorted(fields)}")
        full = fields["full"]
        found[name] = Figure(
            name,
            full,
            fields.get("quick", full),
            fields.get("keep", ""),
            "varies" in fields,
            match["shown"],
            fields.get("committed", ""),
            fields.get("same", ""),
        )
    if len(found) != paper.count("<!-- figure:"):
        raise ValueError(f"expected a block of text behind each of {paper.count('<!-- figure:')} comments")
    return list(found.values())


def kept(figure: Figure, output: str) -> str:
    """What of a command's output stands in the figure."""
    return "".join(f"{line.rstrip()}\n" for line in output.splitlines() if re.search(figure.keep, line))


def with_shown(paper: str, name: str, shown: str) -> str:
    """The paper, with that in its figure of that name."""

    def replaced(match: re.Match[str]) -> str:
        if match["name"] != name:
            return match[0]
        return match[0][: match.start("shown") - match.start()] + shown + "```\n"

    return _FIGURE.sub(replaced, paper)


def installed(place: str) -> str:
    """The directory of the programs of an environment that has toolrt: this one's, or a new one's at `place`."""
    if importlib.util.find_spec("toolrt") is not None:
        return os.path.dirname(sys.executable)
    print("toolrt is not installed here: making an environment for it", flush=True)
    venv.create(place, with_pip=True)
    programs = os.path.join(place, "bin")
    constraints = str(ROOT / ".ci" / "constraints.txt")
    command = [os.path.join(programs, "pip"), "install", "-q", "-c", constraints, "-e", f"{ROOT}[dev]"]
    subprocess.run(command, check=True)
    return programs


def remade(figure: Figure, *, full: bool, programs: str, place: str) -> tuple[str, str | None]:
    """How making that figure ended, in a word, and what it shows now; None: its command failed."""
    if figure.committed and not full:
        print(f"\n{figure.name}: {figure.committed}", flush=True)
        if not (ROOT / figure.committed).is_file():
            return f"FAILED: no file {figure.committed}", None
        return compared(figure, kept(figure, (ROOT / figure.committed).read_text(encoding="utf-8")))
    command = figure.full if full else figure.quick
    path = os.pathsep.join((programs, os.environ.get("PATH", os.defpath)))
    print(f"\n{figure.name}: {command}", flush=True)
    began = time.monotonic()
    done = subprocess.run(
        command,
        shell=True,
        cwd=ROOT,
        env={**os.environ, "PATH": path, "PLACE": place, "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    print(f"took {time.monotonic() - began:.0f} s", flush=True)
    if done.returncode:
        print(done.stdout[-4000:])
        return f"FAILED with exit code {done.returncode}", None
    shown = kept(figure, done.stdout)
    print(shown, end="")
    if not shown:
        return "FAILED: nothing of the output belongs to the figure", None
    if command != figure.full and figure.same:
        missing = [
            line
            for line in shown.splitlines()
            if re.search(figure.same, line) and line not in figure.shown.splitlines()
        ]
        return ("made, and what both show is the same" if not missing else f"DIFFERS from the paper: {missing}"), shown
    if figure.varies or command != figure.full:
        return "made", shown
    return compared(figure, shown)


def compared(figure: Figure, shown: str) -> tuple[str, str]:
    """Whether that is what the paper shows, in a word, and that."""
    if shown == figure.shown:
        return "as in the paper", shown
    print(*difflib.unified_diff(figure.shown.splitlines(), shown.splitlines(), "paper", "now", lineterm=""), sep="\n")
    return "DIFFERS from the paper", shown


def main(arguments: list[str] | None = None) -> int:
    """Make the figures; returns the exit code."""
    paper = PAPER.read_text(encoding="utf-8")
    known = figures(paper)
    parser = argparse.ArgumentParser(description="Make every figure of docs/paper.md again.")
    parser.add_argument("--full", action="store_true", help="with the full commands")
    parser.add_argument("--write", action="store_true", help="put what they print into the paper (with --full)")
    parser.add_argument("--only", action="append", choices=[figure.name for figure in known], help="this one alone")
    parser.add_argument("--list", action="store_true", help="print the commands and run none")
    given = parser.parse_args(arguments)
    if given.write and not given.full:
        parser.error("--write: expected --full with it, because the paper shows what the full commands print")
    chosen = [figure for figure in known if given.only is None or figure.name in given.only]
    if given.list:
        for figure in chosen:
            print(f"{figure.name}: {figure.full if given.full else figure.quick}")
        return 0
    endings = {}
    with tempfile.TemporaryDirectory() as place:
        programs = installed(os.path.join(place, "toolrt"))
        for figure in chosen:
            endings[figure.name], shown = remade(figure, full=given.full, programs=programs, place=place)
            if given.write and shown is not None:
                paper = with_shown(paper, figure.name, shown)
                PAPER.write_text(paper, encoding="utf-8")
    print()
    for name, ending in endings.items():
        print(f"{name:14} {ending}")
    wrong = ("FAILED",) if given.write else ("FAILED", "DIFFERS")
    return int(any(ending.startswith(wrong) for ending in endings.values()))


if __name__ == "__main__":
    sys.exit(main())
