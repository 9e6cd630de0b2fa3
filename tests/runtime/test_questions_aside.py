"""A plain function that asks a person holds up its own call, and nothing else."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio
import trio.testing

import toolrt
from tests.runtime._tools import Diary, call, outcomes, runtime
from toolrt import Permissions, sim
from toolrt.workspace import MemoryDisk, Workspace


class Person:
    """Answers when it is told to, as a terminal does."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers = threading.Semaphore(0)
        self.was_asked = threading.Event()

    def __call__(self, about: Any) -> bool:
        self.asked.append(threading.current_thread().name)
        self.was_asked.set()
        return self.answers.acquire(timeout=30)


async def _loop_goes_on(person: Person) -> None:
    """Wait for a question; the loop must be free meanwhile."""
    await trio.to_thread.run_sync(person.was_asked.wait, 30)
    person.answers.release(2)


async def test_plain_approval_check_holds_up_no_other_task() -> None:
    """It is asked in a thread, for one call after the other."""
    person = Person()
    rt = runtime(Diary().tool("a", safe=True), approve=person)
    done: list[Any] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_loop_goes_on, person)
        done += (await rt.run([call("a"), call("a")])).results
    assert outcomes(done) == ["ok", "ok"]
    assert threading.main_thread().name not in person.asked


async def test_plain_ask_of_permissions_holds_up_no_other_task() -> None:
    """The rules are looked at where they stand; only the question goes to a thread."""
    person = Person()
    workspace = Workspace(MemoryDisk({"a.txt": "a"}))
    rt = toolrt.Runtime(toolrt.Registry(workspace.tools()), approve=Permissions(workspace, ask=person))
    done: list[Any] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_loop_goes_on, person)
        done += (await rt.run([call("read_file", path="a.txt")])).results
    assert outcomes(done) == ["ok"]
    assert threading.main_thread().name not in person.asked


async def test_cancel_does_not_wait_for_a_person() -> None:
    """The call has not started, and what the person says afterwards changes nothing."""
    person = Person()
    async with runtime(Diary().tool("a"), approve=person).open_batch() as batch:
        batch.submit(call("a"))
        batch.submit(call("a"))
        await trio.to_thread.run_sync(person.was_asked.wait, 30)
        batch.cancel("enough")
    assert outcomes(batch.outcome.results) == ["not_started", "not_started"]
    person.answers.release(2)


async def test_call_that_is_cancelled_while_a_person_thinks_takes_no_answer_along() -> None:
    """The first call's task began the thread; the next call still gets its own answer."""
    person = Person()
    async with runtime(Diary().tool("a", safe=True), approve=person).open_batch() as batch:
        batch.submit(call("a"))
        batch.submit(call("a"))
        batch.seal()
        await trio.to_thread.run_sync(person.was_asked.wait, 30)
        assert batch.cancel_call(0, "enough")
        await trio.testing.wait_all_tasks_blocked()
        person.answers.release(2)
        with trio.fail_after(30):
            async for _ in batch:
                pass
    assert outcomes(batch.outcome.results) == ["not_started", "ok"]


@pytest.mark.parametrize("error", [ValueError("no terminal"), EOFError()])
async def test_plain_check_that_raises_in_its_thread_denies(error: Exception) -> None:
    """As one that is asked in place."""

    def broken(request: Any) -> bool:
        raise error

    (result,) = (await runtime(Diary().tool("a"), approve=broken).run([call("a")])).results
    assert result.outcome is toolrt.Outcome.DENIED
    assert type(error).__name__ in str(result.error)


def test_plain_check_is_one_step_in_a_simulation() -> None:
    """As a plain tool is."""
    threads: list[str] = []

    def check(request: Any) -> bool:
        threads.append(threading.current_thread().name)
        return True

    rt = runtime(Diary().tool("a"), approve=check)
    assert outcomes(sim.run(lambda: rt.run([call("a")])).value.results) == ["ok"]
    assert threads == [threading.main_thread().name]


@pytest.mark.parametrize("turn", range(20))
def test_answers_that_come_at_once_let_calls_begin_at_one_instant(turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also under a clock that jumps whenever the loop is idle, which it is while a thread answers."""
    monkeypatch.setattr(toolrt._aside, "_TOGETHER", 60)  # a loaded machine takes its time
    began: list[float] = []

    @toolrt.tool(safe=True)
    async def look(ctx: toolrt.ToolContext) -> None:
        began.append(trio.current_time())
        await trio.sleep(1)

    async def main() -> None:
        rt = toolrt.Runtime(toolrt.Registry([look]), approve=lambda request: True)
        await rt.run([toolrt.ToolCall(str(number), "look") for number in range(4)])

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert len(began) == 4
    assert max(began) == min(began)
