"""The diagrams of the documentation that are drawn from the code: a call's states, and the house.

Run it with the Python of a development environment after a change to either; it writes the files that are named below.
A test holds the committed files against what this gives.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from toolrt.order import BATCH, CALL, LANE, BatchState, CallMove, CallState, LaneState, Status

ROOT = Path(__file__).parents[1]

_STYLE = """\
text{font:13px system-ui,sans-serif;fill:#15181c;text-anchor:middle}.small{font-size:12px;fill:#545b64}
.paper{fill:#fff}.box{fill:#e3eff7;stroke:#0072b2}.end{fill:#dff2ec;stroke:#00785a}.edge{fill:none;stroke:#545b64}
.tip{fill:#545b64}
@media (prefers-color-scheme:dark){text{fill:#e8eaed}.small{fill:#a3abb5}.paper{fill:#14171a}
.box{fill:#15344f;stroke:#56b4e9}.end{fill:#123a30;stroke:#2cc79b}.edge{stroke:#a3abb5}.tip{fill:#a3abb5}}"""


def _document(width: int, height: int, title: str, lines: Iterator[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join(
        [
            f'{head} role="img" aria-label="{escape(title)}">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<rect class="paper" width="{width}" height="{height}" rx="8"/>',
            *lines,
            "</svg>",
            "",
        ]
    )


def _box(x: float, y: float, width: float, height: float, text: str, kind: str = "box") -> str:
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>'
        f'<text x="{x + width / 2:g}" y="{y + height / 2 + 4.5:g}">{escape(text)}</text>'
    )


# ---------------------------------------------------------------------- a call's states

_STATE_WIDTH, _STATE_HEIGHT, _APART = 110, 40, 90
_TOP = 110


def tracked_call() -> str:
    """Draw the table of a call (`toolrt.order.CALL`) as a user sees it: statuses, and what leads where."""
    states = list(Status)
    named: dict[tuple[int, int], list[str]] = {}
    for (before, event), after in CALL.items():
        if before.status is not after.status or (before, event) == (CallState.COMPLETED, CallMove.SKIP):
            found = named.setdefault((states.index(before.status), states.index(after.status)), [])
            if event.value not in found:
                found.append(event.value)
    leaving = {before for before, _ in named}
    width = len(states) * (_STATE_WIDTH + _APART) - _APART + 60

    def lines() -> Iterator[str]:
        for index, state in enumerate(states):
            kind = "box" if index in leaving else "end"
            yield _box(_left(index), _TOP, _STATE_WIDTH, _STATE_HEIGHT, state.value, kind)
        for (before, after), happenings in sorted(named.items()):
            yield from _transition(before, after, " or ".join(happenings))

    return _document(width, _TOP + _STATE_HEIGHT + 70, "The states of a call", lines())


def _left(index: int) -> float:
    return 30 + index * (_STATE_WIDTH + _APART)


def _transition(before: int, after: int, label: str) -> Iterator[str]:
    middle = _TOP + _STATE_HEIGHT / 2
    if after == before:
        x, y = _left(before) + _STATE_WIDTH / 2, _TOP + _STATE_HEIGHT
        yield f'<path class="edge" d="M{x - 18:g} {y:g}c-14 40 50 40 36 6"/>'
        yield f'<path class="tip" d="M{x + 15:g} {y:g}l-1 9l8 -3z"/>'
        yield f'<text class="small" x="{x:g}" y="{y + 48:g}">{escape(label)}</text>'
        return
    if after == before + 1:
        start, end = _left(before) + _STATE_WIDTH, _left(after)
        yield f'<path class="edge" d="M{start:g} {middle:g}H{end - 8:g}"/>'
        yield f'<path class="tip" d="M{end:g} {middle:g}l-9 -4v8z"/>'
        yield f'<text class="small" x="{(start + end) / 2:g}" y="{middle - 8:g}">{escape(label)}</text>'
        return
    # A longer way is an arc: above for one that goes on, below for one that goes back.
    above = after > before
    start, end = _left(before) + _STATE_WIDTH / 2, _left(after) + _STATE_WIDTH / 2 - (14 if above else -14)
    y = _TOP if above else _TOP + _STATE_HEIGHT
    bend = (-1 if above else 1) * (30 + 32 * (abs(after - before) - 1))
    yield f'<path class="edge" d="M{start:g} {y:g}C{start:g} {y + bend:g} {end:g} {y + bend:g} {end:g} {y:g}"/>'
    yield f'<path class="tip" d="M{end:g} {y:g}l-4 {-9 if above else 9}h8z"/>'
    label_at = y + 0.75 * bend + (-7 if above else 15)
    yield f'<text class="small" x="{(start + end) / 2:g}" y="{label_at:g}">{escape(label)}</text>'


# ---------------------------------------------------------------------- the house

_ROOM_HEIGHT, _FLOOR, _WIDTH = 34, 54, 720


def house() -> str:
    """Draw the layers that import-linter keeps: a room may import what is on the floors below it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract["id"] == "house")
    floors = [[room.strip(" ()").removeprefix("toolrt.") for room in layer.split("|")] for layer in layers]

    def lines() -> Iterator[str]:
        for floor, rooms in enumerate(floors):
            width = (_WIDTH - 40 - 12 * (len(rooms) - 1)) / len(rooms)
            for place, room in enumerate(rooms):
                yield _box(20 + place * (width + 12), 16 + floor * _FLOOR, width, _ROOM_HEIGHT, room)
            if floor:
                y = 16 + floor * _FLOOR
                yield f'<path class="edge" d="M{_WIDTH / 2:g} {y - 20:g}V{y - 8:g}"/>'
                yield f'<path class="tip" d="M{_WIDTH / 2:g} {y - 2:g}l-4 -8h8z"/>'
        bottom = 16 + len(floors) * _FLOOR + 6
        text = "a room may import what is on the floors below it; rooms of one floor do not know each other"
        yield f'<text class="small" x="{_WIDTH / 2:g}" y="{bottom:g}">{text}</text>'

    return _document(_WIDTH, 16 + len(floors) * _FLOOR + 22, "The house", lines())


# ---------------------------------------------------------------------- the tables of states

_ABOUT = """# The states of a call, a lane and a batch

Drawn from `toolrt.order` by `.ci/draw_diagrams.py`: do not change it by hand. What is not in a table raises
`InternalError`, before anything is written. [Three readings](three-readings.md) shows how the tables are used.
"""


def states_page() -> str:
    """Draw the three tables as Markdown: one row for each state, with the events that leave it."""
    tables = ((CallState, CALL, "call"), (LaneState, LANE, "lane"), (BatchState, BATCH, "batch"))
    return "\n".join([_ABOUT, *(line for one in tables for line in _states_of(*one))])


def _states_of(states: Any, table: Any, name: str) -> Iterator[str]:
    source = (ROOT / "toolrt/order/_states.py").read_text(encoding="utf-8")
    body = source[source.index(f"class {states.__name__}(") :]
    yield f"## A {name}\n"
    if states is CallState:
        yield "| state | a user sees | it holds | means | leads to |\n|---|---|---|---|---|"
    else:
        yield "| state | means | leads to |\n|---|---|---|"
    for state in states:
        comment = body[: body.index(f"    {state.name} = ")].splitlines()
        about = " ".join(_comment_above(comment))
        leads: dict[str, list[str]] = {}
        for (before, event), after in table.items():
            if before is state:
                leads.setdefault(after.name.lower(), []).append(event.value)
        ways = "; ".join(f"{', '.join(events)}: *{after}*" for after, events in leads.items()) or "nothing"
        seen = f" {state.status.value} | {state.holds.value} |" if states is CallState else ""
        yield f"| {state.name.lower()} |{seen} {about} | {ways} |"
    yield ""


def _comment_above(lines: list[str]) -> list[str]:
    found: list[str] = []
    for line in reversed(lines):
        if not line.strip().startswith("#:"):
            break
        found.insert(0, line.strip().removeprefix("#:").strip())
    return found


#: Each file, and what draws it.
DIAGRAMS: Mapping[str, Callable[[], str]] = {
    "docs/images/tracked-call.svg": tracked_call,
    "docs/images/house.svg": house,
    "docs/explanation/states.md": states_page,
}

if __name__ == "__main__":
    for name, draw in DIAGRAMS.items():
        (ROOT / name).write_text(draw(), encoding="utf-8")
        print(name)
