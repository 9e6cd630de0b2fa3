"""What happened before what, as vector clocks over the steps of one execution.

Theory.  One step happens before another when a chain of these edges leads from it to the other: the order of
steps of one task; the step that spawned or woke a task before that task's next step, and the last step of a
joined task before the step that joined it; two steps that touch one resource, one of them writing, in the
order they ran (Lamport, 1978; Mattern, 1989).  Two steps without such a chain could have run the other way
round with the same effect.

Limits.  An unreported access makes no edge.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolrt.probe import Resource
from toolrt.trace._record import Step


class Clocks:
    """The vector clock of every step, computed once."""

    def __init__(self, steps: Sequence[Step]) -> None:
        column: dict[str, int] = {}
        for step in steps:
            column.setdefault(step.task, len(column))
        width = len(column)
        self._tasks = tuple(column)
        # _at[i] is (column of its task, its number among that task's steps, from 1).
        self._at: list[tuple[int, int]] = []
        self._vectors: list[tuple[int, ...]] = []
        latest: list[tuple[int, ...]] = [(0,) * width for _ in range(width)]
        written: dict[Resource, int] = {}
        read: dict[Resource, list[int]] = {}
        for index, step in enumerate(steps):
            place = column[step.task]
            before = [cause for cause in step.causes if 0 <= cause < index]
            for access in step.accesses:
                if access.resource in written:
                    before.append(written[access.resource])
                if access.write:
                    before.extend(read.pop(access.resource, ()))
            vector = list(latest[place])
            for cause in before:
                vector = list(map(max, vector, self._vectors[cause]))
            vector[place] += 1
            done = tuple(vector)
            latest[place] = done
            self._at.append((place, done[place]))
            self._vectors.append(done)
            for access in step.accesses:
                if access.write:
                    written[access.resource] = index
                else:
                    read.setdefault(access.resource, []).append(index)

    def before(self, first: int, second: int) -> bool:
        """Say whether step `first` happens before step `second`; no step happens before itself."""
        if first == second:
            return False
        place, number = self._at[first]
        return self._vectors[second][place] >= number

    def of(self, index: int) -> dict[str, int]:
        """Give the clock of one step, by task; tasks without a step before it are left out."""
        return {task: number for task, number in zip(self._tasks, self._vectors[index], strict=True) if number}
