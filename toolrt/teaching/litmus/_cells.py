"""Races on shared memory, which the other programs build on."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import product

import trio
from trio.lowlevel import checkpoint

from toolrt.sim import Cell
from toolrt.teaching.litmus._litmus import Program, gallery, one_step, together


def lost_update(tasks: int, rounds: int) -> Program:
    async def program() -> int:
        counter = Cell(0, name="counter")

        async def add() -> None:
            for _ in range(rounds):
                seen = counter.get()
                await checkpoint()
                counter.set(seen + 1)

        await together(*[add] * tasks)
        return counter.get()

    return program


def _two_readers_two_writers() -> Program:
    async def program() -> tuple[int, int, int, int]:
        x, y = Cell(0, name="x"), Cell(0, name="y")
        seen: dict[str, int] = {}

        def write(cell: Cell[int]) -> None:
            cell.set(1)

        async def look(who: str, one: Cell[int], other: Cell[int]) -> None:
            seen[who + " first"] = one.get()
            await checkpoint()
            seen[who + " second"] = other.get()

        await together((one_step(write), x), (one_step(write), y), (look, "a", x, y), (look, "b", y, x))
        return seen["a first"], seen["a second"], seen["b first"], seen["b second"]

    return program


def _pair(does_first: str, does_second: str) -> Program:
    """Two tasks of two steps on two cells: ``"x=1 y"`` sets x, then reads y."""

    async def program() -> tuple[int, ...]:
        cells = {name: Cell(0, name=name) for name in "xy"}
        seen: dict[str, int] = {}

        def act(who: str, what: str) -> None:
            name, _, value = what.partition("=")
            if value:
                cells[name].set(int(value))
            else:
                seen[who + name] = cells[name].get()

        async def run(who: str, script: str) -> None:
            first, second = script.split()
            act(who, first)
            await checkpoint()
            act(who, second)

        await together((run, "a", does_first), (run, "b", does_second))
        return tuple(seen.values()) if len({who[0] for who in seen}) == 1 else tuple(seen[who] for who in sorted(seen))

    return program


async def _overdraw() -> int:
    balance = Cell(100, name="balance")

    async def withdraw() -> None:
        if balance.get() >= 100:
            await checkpoint()
            balance.set(balance.get() - 100)

    await together(withdraw, withdraw)
    return balance.get()


async def _account() -> str:
    balance = Cell(0, name="balance")
    said: list[str] = []

    def deposit() -> None:
        balance.set(balance.get() + 100)

    def withdraw() -> None:
        said.append("paid" if balance.get() >= 100 else "refused")
        if said == ["paid"]:
            balance.set(balance.get() - 100)

    def audit() -> None:
        balance.get()

    await together(one_step(deposit), one_step(withdraw), one_step(audit))
    return said[0]


async def _aba() -> str:
    # A stack a -> b -> c, whose nodes are used again once they are popped.
    head = Cell("a", name="head")
    below = {"a": "b", "b": "c", "c": ""}
    freed: set[str] = set()

    async def pop_slowly() -> None:
        seen = head.get()
        under = below[seen]
        await checkpoint()
        if head.get() == seen:
            head.set(under)

    async def pop_two_push_one() -> None:
        first = head.get()
        head.set(below[first])
        await checkpoint()
        second = head.get()
        if second:
            head.set(below[second])
            freed.add(second)
        await checkpoint()
        below[first] = head.get()
        head.set(first)

    await together(pop_slowly, pop_two_push_one)
    return "in use" if head.get() in freed else "sound"


def _lazily(locked: bool) -> Program:
    async def program() -> int:
        made = Cell(0, name="made")
        instance: Cell[object] = Cell(None, name="instance")
        lock = trio.Lock()

        async def use() -> None:
            async with lock if locked else nullcontext():
                if instance.get() is None:
                    await checkpoint()
                    made.set(made.get() + 1)
                    instance.set(object())

        await together(use, use)
        return made.get()

    return program


def _mutual_exclusion(doors: str, tries: int = 2) -> Program:
    """Two tasks enter one room; `doors` says in which order they announce themselves and give way."""

    async def program() -> str:
        wants = [Cell(False, name="a wants"), Cell(False, name="b wants")]
        turn = Cell(0, name="turn")
        inside = Cell(0, name="inside")
        said: dict[int, str] = {}
        overlaps: list[int] = []

        async def enter(own: int) -> None:
            other = 1 - own
            for door in doors.split():
                if door == "want":
                    wants[own].set(True)
                elif door == "yield":
                    turn.set(other)
                await checkpoint()
            looks = 1
            while wants[other].get() and not ("yield" in doors and turn.get() == own):
                if looks == tries:
                    wants[own].set(False)
                    said[own] = "gave up"
                    return
                looks += 1
                await checkpoint()
            inside.set(inside.get() + 1)
            overlaps.append(inside.get())
            await checkpoint()
            inside.set(inside.get() - 1)
            wants[own].set(False)
            said[own] = "entered"

        await together((enter, 0), (enter, 1))
        if 2 in overlaps:
            return "both inside"
        return f"{list(said.values()).count('entered')} entered"

    return program


async def _both_give_way() -> str:
    wants = [Cell(False, name="a wants"), Cell(False, name="b wants")]
    entered: list[int] = []

    async def enter(own: int) -> None:
        wants[own].set(True)
        await checkpoint()
        if wants[1 - own].get():
            await checkpoint()
        else:
            entered.append(own)
        wants[own].set(False)

    await together((enter, 0), (enter, 1))
    return f"{len(entered)} entered"


#: Races on shared memory.
CELLS = gallery(
    lost_update_2x1=lost_update(2, 1),
    lost_update_3x1=lost_update(3, 1),
    lost_update_3x2=lost_update(3, 2),
    store_buffering=_pair("x=1 y", "y=1 x"),
    message_passing=_pair("x=1 y=1", "y x"),
    load_buffering=_pair("x y=1", "y x=1"),
    independent_reads=(_two_readers_two_writers(), {"right": set(product((0, 1), repeat=4)) - {(1, 0, 1, 0)}}),
    overdraw=_overdraw,
    account=_account,
    aba=_aba,
    lazy_init=_lazily(locked=False),
    lazy_init_locked=_lazily(locked=True),
    peterson=_mutual_exclusion("want yield"),
    peterson_swapped=_mutual_exclusion("yield want"),
    both_give_way=_both_give_way,
    look_before_you_enter=_mutual_exclusion(""),
)
