"""What else can happen at any moment, as one more task of the program: so far, being cancelled.

Rules.  The program becomes ``main.0``, in a cancel scope of its own, and ``main.1`` is a task of one step that
cancels that scope.  When it steps is a choice like any other, so every strategy tries it, every schedule holds it,
and shrinking moves it to where it does not matter: choice 0 cancels when the program has ended.  A cancel that may
still come keeps time from nothing: when it alone could step, the first choice is that time passes, a step of
``main.2``; and when there is no time to pass either, that step is a deadlock.

Theory.  To cancel at every step of a program costs a search a factor of about its number of steps, where a nested
loop over cancel points and schedules would cost the same and reach less: it could not combine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any

import trio

from toolrt.errors import DefinitionRefused
from toolrt.sim._host import current_scheduler

__all__ = ["CANCELLED", "with_actors"]


_CANCELLER = "main.1"


class _Ended(Enum):
    CANCELLED = "cancelled"

    def __repr__(self) -> str:
        return self.name


#: The value of an execution whose program was cancelled by the simulator before it returned.
CANCELLED = _Ended.CANCELLED


def with_actors(program: Callable[[], Awaitable[Any]], cancel_at: object) -> Callable[[], Awaitable[Any]]:
    """Give `program` together with what else can happen to it.

    Raises:
        DefinitionRefused: `cancel_at` is neither None nor "any".
    """
    if cancel_at is None:
        return program
    if cancel_at != "any":
        raise DefinitionRefused("cancel_at", 'None or "any" (a cancel that may come before any step)', cancel_at)
    if not callable(program):
        raise DefinitionRefused("a program", "an async function without arguments", program)

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
                scheduler.spare = None

        async def cancel() -> None:  # noqa: ASYNC124  a task is async
            scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            nursery.start_soon(cancel)
            if scheduler is not None:
                scheduler.spare = (_CANCELLER,)
        if error is not None:
            raise error
        return CANCELLED if scope.cancelled_caught else value

    return cancelled_anywhere
