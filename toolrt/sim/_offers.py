"""What one execution offers beside its tasks' steps: see `_chances`."""

from __future__ import annotations

from math import inf

import trio

from toolrt.sim._paths import CANCEL, CLOCK
from toolrt.sim._trio_internals import Seam

__all__ = ["Offers"]


class Offers:
    """Which scopes may be cancelled, and how often the clock may still move early."""

    def __init__(self, seam: Seam) -> None:
        self._seam = seam
        #: How often the clock may still move although a task can run.
        self.moves_left = 0
        #: The name of the scopes that may be cancelled, or None.
        self.wanted: str | None = None
        #: True once a scope of that name was entered.
        self.entered = False
        #: The scopes that may be cancelled now, by what the choice is called.
        self.open: dict[str, trio.CancelScope] = {}
        self._entered = 0

    def enter(self, scope: trio.CancelScope) -> str:
        """Offer to cancel `scope`; give what the choice is called."""
        called = f"{CANCEL}.{self._entered}"
        self._entered += 1
        self.entered = True
        self.open[called] = scope
        return called

    def leave(self, called: str) -> None:
        """Offer it no longer."""
        self.open.pop(called, None)

    def beside(self, enabled: tuple[str, ...]) -> tuple[str, ...]:
        """Give `enabled` with what else can happen."""
        if not enabled:
            return (CLOCK, *self.open)
        if self.moves_left and self._seam.next_deadline() < inf and not self._seam.has_idle_waiters():
            return (*enabled, *self.open, CLOCK)
        return (*enabled, *self.open) if self.open else enabled

    def has(self, name: str) -> bool:
        """Say whether `name` is offered here, and no task's."""
        return name is CLOCK or name in self.open

    def take(self, name: str) -> bool:
        """Do what was chosen; say whether that is that the clock is to move."""
        if name is CLOCK:
            self.moves_left -= 1
            return True
        scope = self.open[name]
        self.wanted = None
        self.open.clear()
        scope.cancel()
        return False
