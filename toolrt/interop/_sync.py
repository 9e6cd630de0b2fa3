"""A way in for code without an event loop.

Rules.  Who already runs on Trio awaits the runtime itself and is refused here, also from a worker thread that
Trio started: a second Trio run inside the first would stall it, or wait for what only the first can give back.
Two threads that use one claim table take turns, because a ticket table belongs to one Trio run at a time.  Ctrl-C ends
the wait for a turn, too, and never leaves a turn taken.

Limits.  It blocks its thread until the batch is over.  Turns are taken between callers of `run_sync` only; while a Trio
program in another thread has a batch open on the same table, it is refused.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Sequence

import trio

from toolrt.errors import MisuseError
from toolrt.model import BatchOutcome, State, ToolCall
from toolrt.order import ClaimTable
from toolrt.runtime import Runtime

_registering = threading.Lock()
#: Whose turn it is, for each table that was ever used here: its place in the order, and its lock.
_turns: weakref.WeakKeyDictionary[ClaimTable, tuple[int, threading.Lock]] = weakref.WeakKeyDictionary()
_registered = 0


def run_sync(runtime: Runtime, calls: Sequence[ToolCall], state: State | None = None) -> BatchOutcome:
    """Run `calls` as one batch on a Trio run of their own, and give one result each and the state they leave.

    From asyncio, use ``await toolrt.aio.run(runtime, calls)``.

    Args:
        runtime: whose tools, lanes and limit are used.
        calls: of one model response, in call order.
        state: the state the first lane starts from; the empty one by default.

    Raises:
        MisuseError: called from a Trio program, where it is ``await runtime.run(calls, state)``, or in a running
            asyncio loop; nothing was run.
        BatchClosed: a Trio program in another thread has a batch open on the same claim table; nothing was run.
        DefinitionRefused: something in `calls` is no `ToolCall`, or `state` no `State`; nothing was run.
        KeyboardInterrupt: Ctrl-C; the calls that ran were cancelled, and their effects may have landed.

    Checkpoint: never (it is not async).

    Ordering: as `Runtime.run`.

    Example::

        done = toolrt.run_sync(toolrt.Runtime(registry), calls)
    """
    if asyncio._get_running_loop() is not None:
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
    return trio.run(_in_turn, runtime, calls, state)


#: Seconds between two looks at whether Ctrl-C was pressed, while the main thread waits for its turn.
_LOOK = 0.1


@trio.lowlevel.enable_ki_protection
async def _in_turn(runtime: Runtime, calls: Sequence[ToolCall], state: State | None) -> BatchOutcome:
    """Run the batch once all tables are this thread's; nothing else is in this Trio run, so its wait may block."""
    patience = _LOOK if threading.current_thread() is threading.main_thread() else -1
    taken: list[threading.Lock] = []
    try:
        for lock in _locks_of(runtime):
            while not lock.acquire(timeout=patience):  # noqa: ASYNC110  another thread's lock: Trio knows no event of it
                await trio.lowlevel.checkpoint()
            taken.append(lock)
        return await runtime.run(calls, state)
    finally:
        for lock in reversed(taken):
            lock.release()


def _is_trio_worker_thread() -> bool:
    try:
        trio.from_thread.check_cancelled()
    except RuntimeError:
        return False
    return True


def _locks_of(runtime: Runtime) -> list[threading.Lock]:
    """The locks of its tables, always in one order, so that two callers never wait for each other."""
    global _registered
    found = []
    with _registering:
        for table in runtime.tables:
            if table not in _turns:
                _turns[table] = (_registered, threading.Lock())
                _registered += 1
            found.append(_turns[table])
    return [lock for _, lock in sorted(found, key=lambda turn: turn[0])]
