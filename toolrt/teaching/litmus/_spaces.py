"""Programs that tell searches apart: many schedules, few that differ, or few that are wrong."""

from __future__ import annotations

from itertools import permutations, product
from math import factorial

import trio
from trio.lowlevel import checkpoint

from toolrt.sim import Cell
from toolrt.teaching.litmus._litmus import Count, Litmus, Program, one_step, orders, together


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


def _tools_count(tools: int, files: int) -> Count:
    number = 1
    for file in range(files):
        number *= factorial(len("abcdef"[:tools][file::files]))
    return Count(number, "for each file the orders of its tools")


def _squared(tasks: int) -> Count:
    return Count(factorial(tasks) ** 2, f"({tasks}!)^2: any order of the first steps with any of the second")


#: Programs that tell searches apart.
SPACES: tuple[Litmus, ...] = (
    Litmus(
        "needle_3x2",
        "Two tasks write their names into a log, twice each, while a third walks along. The one word in six that is"
        " wrong is the one in which they take turns exactly.",
        _needle(3, 2),
        right=_words(2) - {"abab"},
        wrong={"abab"},
        interleavings=orders(3, 3, 3),
        classes=Count(6, "4! / (2! 2!): orders of the names"),
    ),
    Litmus(
        "needle_5x3",
        "As needle_3x2, with three rounds and three tasks that only walk along: 305 billion schedules, and"
        " only 20 of them differ. It tells samplers apart: a random walk finds the wrong word once in 32 executions,"
        " PCT of depth 3 hardly ever.",
        _needle(5, 3),
        right=_words(3) - {"ababab"},
        wrong={"ababab"},
        interleavings=orders(4, 4, 4, 4, 4),
        classes=Count(20, "6! / (3! 3!): orders of the names"),
        proof="each name is written three times, in any order",
    ),
    *(
        Litmus(
            f"reorder_{tasks}",
            f"{tasks - 1} tasks set one cell, then another; one more task reads both, in that order. It should see both"
            " or neither. The more there are that set, the rarer is it to see one alone; the classes grow as (n!)^2.",
            _reorder(tasks),
            right={(0, 0), (1, -1)},
            wrong={(0, -1), (1, 0)},
            interleavings=orders(*[2] * tasks),
            classes=_squared(tasks),
            proof="each cell is read once, at 0 or set; reading first between two others gives the mixed pairs",
        )
        for tasks in (3, 4, 5, 10)
    ),
    Litmus(
        "uneven_25",
        "A task of one step looks at how far a task of 25 steps has come. Seeing it at its end takes 25 choices in a"
        " row: a random walk does it once in 33 million executions, though it is one schedule in 26.",
        _uneven,
        right=range(25),
        wrong={25},
        interleavings=orders(25, 1),
        classes=Count(26, "the place of the one step"),
    ),
    *(
        Litmus(
            f"tools_{tools}_on_{files}",
            f"{tools} tools of three steps; the second appends to one of {files} file{'s'[: files > 1]}, and nothing"
            " orders them. The schedules are many, what differs is the order on each file. Tickets leave one.",
            _tools(tools, files),
            right=_held(tools, files)[:1],
            wrong=_held(tools, files)[1:],
            interleavings=orders(*[3] * tools),
            classes=_tools_count(tools, files),
            proof="the orders of each file's tools, in any combination",
            sample=3_000,
        )
        for tools, files in ((4, 2), (6, 3), (5, 5), (5, 1))
    ),
)
