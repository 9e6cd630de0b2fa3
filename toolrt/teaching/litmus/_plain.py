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
    """
    program         | right      | wrong | schedules | classes
    plain_attribute | 2          | 1     | 6         | 4
    plain_dict      | 2          | 1     | 6         | 4
    plain_two_keys  | 2          |       | 6         | 1
    plain_list      | 2          | 1     | 6         | 4
    plain_closure   | 2          | 1     | 6         | 4
    plain_deque     | 1          | 2     | 6         | 4
    plain_heap      | 1          | 2     | 6         | 4
    plain_counter   | 1          | 2     | 6         | 4
    plain_vars      | 2          | 1     | 6         | 4
    plain_view      | 2          | 1     | 6         | 4
    plain_children  | "ab", "ba" |       | 2         | 2
    """,
    {"track": True},
    plain_attribute=(
        _attribute,
        "Two tasks add one to an attribute of a plain object, and nothing says that it is shared. Tracked, its reads"
        " and writes are seen: four classes, as with a cell.",
    ),
    plain_dict=(_dict, "The same with a key of a dict."),
    plain_two_keys=(
        _two_keys,
        "The same with a key for each task. Each key is a variable of its own, so there is one class.",
    ),
    plain_list=(_list, "The same with an item of a list."),
    plain_closure=(_closure, "The same with a variable of a closure."),
    plain_deque=(
        _deque,
        "Two tasks look whether there is a job in a deque, and take it a checkpoint later. Both may take it.",
    ),
    plain_heap=(
        _heap,
        "Two tasks push a timer onto an empty heap. Both may find it empty; `heapq.heappush` is no method of the list.",
    ),
    plain_counter=(_counter, "Two tasks greet, each unless the other one did. The write is in `Counter.update`."),
    plain_vars=(
        _vars,
        "An attribute is read by its name and written through `vars`. That step may have written anything.",
    ),
    plain_view=(_view, "A byte is read from a bytearray and written through a memoryview of it."),
    plain_children=(
        _children,
        "Two tasks of one step append to a list. The order in which a nursery starts them is no order.",
    ),
)

#: Programs in the orders that Trio's scheduler makes, beside one in any order.
ORDERS = gallery(
    """
    program          | right | wrong | schedules | classes
    passes           |       | 1     | 4         | 2
    two_looks        | 1     | 0     | 10        | 10
    two_looks_passes | 1     |       | 4         | 4
    """,
    {"order": "trio"},
    passes=(
        lost_update(2, 1),
        "Two tasks add one to a counter, in the orders that Trio's scheduler makes: each steps once in each pass."
        ' So both read before either writes, and one is always lost. With order="any" it is `lost_update_2x1`.',
    ),
    two_looks=(
        _two_looks,
        "One task sets a flag behind a checkpoint, another one looks behind two. A checkpoint may take any time, as"
        " Trio's documentation says: the flag need not be set.",
        {"order": "any"},
    ),
    two_looks_passes=(
        _two_looks,
        "The same in the orders that Trio's scheduler makes. The flag is set one pass earlier, so a program may come to"
        " rely on it without a word in the documentation.",
    ),
)
