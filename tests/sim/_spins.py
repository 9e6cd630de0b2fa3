"""Random programs in which tasks poll: on one cell or two, with one checkpoint per round or two, under a deadline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
import trio.lowlevel
from hypothesis import strategies as st

from toolrt import sim

Program = Callable[[], Awaitable[Any]]
checkpoint = trio.lowlevel.checkpoint

_CELLS = st.integers(0, 1)
_OPERATIONS = st.one_of(
    st.tuples(st.just("set"), _CELLS, st.integers(1, 2)),
    st.tuples(st.just("copy"), _CELLS, st.just(0)),
    st.tuples(st.just("wait"), _CELLS, st.integers(1, 2)),
    st.tuples(st.just("wait for either"), _CELLS, st.integers(1, 2)),
    st.tuples(st.just("wait in two steps"), _CELLS, st.just(1)),
    st.tuples(st.just("wait for a while"), _CELLS, st.just(1)),
    st.tuples(st.just("sleep"), _CELLS, st.just(0)),
)

#: For each task what it does.
spinning = st.lists(st.lists(_OPERATIONS, min_size=1, max_size=2), min_size=2, max_size=2)


class Plain:
    """A cell whose accesses are not seen."""

    def __init__(self, value: int) -> None:
        self.value = value

    def get(self) -> int:
        """Read it."""
        return self.value

    def set(self, value: int) -> None:
        """Write it."""
        self.value = value


def made_of(tasks: list[list[tuple[str, int, int]]], cell: Callable[[int], Any] = sim.Cell) -> Program:
    """Give the program; its value is what the cells held in the end, and what each task saw."""

    async def program() -> Any:
        cells = [cell(0), cell(0)]
        saw: list[list[int]] = [[] for _ in tasks]

        async def run(number: int) -> None:
            for what, at, value in tasks[number]:
                one, other = cells[at], cells[1 - at]
                if what == "set":
                    one.set(value)
                elif what == "copy":
                    seen = one.get()
                    await checkpoint()
                    other.set(seen)
                elif what == "wait":
                    while one.get() < value:
                        await checkpoint()
                elif what == "wait for either":
                    while one.get() < value and other.get() < value:
                        await trio.lowlevel.checkpoint()
                elif what == "wait in two steps":
                    while not one.get():
                        await checkpoint()
                        if other.get() == 2:
                            break
                        await checkpoint()
                elif what == "wait for a while":
                    with trio.move_on_after(1):
                        while not one.get():
                            await checkpoint()
                else:
                    await trio.sleep(1)
                saw[number].append(one.get())

        async with trio.open_nursery() as nursery:
            for number in range(len(tasks)):
                nursery.start_soon(run, number)
        return tuple(each.get() for each in cells), tuple(map(tuple, saw))

    return program
