"""What was measured, and the tables that show it."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.head_to_head.hunt import ALL, BOUNDED, CUT, FAILED, HUNTS, SAMPLE
from tests.benchmarks.head_to_head.programs import PROGRAMS, buggy, correct

__all__ = [
    "KEPT",
    "PAGE",
    "buggy",
    "cell",
    "correct",
    "draws",
    "is_found",
    "keep",
    "kept",
    "tables",
    "tool_of",
    "write",
    "written",
    "wrong_verdicts",
]

_DOCS = Path(__file__).parents[3] / "docs" / "explanation"
KEPT = _DOCS / "head-to-head.json"
PAGE = _DOCS / "head-to-head.md"

Result = dict[str, Any]

#: The correct program whose processor time for one execution the page shows.
TIMED = "reorder_3, locked"

#: Rows that draw nothing: a seed changes nothing.
_DRAW_NOTHING = re.compile("DPOR$|DPOR, tracked|Bounded|default|systematic")

#: What a row runs the programs on.
_ON = {"frontrun asyncio": "asyncio", "frontrun threads": "threads", "simloom": "asyncio", "simloop": "asyncio"}


def tool_of(row: str) -> str:
    """The tool of a row: the first word."""
    return row.partition(" ")[0]


def draws(row: str) -> bool:
    """Whether the row's strategy draws, so that each seed is another hunt."""
    return _DRAW_NOTHING.search(row) is None


def library_of(row: str) -> str:
    """What the programs run on: Trio, asyncio or threads."""
    return next((on for begin, on in _ON.items() if row.startswith(begin)), "Trio")


def kept() -> Result:
    """What was measured; no rows where nothing is kept."""
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {"rows": {}}


def keep(results: Result) -> None:
    """Keep it, a line for each program of each row."""
    rows = results["rows"]
    results = {**results, "rows": {row: rows[row] for row in HUNTS if row in rows}}
    # The hunts of a program stand in one line.
    text = re.sub(r"\[\s+\{[^]]*\]", lambda hunts: json.dumps(json.loads(hunts[0])), json.dumps(results, indent=1))
    KEPT.write_text(text + "\n", encoding="utf-8")


def executions_of(hunts: Iterable[Mapping[str, Any]]) -> float:
    """The executions until the bug was found, at the median of the seeds; infinite where most did not find it."""
    return statistics.median(hunt["executions"] if hunt["said"] == FAILED else math.inf for hunt in hunts)


def is_found(hunts: Iterable[Mapping[str, Any]]) -> bool:
    """Whether some seed found it."""
    return any(hunt["said"] == FAILED for hunt in hunts)


def cell(wrong: bool, hunts: Sequence[Mapping[str, Any]]) -> str:
    """What a table says of a row on a program."""
    found = [hunt["executions"] for hunt in hunts if hunt["said"] == FAILED]
    if wrong and found:
        share = "" if len(found) == len(hunts) else f" ({len(found)}/{len(hunts)})"
        return f"{statistics.median_low(found):,}{share}"
    if found:
        return f"**fails** {found[0]:,}"
    said, ran = hunts[0]["said"], f"{hunts[0]['executions']:,}"
    if said == ALL:
        return f"**holds** {ran}" if wrong else f"{ran} all"
    if said == CUT:
        return f"**holds**, cut {ran}" if wrong else f"{ran} cut"
    if said == BOUNDED:
        return "- bounded" if wrong else f"{ran} bounded"
    return "-" if said == SAMPLE else f"{'- ' if wrong else ''}{said}"


def wrong_verdicts(programs: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[str]]:
    """The programs of a row's wrong verdicts, by kind: wrong ones that are said to hold, and correct ones that fail."""
    said = {name: {hunt["said"] for hunt in hunts} for name, hunts in programs.items() if name in PROGRAMS}
    return {
        "holds": [name for name in buggy() if said.get(name, set()) & {ALL} and FAILED not in said[name]],
        "holds, cut": [name for name in buggy() if said.get(name, set()) & {CUT}],
        "fails": [name for name in correct() if FAILED in said.get(name, set())],
    }


def _number(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:,.0f}"


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value < 1 else f"{value:.1f}"


def tools_table(results: Result) -> str:
    """A row for each tool and strategy."""
    lines = [
        f"| tool and strategy | runs on | found, of {len(buggy())} | by every seed | median executions | ms for one |"
        f" seconds | proved, of {len(correct())} | wrong: holds | wrong: holds, cut | wrong: fails |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row, found in results["rows"].items():
        programs = found["programs"]
        hunts = [programs[name] for name in buggy() if name in programs]
        median = statistics.median(map(executions_of, hunts))
        seconds = math.fsum(statistics.median(hunt["seconds"] for hunt in seeds) for seeds in hunts)
        proved = sum(programs[name][0]["said"] == ALL for name in correct() if name in programs)
        every = sum(all(hunt["said"] == FAILED for hunt in seeds) for seeds in hunts)
        wrong = " | ".join(str(len(names)) for names in wrong_verdicts(programs).values())
        [timed] = programs[TIMED]
        each = f"{1_000 * timed['processor'] / timed['executions']:.2f}"
        found_by_some = sum(map(is_found, hunts))
        lines.append(
            f"| {row} | {library_of(row)} | {found_by_some} | {every} | {_number(median)} | {each}"
            f" | {_seconds(seconds)} | {proved} | {wrong} |"
        )
    return "\n".join(lines)


def wrong_table(results: Result) -> str:
    """A row for each row of the tools with a wrong verdict: the programs, by kind."""
    lines = ["| tool and strategy | holds | holds, cut | fails |", "|---|---|---|---|"]
    for row, found in results["rows"].items():
        wrong = wrong_verdicts(found["programs"])
        if any(wrong.values()):
            cells = (", ".join(f"`{name}`" for name in names) or "none" for names in wrong.values())
            lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def programs_table(results: Result, rows: list[str], names: list[str]) -> str:
    """A row for each program, a column for each row of the tools."""
    rows = [row for row in rows if row in results["rows"]]
    lines = [f"| program | {' | '.join(rows)} |", f"|---{'|---:' * len(rows)}|"]
    for name in names:
        each = (results["rows"][row]["programs"].get(name) for row in rows)
        cells = ("" if hunts is None else cell(PROGRAMS[name].wrong, hunts) for hunts in each)
        lines.append(f"| `{name.partition(',')[0]}`{''.join(name.partition(',')[1:])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def shapes_table() -> str:
    """A line for each wrong program: what it is."""
    lines = ["| program | what it is |", "|---|---|"]
    for name in [*buggy(), "poll"]:
        story = " ".join((PROGRAMS[name].__doc__ or "").split())
        lines.append(f"| `{name}` | {story} |")
    return "\n".join(lines)


def measured_line(results: Result) -> str:
    """Versions and the machine."""
    known: dict[str, set[str]] = {}
    for row, found in results["rows"].items():
        for name, version in found["versions"].items():
            if name == "python":
                known.setdefault(f"Python, for {library_of(row)}", set()).add(version)
            elif name != "toolrt" and (name != "trio" or library_of(row) == "Trio"):
                known.setdefault(name, set()).add(version)
    versions = "; ".join(f"{name} {', '.join(sorted(found))}" for name, found in known.items())
    less = {row: found["seconds"] for row, found in results["rows"].items() if found["seconds"] != results["seconds"]}
    but = "".join(f"; {row} had {seconds} seconds" for row, seconds in less.items())
    return (
        f"A hunt had {results['executions']:,} executions or {results['seconds']} seconds, on {results['cores']} shared"
        f" cores ({results['machine']}), with {results['seeds']} seeds where the strategy draws{but}. {versions}."
    )


def tables(results: Result) -> dict[str, str]:
    """The generated parts of the page, by name."""
    ours = [row for row in HUNTS if tool_of(row) in ("trio", "toolrt")]
    others = [row for row in HUNTS if row not in ours]
    systematic = [row for row in HUNTS if not draws(row) or row == "toolrt Hybrid"]
    return {
        "measured": measured_line(results),
        "tools": tools_table(results),
        "wrong": wrong_table(results),
        "ours": programs_table(results, ours, buggy()),
        "others": programs_table(results, others, buggy()),
        "correct": programs_table(results, systematic, correct()),
        "shapes": shapes_table(),
    }


def written(text: str, results: Result) -> str:
    """The page with its tables made anew."""
    for name, table in tables(results).items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}{table}\n{end}{rest.split(end)[1]}"
    return text


def write(results: Result) -> None:
    """Write the page from what is kept."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
