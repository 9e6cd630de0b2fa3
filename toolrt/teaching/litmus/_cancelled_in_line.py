"""Cancellation of tasks that hold a lock or wait for one, and its effect on the other tasks."""

from __future__ import annotations

import trio
from trio.lowlevel import checkpoint

from toolrt.sim import Cell
from toolrt.teaching.litmus._litmus import Program, gallery, one_step, together


def _between_lock_and_try(inside: bool) -> Program:
    async def program() -> str:
        lock, scope, got = trio.Lock(), trio.CancelScope(), list[str]()

        async def work() -> None:
            with scope:
                if inside:
                    async with lock:
                        await checkpoint()
                    return
                await lock.acquire()
                await checkpoint()  # a line of logging, say
                try:
                    await checkpoint()
                finally:
                    lock.release()

        async def next_one() -> None:
            try:
                async with lock:
                    got.append("got the lock")
            except trio.BrokenResourceError:
                got.append("the lock is broken")

        await together(work, one_step(scope.cancel), next_one)
        return got[0]

    return program


async def _cancelled_in_line() -> str:
    lock, scope, log = trio.Lock(), trio.CancelScope(), Cell("", name="log")

    async def take(name: str, within: trio.CancelScope) -> None:
        with within:
            async with lock:
                log.set(log.get() + name)
                await checkpoint()

    await together((take, "a", trio.CancelScope()), (take, "b", scope), one_step(scope.cancel))
    return "a got it" if "a" in log.get() else "lost"


def _notified_and_cancelled(passes_on: bool) -> Program:
    """Two wait for a door to open, and each that goes through wakes the next; one of them is cancelled."""

    async def program() -> str:
        changed, is_open = trio.Condition(), Cell(False, name="is open")
        scope = trio.CancelScope()

        async def go_through(within: trio.CancelScope) -> None:
            with within:
                async with changed:
                    try:
                        while not is_open.get():
                            await changed.wait()
                    except trio.Cancelled:
                        if passes_on:
                            changed.notify()
                        raise
                    changed.notify()

        async def open_it() -> None:
            async with changed:
                is_open.set(True)
                changed.notify()
                await checkpoint()

        await together((go_through, scope), (go_through, trio.CancelScope()), open_it, one_step(scope.cancel))
        return "the other is through"

    return program


class _FairReadWriteLock:
    """New readers wait behind a writer that waits, so that writers get their turn."""

    def __init__(self, tells: bool) -> None:
        self.changed = trio.Condition()
        self.readers = Cell(0, name="readers")
        self.waiting = Cell(0, name="waiting writers")
        #: Whether a writer that gives up says so.
        self.tells = tells

    async def acquire_read(self) -> None:
        async with self.changed:
            while self.waiting.get():
                await self.changed.wait()
            self.readers.set(self.readers.get() + 1)

    async def release_read(self) -> None:
        async with self.changed:
            self.readers.set(self.readers.get() - 1)
            self.changed.notify_all()

    async def write(self) -> None:
        async with self.changed:
            self.waiting.set(self.waiting.get() + 1)
            try:
                while self.readers.get():
                    await self.changed.wait()
            except trio.Cancelled:
                if self.tells:
                    self.changed.notify_all()
                raise
            finally:
                self.waiting.set(self.waiting.get() - 1)
            self.changed.notify_all()


def _writer_gives_up(tells: bool) -> Program:
    async def program() -> str:
        lock, scope, shared = _FairReadWriteLock(tells), trio.CancelScope(), trio.Event()

        async def read_first() -> None:
            await lock.acquire_read()
            # Readers share, so this one may wait for the other.
            await shared.wait()
            await lock.release_read()

        async def read_second() -> None:
            await lock.acquire_read()
            shared.set()
            await lock.release_read()

        async def write() -> None:
            with scope:
                await lock.write()

        await together(read_first, write, read_second, one_step(scope.cancel))
        return "both read"

    return program


#: Cancellation of those who hold or wait.
CANCELLED_IN_LINE = gallery(
    between_lock_and_try=_between_lock_and_try(inside=False),
    lock_in_a_with=_between_lock_and_try(inside=True),
    cancelled_in_line=_cancelled_in_line,
    notified_and_cancelled=_notified_and_cancelled(passes_on=False),
    notified_and_passed_on=_notified_and_cancelled(passes_on=True),
    writer_gives_up=_writer_gives_up(tells=False),
    writer_says_so=_writer_gives_up(tells=True),
)
