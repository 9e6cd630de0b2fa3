"""Deadlines of one instant that come one after the other, as on a real clock.

Rules.  ``clock="real"``: where time gets to an instant at which two or more deadlines are pending, each of them comes
in a step of its own, ``deadline.0`` and so on.  When it steps is a choice like any other: right away, or after any
number of steps of tasks that an earlier one woke.  Virtual time stands still meanwhile.

Theory.  Two computers' clocks, or two lines of a program that compute "in a second", never give the same time to the
last digit; a virtual clock does.  Which of two such deadlines a real clock reaches first is decided by microseconds.
Without this they expire together, before any task steps, as Trio has them when it looks at its clock once.

Limits.  `trio.testing.wait_all_tasks_blocked` waits for all of them.  Deadlines to which a mock clock of the program
jumps expire together.
"""

from __future__ import annotations

from typing import Any

import trio

from toolrt.sim._trio_internals._held import hold_due, release
from toolrt.sim._trio_internals._seam import Seam
from toolrt.sim._trio_internals._things import Primitives
from toolrt.sim.engine._roster import Roster


def take_apart(seam: Seam, roster: Roster, things: Primitives, now: float) -> None:
    """Have each of several deadlines that are due come in a step of its own.

    Args:
        seam: the Trio run they are in.
        roster: its tasks.
        things: what Trio's primitives report to.
        now: the time, in virtual seconds.
    """
    for scope in hold_due(seam, now):

        @trio.lowlevel.enable_ki_protection
        async def deadline(scope: Any = scope) -> None:  # noqa: ASYNC124  a task is async
            release(seam, things, scope, now)

        roster.begin_deadline(deadline)
