"""The tables of docs/explanation/makespan.md and the picture docs/images/makespan.svg, from executions.

Run it with the Python of a development environment after a change to lanes, policies or workloads; it takes a minute.
A test holds the committed page and picture against what this gives.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from toolrt import view
from toolrt.order import LaneChoice, PolicyCall, by_claims, by_safety
from toolrt.teaching import lab

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "makespan.md"
PICTURE = ROOT / "docs" / "images" / "makespan.svg"

_TABLE = re.compile(r"(<!-- makespan: (\w+) -->\n).*?(<!-- end of makespan -->\n)", re.DOTALL)
_SHARES = (0.0, 0.05, 0.1, 0.2, 0.4)
_COMPARED = {"by_claims": by_claims, "by_safety": by_safety}

Rows = list[dict[str, Any]]


@cache
def _measured() -> Rows:
    return [row for workload in lab.WORKLOADS.values() for row in lab.makespans(workload, batches=100)]


@cache
def _swept() -> Rows:
    rows = []
    for share in _SHARES:
        found = lab.makespans(lab.random_mixes(share), _COMPARED, batches=30)
        rows += [{**row, "undeclared": share} for row in found]
    return rows


def _interval(row: Mapping[str, Any]) -> str:
    return f"{row['median']:.2f} ({row['low']:.2f} to {row['high']:.2f})"


def ratios() -> Iterator[str]:
    """Give the table of makespans over critical paths."""
    yield "| workload | policy | median (95 % CI) | 10 % | 90 % | at the critical path | serial / makespan |"
    yield "|---|---|---|---|---|---|---|"
    speed = {(row["workload"], row["policy"]): row for row in lab.spread(_measured(), "speedup")}
    for row in lab.spread(_measured()):
        key = row["workload"], row["policy"]
        own = [one for one in _measured() if (one["workload"], one["policy"]) == key]
        kept = f"{100 * sum(one['ratio'] == 1 for one in own) / len(own):.0f} %"
        if row["policy"] == lab.AT_ONCE:
            kept = f"wrong order in {100 * sum(one['overlaps'] > 0 for one in own) / len(own):.0f} %"
        spread = f"{_interval(row)} | {row['p10']:.2f} | {row['p90']:.2f}"
        yield f"| {key[0]} | {key[1]} | {spread} | {kept} | {speed[key]['median']:.2f} |"


def ties() -> Iterator[str]:
    """Give the table of batches in which the policy does not matter."""
    yield "| workload | batches | calls, median | claims buy nothing | no policy matters |"
    yield "|---|---|---|---|---|"
    for name in lab.WORKLOADS:
        batches: dict[int, dict[str, dict[str, Any]]] = {}
        for row in _measured():
            if row["workload"] == name:
                batches.setdefault(row["batch"], {})[row["policy"]] = row
        spans = [{policy: row["makespan"] for policy, row in rows.items()} for rows in batches.values()]
        nothing = sum(one["by_claims"] == one["by_safety"] for one in spans)
        same = sum(one["by_claims"] == one["by_safety"] == one["serial"] for one in spans)
        calls = statistics.median(rows["serial"]["calls"] for rows in batches.values())
        n = len(spans)
        yield f"| {name} | {n} | {calls:g} | {100 * nothing / n:.0f} % | {100 * same / n:.0f} % |"


def barriers() -> Iterator[str]:
    """Give the table of makespans over critical paths by the share of calls that declare nothing."""
    yield "| calls that declare nothing | " + " | ".join(_COMPARED) + " |"
    yield "|---|" + "---|" * len(_COMPARED)
    found = lab.spread(_swept(), by=("undeclared", "policy"))
    for share in _SHARES:
        cells = [_interval(row) for row in found if row["undeclared"] == share]
        yield f"| {100 * share:.0f} % | " + " | ".join(cells) + " |"


def slots() -> Iterator[str]:
    """Give the table of makespans by limit."""
    yield "| slots | makespan / critical path | serial / makespan |"
    yield "|---|---|---|"
    workload = attrs.evolve(lab.random_mixes(0.0, 0.2, calls=12), name="slots")
    for limit in (1, 2, 3, 4, 8, None):
        rows = lab.makespans(workload, {"by_claims": by_claims}, batches=15, limit=limit)
        [ratio], [speed] = lab.spread(rows), lab.spread(rows, "speedup")
        yield f"| {'any number' if limit is None else limit} | {_interval(ratio)} | {_interval(speed)} |"


class Pairs:
    """An own lane policy: as `by_claims`, but no lane has more than two calls."""

    def place(self, call: PolicyCall, lane: tuple[PolicyCall, ...]) -> LaneChoice:
        """Open another lane where this one has two calls."""
        if not by_claims(call.tool, call.input):
            return LaneChoice.ALONE
        return LaneChoice.OPEN if len(lane) >= 2 else LaneChoice.JOIN


def own() -> Iterator[str]:
    """Give the table of an own policy's makespans over critical paths."""
    yield "| workload | by_claims | at most two calls in a lane |"
    yield "|---|---|---|"
    for name, workload in lab.WORKLOADS.items():
        found = lab.spread(lab.makespans(workload, {"by_claims": by_claims, "pairs": Pairs()}, batches=40))
        yield f"| {name} | " + " | ".join(map(_interval, found)) + " |"


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {one.__name__: one for one in (ratios, ties, barriers, slots, own)}


def written(page: str, only: str | None = None) -> str:
    """Give the page with its tables written anew; `only` the one of that name."""

    def table(found: re.Match[str]) -> str:
        if only not in (None, found[2]):
            return found[0]
        return "\n".join([found[1], *TABLES[found[2]](), "", found[3]])

    return _TABLE.sub(table, page)


def picture() -> str:
    """Give the plot: what barriers cost."""
    rows = lab.spread(_swept(), by=("undeclared", "policy"))
    return view.plot(
        [{**row, "undeclared": 100 * row["undeclared"]} for row in rows],
        x="undeclared",
        y="median",
        by="policy",
        line=True,
        title="What barriers cost",
        x_title="calls that declare nothing, in %",
        y_title="makespan / critical path, median",
    )


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n{PICTURE}\n")
