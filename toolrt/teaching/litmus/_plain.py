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
from toolrt.teaching.litmus._litmus import Count, Litmus, together


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

    await together(lambda: hit("page"), lambda: hit("image"))
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

    await together(lambda: come("a"), lambda: come("b"))
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


_SIX, _FOUR = Count(6), Count(4)

PLAIN = (
    Litmus(
        "plain_attribute",
        "Two tasks add one to an attribute of a plain object, and nothing says that it is shared. Tracked, its reads"
        " and writes are seen: four classes, as with a cell.",
        _attribute,
        {2},
        {1},
        _SIX,
        _FOUR,
        track=True,
    ),
    Litmus("plain_dict", "The same with a key of a dict.", _dict, {2}, {1}, _SIX, _FOUR, track=True),
    Litmus(
        "plain_two_keys",
        "The same with a key for each task. Each key is a variable of its own, so there is one class.",
        _two_keys,
        {2},
        (),
        _SIX,
        Count(1),
        track=True,
    ),
    Litmus("plain_list", "The same with an item of a list.", _list, {2}, {1}, _SIX, _FOUR, track=True),
    Litmus("plain_closure", "The same with a variable of a closure.", _closure, {2}, {1}, _SIX, _FOUR, track=True),
    Litmus(
        "plain_deque",
        "Two tasks look whether there is a job in a deque, and take it a checkpoint later. Both may take it.",
        _deque,
        {1},
        {2},
        _SIX,
        _FOUR,
        track=True,
    ),
    Litmus(
        "plain_heap",
        "Two tasks push a timer onto an empty heap. Both may find it empty; `heapq.heappush` is no method of the list.",
        _heap,
        {1},
        {2},
        _SIX,
        _FOUR,
        track=True,
    ),
    Litmus(
        "plain_counter",
        "Two tasks greet, each unless the other one did. The write is in `Counter.update`.",
        _counter,
        {1},
        {2},
        _SIX,
        _FOUR,
        track=True,
    ),
    Litmus(
        "plain_vars",
        "An attribute is read by its name and written through `vars`. That step may have written anything.",
        _vars,
        {2},
        {1},
        _SIX,
        _FOUR,
        track=True,
    ),
    Litmus(
        "plain_view",
        "A byte is read from a bytearray and written through a memoryview of it.",
        _view,
        {2},
        {1},
        _SIX,
        _FOUR,
        track=True,
    ),
    Litmus(
        "plain_children",
        "Two tasks of one step append to a list. The order in which a nursery starts them is no order.",
        _children,
        {"ab", "ba"},
        (),
        Count(2),
        Count(2),
        track=True,
    ),
)

ORDERS = (
    Litmus(
        "passes",
        "Two tasks add one to a counter, in the orders that Trio's scheduler makes: each steps once in each pass."
        ' So both read before either writes, and one is always lost. With order="any" it is `lost_update_2x1`.',
        lost_update(2, 1),
        (),
        {1},
        Count(4),
        Count(2),
        order="trio",
    ),
    Litmus(
        "two_looks",
        "One task sets a flag behind a checkpoint, another one looks behind two. A checkpoint may take any time, as"
        " Trio's documentation says: the flag need not be set.",
        _two_looks,
        {1},
        {0},
        Count(10),
        classes=Count(10),
        order="any",
    ),
    Litmus(
        "two_looks_passes",
        "The same in the orders that Trio's scheduler makes. The flag is set one pass earlier, so a program may come to"
        " rely on it without a word in the documentation.",
        _two_looks,
        {1},
        (),
        Count(4),
        classes=Count(4),
        order="trio",
    ),
)
