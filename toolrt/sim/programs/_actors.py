"""Actors beside the program's tasks: a cancel of the program or of a scope, or the passing of time, at any moment.

Rules.  ``cancel_at="any"``: the program becomes ``main.0``, in a cancel scope of its own, and ``main.1`` is a task of
one step that cancels that scope.  When it steps is a choice like any other, so every strategy tries it, every schedule
holds it, and shrinking moves it to where it does not matter: choice 0 cancels when the program has ended.  A cancel
that may still come does not keep time from moving: if only the idle-only task can run, the first choice is that time
passes, a step of ``clock``; if no deadline is pending either, that step is a deadlock.

Another name cancels a scope of that name (`_chances.scope`), and ``clock="explored"`` moves the clock early; neither is
a task, so that the tasks of the program keep their names.  ``clock="real"`` has deadlines of one instant come apart
(`engine._apart`).

Theory.  To cancel at every step of a program costs a search a factor of about its number of steps, where a nested
loop over cancel points and schedules would cost the same and reach less: it could not combine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any

import attrs
import trio

from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._extra_choices import ExtraChoices
from toolrt.sim.engine._host import current_scheduler, execute
from toolrt.sim.engine._job import InPasses, Job, called_like
from toolrt.sim.policies._choices import Choices
from toolrt.sim.programs._crashes import crashing

#: So often the clock may move early, unless the caller says otherwise: most bugs need one deadline, or two in a row.
DEFAULT_CLOCK_MOVES = 2

_Program = Callable[[], Awaitable[Any]]

_CANCELLER = "main.1"


#: What stands for ``crash_at="any"`` where a cancel is named: at most one of the two can come.
CRASH = "any crash"


class _Ended(Enum):
    CANCELLED = "cancelled"

    def __repr__(self) -> str:
        return self.name


#: The value of an execution whose program was cancelled by the simulator before it returned.
CANCELLED = _Ended.CANCELLED


@attrs.frozen
class Actors:
    """What may happen beside the tasks of a program, and in which orders these step; `actors_of` checks it."""

    #: What may be cancelled: None, "any", or the name of a scope; or `CRASH`.
    cancel_at: str | None = None
    #: None, "explored" or "real"; and how often it may move early.
    clock: str | None = None
    clock_moves: int = DEFAULT_CLOCK_MOVES
    #: "any" or "trio".
    order: str = "any"

    def around(self, program: _Program) -> _Program:
        """Give `program` with all that."""
        if not callable(program):
            raise DefinitionRefused("a program", "an async function without arguments", program)
        program = self._with_cancel(self._with_clock(program))
        return program if self.order == "any" else InPasses(program)

    def _with_clock(self, program: _Program) -> _Program:
        if self.clock is None:
            return program
        if self.clock == "real":
            return called_like(program, _with_deadlines_apart(program), " with clock=real")

        def moves_early(extra: ExtraChoices) -> None:
            extra.let_the_clock_move(self.clock_moves)

        return called_like(program, _offering(program, moves_early), f" with clock_moves<={self.clock_moves}")

    def _with_cancel(self, program: _Program) -> _Program:
        if self.cancel_at is None:
            return program
        if self.cancel_at == CRASH:
            return called_like(program, crashing(program, _CANCELLER))
        if self.cancel_at == "any":
            return called_like(program, _cancelled_anywhere(program))

        def wants(extra: ExtraChoices) -> None:
            extra.wanted = self.cancel_at

        return _offering(program, wants)

    @property
    def in_words(self) -> list[str]:
        """It as a claim says it."""
        named = [] if self.cancel_at is None else [f"cancel_at={self.cancel_at}"]
        if self.cancel_at == CRASH:
            named = ["crash_at=any"]
        if self.clock is not None:
            named.append("clock=real" if self.clock == "real" else f"clock_moves<={self.clock_moves}")
        return named if self.order == "any" else [*named, f"order={self.order}"]

    @property
    def as_arguments(self) -> str:
        """It as a caller writes it, behind the other arguments of a call that runs the same program again."""
        text = "" if self.cancel_at is None else f', cancel_at="{self.cancel_at}"'
        if self.cancel_at == CRASH:
            text = ', crash_at="any"'
        if self.clock is not None:
            text += f', clock="{self.clock}"' + (f", clock_moves={self.clock_moves}" if self.clock != "real" else "")
        return text if self.order == "any" else f'{text}, order="{self.order}"'


def actors_of(cancel_at: object, crash_at: object, clock: object, clock_moves: object, order: object) -> Actors:
    """Give what a caller's arguments say.

    Raises:
        DefinitionRefused: one is not what it must be, or a cancel and a crash are given.
    """
    if crash_at is not None and (crash_at != "any" or cancel_at is not None):
        raise DefinitionRefused(
            "crash_at", 'None or "any" (the program may crash before any step), and no cancel_at', crash_at
        )
    if not isinstance(clock_moves, int) or isinstance(clock_moves, bool) or clock_moves < 1:
        raise DefinitionRefused("clock_moves", "a number of moves, 1 or more", clock_moves)
    if clock not in (None, "explored", "real"):
        early = '"explored" (it may move whenever a deadline is pending)'
        apart = '"real" (deadlines of one instant come one by one)'
        raise DefinitionRefused("clock", f"None, {early} or {apart}", clock)
    if cancel_at is not None and (not isinstance(cancel_at, str) or not cancel_at):
        raise DefinitionRefused(
            "cancel_at", 'None, "any" (a cancel that may come before any step), or the name of a sim.scope', cancel_at
        )
    if order not in ("any", "trio"):
        raise DefinitionRefused(
            "order", '"any" (any task that can run may step next) or "trio" (each of them once per pass)', order
        )
    return Actors(CRASH if crash_at is not None else cancel_at, clock, clock_moves, order)


def _cancelled_anywhere(program: _Program) -> _Program:
    async def cancelled_anywhere() -> Any:
        value: Any = None
        error: BaseException | None = None
        scope = trio.CancelScope()
        scheduler = current_scheduler()

        async def run() -> None:
            nonlocal value, error
            try:
                with scope:
                    value = await program()
            except BaseException as raised:  # noqa: ASYNC103  raised again below, outside the nursery's group
                error = raised
            if scheduler is not None:
                # Only the cancel is left, and it changes nothing.
                scheduler.idle_only = None

        async def cancel() -> None:  # noqa: ASYNC124  a task is async
            scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            nursery.start_soon(cancel)
            if scheduler is not None:
                scheduler.idle_only, scheduler.record.canceller = (_CANCELLER,), _CANCELLER
        if error is not None:
            raise error
        return CANCELLED if scope.cancelled_caught else value

    return cancelled_anywhere


def enters_scope(program: _Program, name: str, step_limit: int) -> bool:
    """Say whether `program` enters a scope of this name in the schedule of zeros; it is run for that."""
    seen: list[ExtraChoices] = []

    def wants(extra: ExtraChoices) -> None:
        extra.wanted = name
        seen.append(extra)

    execute(Job(_offering(program, wants), Choices(), step_limit))
    return seen[0].entered


def _with_deadlines_apart(program: _Program) -> _Program:
    async def apart() -> Any:
        scheduler = current_scheduler()
        if scheduler is not None:
            scheduler.take_deadlines_apart()
        return await program()

    return apart


def _offering(program: _Program, add: Callable[[ExtraChoices], None]) -> _Program:
    async def offering() -> Any:
        scheduler = current_scheduler()
        if scheduler is not None:
            add(scheduler.extra_choices())
        return await program()

    return called_like(program, offering)
