"""Tests that misbehave, each in a way of its own, and an ordinary one at the end: `python -m tests.wild.misbehaving`.

pytest collects this file only where it is named.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import trio

pytestmark = pytest.mark.trio


async def test_swallows_refusals() -> None:
    """Ask again for what is refused, whatever is raised."""
    while True:
        with contextlib.suppress(BaseException):
            await trio.lowlevel.wait_readable(0)


async def test_never_checkpoints() -> None:
    """Spin in Python."""
    while True:
        pass


async def test_spins_behind_handlers() -> None:
    """Begin again in each of many loops that swallow everything."""

    def inner(depth: int) -> None:
        while True:
            with contextlib.suppress(BaseException):
                while not depth:
                    pass
                inner(depth - 1)

    inner(20)


async def test_never_lets_go() -> None:
    """Pass a checkpoint for ever, also when it is cancelled."""
    while True:
        with contextlib.suppress(BaseException):
            await trio.sleep_forever()


async def test_spins_in_c_that_looks_for_signals() -> None:
    """Match a regular expression that takes for ever."""
    re.match(r"(a+)+$", "a" * 60 + "b")


async def test_blocks_the_loop() -> None:
    """Wait for a lock that nothing releases."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


async def test_blocks_in_a_thread() -> None:
    """The same in a worker thread."""
    lock = threading.Lock()
    lock.acquire()
    await trio.to_thread.run_sync(lock.acquire)


async def test_spins_in_a_thread() -> None:
    """Spin in a worker thread that cannot be abandoned."""

    def spin() -> None:
        while True:
            pass

    await trio.to_thread.run_sync(spin)


async def test_starts_a_thread_that_stays() -> None:
    """Leave a thread of its own behind, which never ends."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    await trio.lowlevel.checkpoint()


async def test_forks() -> None:
    """Become two processes."""
    if not os.fork():
        os._exit(0)
    await trio.lowlevel.checkpoint()


async def test_raises_in_finalisers() -> None:
    """Raise where an object is dropped, in every step."""

    class Raises:
        def __del__(self) -> None:
            raise SystemExit("dropped")

    for _ in range(5):
        Raises()
        await trio.lowlevel.checkpoint()


async def test_never_closes_a_generator() -> None:
    """Leave an async generator that answers its end with another value."""

    async def numbers() -> AsyncGenerator[int]:
        while True:
            with contextlib.suppress(BaseException):
                yield 1

    half = numbers()
    await anext(half)


async def test_takes_signals_away() -> None:
    """Block every signal, and spin."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        pass


async def test_calls_itself() -> None:
    """Recur as deep as Python lets it, again and again."""

    def deeper() -> None:
        deeper()

    while True:
        with contextlib.suppress(RecursionError):
            deeper()


async def test_starts_tasks_without_end() -> None:
    """Have each task start two more."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_starts_two, nursery)


async def _starts_two(nursery: trio.Nursery) -> None:
    nursery.start_soon(_starts_two, nursery)
    nursery.start_soon(_starts_two, nursery)


async def test_starts_tasks_without_end_as_they_end() -> None:
    """Have each task start two more, also when it is cancelled, in a nursery of its own."""
    try:
        await trio.sleep(1)
    finally:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(test_starts_tasks_without_end_as_they_end)
            nursery.start_soon(test_starts_tasks_without_end_as_they_end)


async def test_exits() -> None:
    """Leave the interpreter from a child."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_exit)


async def _exit() -> None:
    sys.exit(3)


async def test_exits_at_once() -> None:
    """End the process, with a status that says that all is well."""
    os._exit(0)


async def test_runs_another_loop() -> None:
    """Run asyncio within Trio, with a wait that never ends."""
    asyncio.run(asyncio.sleep(3600))


async def test_ends_tasks_of_trio() -> None:
    """Cancel all that the run has, the simulator's own tasks among them."""
    root: Any = trio.lowlevel.current_root_task()
    for nursery in root.child_nurseries:
        nursery.cancel_scope.cancel()
        for task in nursery.child_tasks:
            for inner in task.child_nurseries:
                inner.cancel_scope.cancel()
    await trio.sleep_forever()


async def test_spins_in_c_for_ever() -> None:
    """Sum what has no end: C code that neither looks for signals nor lets another thread run."""
    sum(itertools.repeat(0))


async def test_ordinary() -> None:
    """Two tasks, and nothing else."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.lowlevel.checkpoint)
        nursery.start_soon(trio.lowlevel.checkpoint)
