"""What the program calls the things that its steps touch: the names in columns, cells and sentences.

Rules.
    1. A thing that a task made (a lock, an event) is called by the variable, or the attribute of one, through which the
       program reached it first, behind its kind.
    2. An attribute, an item or a key is called by an expression of a line that touched it; one that does not begin
       with ``self`` comes before one that does.
    3. Two things are never called the same: such a name is no name.
"""

from __future__ import annotations

from collections import Counter

from toolrt.probe import Resource
from toolrt.sim.engine._source_lines import SourceLines
from toolrt.sim.programs.tracking._guard import variable_at

__all__ = ["named"]

# The resource of a thing that a task made: kind, task, number.  What belongs to it has a part more.
_MADE_BY_A_TASK = 3


def named(places: SourceLines) -> SourceLines:
    """Give `places` with the program's names in it: call it when the execution is over."""
    found: dict[Resource, str] = {}
    for (_, resource, _), place in places.of_accesses.items():
        known = found.get(resource)
        if resource[0] in ("cell", "watched") or (known is not None and not known.startswith("self.")):
            continue
        if len(resource) == _MADE_BY_A_TASK:
            name = places.called(resource)
            name = None if name is None else f"{resource[0]} {name}"
        else:
            name = variable_at(place.path, place.line, resource) if place.path else None
        if name is not None:
            found[resource] = name
    own = {" ".join(map(str, each[1:])) for _, each, _ in places.of_accesses if each[0] in ("cell", "watched")}
    often = Counter([*found.values(), *own])
    places.names = {resource: name for resource, name in found.items() if often[name] == 1}
    return places
