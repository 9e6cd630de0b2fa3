"""Worker threads of a disk: in order, never abandoned, and a slow operation holds up no other."""

from __future__ import annotations

import contextvars
import gc
import threading
import weakref
from collections.abc import Callable

import pytest
import trio
import trio.testing

from toolrt.workspace.disk._workers import DiskThreads, check_cancelled

#: Longer than any machine takes; a test that waits so long has failed.
LONG = 60


async def ask_all(workers: DiskThreads, works: list[Callable[[], object]]) -> list[object]:
    """Ask for all in this order, and give the answers in the same."""
    answers: list[object] = [None] * len(works)

    async def ask(place: int) -> None:
        answers[place] = await workers.run(works[place])

    async with trio.open_nursery() as nursery:
        for place in range(len(works)):
            nursery.start_soon(ask, place)
            await trio.testing.wait_all_tasks_blocked()
    return answers


async def test_answer_and_error():
    """What the operation gives or raises, with the place where it was raised."""
    workers = DiskThreads(2)
    assert await workers.run(lambda: 7) == 7

    def fails() -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no") as caught:
        await workers.run(fails)
    assert caught.traceback[-1].name == "fails"


async def test_checkpoint():
    """Always one, and a cancelled caller begins nothing."""
    workers, begun = DiskThreads(2), []
    with trio.testing.assert_checkpoints():
        await workers.run(int)
    with trio.CancelScope() as scope:
        scope.cancel()
        await workers.run(lambda: begun.append(1))
    assert scope.cancelled_caught
    assert not begun


async def test_quick_operations_share_one_thread_and_begin_in_order():
    """Ten at a time: what they do is done in the order in which they were asked for."""
    workers, seen = DiskThreads(16), []
    barrier = threading.Event()

    def quick(number: int) -> int:
        seen.append((number, threading.get_ident()))
        return number

    def first() -> int:
        assert barrier.wait(LONG)
        return quick(0)

    async def release() -> None:
        barrier.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_all, workers, [first])
        await trio.testing.wait_all_tasks_blocked()
        for number in range(1, 10):
            nursery.start_soon(ask_all, workers, [lambda number=number: quick(number)])
            await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(release)
    # The first may have been slow, and then others helped; among those of one thread the order stands.
    for thread in {thread for _, thread in seen}:
        numbers = [number for number, who in seen if who == thread]
        assert numbers == sorted(numbers)
    assert sorted(number for number, _ in seen) == list(range(10))


async def test_slow_operation_holds_up_no_other():
    """The first ends only when the second has."""
    workers, second_ran = DiskThreads(2), threading.Event()
    answers = await ask_all(workers, [lambda: second_ran.wait(LONG), second_ran.set])
    assert answers[0] is True


async def test_answer_does_not_wait_for_the_slow_operation_behind():
    """The second ends only when somebody has had the answer of the first."""
    workers, told = DiskThreads(2), threading.Event()
    seen = []

    async def first() -> None:
        await workers.run(int)
        told.set()

    async def second() -> None:
        seen.append(await workers.run(lambda: told.wait(LONG)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        nursery.start_soon(second)
    assert seen == [True]


async def test_no_more_threads_than_the_limit():
    """With all of them busy, what is asked for waits."""
    workers, go_on, ran = DiskThreads(2), threading.Event(), []
    inside = threading.Semaphore(0)

    def slow() -> None:
        inside.release()
        assert go_on.wait(LONG)

    def both_busy() -> None:
        assert inside.acquire(timeout=LONG)
        assert inside.acquire(timeout=LONG)

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(workers.run, slow)
        await trio.to_thread.run_sync(both_busy)
        nursery.start_soon(workers.run, lambda: ran.append(1))
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert not ran
        go_on.set()
    assert ran


async def test_eager_workers_help_at_once():
    """Operations known to be slow each have a thread: all are inside before one goes on."""
    workers, barrier = DiskThreads(3, eager=True), threading.Barrier(3)
    assert sorted(await ask_all(workers, [lambda: barrier.wait(LONG)] * 3)) == [0, 1, 2]


async def test_waiting_operation_is_taken_back_at_once():
    """Its caller is cancelled while another operation runs; it never begins."""
    workers, inside, go_on, ran = DiskThreads(1), threading.Event(), threading.Event(), []

    def slow() -> None:
        inside.set()
        assert go_on.wait(LONG)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(workers.run, slow)
        await trio.to_thread.run_sync(inside.wait)
        with trio.CancelScope() as scope:
            nursery.start_soon(cancel_when_blocked, scope)
            await workers.run(lambda: ran.append(1))
        assert scope.cancelled_caught
        go_on.set()
    assert not ran


async def cancel_when_blocked(scope: trio.CancelScope) -> None:
    """Cancel once everybody else waits."""
    await trio.testing.wait_all_tasks_blocked()
    scope.cancel()


@pytest.mark.parametrize("asks", [False, True])
async def test_running_operation_is_never_abandoned(asks):
    """Its caller waits for its end; it is told that it happened, or that the operation gave up in time."""
    workers, inside, go_on, done = DiskThreads(2), threading.Event(), threading.Event(), []

    def slow() -> str:
        inside.set()
        assert go_on.wait(LONG)
        if asks:
            check_cancelled()
        done.append(1)
        return "happened"

    answers = []

    async def cancel(scope: trio.CancelScope) -> None:
        await trio.to_thread.run_sync(inside.wait)
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert not answers
        go_on.set()

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(cancel, scope)
            answers.append(await workers.run(slow))
    assert scope.cancelled_caught is asks
    assert answers == ([] if asks else ["happened"])
    assert done == ([] if asks else [1])


async def test_context_is_the_callers():
    """Context variables of the task that asked."""
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(3)
    assert await DiskThreads(1).run(variable.get) == 3


def test_two_runs_share_the_threads():
    """Each is told of its own, in its own thread."""
    workers, answers = DiskThreads(2), {}

    def one(name: str) -> None:
        async def main() -> None:
            answers[name] = await ask_all(workers, [lambda number=number: (name, number) for number in range(50)])

        trio.run(main)

    threads = [threading.Thread(target=one, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert answers == {name: [(name, number) for number in range(50)] for name in "ab"}


async def test_nothing_is_left():
    """No thread counts as working, and nobody holds what was asked or answered."""
    workers = DiskThreads(4)

    class Thing:
        pass

    thing = Thing()
    reference = weakref.ref(thing)
    assert await workers.run(lambda thing=thing: thing) is thing

    def fails(thing: object = thing) -> None:
        raise ValueError

    with pytest.raises(ValueError):
        await workers.run(fails)
    del thing, fails
    # One more operation: it begins behind the end of all before it.
    await workers.run(int)
    gc.collect()
    assert reference() is None
    while workers._threads:
        await trio.lowlevel.checkpoint()
    assert not workers._waiting
    assert not workers._done
