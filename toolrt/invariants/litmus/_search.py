"""The searches a litmus program is verified by.

Every schedule is visited in depth-first order, as an odometer turns; the classes among them are counted by brute
force.  Two schedules are in one class when each resource was touched in the same order, reads of one resource
between two writes being free to change places (Mazurkiewicz, "Concurrent program schemes and their
interpretations", 1977).  A step that reported nothing is ordered with every other.  This counter knows nothing of
partial-order reduction, so it can be held against it.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from toolrt import sim

__all__ = ["EverySchedule", "class_of"]

# What a step touches that has reported nothing; whoever has reported something reads it.
_ANYTHING = ("anything",)


class EverySchedule:
    """The strategy that runs every schedule once, the simplest first."""

    def begin(self) -> sim.Search:
        """Begin with the simplest schedule."""
        return _Odometer()


class _Odometer(sim.Search):
    def __init__(self) -> None:
        self._next: list[int] | None = []
        self._last: _Prefix | None = None

    def policy(self) -> sim.Policy | None:
        """The choices of the execution before, turned by one."""
        if self._last is not None:
            self._next = self._last.next
        self._last = None if self._next is None else _Prefix(self._next)
        return self._last

    def claim(self, executions: int, distinct: int) -> str:
        """Say how many schedules were run, and whether these are all."""
        return f"{'exhaustive' if self.complete() else 'the first'}(schedules={executions})"

    def complete(self) -> bool:
        """Say whether there is no further schedule."""
        return self._next is None


class _Prefix:
    """Makes the choices of a prefix, then 0, and notes how many there were at each step."""

    def __init__(self, prefix: list[int]) -> None:
        self._prefix = prefix
        self._widths: list[int] = []

    def start(self, info: sim.RunInfo) -> None:
        """Forget the widths."""
        self._widths = []

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Make the choice at the step's place."""
        self._widths.append(len(enabled))
        return self._prefix[step] if step < len(self._prefix) else 0

    @property
    def next(self) -> list[int] | None:
        """The next prefix, or None after the last."""
        choices = self._prefix + [0] * (len(self._widths) - len(self._prefix))
        for index in reversed(range(len(choices))):
            if choices[index] + 1 < self._widths[index]:
                return [*choices[:index], choices[index] + 1]
        return None


def class_of(execution: sim.Execution) -> Hashable:
    """What executions of one program have in common that differ only in the order of independent steps."""
    places: dict[str, int] = {}
    # For each resource: the steps that wrote it, and between them those that read it.
    orders: dict[Any, list[Any]] = {}
    for step in execution.schedule.steps:
        place = places[step.task] = places.get(step.task, -1) + 1
        label = (step.task, place)
        touched: dict[Any, bool] = {_ANYTHING: not step.accesses}
        for access in step.accesses:
            touched[access.resource] = touched.get(access.resource, False) or access.write
        for resource, write in touched.items():
            order = orders.setdefault(resource, [])
            if write:
                order.append(label)
            elif order and isinstance(order[-1], set):
                order[-1].add(label)
            else:
                order.append({label})
    return frozenset(
        (resource, tuple(frozenset(part) if isinstance(part, set) else part for part in order))
        for resource, order in orders.items()
    )
