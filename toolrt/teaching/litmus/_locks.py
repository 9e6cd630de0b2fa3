"""Programs on `trio.Lock`: tasks that hold one lock while they wait for another."""

from __future__ import annotations

import trio
from trio.lowlevel import checkpoint

from toolrt.sim import Cell
from toolrt.teaching.litmus._litmus import Program, gallery, together


def _dining(guests: int, last_one_turns: bool = False) -> Program:
    async def program() -> str:
        forks = [trio.Lock() for _ in range(guests)]

        async def eat(one: trio.Lock, other: trio.Lock) -> None:
            async with one, other:
                pass

        async with trio.open_nursery() as nursery:
            for seat in range(guests):
                left, right = forks[seat], forks[(seat + 1) % guests]
                if last_one_turns and seat == guests - 1:
                    left, right = right, left
                nursery.start_soon(eat, left, right)
        return "all ate"

    return program


async def _two_locks() -> str:
    a, b = trio.Lock(), trio.Lock()
    moved = Cell(0, name="moved")

    async def move(source: trio.Lock, target: trio.Lock) -> None:
        async with source:
            await checkpoint()
            async with target:
                moved.set(moved.get() + 1)

    await together((move, a, b), (move, b, a))
    return "moved both"


def _two_stages(between: bool, writers: int = 1, readers: int = 1) -> Program:
    async def program() -> str:
        first, second = trio.Lock(), trio.Lock()
        drawn, copied = Cell(0, name="drawn"), Cell(0, name="copied")
        seen: list[tuple[int, int]] = []

        async def write() -> None:
            async with first:
                drawn.set(1)
            if between:
                await checkpoint()
            async with second:
                copied.set(drawn.get())

        async def look() -> None:
            async with first:
                one = drawn.get()
            async with second:
                seen.append((one, copied.get()))

        await together(*[write] * writers, *[look] * readers)
        return "half" if (1, 0) in seen else "all or nothing"

    return program


def _under_lock(tasks: int) -> Program:
    async def program() -> int:
        lock, counter = trio.Lock(), Cell(0, name="counter")

        async def add() -> None:
            async with lock:
                seen = counter.get()
                await checkpoint()
                counter.set(seen + 1)

        await together(*[add] * tasks)
        return counter.get()

    return program


async def _order_of_waiting() -> str:
    lock = trio.StrictFIFOLock()
    asked: list[str] = []
    got: list[str] = []

    async def take(name: str) -> None:
        await checkpoint()
        asked.append(name)
        async with lock:
            got.append(name)

    await together(*((take, name) for name in "abc"))
    return "as asked" if asked == got else "overtaken"


async def _upgrade() -> str:
    readers = Cell(0, name="readers")
    changed = trio.Condition()

    async def read_then_write() -> None:
        async with changed:
            readers.set(readers.get() + 1)
        await checkpoint()
        async with changed:
            while readers.get() > 1:
                await changed.wait()
            readers.set(readers.get() - 1)
            changed.notify_all()

    await together(read_then_write, read_then_write)
    return "both wrote"


class _ReadWriteLock:
    """The textbook's: the first reader takes the writers' lock, the last one gives it back."""

    def __init__(self) -> None:
        self.count = Cell(0, name="readers")
        self.counting = trio.Lock()
        self.writing = trio.Semaphore(1)

    async def enter_reader(self) -> None:
        async with self.counting:
            self.count.set(self.count.get() + 1)
            if self.count.get() == 1:
                await self.writing.acquire()

    async def leave_reader(self) -> None:
        async with self.counting:
            self.count.set(self.count.get() - 1)
            if self.count.get() == 0:
                self.writing.release()


async def _readers_and_writer() -> str:
    lock, page, seen = _ReadWriteLock(), Cell("00", name="page"), list[str]()

    async def read() -> None:
        await lock.enter_reader()
        seen.append(page.get())
        await lock.leave_reader()

    async def write() -> None:
        await lock.writing.acquire()
        page.set("10")
        await checkpoint()
        page.set("11")
        lock.writing.release()

    await together(read, read, write)
    return " ".join(sorted(seen))


def _polite(tries: int) -> Program:
    async def program() -> str:
        spoons = [trio.Lock(), trio.Lock()]
        ate: list[int] = []

        async def eat(own: int) -> None:
            for _ in range(tries):
                spoons[own].acquire_nowait()
                await checkpoint()
                try:
                    spoons[1 - own].acquire_nowait()
                except trio.WouldBlock:
                    await checkpoint()
                    spoons[own].release()
                    await checkpoint()
                    continue
                ate.append(own)
                spoons[1 - own].release()
                spoons[own].release()
                return

        await together((eat, 0), (eat, 1))
        return f"{len(ate)} ate"

    return program


#: Programs on locks.
LOCKS = gallery(
    lock_2=_under_lock(2),
    lock_3=_under_lock(3),
    dining_2=_dining(2),
    dining_3=_dining(3),
    dining_4=_dining(4),
    dining_5=_dining(5),
    dining_3_one_turns=_dining(3, last_one_turns=True),
    two_locks=_two_locks,
    two_stages=_two_stages(between=False),
    two_stages_apart=_two_stages(between=True),
    two_stages_6=_two_stages(between=True, writers=3, readers=3),
    order_of_waiting=_order_of_waiting,
    upgrade=_upgrade,
    readers_and_writer=_readers_and_writer,
    livelock=_polite(2),
)
