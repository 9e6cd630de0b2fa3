"""Cleans up what an execution leaves in a Trio run, so that the next one starts from the same state.

Rules.  A task is ended whatever it says; a run in which that was needed is not fit for another execution.  What is no
task is dropped (RunVars, deadlines, idle waiters, callbacks, instruments) or closed (async generators).
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from operator import attrgetter
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any
from weakref import WeakKeyDictionary

import outcome
import trio
from trio.lowlevel import Task

from toolrt.sim._trio_internals._forced_end import BOUNDARIES, Disarm, ForcedEnd

_core: Any = trio._core
_run: Any = _core._run

# A coroutine that answers GeneratorExit with another await this many times is given up.
_CLOSE_ATTEMPTS = 20


class Leftovers:
    """What the executions of one Trio run leave in it.

    Args:
        runner: Trio's runner, when nothing but the harness and Trio's own tasks is in it.
        disarm: keeps what ends a step by force from being raised again.
    """

    def __init__(self, runner: Any, disarm: Disarm) -> None:
        self._runner = runner
        self._disarm = disarm
        self._runq = runner.runq
        self._tasks = runner.tasks
        self._baseline = frozenset(runner.tasks)
        self._callbacks = runner.entry_queue.queue
        self._callbacks_once = runner.entry_queue.idempotent_queue
        self._deadlines = runner.deadlines
        self._instruments = runner.instruments
        self._hooks = runner.instruments.data
        self._context = _run.GLOBAL_RUN_CONTEXT
        # Trio keeps these in a set ordered by address; they are closed in the order of their first iteration.
        runner.asyncgens.alive = _AliveInOrder()

    def are_none(self, nursery: trio.Nursery) -> bool:
        """Say whether all is as it was when the run began, and `nursery` can be used again."""
        private: Any = nursery.cancel_scope
        return not (
            self._runq
            or self._callbacks
            or self._callbacks_once
            or len(self._tasks) > len(self._baseline)
            or self._runner.asyncgens.alive.data
            or private._cancel_called
        )

    def was_there(self, task: Task) -> bool:
        """Say whether `task` is part of the run when nothing is simulated in it."""
        return task in self._baseline

    def tasks(self) -> list[Task]:
        """Give every living task that was not there when the run began, the youngest first."""
        if len(self._tasks) <= len(self._baseline):
            return []
        private: Any = self._tasks - self._baseline
        return sorted(private, key=_by_age, reverse=True)

    def kill_tasks(self) -> None:
        """End every task that was not there when the run began; nothing of them is left in the run queue.

        Nor among the callbacks: one that brings the answer of a thread would wake a task that has ended.
        """
        for _ in range(_CLOSE_ATTEMPTS):
            tasks = self.tasks()
            if not tasks:
                break
            # An ending task may spawn others.
            for task in tasks:
                self.kill(task)
        self._drop_callbacks()
        alive = [task for task in self._runq if task in self._tasks]
        self._runq.clear()
        self._runq.extend(alive)

    def _drop_callbacks(self) -> None:
        # A Ctrl-C among them is not lost: Trio looks for it whenever its main task waits.
        if self._callbacks or self._callbacks_once:
            self._callbacks.clear()
            self._callbacks_once.clear()

    def kill(self, task: Task) -> None:
        """End `task` whatever it says; afterwards this run is not fit for another execution."""
        private: Any = task
        caller = getattr(self._context, "task", None)
        self._context.task = task
        private._abort_func = None
        try:
            for close in _from_inside(private.coro):
                try:
                    private.context.run(close)
                except BaseException as error:  # noqa: ASYNC103
                    # In place, not in a function: the next forced end would come up at the first instruction of that.
                    if error.__class__.__base__ is ForcedEnd:
                        try:
                            self._disarm.replace()
                            while True:
                                pass
                        except ForcedEnd:
                            pass
                    # It awaited again or raised: its own business, and it gets another chance to end.
        finally:
            if caller is None:
                del self._context.task
            else:
                self._context.task = caller
        if task in self._tasks:
            try:
                self._runner.task_exited(task, outcome.Value(None))
            except Exception:
                # A forced end has met Trio's own code as that changed what this task belongs to.
                self._tasks.discard(task)
                private._parent_nursery._children.discard(task)

    def detach_scopes(self, nursery: trio.Nursery, harness: Task) -> None:
        """Take the cancel scopes that killed tasks have left open out of `nursery`, in which `harness` is.

        Trio would call itself once for each scope in another, as it closes the outermost.
        """
        private: Any = nursery
        private_harness: Any = harness
        outer = private._cancel_status
        for status in [*outer.children]:
            if status is not private_harness._cancel_status:
                outer._children.discard(status)
                status._parent = None

    def bury(self) -> None:
        """Close every coroutine of a run whose loop has failed: they will not be stepped again."""
        for task in list(self._tasks):
            nursery: Any = task.parent_nursery
            if nursery is not None:
                # A nursery complains when it is dropped with children.
                nursery._children.clear()
            for close in _from_inside(task.coro):
                try:
                    close()
                except BaseException as error:  # noqa: ASYNC103
                    # In place, as in `kill`.
                    if error.__class__.__base__ is ForcedEnd:
                        try:
                            self._disarm.replace()
                            while True:
                                pass
                        except ForcedEnd:
                            pass
                    # Whatever it does without its loop is bound to fail.

    def has_async_generators(self) -> bool:
        """Say whether an execution left any half iterated."""
        return bool(self._runner.asyncgens.alive)

    async def close_async_generators(self) -> None:
        """Close what an execution left half iterated, in the order of first iteration."""
        asyncgens = self._runner.asyncgens
        while asyncgens.alive:
            left = list(asyncgens.alive)
            asyncgens.alive = _AliveInOrder()
            for generator in left:
                # One that runs was awaited by a task that was killed and awaited again: nothing can close it.
                if not generator.ag_running:
                    # Like Trio at the end of a run: cancelled and shielded, its errors logged.
                    await asyncgens._finalize_one(generator, generator.__qualname__)

    def sweep(self) -> None:
        """Drop what an execution left in the run: RunVars, deadlines, idle waiters, callbacks, instruments."""
        runner = self._runner
        self._drop_callbacks()
        if runner._locals:
            runner._locals.clear()
        if self._deadlines._heap:
            self._deadlines._heap.clear()
            self._deadlines._active = 0
        if runner.waiting_for_idle:
            runner.waiting_for_idle.clear()
        if self._hooks["_all"]:
            for instrument in list(self._hooks["_all"]):
                self._instruments.remove_instrument(instrument)


_by_age = attrgetter("_counter")

# What awaits an async generator.  Before Python 3.13 its own `close` lets the generator stand, and count as running.
_OF_ASYNC_GENERATORS = ("async_generator_asend", "async_generator_athrow")


def _from_inside(coroutine: Any) -> Iterator[Callable[[], object]]:
    """Give what ends a coroutine: what it awaits is closed first.

    Closed from outside it leaves what it awaits half done where that awaits again; dropped later, that would complain.
    """
    awaited = _awaited(coroutine)
    for _ in range(_CLOSE_ATTEMPTS + len(awaited)):
        if not awaited:
            break
        innermost = awaited[-1]
        is_asyncgens = type(innermost).__name__ in _OF_ASYNC_GENERATORS
        yield partial(_throw_exit, innermost) if is_asyncgens else innermost.close
        awaited = _awaited(coroutine)
    yield coroutine.close


def _awaited(coroutine: Any) -> list[Any]:
    """Give a coroutine and what it awaits, each in the one before, as far as these can be ended."""
    found: list[Any] = []
    each = coroutine
    while each is not None:
        if isinstance(each, CoroutineType):
            goes_on, inner = each.cr_frame is not None, each.cr_await
        elif isinstance(each, GeneratorType):
            goes_on, inner = each.gi_frame is not None, each.gi_yieldfrom
        elif type(each).__name__ in _OF_ASYNC_GENERATORS:
            (generator,) = (one for one in gc.get_referents(each) if isinstance(one, AsyncGeneratorType))
            goes_on, inner = generator.ag_running, generator.ag_await
        else:
            break
        if not goes_on:
            break
        found.append(each)
        each = inner
    return found


def _throw_exit(awaited: Any) -> None:
    with suppress(GeneratorExit, StopAsyncIteration, StopIteration):
        awaited.throw(GeneratorExit)


BOUNDARIES.update((Leftovers.kill.__code__, Leftovers.bury.__code__))


class _AliveInOrder(WeakKeyDictionary[Any, None]):
    """Stands in for the weak set of Trio's async generators, and remembers the order they came in."""

    def add(self, generator: Any) -> None:
        self[generator] = None
