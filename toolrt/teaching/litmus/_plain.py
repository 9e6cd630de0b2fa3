"""Plain Python that tasks share: what tracking sees of it, and what the orders of Trio leave out.

Limits.  Objects of toolrt's own classes are not tracked, and the classes of this module would be such.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from types import SimpleNamespace

from trio.lowlevel import checkpoint

from toolrt.sim import Cell
from toolrt.teaching.litmus._cells import lost_update
from toolrt.teaching.litmus._litmus import gallery, together


async def _attribute() -> int:
    account = SimpleNamespace(balance=0)

    async def deposit() -> None:
        seen = account.balance
        await checkpoint()
        account.balance = seen + 1

    await together(deposit, deposit)
    return int(account.balance)


async def _dict() -> int:
    hits = {"page": 0}

    async def hit() -> None:
        seen = hits["page"]
        await checkpoint()
        hits["page"] = seen + 1

    await together(hit, hit)
    return hits["page"]


async def _two_keys() -> int:
    hits = {"page": 0, "image": 0}

    async def hit(what: str) -> None:
        seen = hits[what]
        await checkpoint()
        hits[what] = seen + 1

    await together((hit, "page"), (hit, "image"))
    return hits["page"] + hits["image"]


async def _list() -> int:
    numbers = [0]

    async def add() -> None:
        seen = numbers[0]
        await checkpoint()
        numbers[0] = seen + 1

    await together(add, add)
    return numbers[0]


async def _closure() -> int:
    number = 0

    async def add() -> None:
        nonlocal number
        seen = number
        await checkpoint()
        number = seen + 1

    await together(add, add)
    return number


async def _deque() -> int:
    jobs, taken = deque(["job"]), [0]

    async def take() -> None:
        if jobs:
            await checkpoint()
            if jobs:
                jobs.popleft()
            taken[0] += 1

    await together(take, take)
    return taken[0]


async def _heap() -> int:
    timers: list[int] = []

    async def start() -> None:
        if not timers:
            await checkpoint()
            heapq.heappush(timers, 1)

    await together(start, start)
    return len(timers)


async def _counter() -> int:
    seen: Counter[str] = Counter()

    async def greet() -> None:
        if not seen:
            await checkpoint()
            seen.update(["hello"])

    await together(greet, greet)
    return seen["hello"]


async def _vars() -> int:
    account = SimpleNamespace(balance=0)

    async def deposit() -> None:
        seen = account.balance
        await checkpoint()
        vars(account).update(balance=seen + 1)

    await together(deposit, deposit)
    return int(account.balance)


async def _view() -> int:
    data = bytearray(1)
    view = memoryview(data)

    async def add() -> None:
        seen = data[0]
        await checkpoint()
        view[0] = seen + 1

    await together(add, add)
    return data[0]


async def _children() -> str:
    order: list[str] = []

    async def come(name: str) -> None:  # noqa: ASYNC124  a task is one step
        order.append(name)

    await together((come, "a"), (come, "b"))
    return "".join(order)


async def _two_looks() -> int:
    flag, seen = Cell(0, name="flag"), []

    async def work() -> None:
        await checkpoint()
        flag.set(1)

    async def look() -> None:
        await checkpoint()
        await checkpoint()
        seen.append(flag.get())

    await together(work, look)
    return seen[0]


#: Programs whose module is tracked.
PLAIN = gallery(
    {"track": True},
    plain_attribute=_attribute,
    plain_dict=_dict,
    plain_two_keys=_two_keys,
    plain_list=_list,
    plain_closure=_closure,
    plain_deque=_deque,
    plain_heap=_heap,
    plain_counter=_counter,
    plain_vars=_vars,
    plain_view=_view,
    plain_children=_children,
)

#: Programs in the orders that Trio's scheduler makes, beside one in any order.
ORDERS = gallery(
    {"order": "trio"},
    passes=lost_update(2, 1),
    two_looks=(_two_looks, {"order": "any"}),
    two_looks_passes=_two_looks,
)
