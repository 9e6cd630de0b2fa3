"""Cancellation races: a cancel is one more task, and may come at every checkpoint, also while a lock is held."""

from __future__ import annotations

import trio
from trio.lowlevel import checkpoint

from toolrt.sim import Cell
from toolrt.teaching.litmus._litmus import Program, gallery, one_step, together


async def _cancel_or_result() -> str:
    ready, scope, got = trio.Event(), trio.CancelScope(), list[str]()

    async def work() -> None:
        with scope:
            await ready.wait()
            got.append("the result")
        if scope.cancelled_caught:
            got.append("cancelled")

    await together(work, one_step(ready.set), one_step(scope.cancel))
    return " and ".join(got)


def _taken_and_lost(at_once: bool) -> Program:
    async def program() -> str:
        send, receive = trio.open_memory_channel[str](1)
        send.send_nowait("the item")
        scope, done = trio.CancelScope(), list[str]()

        async def work() -> None:
            with scope:
                item = await receive.receive()
                if not at_once:
                    await checkpoint()
                done.append(item)

        await together(work, one_step(scope.cancel))
        if done:
            return "handled"
        try:
            receive.receive_nowait()
        except trio.WouldBlock:
            return "lost"
        return "still there"

    return program


async def _timeout_tie() -> str:
    with trio.move_on_after(1) as scope:
        await trio.sleep(1)
        return "slept"
    return "timed out" if scope.cancelled_caught else "left"


async def _timeout_or_event() -> str:
    ready, said = trio.Event(), list[str]()

    async def wait() -> None:
        with trio.move_on_after(1) as scope:
            await ready.wait()
        said.append("timed out" if scope.cancelled_caught else "in time")

    async def finish() -> None:
        await trio.sleep(1)
        ready.set()

    await together(wait, finish)
    return said[0]


async def _nested_timeouts() -> str:
    with trio.move_on_after(1) as outer:
        with trio.move_on_after(1) as inner:
            await trio.sleep_forever()
    return f"inner {inner.cancelled_caught}, outer {outer.cancelled_caught}"


def _clean_up(shielded: bool) -> Program:
    async def program() -> str:
        scope, cleaned = trio.CancelScope(), Cell(0, name="cleaned")

        async def work() -> None:
            with scope:
                try:
                    await checkpoint()
                finally:
                    with trio.CancelScope(shield=shielded):
                        cleaned.set(1)
                        await checkpoint()  # noqa: ASYNC102  half a cleanup is what is shown
                        cleaned.set(2)

        await together(work, one_step(scope.cancel))
        return {0: "nothing", 1: "half", 2: "all"}[cleaned.get()] + " cleaned up"

    return program


async def _send_or_time_out() -> str:
    send, receive = trio.open_memory_channel[str](0)
    said, got = list[str](), list[str]()

    async def put() -> None:
        with trio.move_on_after(1) as scope:
            await send.send("the item")
        said.append("timed out" if scope.cancelled_caught else "sent")
        send.close()

    async def take() -> None:
        await trio.sleep(1)
        async for item in receive:
            got.append(item)

    await together(put, take)
    return f"{said[0]}, {len(got)} received"


async def _cancel_or_send() -> str:
    send, receive = trio.open_memory_channel[str](0)
    scope, said, got = trio.CancelScope(), list[str](), list[str]()

    async def put() -> None:
        with scope:
            await send.send("the item")
            said.append("sent")
        send.close()

    async def take() -> None:
        async for item in receive:
            got.append(item)

    await together(put, take, one_step(scope.cancel))
    return f"{said[0] if said else 'not sent'}, {len(got)} received"


async def _first_step() -> str:
    log: list[str] = []

    async def act() -> None:
        log.append("one step")
        await checkpoint()
        log.append("two")

    async with trio.open_nursery() as nursery:
        nursery.cancel_scope.cancel()
        nursery.start_soon(act)
    return ", ".join(log)


async def _swallowed() -> str:
    scope, laps = trio.CancelScope(), list[int]()

    async def work() -> None:
        with scope:
            for lap in range(3):
                try:
                    await checkpoint()
                except trio.Cancelled:  # noqa: ASYNC103  to swallow it is what is shown
                    continue  # noqa: ASYNC104
                laps.append(lap)

    await together(work, one_step(scope.cancel))
    return f"{len(laps)} laps, {'caught' if scope.cancelled_caught else 'not caught'}"


async def _effect_between() -> str:
    scope, files = trio.CancelScope(), [Cell("old", name="one"), Cell("old", name="two")]

    async def write() -> None:
        with scope:
            for file in files:
                file.set("new")
                await checkpoint()

    await together(write, one_step(scope.cancel))
    return " ".join(file.get() for file in files)


async def _cancel_twice() -> str:
    outer, log = trio.CancelScope(), list[str]()

    async def work() -> None:
        with outer:
            with trio.CancelScope() as inner:
                inner.cancel()
                await checkpoint()
            log.append("between")
            await checkpoint()
            log.append("after")

    await together(work, one_step(outer.cancel))
    return " ".join(log) or "nothing"


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


#: Cancellation races.
CANCELLING = gallery(
    cancel_or_result=_cancel_or_result,
    taken_and_lost=_taken_and_lost(at_once=False),
    taken_and_kept=_taken_and_lost(at_once=True),
    timeout_tie=_timeout_tie,
    timeout_or_event=_timeout_or_event,
    nested_timeouts=_nested_timeouts,
    cleanup=_clean_up(shielded=False),
    cleanup_shielded=_clean_up(shielded=True),
    send_or_time_out=_send_or_time_out,
    cancel_or_send=_cancel_or_send,
    first_step=_first_step,
    swallowed_cancel=(_swallowed, {"wrong": {f"{laps} laps, not caught" for laps in range(3)}}),
    two_files=_effect_between,
    cancel_inside_cancel=_cancel_twice,
    between_lock_and_try=_between_lock_and_try(inside=False),
    lock_in_a_with=_between_lock_and_try(inside=True),
    cancelled_in_line=_cancelled_in_line,
    notified_and_cancelled=_notified_and_cancelled(passes_on=False),
    notified_and_passed_on=_notified_and_cancelled(passes_on=True),
    writer_gives_up=_writer_gives_up(tells=False),
    writer_says_so=_writer_gives_up(tells=True),
)
