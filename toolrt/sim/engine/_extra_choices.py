"""The choices of one execution beside its tasks' steps; the rules are in `programs._chances`."""

from __future__ import annotations

from math import inf

import trio

from toolrt.probe import Resource
from toolrt.sim._paths import CANCEL, CLOCK, ROOT, key_of_path
from toolrt.sim._trio_internals._seam import Seam
from toolrt.sim._trio_internals._things import TIME, Primitives, cancels, reads


class ExtraChoices:
    """Which scopes may be cancelled, and how often the clock may still move early."""

    def __init__(self, seam: Seam, things: Primitives) -> None:
        self._seam = seam
        self._things = things
        #: How often the clock may still move although a task can run; see `let_the_clock_move`.
        self.moves_left = 0
        #: The name of the scopes that may be cancelled, or None.
        self.wanted: str | None = None
        #: True once a scope of that name was entered.
        self.entered = False
        #: The scopes that may be cancelled now, by what the choice is called, in the order of those names; and the
        #: step each was entered in.
        self.open: dict[str, tuple[trio.CancelScope, int]] = {}
        # One was cancelled: no other is.
        self._is_taken = False
        # How many of them each task has entered.
        self._entered: dict[str, int] = {}

    def let_the_clock_move(self, moves: int) -> None:
        """Offer to move the clock so often, whenever a deadline is pending."""
        self.moves_left = moves
        self._things.timed = True

    def parks(self) -> tuple[tuple[Resource, bool], ...]:
        """Give what a task touches when it stops being able to run: the clock moves beside others only."""
        return ((TIME, False),) if self._things.timed else ()

    def enter(self, scope: trio.CancelScope, task: str, step: int) -> str:
        """Offer to cancel `scope`, which `task` enters in `step`; give what the choice is called."""
        number = self._entered.get(task, 0)
        self._entered[task] = number + 1
        called = f"{CANCEL}{task.removeprefix(ROOT)}.{number}"
        self.entered = True
        if self._is_taken:
            return called
        self.open[called] = scope, step
        if len(self.open) > 1:
            self.open = dict(sorted(self.open.items(), key=lambda entry: key_of_path(entry[0])))
        return called

    def leave(self, called: str) -> None:
        """Offer it no longer."""
        self.open.pop(called, None)
        # Also when another was cancelled: that must not show in what is touched here.
        self._things.implied.append((("cancel_at", called), True))

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

    def announce(self, name: str) -> tuple[int, ...]:
        """Report what it touches if this is chosen, and give the steps that it needs."""
        things = self._things
        # Not in the list that steps report to: it may ask which line of the program did it.
        kept, things.touched = things.touched, []
        causes: tuple[int, ...] = ()
        if name is CLOCK:
            things.touched.append((TIME, True))
            for scope in self._seam.due_by(self._seam.next_deadline()):
                cancels(things, scope)
        else:
            scope, entered = self.open[name]
            causes = (entered,)
            # Whether the clock may move beside others depends on which tasks can run.
            things.touched += (TIME, False), (("cancel_at", name), True)
            if scope.cancel_called:
                reads(things, scope)
            else:
                cancels(things, scope)
        touched, things.touched = things.touched, kept
        kept.extend(touched)
        return causes

    def take(self, name: str) -> bool:
        """Do what was chosen; say whether that is that the clock is to move."""
        if name is CLOCK:
            self.moves_left -= 1
            return True
        scope, _ = self.open[name]
        self._is_taken = True
        self.open.clear()
        scope.cancel()
        return False
