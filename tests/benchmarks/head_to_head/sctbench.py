"""Shapes of the SCTBench collection (Thomson, Donaldson, Betts, 2016), each written anew."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.benchmarks.head_to_head.libraries import Task
from tests.benchmarks.head_to_head.shared import Shared


class Account(Shared):
    """Two deposits read the balance and write it a checkpoint later (SCTBench: account_bad)."""

    def begin(self) -> None:
        self.balance, self.lock = 0, self.lock_if_correct()

    async def deposit(self) -> None:
        async with self.lock:
            seen = self.balance
            await self.pause()
            self.balance = seen + 1

    def tasks(self) -> list[Task]:
        return [self.deposit] * self.n

    def holds(self) -> bool:
        return self.balance == self.n


class Reorder(Shared):
    """All tasks but one set a, then b; the last one reads both and must see both or neither (SCTBench: reorder_N)."""

    n = 3

    def begin(self) -> None:
        self.a, self.b, self.seen, self.lock = 0, 0, (0, 0), self.lock_if_correct()

    async def set_both(self) -> None:
        async with self.lock:
            self.a = 1
            await self.pause()
            self.b = -1

    async def read_both(self) -> None:
        async with self.lock:
            first = self.a
            await self.pause()
            self.seen = first, self.b

    def tasks(self) -> list[Task]:
        return [self.set_both] * (self.n - 1) + [self.read_both]

    def holds(self) -> bool:
        return self.seen in ((0, 0), (1, -1))


class Deadlock01(Shared):
    """Two tasks take the same two locks, in opposite order (SCTBench: deadlock01_bad)."""

    def begin(self) -> None:
        self.one, self.other = self.library.lock(), self.library.lock()

    async def hold(self, first: Any, second: Any) -> None:
        async with first:
            await self.pause()
            async with second:
                pass

    def tasks(self) -> list[Task]:
        last = (self.other, self.one) if self.wrong else (self.one, self.other)
        return [partial(self.hold, self.one, self.other), partial(self.hold, *last)]


class Dining(Shared):
    """Each takes the left fork, then the right one (SCTBench: din_phil).  Correct: the last turns."""

    n = 3

    def begin(self) -> None:
        self.forks = [self.library.lock() for _ in range(self.n)]

    async def eat(self, left: int, right: int) -> None:
        async with self.forks[left]:
            await self.pause()
            async with self.forks[right]:
                pass

    def tasks(self) -> list[Task]:
        seats = [(seat, (seat + 1) % self.n) for seat in range(self.n)]
        if not self.wrong:
            seats[-1] = seats[-1][::-1]
        return [partial(self.eat, *seat) for seat in seats]


class Lazy01(Shared):
    """Two tasks add 1 and 2 under a lock; a third finds fault when it sees both (SCTBench: lazy01_bad)."""

    def begin(self) -> None:
        self.data, self.complained, self.lock = 0, False, self.library.lock()

    async def add(self, number: int) -> None:
        async with self.lock:
            self.data += number

    async def look(self) -> None:
        async with self.lock:
            if self.data >= 3:
                self.complained = True

    def tasks(self) -> list[Task]:
        return [partial(self.add, 1), partial(self.add, 2), self.look]

    def holds(self) -> bool:
        return not self.complained


class Stack(Shared):
    """Two tasks pop a stack of one item; they look whether it is empty before they lock it (SCTBench: stack_bad)."""

    def begin(self) -> None:
        self.top, self.lock = 1, self.library.lock()

    async def pop(self) -> None:
        if self.wrong:
            if self.top > 0:
                await self.pause()
                async with self.lock:
                    self.top -= 1
        else:
            async with self.lock:
                if self.top > 0:
                    await self.pause()
                    self.top -= 1

    def tasks(self) -> list[Task]:
        return [self.pop] * 2

    def holds(self) -> bool:
        return self.top == 0


class CircularBuffer(Shared):
    """Two producers take the next slot, fill it, and then move the end (SCTBench: circular_buffer_bad)."""

    def begin(self) -> None:
        self.slots: list[int | None] = [None] * 2
        self.end, self.lock = 0, self.lock_if_correct()

    async def put(self, item: int) -> None:
        async with self.lock:
            slot = self.end
            self.slots[slot % 2] = item
            await self.pause()
            self.end = slot + 1

    def tasks(self) -> list[Task]:
        return [partial(self.put, 1), partial(self.put, 2)]

    def holds(self) -> bool:
        return None not in self.slots and self.end == 2


class TwoStages(Shared):
    """Writers write under one lock and copy under another; a reader between sees half (SCTBench: twostage_bad)."""

    def begin(self) -> None:
        self.first, self.second = self.library.lock(), self.library.lock()
        self.drawn, self.copied, self.torn = 0, 0, False

    async def write(self) -> None:
        if self.wrong:
            async with self.first:
                self.drawn = 1
            await self.pause()
            async with self.second:
                self.copied = 1
        else:
            async with self.first:
                self.drawn = 1
                await self.pause()
                async with self.second:
                    self.copied = 1

    async def read(self) -> None:
        async with self.first:
            drawn = self.drawn
            async with self.second:
                if drawn != self.copied:
                    self.torn = True

    def tasks(self) -> list[Task]:
        return [self.write] * (self.n - 1) + [self.read]

    def holds(self) -> bool:
        return not self.torn


class TokenRing(Shared):
    """Each hands on the token of the one before it, and counts on being started in that order (token_ring_bad)."""

    n = 4

    def begin(self) -> None:
        self.tokens = [1] + [0] * self.n
        self.handed = [self.library.event() for _ in self.tokens]
        self.handed[0].set()

    async def hand_on(self, place: int) -> None:
        if self.wrong:
            await self.pause()
        else:
            await self.handed[place].wait()
        self.tokens[place + 1] = self.tokens[place] + 1
        self.handed[place + 1].set()

    def tasks(self) -> list[Task]:
        return [partial(self.hand_on, place) for place in range(self.n)]

    def holds(self) -> bool:
        return self.tokens == list(range(1, self.n + 2))


class WrongLock(Shared):
    """Three tasks add under one lock, and one of them under another (SCTBench: wronglock_bad)."""

    n = 3

    def begin(self) -> None:
        self.data, self.lock = 0, self.library.lock()
        self.other = self.library.lock() if self.wrong else self.lock

    async def add(self, lock: Any) -> None:
        async with lock:
            seen = self.data
            await self.pause()
            self.data = seen + 1

    def tasks(self) -> list[Task]:
        return [partial(self.add, self.lock)] * (self.n - 1) + [partial(self.add, self.other)]

    def holds(self) -> bool:
        return self.data == self.n


class Bluetooth(Shared):
    """A driver is used after it has stopped: users look at the flag before they count themselves in (bluetooth_driver).

    The count and the flag are changed under a lock; what is wrong is the order.
    """

    def begin(self) -> None:
        self.stopping, self.stopped, self.used_stopped, self.pending = False, False, False, 1
        self.lock, self.idle = self.library.lock(), self.library.event()

    async def leave(self) -> None:
        async with self.lock:
            self.pending -= 1
            if self.pending == 0:
                self.idle.set()

    async def use(self) -> None:
        if self.wrong:
            if self.stopping:
                return
            await self.pause()
            async with self.lock:
                self.pending += 1
        else:
            async with self.lock:
                if self.stopping:
                    return
                self.pending += 1
        await self.pause()
        if self.stopped:
            self.used_stopped = True
        await self.leave()

    async def stop(self) -> None:
        async with self.lock:
            self.stopping = True
        await self.leave()
        await self.idle.wait()
        self.stopped = True

    def tasks(self) -> list[Task]:
        return [self.use, self.stop]

    def holds(self) -> bool:
        return not self.used_stopped


class Sync01(Shared):
    """A consumer looks whether there is an item before it waits for word of one (SCTBench: sync01_bad, sync02_bad)."""

    def begin(self) -> None:
        self.ready, self.changed = False, self.library.condition()

    async def consume(self) -> None:
        if self.wrong:
            if not self.ready:
                await self.pause()
                async with self.changed:
                    await self.changed.wait()
        else:
            async with self.changed:
                while not self.ready:
                    await self.changed.wait()

    async def produce(self) -> None:
        async with self.changed:
            self.ready = True
            self.changed.notify()

    def tasks(self) -> list[Task]:
        return [self.consume, self.produce]


class BoundedBuffer(Shared):
    """Room for one, one condition for "not full" and "not empty", and one waiter is woken (Cargill's example)."""

    def begin(self) -> None:
        self.held, self.changed = 0, self.library.condition()

    def wake(self) -> None:
        if self.wrong:
            self.changed.notify()
        else:
            self.changed.notify_all()

    async def put(self) -> None:
        async with self.changed:
            while self.held == 1:
                await self.changed.wait()
            self.held = 1
            self.wake()

    async def take(self) -> None:
        async with self.changed:
            while self.held == 0:
                await self.changed.wait()
            self.held = 0
            self.wake()

    def tasks(self) -> list[Task]:
        return [self.put] * 2 + [self.take] * 2


class FsBench(Shared):
    """Two tasks lock a file each and look for a free block; the blocks have no lock (SCTBench: fsbench_bad)."""

    def begin(self) -> None:
        self.files = [self.library.lock() for _ in range(2)]
        self.blocks, self.lock = self.lock_if_correct(), self.library.lock()
        self.busy = [False, False, False]
        self.owned: list[int] = []

    async def grow(self, file: int) -> None:
        async with self.files[file], self.blocks:
            for block in range(3):
                if not self.busy[block]:
                    break
            await self.pause()
            self.busy[block] = True
            self.owned.append(block)

    def tasks(self) -> list[Task]:
        return [partial(self.grow, 0), partial(self.grow, 1)]

    def holds(self) -> bool:
        return len(set(self.owned)) == 2


class WorkStealing(Shared):
    """The owner takes work from the tail and a thief from the head: the last piece goes to both (Chess: WSQ)."""

    def begin(self) -> None:
        self.head, self.tail, self.lock = 0, 2, self.lock_if_correct()
        self.done: list[int] = []

    async def own(self) -> None:
        for _ in range(2):
            async with self.lock:
                last = self.tail - 1
                if self.head <= last:
                    await self.pause()
                    self.tail = last
                    self.done.append(last)

    async def steal(self) -> None:
        async with self.lock:
            first = self.head
            if first < self.tail:
                await self.pause()
                self.head = first + 1
                self.done.append(first)

    def tasks(self) -> list[Task]:
        return [self.own, self.steal]

    def holds(self) -> bool:
        return sorted(self.done) == [0, 1]


class Aba(Shared):
    """A stack of nodes whose top is replaced if it is still the same; nodes come back.  Correct: with a version."""

    def begin(self) -> None:
        self.head = "a", 0
        self.below = {"a": "b", "b": "c", "c": ""}
        self.kept: list[str] = []
        self.lock = self.library.lock()

    async def replace(self, seen: tuple[str, int], name: str) -> bool:
        async with self.lock:
            if self.head != seen:
                return False
            self.head = name, 0 if self.wrong else seen[1] + 1
            return True

    async def pop(self) -> str:
        while True:
            seen = self.head
            under = self.below[seen[0]]
            await self.pause()
            if await self.replace(seen, under):
                return seen[0]

    async def pop_one(self) -> None:
        self.kept.append(await self.pop())

    async def pop_two_push_one(self) -> None:
        first = await self.pop()
        self.kept.append(await self.pop())
        while True:
            seen = self.head
            self.below[first] = seen[0]
            if await self.replace(seen, first):
                return

    def tasks(self) -> list[Task]:
        return [self.pop_one, self.pop_two_push_one]

    def holds(self) -> bool:
        return len(set(self.kept)) == 2 and self.head[0] not in self.kept
