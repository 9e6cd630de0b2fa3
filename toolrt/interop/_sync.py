"""A way in for code without an event loop.

Rules.
    1. A caller on Trio awaits the runtime itself and is refused here, also in a worker thread that Trio started: a
       second Trio run inside the first would stall it, or wait for what only the first can give back.
    2. Callers in other threads than the main one share one Trio run, in a service thread.  So batches on one claim
       table run side by side, and tickets order them.
    3. The main thread has a Trio run of its own.  Ctrl-C arrives there and nowhere else, and interrupts a tool that
       never waits, too.  The main thread and a service take turns on a claim table.  Ctrl-C ends the wait for a turn,
       too, and never leaves a turn taken.

Limits.  It blocks its thread until the batch is over.  Callers of `run_sync` take turns among themselves only;
while a Trio program in another thread has a batch open on the same table, it is refused.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Hashable, Sequence

import trio

from toolrt.errors import MisuseError
from toolrt.interop._service import Service, ServiceCall
from toolrt.interop._turns import TableTurns, Turn
from toolrt.model import BatchOutcome, State, ToolCall
from toolrt.runtime import Runtime

_turns = TableTurns(Service)


def run_sync(
    runtime: Runtime,
    calls: Sequence[ToolCall],
    state: State | None = None,
    *,
    batch_id: str | None = None,
    owner: Hashable | None = None,
    resume: bool = False,
) -> BatchOutcome:
    """Run `calls` as one batch on a Trio run of toolrt's own, and give one result each and the state they leave.

    From asyncio, use ``await toolrt.aio.run(runtime, calls)``.  In the main thread, async tools run in the main thread.
    In other threads they run in a service thread that all callers of one runtime or workspace share, in a copy of the
    caller's context; then several batches run at once.

    Args:
        runtime: whose tools, lanes and limit are used.
        calls: of one model response, in call order.
        state: the state the first lane starts from; the empty one by default.
        batch_id: names the batch: see `Runtime.run`.
        owner: whose batch it is: see `Runtime.run`.
        resume: whether to go on with the batch of this id, where the journal has one: see `Runtime.run`.

    Raises:
        MisuseError: called from a Trio program, where it is ``await runtime.run(calls, state)``, or in a running
            asyncio loop; nothing was run.
        BatchClosed: a Trio program in another thread has a batch open on the same claim table; nothing was run.
        DefinitionRefused: something in `calls` is no `ToolCall`, or `state` no `State`; nothing was run.
        JournalRefused, JournalFailed: as `Runtime.run`.
        KeyboardInterrupt: Ctrl-C; the calls that ran were cancelled, and their effects may have landed.

    Checkpoint: never (it is not async).

    Ordering: as `Runtime.run`; batches on one claim table order by when their lanes took their tickets.

    Example::

        done = toolrt.run_sync(toolrt.Runtime(registry), calls)
    """
    # In a browser a loop always runs, the page's own, and there is no other thread to go to.
    if sys.platform != "emscripten" and asyncio._get_running_loop() is not None:
        raise MisuseError(
            "run_sync was called inside a running asyncio loop, which it would hold up: use "
            "`await toolrt.aio.run(runtime, calls, state)` there"
        )
    if trio.lowlevel.in_trio_run():
        raise MisuseError("run_sync was called inside a running Trio loop: use `await runtime.run(calls, state)` there")
    if _is_trio_worker_thread():
        raise MisuseError(
            "run_sync was called in a worker thread of a running Trio loop: use "
            "`trio.from_thread.run(runtime.run, calls, state)` there"
        )
    run = functools.partial(runtime.run, calls, state, batch_id=batch_id, owner=owner, resume=resume)
    if threading.current_thread() is threading.main_thread():
        return trio.run(_in_turn, runtime, run)
    turn = Turn(runtime.tables, shares=True)
    _turns.ask(turn)
    try:
        turn.waits.acquire()
    except BaseException:
        _turns.leave(turn)
        raise
    assert isinstance(turn.host, Service)
    return turn.host.run(ServiceCall(run, functools.partial(_turns.leave, turn)))


#: Seconds between two looks at whether Ctrl-C was pressed, while the main thread waits for its turn.
_LOOK = 0.1


@trio.lowlevel.enable_ki_protection
async def _in_turn(runtime: Runtime, run: Callable[[], Awaitable[BatchOutcome]]) -> BatchOutcome:
    """Run the batch once all tables are this thread's; nothing else is in this Trio run, so its wait may block."""
    turn = Turn(runtime.tables, shares=False)
    _turns.ask(turn)
    try:
        while not turn.waits.acquire(timeout=_LOOK):  # noqa: ASYNC110  a lock of threads: Trio knows no event of it
            await trio.lowlevel.checkpoint()
        return await run()
    finally:
        _turns.leave(turn)


def _is_trio_worker_thread() -> bool:
    try:
        trio.from_thread.check_cancelled()
    except RuntimeError:
        return False
    return True


def _after_fork() -> None:
    """In the child process there is this thread alone: what others held is free."""
    for table in _turns.held_after_fork():
        table.clear()
        table.tenure = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
