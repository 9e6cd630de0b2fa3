"""Programs that tell searches apart: many schedules, few that differ, or few that are wrong."""

from __future__ import annotations

from itertools import permutations, product

import trio
from trio.lowlevel import checkpoint

from toolrt.sim import Cell
from toolrt.teaching.litmus._litmus import Entry, Program, gallery, one_step, together


def _needle(tasks: int, rounds: int) -> Program:
    async def program() -> str:
        log = Cell("", name="log")

        async def note(name: str) -> None:
            for _ in range(rounds):
                log.set(log.get() + name)
                await checkpoint()
            Cell(None, name=f"end of {name}").get()

        async def walk(number: int) -> None:
            own = Cell(0, name=f"own {number}")
            for _ in range(rounds):
                own.set(own.get() + 1)
                await checkpoint()
            own.get()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(note, "a")
            nursery.start_soon(note, "b")
            for number in range(tasks - 2):
                nursery.start_soon(walk, number)
        return log.get()

    return program


def _words(rounds: int) -> set[str]:
    """Every order of so many a and so many b."""
    words = {""}
    for _ in range(2 * rounds):
        words = {word + name for word in words for name in "ab" if word.count(name) < rounds}
    return words


def _reorder(tasks: int) -> Program:
    async def program() -> tuple[int, int]:
        first, second = Cell(0, name="first"), Cell(0, name="second")
        seen: list[int] = []

        async def publish() -> None:
            first.set(1)
            await checkpoint()
            second.set(-1)

        async def look() -> None:
            seen.append(first.get())
            await checkpoint()
            seen.append(second.get())

        await together(*[publish] * (tasks - 1), look)
        return seen[0], seen[1]

    return program


async def _uneven() -> int:
    place = Cell(0, name="place")
    seen: list[int] = []

    async def walk() -> None:
        for step in range(1, 26):
            place.set(step)
            if step < 25:
                await checkpoint()

    def look() -> None:
        seen.append(place.get())

    await together(walk, one_step(look))
    return seen[0]


def _tools(tools: int, files: int) -> Program:
    async def program() -> str:
        held = [Cell("", name=f"file {number}") for number in range(files)]

        async def tool(index: int) -> None:
            own, file = Cell(0, name=f"tool {index}"), held[index % files]
            own.set(1)
            await checkpoint()
            file.set(file.get() + "abcdef"[index])
            await checkpoint()
            own.set(2)

        await together(*((tool, index) for index in range(tools)))
        return " ".join(file.get() for file in held)

    return program


def _held(tools: int, files: int) -> list[str]:
    """What the files can hold, the one in call order first."""
    letters = "abcdef"[:tools]
    each = [["".join(order) for order in permutations(letters[number::files])] for number in range(files)]
    return [" ".join(texts) for texts in product(*each)]


def _appending(tools: int, files: int) -> Entry:
    held = _held(tools, files)
    return _tools(tools, files), {"right": held[:1], "wrong": held[1:], "sample": 3_000}


#: Programs that tell searches apart.
SPACES = gallery(
    needle_3x2=(_needle(3, 2), {"right": _words(2) - {"abab"}, "wrong": {"abab"}}),
    needle_5x3=(_needle(5, 3), {"right": _words(3) - {"ababab"}, "wrong": {"ababab"}}),
    reorder_3=_reorder(3),
    reorder_4=_reorder(4),
    reorder_5=_reorder(5),
    reorder_10=_reorder(10),
    uneven_25=(_uneven, {"right": range(25), "wrong": {25}}),
    tools_4_on_2=_appending(4, 2),
    tools_6_on_3=_appending(6, 3),
    tools_5_on_5=_appending(5, 5),
    tools_5_on_1=_appending(5, 1),
)
