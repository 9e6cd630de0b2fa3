"""A cell: shared memory whose accesses the simulator sees."""

from __future__ import annotations

from itertools import count
from typing import Generic, TypeVar

from toolrt import probe
from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._host import current_scheduler

T = TypeVar("T")

#: The second part of the name of a nameless cell that was made outside an execution.  Its number counts the
#: cells of this process, so it means nothing in another one.
OUTSIDE = "outside"

_outside = count()


class Cell(Generic[T]):
    """A box for one value; every `get` and `set` is an access the probe sees.

    In a simulation this is how a step says what it reads and writes.  Outside one it is a plain box.

    Args:
        value: what is in it.
        name: what its accesses are called.  Two cells of one name count as one resource.  A cell without a name
            is called after the task that made it, so that it has the same name in every schedule.

    Raises:
        DefinitionRefused: the name is not a string.

    Example:
        >>> from toolrt import sim
        >>> cell = sim.Cell(0, name="x")
        >>> cell.set(cell.get() + 1)
        >>> cell.get()
        1
    """

    __slots__ = ("_resource", "_value")

    def __init__(self, value: T, name: str | None = None) -> None:
        if name is not None and not isinstance(name, str):
            raise DefinitionRefused("Cell(name)", "a string or None", name)
        self._value = value
        self._resource: tuple[str | int, ...]
        if name is not None:
            self._resource = ("cell", name)
            return
        scheduler = current_scheduler()
        made_by = scheduler.roster.name_thing() if scheduler is not None else None
        self._resource = ("cell", *(made_by or (OUTSIDE, next(_outside))))

    def get(self) -> T:
        """Read the value.  Checkpoint: never."""
        sink = probe.sink
        if sink is not None:
            sink.access(self._resource, False)
        return self._value

    def set(self, value: T) -> None:
        """Write the value.  Checkpoint: never."""
        sink = probe.sink
        if sink is not None:
            sink.access(self._resource, True)
        self._value = value

    def __repr__(self) -> str:
        return f"Cell({self._value!r}, name={'.'.join(map(str, self._resource[1:]))!r})"
