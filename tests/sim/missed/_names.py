"""Programs whose tasks share a variable: of a module, of a function, or of the process."""

from __future__ import annotations

import builtins
import contextlib
import functools
import io
import logging
import operator
import os
import sys
from collections.abc import Callable

from trio.lowlevel import checkpoint

import tests.sim.missed._names as alias
from tests.sim.missed._table import ends, together, twice

# ---------------------------------------------------------------------- variables of modules, by other names

total = 0


@ends(1, 2)
async def global_by_alias() -> int:
    alias.total = 0
    return await twice(lambda: total, lambda value: setattr(alias, "total", value))


@ends(1, 2)
async def global_by_dict() -> int:
    globals()["total"] = 0
    return await twice(lambda: total, lambda value: operator.setitem(globals(), "total", value))


@ends(1, 2)
async def global_by_table_of_modules() -> int:
    alias.total = 0
    return await twice(lambda: alias.total, lambda value: setattr(sys.modules[__name__], "total", value))


@ends(1, 2)
async def global_statement() -> int:
    global total
    total = 0

    async def add() -> None:
        global total
        seen = total
        await checkpoint()
        total = seen + 1

    await together(add, add)
    return total


@ends(1, 2)
async def built_in_name() -> int:
    builtins.number = 0  # type: ignore[attr-defined]
    return await twice(lambda: number, lambda value: setattr(builtins, "number", value))  # type: ignore[name-defined]  # noqa: F821


@ends("0", "1")
async def environment() -> str:
    os.environ["TOOLRT_MISSED"] = "0"
    seen = []

    async def write() -> None:
        await checkpoint()
        os.environ["TOOLRT_MISSED"] = "1"

    async def read() -> None:
        await checkpoint()
        seen.append(os.environ["TOOLRT_MISSED"])

    await together(write, read)
    return seen[0]


# ---------------------------------------------------------------------- functions and what they keep


@ends(1, 2)
async def two_closures() -> int:
    def made() -> tuple[Callable[[], int], Callable[[int], None]]:
        count = 0

        def write(value: int) -> None:
            nonlocal count
            count = value

        return lambda: count, write

    return await twice(*made())


@ends(1, 2)
async def closure_in_a_closure() -> int:
    count = 0

    def outer() -> Callable[[int], None]:
        def inner(value: int) -> None:
            nonlocal count
            count = value

        return inner

    return await twice(lambda: count, outer())


@ends(1, 2)
async def default_list() -> int:
    def kept(value: int | None = None, kept: list[int] = [0]) -> int:  # noqa: B006  that is the point
        if value is not None:
            kept[0] = value
        return kept[0]

    return await twice(kept, kept)


@ends(1, 2)
async def default_dict_by_name() -> int:
    def kept(value: int | None = None, *, cache: dict[str, int] = {"n": 0}) -> int:  # noqa: B006
        if value is not None:
            cache["n"] = value
        return cache["n"]

    return await twice(kept, kept)


@ends(0, 1)
async def defaults_replaced() -> int:
    def get(value: int = 0) -> int:
        return value

    seen = []

    async def write() -> None:
        await checkpoint()
        get.__defaults__ = (1,)

    async def read() -> None:
        await checkpoint()
        seen.append(get())

    await together(write, read)
    return seen[0]


@ends(1, 2)
async def cache_of_a_function() -> int:
    made: list[int] = []
    cache: dict[str, int] = {}

    async def get() -> None:
        if "page" not in cache:
            made.append(1)
            await checkpoint()
            cache["page"] = 1

    await together(get, get)
    return len(made)


@ends(1, 2)
async def bound_in_a_partial() -> int:
    box = [0]
    return await twice(functools.partial(operator.getitem, box, 0), functools.partial(operator.setitem, box, 0))


# ---------------------------------------------------------------------- what a process has one of


@ends(("a", "b"), ("", "a"), ("b", ""))
async def printed_elsewhere() -> tuple[str, str]:
    """Each prints into a text of its own; the one that came later restores the other's."""
    before, texts = sys.stdout, (io.StringIO(), io.StringIO())
    sys.stdout = io.StringIO()

    async def tell(text: io.StringIO, word: str) -> None:
        with contextlib.redirect_stdout(text):
            await checkpoint()
            print(word, end="")

    try:
        await together(functools.partial(tell, texts[0], "a"), functools.partial(tell, texts[1], "b"))
    finally:
        sys.stdout = before
    return texts[0].getvalue(), texts[1].getvalue()


@ends(1, 2)
async def level_of_a_logger() -> int:
    logger = logging.getLogger("tests.sim.missed")
    logger.setLevel(0)
    logger.level = 0
    return await twice(lambda: logger.level, logger.setLevel)
