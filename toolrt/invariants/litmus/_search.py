"""Every schedule of a program, in depth-first order, as an odometer turns."""

from __future__ import annotations

from toolrt import sim

__all__ = ["EverySchedule"]


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
