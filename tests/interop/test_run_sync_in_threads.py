"""``run_sync`` in several threads: one Trio run in a service thread; the main thread takes turns with it."""

from __future__ import annotations

import contextvars
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio

import toolrt
from toolrt import READ, WRITE, ClaimTable, Outcome, Registry, Runtime, ToolCall, ToolContext, run_sync
from toolrt.interop._service import Service, ServiceCall
from toolrt.interop._sync import _turns
from toolrt.interop._turns import SharedHost, TableTurns, Turn

#: Seconds after which a test that hangs fails.
LATE = 20


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """What each function gives, or raises, in a thread of its own."""
    found: list[Any] = [None] * len(functions)

    def body(at: int) -> None:
        try:
            found[at] = functions[at]()
        except BaseException as error:
            found[at] = error

    threads = [threading.Thread(target=body, args=(at,), daemon=True) for at in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LATE)
        assert not thread.is_alive()
    return found


def services() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "toolrt run_sync"]


class Meeting:
    """A tool whose calls wait until so many of them are inside, or for so many seconds."""

    def __init__(self, size: int, patience: float = LATE, **promises: Any) -> None:
        self.inside = self.most = 0
        all_here = trio.Event()

        @toolrt.tool(**(promises or {"safe": True}))
        async def meet(ctx: ToolContext, room: int = 0) -> str:
            self.inside += 1
            self.most = max(self.most, self.inside)
            if self.inside == size:
                all_here.set()
            with trio.move_on_after(patience):
                await all_here.wait()
            self.inside -= 1
            return threading.current_thread().name

        self.runtime = Runtime(Registry([meet]))

    def run(self, **input: Any) -> Any:
        [result] = run_sync(self.runtime, [ToolCall("a", "meet", input)]).results
        return result.content


def test_eight_threads_run_their_batches_at_once() -> None:
    """Each waits for all the others inside its tool, in one thread."""
    meeting = Meeting(8)
    assert set(in_threads(*[meeting.run] * 8)) == {"toolrt run_sync"}
    assert meeting.most == 8


def test_claims_keep_batches_of_threads_apart() -> None:
    """One row: never two inside.  Different rows: both."""
    one, two = Meeting(2, 0.1, claims={"room": WRITE}), Meeting(2, claims={"room": WRITE})
    in_threads(lambda: one.run(room=1), lambda: one.run(room=1))
    in_threads(lambda: two.run(room=1), lambda: two.run(room=2))
    assert (one.most, two.most) == (1, 2)


def test_runtimes_of_one_table_share_a_service_and_others_do_not_wait_for_it() -> None:
    """A tool that never lets go holds up its own table's callers alone."""
    stuck, goes_on = threading.Event(), threading.Event()

    @toolrt.tool(safe=True)
    async def blocks(ctx: ToolContext) -> None:
        stuck.set()
        assert goes_on.wait(LATE)

    @toolrt.tool(safe=True)
    async def quick(ctx: ToolContext) -> str:
        return "quick"

    first, other = Runtime(Registry([blocks])), Runtime(Registry([quick]))

    def beside() -> Any:
        assert stuck.wait(LATE)
        done = run_sync(other, [ToolCall("b", "quick")]).results[0].content
        goes_on.set()
        return done

    _, content = in_threads(lambda: run_sync(first, [ToolCall("a", "blocks")]), beside)
    assert content == "quick"


class Line(list[Turn]):
    """The callers that wait, with an event for the next one that comes."""

    def __init__(self) -> None:
        super().__init__()
        self.came = threading.Event()

    def append(self, turn: Turn) -> None:
        super().append(turn)
        self.came.set()


def test_main_thread_keeps_its_own_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Async tools run where Ctrl-C arrives; the main thread waits for what is open, then the others wait for it."""
    assert threading.current_thread() is threading.main_thread()
    assert Meeting(1).run() == threading.current_thread().name
    shared = Meeting(1, claims={"room": READ})
    opened, line = threading.Event(), Line()
    monkeypatch.setattr(_turns, "_waiting", line)

    @toolrt.tool(claims={"room": READ})
    async def open_up(ctx: ToolContext, room: int) -> None:
        line.came.clear()
        opened.set()
        # The main thread comes next.
        assert await trio.to_thread.run_sync(line.came.wait, LATE)

    runtime = Runtime(Registry([*shared.runtime.registry, open_up]))
    shared.runtime = runtime
    thread = threading.Thread(target=run_sync, args=(runtime, [ToolCall("a", "open_up", {"room": 1})]))
    thread.start()
    assert opened.wait(LATE)
    assert shared.run() == threading.current_thread().name
    thread.join()


def test_tools_see_the_context_of_their_caller() -> None:
    """Each batch that of its own thread."""
    who = contextvars.ContextVar[str]("who")

    @toolrt.tool(safe=True)
    async def tell(ctx: ToolContext) -> str:
        await trio.lowlevel.checkpoint()
        return who.get()

    runtime = Runtime(Registry([tell]))

    def ask(name: str) -> Any:
        who.set(name)
        return run_sync(runtime, [ToolCall("a", "tell")]).results[0].content

    assert in_threads(*[lambda name=name: ask(name) for name in "abc"]) == ["a", "b", "c"]


def test_exceptions_reach_their_own_caller_as_they_are() -> None:
    """An exit in a tool ends that batch; the one beside it goes on."""
    error = SystemExit(3)
    meeting = Meeting(1)

    @toolrt.tool(safe=True)
    async def leaves(ctx: ToolContext) -> None:
        raise error

    runtime = Runtime(Registry([*meeting.runtime.registry, leaves]))
    meeting.runtime = runtime
    found = in_threads(
        lambda: run_sync(runtime, [ToolCall("a", "leaves")]),
        meeting.run,
        lambda: run_sync(runtime, ["no call"]),  # type: ignore[list-item]
    )
    assert found[0] is error
    assert found[1] == "toolrt run_sync"
    assert isinstance(found[2], toolrt.errors.DefinitionRefused)


def test_tool_that_calls_run_sync_in_the_service_is_told_what_to_write() -> None:
    """The service's run would wait for itself."""

    @toolrt.tool(safe=True)
    async def nested(ctx: ToolContext) -> None:
        run_sync(runtime, [])

    runtime = Runtime(Registry([nested]))
    [done] = in_threads(lambda: run_sync(runtime, [ToolCall("a", "nested")]))
    assert done.results[0].outcome is Outcome.ERROR
    assert "await runtime.run(calls, state)" in done.results[0].error


def test_call_is_handed_in_and_taken_under_one_lock() -> None:
    """Or the call is over before its caller wakes the service, whose run may have ended: seen once in 10,000 calls."""
    locked: list[bool] = []

    class Arrived(list[ServiceCall]):
        def append(self, call: ServiceCall) -> None:
            locked.append(service._lock.locked())
            super().append(call)

        def clear(self) -> None:
            locked.append(service._lock.locked())
            super().clear()

    turns = TableTurns(lambda turns: service)
    service = Service(turns)
    service._arrived = Arrived()

    async def batch() -> Any:
        return "done"

    def caller() -> Any:
        turn = Turn((ClaimTable(),), shares=True)
        turns.ask(turn)
        return service.run(ServiceCall(batch, lambda: turns.leave(turn)))

    assert in_threads(caller, caller) == ["done", "done"]
    assert set(locked) == {True}


def test_service_ends_when_there_are_no_callers() -> None:
    """It waits a moment for the next one; what it has left holds nothing."""
    in_threads(Meeting(1).run)
    for thread in services():
        thread.join(LATE)
    assert services() == []
    assert _turns._held == {}
    assert _turns._resting == []
    assert in_threads(Meeting(1).run) == ["toolrt run_sync"]


def test_caller_that_is_interrupted_cancels_its_batch_and_waits_for_its_end() -> None:
    """A library may raise in a thread; nothing of the batch runs on, and the turn is given back."""
    begun, cancelled = threading.Event(), threading.Event()

    async def batch() -> Any:
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            cancelled.set()

    class Interrupted:
        def __init__(self, inner: threading.Lock) -> None:
            self.inner, self.release, self.first = inner, inner.release, True

        def acquire(self) -> bool:
            if self.first:
                self.first = False
                assert begun.wait(LATE)
                raise InterruptedError
            return bool(self.inner.acquire())

    turns = TableTurns(Service)

    def caller() -> None:
        turn = Turn((ClaimTable(),), shares=True)
        turns.ask(turn)
        call = ServiceCall(batch, lambda: turns.leave(turn))
        call.waits = Interrupted(call.waits)  # type: ignore[assignment]
        assert isinstance(turn.host, Service)
        turn.host.run(call)

    [error] = in_threads(caller)
    assert isinstance(error, InterruptedError)
    assert cancelled.is_set()
    assert turns._held == {}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_service_that_breaks_down_tells_every_caller_and_serves_the_next() -> None:
    """Code that Trio runs by itself raised: the run cannot go on."""

    @toolrt.tool(safe=True)
    async def breaks(ctx: ToolContext) -> None:
        trio.lowlevel.current_trio_token().run_sync_soon(lambda: 1 / 0)
        await trio.sleep_forever()

    meeting = Meeting(1)
    runtime = Runtime(Registry([breaks, *meeting.runtime.registry]))
    [error] = in_threads(lambda: run_sync(runtime, [ToolCall("a", "breaks")]))
    assert isinstance(error, trio.TrioInternalError)
    meeting.runtime = runtime
    assert in_threads(meeting.run) == ["toolrt run_sync"]


def test_turns_are_given_in_the_order_in_which_they_were_asked_for() -> None:
    """A caller with its own run comes after those that are inside, and before those that ask later."""
    turns, table = TableTurns(lambda turns: SharedHost()), ClaimTable()

    def came(turn: Turn) -> bool:
        return turn.waits.acquire(blocking=False)

    first, second, own, late = (Turn((table,), shares) for shares in (True, True, False, True))
    for turn in (first, second, own, late):
        turns.ask(turn)
    assert [came(turn) for turn in (first, second, own, late)] == [True, True, False, False]
    assert first.host is second.host
    turns.leave(first)
    assert not came(own)
    turns.leave(second)
    assert came(own)
    assert not came(late)
    turns.leave(own)
    assert came(late)
    turns.leave(late)
    assert turns._held == {}


def test_caller_of_two_services_waits_until_one_has_let_go() -> None:
    """Tables that were apart come together; a caller that gives up leaves nothing behind."""
    turns = TableTurns(lambda turns: SharedHost())
    one, two = ClaimTable(), ClaimTable()
    left, right, both, beside = (Turn(tables, True) for tables in ((one,), (two,), (one, two), (two,)))
    for turn in (left, right, both, beside):
        turns.ask(turn)
    assert left.host is not right.host
    assert both.host is None
    turns.leave(both)
    assert beside.host is right.host
    turns.ask(both)
    turns.leave(left)
    assert both.host is right.host
    for turn in (both, beside, right):
        turns.leave(turn)
    assert turns._held == {}


_PROGRAM = """
import os, signal, sys, threading, toolrt, trio
from toolrt.interop._sync import _turns
inside = threading.Event()

@toolrt.tool(safe=True)
async def waits(ctx, seconds: float) -> str:
    inside.set()
    await trio.sleep(seconds)
    return "done"

@toolrt.tool(safe=True)
async def busy(ctx) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    while True: pass

runtime, other = toolrt.Runtime(toolrt.Registry([waits])), toolrt.Runtime(toolrt.Registry([busy]))

def run(seconds):
    calls = [toolrt.ToolCall("a", "waits", {"seconds": seconds})]
    print(toolrt.run_sync(runtime, calls).results[0].content, flush=True)

# A daemon's batch, which is never over.
threading.Thread(target=run, args=(600,), daemon=True).start()
inside.wait()

# Ctrl-C in the main thread: while it waits for its turn, and in a tool that never waits.
came = threading.Event()

class Line(list):
    def append(self, turn):
        super().append(turn)
        came.set()

_turns._waiting = Line()

def press():
    came.wait()
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press).start()
for attempt in (lambda: run(0), lambda: toolrt.run_sync(other, [toolrt.ToolCall("a", "busy")])):
    try:
        attempt()
    except KeyboardInterrupt:
        print("interrupted", flush=True)

# A child process, which has neither the daemon nor what it held; then a thread that outlives the main one.
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
    threading.Thread(target=run, args=(0.2,)).start()
else:
    signal.alarm(20)  # a child that hangs outlives no test
    run(0)
    thread = threading.Thread(target=run, args=(0,))
    thread.start()
    thread.join()
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_ctrl_c_fork_and_exit_beside_a_service() -> None:
    """A daemon's batch holds up none of them."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _PROGRAM],
        capture_output=True, text=True, timeout=LATE, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n" * 2 + "done\n" * 3, "")
