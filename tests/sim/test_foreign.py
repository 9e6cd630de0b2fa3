"""Code that this project did not write, against properties its documentation states, under every schedule.

Each program is a `Litmus`: `verify` fails on an outcome that is not stated, and on one that is stated and never comes.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import attrs
import pytest
import stamina
import tenacity
import trio
import trio.testing
from tricycle import MultiCancelScope, RWLock, open_service_nursery
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.errors import ReplayDiverged
from toolrt.teaching.litmus import Litmus, verify


def seen(program, right=(), wrong=(), most: int = 10_000) -> None:  # type: ignore[no-untyped-def]
    """Exactly these outcomes come."""
    found = verify(Litmus("foreign", "Somebody else's.", program, right, wrong), most)
    assert found.method == "every schedule"
    assert found.ok, found.problems


# tricycle


async def _readers_and_writer() -> str:
    lock, inside, together, overlaps = RWLock(), list[str](), [0], list[str]()

    async def read() -> None:
        async with lock.read_locked():
            inside.append("reader")
            together[0] = max(together[0], len(inside))
            overlaps.extend(inside if "writer" in inside else ())
            await checkpoint()
            inside.remove("reader")

    async def write() -> None:
        async with lock.write_locked():
            overlaps.extend(inside)
            inside.append("writer")
            await checkpoint()
            inside.remove("writer")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        nursery.start_soon(write)
        nursery.start_soon(read)
    return "overlap" if overlaps else f"{together[0]} readers at once"


def test_rwlock_lets_readers_share_and_writers_not() -> None:
    """A writer is alone; readers are together in some schedules."""
    seen(_readers_and_writer, right={"1 readers at once", "2 readers at once"})


def _reader_behind_writer(cancelled: bool) -> Callable[..., object]:
    async def program() -> str:
        lock, second_has_read, scope = RWLock(), trio.Event(), trio.CancelScope()

        async def first() -> None:
            async with lock.read_locked():
                # It is shared with the second, or what would a read lock be for.
                await second_has_read.wait()

        async def second() -> None:
            async with lock.read_locked():
                second_has_read.set()

        async def write() -> None:
            with scope:
                async with lock.write_locked():
                    pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            if cancelled:
                nursery.start_soon(write)
                nursery.start_soon(_call, scope.cancel)
            nursery.start_soon(second)
        return "both read"

    return program


async def _call(function: Callable[[], object]) -> None:
    function()


def test_rwlock_lets_two_readers_wait_for_each_other() -> None:
    """Two readers that need each other's progress do not block."""
    seen(_reader_behind_writer(cancelled=False), right={"both read"})


def test_rwlock_forgets_readers_behind_a_cancelled_writer() -> None:
    """A finding, in tricycle 0.4.1: a writer in line that is cancelled does not wake the readers behind it.

    From then on only readers hold the lock and only readers wait, and they wait all the same: until the last holder
    lets go, which here is never.
    """
    program = _reader_behind_writer(cancelled=True)
    seen(program, right={"both read"}, wrong={"Deadlock"})
    report = sim.explore(program, sim.Random(sim.RandomWalk(0), 200))
    assert report.verdict is sim.FAIL
    assert "waits for RWLock.acquire at _rwlock.py" in report.failures[0].explain()


async def _service() -> str:
    log: list[str] = []

    async def serve(task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            log.append("service ends")

    with trio.CancelScope() as scope:
        async with open_service_nursery() as nursery:
            await nursery.start(serve)
            nursery.start_soon(_call, scope.cancel)
            try:
                await checkpoint()
                await checkpoint()
            finally:
                log.append("body ends")
            nursery.cancel_scope.cancel()
    return ", ".join(log)


def test_service_nursery_outlives_its_body() -> None:
    """Whenever the cancel comes, the body ends before the service it uses."""
    seen(_service, right={"body ends, service ends"})


async def _scopes_as_one() -> int:
    scopes, done = MultiCancelScope(), list[int]()

    async def work(number: int) -> None:
        with scopes.open_child():
            await checkpoint()
            done.append(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, 0)
        nursery.start_soon(_call, scopes.cancel)
        nursery.start_soon(work, 1)
    return len(done)


def test_multi_cancel_scope_cancels_all_or_what_is_left() -> None:
    """A child opened after the cancel is cancelled too: how many get through depends on when the cancel comes."""
    seen(_scopes_as_one, right={0, 1, 2})


# trio.testing


async def _two_senders() -> str:
    send, receive = trio.testing.memory_stream_one_way_pair()
    said: list[str] = []

    async def put(data: bytes) -> None:
        try:
            await send.send_all(data)
        except trio.BusyResourceError:
            said.append("busy")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(put, b"a")
        nursery.start_soon(put, b"b")
    await send.aclose()
    data = b"".join([chunk async for chunk in receive])
    return f"{len(data)} arrive{''.join(f', one is {word}' for word in said)}"


def test_memory_stream_sends_or_says_busy() -> None:
    """Two senders at once: what is not sent was refused."""
    seen(_two_senders, right={"2 arrive", "1 arrive, one is busy"})


async def _chunks() -> str:
    left, right = trio.testing.memory_stream_pair()
    got: list[str] = []

    async def put() -> None:
        await left.send_all(b"a")
        await left.send_all(b"b")
        await left.send_eof()

    async def take() -> None:
        async for chunk in right:
            got.append(bytes(chunk).decode())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(put)
        nursery.start_soon(take)
    return " ".join(got)


@pytest.mark.seldom
def test_memory_stream_has_no_chunks() -> None:
    """A stream keeps bytes in order, and nobody's boundaries: who counts on chunks has a schedule that breaks it."""
    seen(_chunks, right={"a b", "ab"})


async def _closed_under_the_receiver() -> str:
    left, right = trio.testing.memory_stream_pair()
    said: list[str] = []

    async def take() -> None:
        try:
            said.append(bytes(await right.receive_some()).decode())
        except trio.ClosedResourceError:
            said.append("closed")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        nursery.start_soon(left.send_all, b"data")
        nursery.start_soon(right.aclose)
    return said[0]


@pytest.mark.seldom
def test_memory_stream_receiver_never_hangs() -> None:
    """A receiver whose stream is closed gets data or an error."""
    seen(_closed_under_the_receiver, right={"data", "closed"}, wrong={"BrokenResourceError"})


# anyio


async def _anyio_lock() -> int:
    lock, counter = anyio.Lock(), [0]

    async def add() -> None:
        async with lock:
            before = counter[0]
            await anyio.lowlevel.checkpoint()
            counter[0] = before + 1

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(add)
    return counter[0]


def test_anyio_lock_excludes() -> None:
    """No update is lost under it."""
    seen(_anyio_lock, right={3})


async def _anyio_condition() -> str:
    changed, is_open, scope = anyio.Condition(), [False], anyio.CancelScope()

    async def go_through(within: anyio.CancelScope) -> None:
        with within:
            async with changed:
                while not is_open[0]:
                    await changed.wait()
                changed.notify()

    async def open_it() -> None:
        async with changed:
            is_open[0] = True
            changed.notify()
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(go_through, scope)
        group.start_soon(go_through, anyio.CancelScope())
        group.start_soon(open_it)
        group.start_soon(_call, scope.cancel)
    return "the other is through"


@pytest.mark.seldom
def test_anyio_condition_passes_a_notification_on() -> None:
    """Issue 1075 is mended: a waiter that is cancelled as it is notified wakes the next (trio.Condition does not)."""
    seen(_anyio_condition, right={"the other is through"})


async def _anyio_stream() -> str:
    send, receive = anyio.create_memory_object_stream[str](1)
    scope, got = anyio.CancelScope(), list[str]()

    async def take() -> None:
        with scope:
            got.append(await receive.receive())

    async with anyio.create_task_group() as group:
        group.start_soon(take)
        group.start_soon(send.send, "the item")
        group.start_soon(_call, scope.cancel)
    if receive.statistics().current_buffer_used:
        got.append(receive.receive_nowait())
    send.close()
    receive.close()
    return f"{len(got)} of 1"


def test_anyio_stream_loses_nothing_to_a_cancel() -> None:
    """An item is received or still there, whenever the receiver is cancelled."""
    seen(_anyio_stream, right={"1 of 1"})


async def _anyio_time() -> str:
    with anyio.move_on_after(5) as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 3)
            group.start_soon(anyio.sleep, 3600)
    return f"{anyio.current_time():g} s, {'cut short' if scope.cancelled_caught else 'done'}"


def test_anyio_lives_in_virtual_time() -> None:
    """Its clock is Trio's, which is the simulator's."""
    seen(_anyio_time, right={"5 s, cut short"})


@pytest.mark.parametrize("limiter", [lambda: anyio.Semaphore(2), lambda: anyio.CapacityLimiter(2)])
def test_anyio_limiters_limit(limiter: Callable[[], anyio.Semaphore]) -> None:
    """At most two of three tasks are inside."""

    async def program() -> int:
        gate, inside, most = limiter(), list[int](), [0]

        async def enter(number: int) -> None:
            async with gate:
                inside.append(number)
                most[0] = max(most[0], len(inside))
                await checkpoint()
                inside.remove(number)

        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(enter, number)
        return most[0]

    seen(program, right={1, 2})


# tenacity and stamina


@attrs.define
class _Service:
    """Fails when it is busy, or as often as it is told to."""

    failures: int = 0
    busy: bool = False
    calls: list[float] = attrs.field(factory=list)

    async def ask(self) -> str:
        self.calls.append(trio.current_time())
        if self.failures:
            self.failures -= 1
            raise OSError("not now")
        if self.busy:
            raise OSError("busy")
        self.busy = True
        await checkpoint()
        self.busy = False
        return "answer"


async def _retried() -> str:
    service = _Service(failures=2)
    retry = tenacity.AsyncRetrying(wait=tenacity.wait_exponential(), stop=tenacity.stop_after_attempt(5))
    await retry(service.ask)
    return f"asked at {service.calls}"


def test_tenacity_waits_in_virtual_time() -> None:
    """Its waits are Trio sleeps: an exponential backoff is as long as it says, and takes no time."""
    seen(_retried, right={"asked at [0.0, 1.0, 3.0]"})


def _herd(tasks: int, attempts: int) -> Callable[..., object]:
    async def program() -> str:
        service = _Service()
        answers: list[str] = []

        async def ask() -> None:
            retry = tenacity.AsyncRetrying(wait=tenacity.wait_fixed(1), stop=tenacity.stop_after_attempt(attempts))
            try:
                answers.append(await retry(service.ask))
            except tenacity.RetryError:
                return

        async with trio.open_nursery() as nursery:
            for _ in range(tasks):
                nursery.start_soon(ask)
        return f"{len(answers)} of {tasks} answered"

    return program


def test_tenacity_without_jitter_meets_again() -> None:
    """Three clients with one fixed wait come back together: with two attempts each, one may never be answered."""
    seen(_herd(2, 2), right={"2 of 2 answered"})
    seen(_herd(3, 2), right={"3 of 3 answered"}, wrong={"2 of 3 answered"}, most=40_000)


async def _retry_cancelled() -> str:
    service, scope = _Service(failures=3), trio.CancelScope()
    late: list[float] = []

    async def ask() -> None:
        with scope:
            async for attempt in tenacity.AsyncRetrying(wait=tenacity.wait_fixed(1)):
                with attempt:
                    if scope.cancel_called:
                        late.append(trio.current_time())
                    await service.ask()

    async def cancel() -> None:
        await trio.sleep(1)
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        nursery.start_soon(cancel)
    return f"{len(service.calls)} asked, {len(late)} late"


def test_tenacity_retries_no_cancel() -> None:
    """A cancel is no failure to be retried, also in the instant in which the wait ends."""
    seen(_retry_cancelled, right={"1 asked, 0 late", "2 asked, 0 late"})


def _wall_clock() -> Callable[..., object]:
    async def program() -> str:
        service = _Service(failures=100)
        stop = tenacity.stop_any(tenacity.stop_after_delay(10), tenacity.stop_after_attempt(50))
        with trio.move_on_after(3600 * 24) as scope:
            try:
                await tenacity.AsyncRetrying(wait=tenacity.wait_fixed(3600), stop=stop)(service.ask)
            except tenacity.RetryError:
                return "gave up"
        return f"{len(service.calls)} calls, {'scope' if scope.cancelled_caught else 'stop'}"

    return program


def test_tenacity_stop_after_delay_reads_the_clock_of_the_execution() -> None:
    """It gives up after the first hour; left to the real clock, ten seconds never pass."""
    seen(_wall_clock(), right={"gave up"})
    seen(_left_real(_wall_clock(), "clocks"), right={"24 calls, scope"})


def _left_real(program: Callable[..., object], *kinds: str) -> Callable[..., object]:
    async def left_real() -> object:
        sim.leave_real(*kinds)
        return await program()  # type: ignore[misc]

    return left_real


def _stamina(jitter: float) -> Callable[..., object]:
    async def program() -> str:
        service = _Service(failures=2)

        @stamina.retry(on=OSError, attempts=5, timeout=None, wait_initial=1, wait_jitter=jitter)
        async def ask() -> str:
            return await service.ask()

        await ask()
        return f"asked at {service.calls}"

    return program


def test_stamina_waits_in_virtual_time() -> None:
    """Without jitter its backoff is exact."""
    seen(_stamina(jitter=0), right={"asked at [0.0, 1.0, 3.0]"})


def test_stamina_jitter_is_the_executions() -> None:
    """Jitter comes from module-level random numbers, which are the same in every execution."""
    program = _stamina(jitter=1)
    execution = sim.run(program)
    assert sim.replay(program, execution.schedule).value == execution.value


def test_stamina_jitter_that_is_left_real_is_noticed() -> None:
    """No schedule holds the machine's numbers: a replay says that it diverged."""
    program = _left_real(_stamina(jitter=1), "random")
    execution = sim.run(program)
    with pytest.raises(ReplayDiverged, match=" s "):
        sim.replay(program, execution.schedule)
