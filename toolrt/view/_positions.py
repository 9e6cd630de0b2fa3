"""Executions at positions: what stands on a page where a reader moves sliders and sees what was run there.

Rules.  There is an execution for each combination of positions, made beforehand: the page only chooses which of them is
shown.  Pictures of calls have one scale, so that a reader sees what became longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from toolrt.errors import DefinitionRefused
from toolrt.trace import Trace, stable_text
from toolrt.view._short import one_line
from toolrt.view._svg import timelines

_MOST_POSITIONS = 200


def positions_of(
    given: Sequence[Any], traces: Sequence[Trace], axes: Mapping[str, Sequence[object]], title: str
) -> dict[str, Any]:
    """Give what the page shows.

    Raises:
        DefinitionRefused: `axes` are none, or there are not as many executions as combinations, or more than 200.
    """
    if not isinstance(axes, Mapping) or not axes or not all(len(places) for places in axes.values()):
        raise DefinitionRefused("slider(axes)", "names, each with one position or more", axes)
    wanted = prod(len(places) for places in axes.values())
    if len(traces) != wanted or wanted > _MOST_POSITIONS:
        expected = f"an execution for each of {wanted:,} positions, at most {_MOST_POSITIONS}"
        raise DefinitionRefused("slider(source, axes)", expected, f"{len(traces):,} of them")
    runs = [
        {"picture": picture, "values": [[one_line(str(name), 60), *_shown(value)] for name, value in _values(one)]}
        for one, picture in zip(given, timelines(traces, title), strict=True)
    ]
    named = [[one_line(str(name), 60), [_label(place) for place in places]] for name, places in axes.items()]
    return {"axes": named, "runs": runs}


def _values(one: Any) -> list[tuple[object, object]]:
    """What came of an execution: the entries of its value, or how it ended."""
    execution = getattr(one, "execution", one)
    value = getattr(execution, "value", None)
    if getattr(execution, "error", None) is None and isinstance(value, Mapping):
        return list(value.items())
    return [("it ends in", getattr(execution, "outcome", "not known how"))]


def _shown(value: object) -> tuple[str, float | None]:
    """A value as text, and as a number if it is one: only these have a bar."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.6g}", float(value)
    return one_line(value if isinstance(value, str) else stable_text(value), 120), None


def _label(place: object) -> str:
    return one_line(getattr(place, "__name__", None) or str(place), 60)
