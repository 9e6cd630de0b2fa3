"""A refusal ends the execution, whatever the program does with it."""

from __future__ import annotations

import _thread
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim, testing
from toolrt.errors import NotSimulated, UnsupportedTrio

_LEAVING: dict[str, Callable[[], object]] = {
    "thread": lambda: threading.Thread(target=int).start(),
    "start_new_thread": lambda: _thread.start_new_thread(int, ()),
    "subprocess": lambda: subprocess.run([sys.executable, "-V"], check=False),
    "exit": lambda: os._exit(1),
    "abort": lambda: os.abort(),
    "exec": lambda: os.execlp(sys.executable, sys.executable, "-V"),
    "lookup": lambda: socket.getaddrinfo("python.org", 80),
}


def _swallows(leave: Callable[[], object], what: type[BaseException]) -> Callable[[], Awaitable[str]]:
    async def program() -> str:
        with contextlib.suppress(what):
            leave()
        await checkpoint()
        return "as if nothing had happened"

    return program


@pytest.mark.parametrize("what", [Exception, BaseException])
@pytest.mark.parametrize("name", _LEAVING)
def test_swallowed_refusal_ends_the_execution(name: str, what: type[BaseException]) -> None:
    """The execution's error is the refusal, and nothing that came after it counts."""
    program = _swallows(_LEAVING[name], what)
    execution = sim.run(program)
    assert isinstance(execution.error, NotSimulated)
    assert execution.value is None
    assert len(execution.schedule) == 1
    report = sim.explore(program, sim.Exhaustive())
    assert report.verdict is sim.FAIL
    assert report.outcomes == {"NotSimulated": 1}


def test_in_a_child_and_through_trio() -> None:
    """Also in a child whose parent catches everything, and where Trio would have left."""

    async def child() -> None:
        threading.Thread(target=int).start()

    async def program() -> str:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(child)
        except BaseException:
            pass
        return "done"

    for _ in range(2):
        assert isinstance(sim.run(program).error, NotSimulated)


def test_no_check_makes_it_a_pass() -> None:
    """A check that says that all is well cannot know what the program would have done."""
    report = sim.explore(_swallows(_LEAVING["lookup"], Exception), sim.Exhaustive(), lambda execution: True)
    assert report.verdict is sim.INCONCLUSIVE


def test_a_test_is_told() -> None:
    """The decorator raises the refusal itself."""

    @testing.explored(strategy="exhaustive")
    async def swallowing() -> None:
        with contextlib.suppress(Exception):
            socket.getaddrinfo("python.org", 80)
        await checkpoint()

    with pytest.raises(NotSimulated):
        swallowing()


def test_the_next_execution_is_whole() -> None:
    """What was ended leaves nothing behind, and a finally block of it still runs."""
    closed: list[int] = []

    async def program() -> None:
        try:
            with contextlib.suppress(Exception):
                socket.getaddrinfo("python.org", 80)
            await trio.sleep_forever()
        finally:
            closed.append(1)

    assert sim.explore(program, sim.Random(sim.Fifo(), 3)).outcomes == {"NotSimulated": 3}
    assert len(closed) >= 3
    assert sim.run(checkpoint).error is None


def test_bare_thread_is_refused() -> None:
    """``_thread`` starts none, and the refusal says what to do instead; outside a simulation it does."""
    error = sim.run(_swallows(_LEAVING["start_new_thread"], Exception)).error
    assert isinstance(error, NotSimulated)
    assert error.action == "start a thread (_thread.start_new_thread)"
    assert "call the function directly" in error.remedy
    lock = _thread.allocate_lock()
    lock.acquire()
    _thread.start_new_thread(lock.release, ())
    assert lock.acquire(timeout=10)


class Account:
    """A user's class whose text reads its attributes."""

    def __init__(self) -> None:
        self.owner: object = None
        self.balance = 0

    def __repr__(self) -> str:
        return f"Account({self.balance}, {self.owner})"


async def _watched_race() -> int:
    account = sim.watch(Account(), "account")
    holder = sim.watch(Account(), "holder")

    async def add() -> None:
        holder.owner = account
        seen = account.balance
        await checkpoint()
        account.balance = seen + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    return account.balance


def test_details_of_a_watched_object_end() -> None:
    """What a watched object holds is written without being noted in turn, and changes nothing that is reported."""
    detailed = sim.run(_watched_race, details=True)
    assert detailed.error is None
    assert detailed.schedule == sim.run(_watched_race).schedule
    values = [entry[5] for entry in detailed.trace.notes["details"]["accesses"] if entry[5] is not None]
    assert any("Account(0, None)" in value for value in values)


def test_explanation_of_a_watched_object_has_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps are shown with the source lines of both sides, as far as the screen is wide."""
    monkeypatch.setenv("COLUMNS", "180")
    report = sim.explore(_watched_race, sim.DPOR(), lambda execution: execution.value == 2)
    story = report.failures[0].explain()
    assert "seen = account.balance" in story
    assert "account.balance = seen + 1" in story


def test_missing_lines_are_told() -> None:
    """A program that takes another course when it is run again is not explained in silence."""
    runs: list[int] = []

    async def program() -> None:
        runs.append(1)
        for _ in range(1 + (len(runs) > 2)):
            await checkpoint()
        raise RuntimeError

    report = sim.explore(program, sim.Random(sim.Fifo(), 1))
    assert "no source lines" in report.failures[0].explain()


@pytest.mark.parametrize("name", ["in_trio_run", "in_trio_task"])
def test_old_trio_gets_the_message(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A Trio without a name that is asked first is refused with the list of what is missing."""
    monkeypatch.delattr(trio.lowlevel, name)
    for start in (lambda: sim.run(checkpoint), lambda: sim.explore(checkpoint), lambda: sim.estimate(checkpoint)):
        with pytest.raises(UnsupportedTrio, match=rf"trio\.lowlevel\.{name} is gone"):
            start()


def test_the_report_of_a_swallowed_refusal_says_why_nothing_was_decided() -> None:
    """What ended the execution was no step limit alone: the words name what is not simulated."""

    async def program() -> None:
        with contextlib.suppress(BaseException):
            socket.getaddrinfo("python.org", 80)

    report = sim.explore(program, sim.Exhaustive(), lambda execution: True)
    assert report.verdict is sim.INCONCLUSIVE
    assert "asked for what is not simulated" in str(report)
