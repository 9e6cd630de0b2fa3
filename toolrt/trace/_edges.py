"""Why one step came before another, edge by edge.

Theory.  The edges are those of `_clocks`, without the order of one task's own steps: a step that woke, spawned or was
joined, and the nearest two accesses to one resource when one writes.  An edge is direct when no chain of others orders
its steps.  A direct edge by accesses alone is a race: its steps could have come the other way round (Flanagan and
Godefroid, 2005).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from toolrt.probe import Resource
from toolrt.trace._clocks import Clocks
from toolrt.trace._record import Step


@attrs.frozen
class Edge:
    """One step came before another, for a reason."""

    #: The index of the step that came first.
    before: int
    #: The index of the other, a later one of another task.
    after: int
    #: The resources that both touch and one writes, in the order the later step reports them; empty when the first
    #: merely woke, spawned or was joined by the second.
    resources: tuple[Resource, ...]
    #: Whether the first woke, spawned or was joined by the second.
    wakes: bool

    @property
    def is_access(self) -> bool:
        """Whether nothing but accesses orders the two."""
        return not self.wakes


def edges_of(steps: Sequence[Step]) -> Iterator[Edge]:
    """Give the edges that lead to each step from those of other tasks, by the later step, then by the earlier."""
    written: dict[Resource, int] = {}
    read: dict[Resource, list[int]] = {}
    for index, step in enumerate(steps):
        found: dict[int, tuple[list[Resource], bool]] = {
            cause: ([], True) for cause in step.causes if 0 <= cause < index
        }
        for access in step.accesses:
            before = [written[access.resource]] if access.resource in written else []
            if access.write:
                before += read.pop(access.resource, ())
            for cause in before:
                resources = found.setdefault(cause, ([], False))[0]
                if access.resource not in resources:
                    resources.append(access.resource)
        for access in step.accesses:
            if access.write:
                written[access.resource] = index
            else:
                read.setdefault(access.resource, []).append(index)
        for cause in sorted(found):
            if steps[cause].task != step.task:
                resources, wakes = found[cause]
                yield Edge(cause, index, tuple(resources), wakes)


def direct_of(steps: Sequence[Step], clocks: Clocks) -> Iterator[Edge]:
    """Give the edges that no chain of others implies, in the order of `edges_of`."""
    latest: dict[str, int] = {}
    own: list[int | None] = []
    for index, step in enumerate(steps):
        own.append(latest.get(step.task))
        latest[step.task] = index
    leading: dict[int, list[Edge]] = {}
    for edge in edges_of(steps):
        leading.setdefault(edge.after, []).append(edge)
    for index, edges in leading.items():
        last = own[index]
        before = [edge.before for edge in edges] + ([] if last is None else [last])
        for edge in edges:
            if not any(clocks.before(edge.before, other) for other in before):
                yield edge
