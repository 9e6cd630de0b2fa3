"""The table of programs that searches have missed, and what most of them do: lose an update."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio
from trio.lowlevel import checkpoint

Program = Callable[[], Awaitable[Any]]


@attrs.frozen
class Missed:
    """A program, and exactly what it can end in."""

    program: Program
    outcomes: tuple[Any, ...]
    #: What `sim.explore` is asked for besides.
    options: dict[str, Any]
    #: Whether some of it is not seen: a reduction then says so, and decides nothing.
    is_seen: bool


#: The programs by name.
MISSED: dict[str, Missed] = {}


def ends(*outcomes: Any, seen: bool = True, **options: Any) -> Callable[[Program], Program]:
    """Take a program into the table, with all that it can end in."""

    def take(program: Program) -> Program:
        MISSED[program.__name__] = Missed(program, outcomes, options, seen)
        return program

    return take


async def together(*tasks: Callable[[], Awaitable[object]]) -> None:
    """Run each in a task of its own."""
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)


async def twice(read: Callable[[], int], write: Callable[[int], object]) -> int:
    """Two tasks read, and write one more; give what is read in the end."""

    async def add() -> None:
        seen = read()
        await checkpoint()
        write(seen + 1)

    await together(add, add)
    return read()
