"""Every private name of Trio that the simulator uses, and nothing else.

Rules.  No other module of `toolrt.sim` reads a name of Trio that starts with an underscore or is not
documented.  Each such name is in `_REQUIRED`, which is checked before every simulation: a Trio whose internals
moved is refused with the list of what moved (`UnsupportedTrio`), never half controlled.  Everything replaced
here acts on the simulation's own run alone, hands all else to what it replaced, and is put back afterwards:
Trio's module globals are shared by every thread.

Theory.  Trio has one hook for deterministic scheduling: under Hypothesis it sorts each tick's runnable tasks and
hands them to ``_r.shuffle``.  Our object in the place of ``_r`` empties that list and steps the tasks itself,
one at a time, so every order of steps can happen; Trio then finds nothing left to run and goes round its loop.

Limits.  `Seam.step` does what one turn of Trio's loop does.  `can_step_inside` compares that part of the
installed Trio with the ones it was written for; where it differs, the scheduler leaves one task per tick in the
list instead and Trio steps it: the same schedules, about half the speed.  This module is long because it is the
only one of its kind: what a new Trio version can break is all in here.
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

import hashlib
import inspect
import re
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from types import ModuleType
from typing import Any

import outcome
import trio
from trio.lowlevel import Task

from toolrt.errors import NotSimulated, UnsupportedTrio
from toolrt.sim._paths import ROOT, Path
from toolrt.sim._trio_internals_accesses import REQUIRED as _REQUIRED_BY_ACCESSES
from toolrt.sim._trio_internals_order import AliveInOrder, expire_in_path_order, recalculate_in_path_order

__all__ = [
    "DUE",
    "ENDED",
    "GOES_ON",
    "Seam",
    "can_step_inside",
    "check_supported",
    "controlled",
    "is_host_of_guest",
    "outside_run",
    "seam_of_this_run",
]

_core: Any = trio._core
_run: Any = _core._run
_socket: Any = sys.modules["trio._socket"]
_socket_names: Any = sys.modules["trio.socket"]
_subprocess: Any = sys.modules["trio._subprocess"]
_threads: Any = sys.modules["trio._threads"]
_thread_cache: Any = sys.modules["trio._core._thread_cache"]
_traps: Any = sys.modules["trio._core._traps"]

# Holder (a module or a class of Trio), its name for a reader, the names used.
_REQUIRED: tuple[tuple[str, ModuleType, str | None, tuple[str, ...]], ...] = (
    (
        "trio._core._run",
        _run,
        None,
        (
            "_r",
            "_ALLOW_DETERMINISTIC_SCHEDULING",
            "GLOBAL_RUN_CONTEXT",
            "CONTEXT_RUN_TB_FRAMES",
            "TheIOManager",
            "setup_runner",
            "sniffio_library",
            "unrolled_run",
        ),
    ),
    (
        "trio._core._run.Runner",
        _run,
        "Runner",
        (
            "runq",
            "tasks",
            "deadlines",
            "entry_queue",
            "asyncgens",
            "instruments",
            "waiting_for_idle",
            "main_task",
            "ki_pending",
            "_locals",
            "reschedule",
            "task_exited",
        ),
    ),
    (
        "trio.lowlevel.Task",
        _run,
        "Task",
        (
            "coro",
            "context",
            "custom_sleep_data",
            "_counter",
            "_next_send_fn",
            "_next_send",
            "_abort_func",
            "_cancel_status",
            "_schedule_points",
            "_cancel_points",
            "_attempt_delivery_of_pending_ki",
            "_attempt_delivery_of_any_pending_cancel",
        ),
    ),
    (
        "trio._core._run.CancelStatus",
        _run,
        "CancelStatus",
        (
            "_scope",
            "_parent",
            "_tasks",
            "_children",
            "effectively_cancelled",
            "parent_cancellation_is_visible_to_us",
            "recalculate",
        ),
    ),
    ("trio.CancelScope", _run, "CancelScope", ("_cancel_status", "_registered_deadline", "cancel_called")),
    ("trio._core._run.Deadlines", _run, "Deadlines", ("_heap", "_active", "next_deadline", "expire")),
    ("trio.Nursery", _run, "Nursery", ("_closed", "_children")),
    ("trio._core._run.EntryQueue", _run, "EntryQueue", ("queue", "idempotent_queue")),
    ("trio._core._run.AsyncGenerators", _run, "AsyncGenerators", ("alive", "prev_hooks", "_finalize_one")),
    (
        "trio._core._traps",
        _traps,
        None,
        ("CancelShieldedCheckpoint", "WaitTaskRescheduled", "PermanentlyDetachCoroutineObject"),
    ),
    ("trio._threads", _threads, None, ("_send_message_to_trio",)),
    ("trio._socket", _socket, None, ("_SocketType",)),
    ("trio.socket", _socket_names, None, ("socketpair",)),
    ("trio._subprocess", _subprocess, None, ("_open_process",)),
    ("trio._core._thread_cache.ThreadCache", _thread_cache, "ThreadCache", ("start_thread_soon",)),
)

# The first 16 hex digits of the SHA-256 of unrolled_run (see `_loop_digest`), and the versions that have it.
_KNOWN_LOOPS = {"af7728cbbd4221d7": "0.31 to 0.35"}

# A coroutine that answers GeneratorExit with another await this many times is given up.
_CLOSE_ATTEMPTS = 20

# Real I/O: each waits for something outside the simulation.  Platforms have different ones.
_IO_WAITS = (
    "wait_readable",
    "wait_writable",
    "wait_kevent",
    "monitor_kevent",
    "wait_overlapped",
    "monitor_completion_key",
    "write_overlapped",
    "readinto_overlapped",
)


################################################################
# The self-test
################################################################


def check_supported() -> None:
    """Hold the installed Trio against every private name used.

    Raises:
        UnsupportedTrio: some are not there; nothing was changed.
    """
    differences = []
    for shown, module, owner, names in _REQUIRED + _REQUIRED_BY_ACCESSES:
        holder = module if owner is None else getattr(module, owner, None)
        if holder is None:
            differences.append(f"{shown} is gone")
            continue
        # A plain class sets its attributes in __init__.
        made = getattr(inspect.unwrap(getattr(holder, "__init__", object)), "__code__", None)
        set_there = made.co_names if made is not None else ()
        differences.extend(
            f"{shown}.{name} is gone" for name in names if not hasattr(holder, name) and name not in set_there
        )
    if not differences and not callable(getattr(_run._r, "shuffle", None)):
        differences.append("trio._core._run._r has no shuffle()")
    if differences:
        raise UnsupportedTrio(trio.__version__, differences)


@cache
def can_step_inside() -> bool:
    """Say whether the installed Trio's loop is one that `Seam.step` was written for."""
    return _loop_digest() in _KNOWN_LOOPS


def _loop_digest() -> str:
    """Hash the source of Trio's loop without comments, blank lines and indentation; "" when it is not there."""
    try:
        source = inspect.getsource(_run.unrolled_run)
    except (OSError, TypeError):
        return ""
    lines = (re.sub(r"(^|\s+)#.*$", "", line).strip() for line in source.splitlines())
    return hashlib.sha256("\n".join(line for line in lines if line).encode()).hexdigest()[:16]


################################################################
# One run, as the scheduler sees it
################################################################


class Seam:
    """One Trio run, as the scheduler sees it."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        #: Tasks that became runnable, in the order they did.
        self.runq = runner.runq
        #: Every living task.
        self.tasks = runner.tasks
        #: Callbacks that wait for Trio's loop: first here, then the ones that are kept once.
        self.callbacks = runner.entry_queue.queue
        self.callbacks_once = runner.entry_queue.idempotent_queue
        self._deadlines = runner.deadlines
        self._context = _run.GLOBAL_RUN_CONTEXT
        self._instruments = runner.instruments
        self._hooks = runner.instruments.data
        self.in_main_thread = threading.current_thread() is threading.main_thread()
        #: Runs a task to its next checkpoint; see `_stepper`.
        self.step = _stepper(runner)
        #: Says whether a deadline is at or before a time; see `_due_checker`.
        self.has_due = _due_checker(runner.deadlines)
        #: Gives a task's sort key; set by the host for each execution.
        self.key_of: Callable[[Task], tuple[int, ...]] = lambda task: (-1,)
        #: Gives whether a task belongs to the simulated program; set by the host for each execution.
        self.owns: Callable[[Task | None], bool] = lambda task: False
        #: The path of every execution's first task.
        self.root_path = Path((), ROOT)
        # Trio keeps these in a set ordered by address; they are closed in the order of their first iteration.
        runner.asyncgens.alive = AliveInOrder()
        self._baseline = frozenset(runner.tasks)

    def is_current(self) -> bool:
        """Say whether this thread is inside this run."""
        return getattr(self._context, "runner", None) is self.runner

    def current_task(self) -> Task | None:
        """Give the task that runs now, or None between steps."""
        return getattr(self._context, "task", None)

    def next_deadline(self) -> float:
        """Give the earliest pending deadline in virtual seconds, or infinity."""
        deadline: float = self._deadlines.next_deadline()
        return deadline

    def due_by(self, now: float) -> list[Any]:
        """Give the scopes whose deadlines are pending at or before `now`."""
        return [
            scope
            for deadline, _, scope in self._deadlines._heap
            if deadline <= now and deadline == scope._registered_deadline
        ]

    def expire(self, now: float) -> None:
        """Cancel every scope whose deadline is at or before `now`, in a stable order."""
        self._deadlines.expire(now)

    def has_idle_waiters(self) -> bool:
        """Say whether a task is in `wait_all_tasks_blocked`."""
        return bool(self.runner.waiting_for_idle)

    def wake_idle_waiters(self) -> bool:
        """Wake the tasks in `wait_all_tasks_blocked` with the least cushion; say whether there were any."""
        waiting = self.runner.waiting_for_idle
        if not waiting:
            return False
        least = waiting.keys()[0][0]
        for key in [key for key in waiting if key[0] == least]:
            self.runner.reschedule(waiting.pop(key))
        return True

    def age_of(self, task: Any) -> int:
        """Give a number that is higher the later `task` was spawned."""
        number: int = task._counter
        return number

    def is_main(self, task: Task) -> bool:
        """Say whether `task` is the run's main task: the harness."""
        return task is self.runner.main_task

    def wake(self, task: Task) -> None:
        """Make a parked task runnable."""
        self.runner.reschedule(task)

    def spawn(self, root: Callable[[], Awaitable[None]], nursery: trio.Nursery, name: str, like: Task) -> None:
        """Spawn a task in `nursery` from anywhere in this run, in a copy of the context of `like`."""
        self.runner.spawn_impl(root, (), nursery, name, context=like.context.copy())

    def is_clean(self, nursery: trio.Nursery) -> bool:
        """Say whether all is as it was when the run began, and `nursery` can be used again."""
        private: Any = nursery.cancel_scope
        return not (
            self.runq
            or self.callbacks
            or self.callbacks_once
            or len(self.tasks) > len(self._baseline)
            or self.runner.asyncgens.alive.data
            or private._cancel_called
        )

    def how_it_went(self, task: Task) -> int:
        """Say how the step of `task` went that Trio has just taken, as `step` does."""
        return PARKED if task in self.tasks else ENDED

    def is_closed(self, nursery: trio.Nursery) -> bool:
        """Say whether the body and every child of `nursery` have ended."""
        private: Any = nursery
        return bool(private._closed)

    def kill(self, task: Task) -> None:
        """End `task` whatever it says; afterwards this run is not fit for another execution."""
        private: Any = task
        caller = self.current_task()
        self._context.task = task
        private._abort_func = None
        try:
            for _ in range(_CLOSE_ATTEMPTS):
                try:
                    private.context.run(private.coro.close)
                except BaseException:  # noqa: ASYNC103
                    # It awaited again or raised: its own business, and it gets another chance to end.
                    continue  # noqa: ASYNC104
                break
        finally:
            if caller is None:
                del self._context.task
            else:
                self._context.task = caller
        if task in self.tasks:
            self.runner.task_exited(task, outcome.Value(None))

    def kill_strangers(self) -> None:
        """End every task that was not there when the run began; nothing of them is left in the run queue."""
        # An ending task may spawn others; one that never stops doing so is left behind.
        for _ in range(_CLOSE_ATTEMPTS):
            tasks = self.strangers()
            if not tasks:
                break
            for task in tasks:
                self.kill(task)
        alive = [task for task in self.runq if task in self.tasks]
        self.runq.clear()
        self.runq.extend(alive)

    def bury(self) -> None:
        """Close every coroutine of a run whose loop has failed: nobody will step them again."""
        for task in list(self.tasks):
            nursery: Any = task.parent_nursery
            if nursery is not None:
                # A nursery complains when it is dropped with children.
                nursery._children.clear()
            for _ in range(_CLOSE_ATTEMPTS):
                try:
                    task.coro.close()
                except BaseException:  # noqa: ASYNC103
                    # Whatever it does without its loop is bound to fail.
                    continue  # noqa: ASYNC104
                break

    def strangers(self) -> list[Task]:
        """Give every living task that was not there when the run began, the youngest first."""
        if len(self.tasks) <= len(self._baseline):
            return []
        private: Any = self.tasks - self._baseline
        return sorted(private, key=self.age_of, reverse=True)

    async def close_async_generators(self) -> None:
        """Close what an execution left half iterated, in the order of first iteration."""
        asyncgens = self.runner.asyncgens
        while asyncgens.alive:
            left = list(asyncgens.alive)
            asyncgens.alive = AliveInOrder()
            for generator in left:
                # Like Trio at the end of a run: cancelled and shielded, its errors logged.
                await asyncgens._finalize_one(generator, generator.__qualname__)

    def has_async_generators(self) -> bool:
        """Say whether an execution left any half iterated."""
        return bool(self.runner.asyncgens.alive)

    def sweep(self) -> None:
        """Drop what an execution left in the run: RunVars, deadlines, idle waiters, callbacks, instruments."""
        runner = self.runner
        if self.callbacks or self.callbacks_once:
            # A Ctrl-C among them is not lost: Trio looks for it whenever its main task waits.
            self.callbacks.clear()
            self.callbacks_once.clear()
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


def seam_of_this_run() -> Seam:
    """Give the seam of the run this thread is in; call it from its main task."""
    return Seam(_run.GLOBAL_RUN_CONTEXT.runner)


def is_host_of_guest() -> bool:
    """Say whether this thread is the host of a run in guest mode, and no task of it runs now."""
    runner = getattr(_run.GLOBAL_RUN_CONTEXT, "runner", None)
    return runner is not None and getattr(runner, "is_guest", False) and not trio.lowlevel.in_trio_task()


def _due_checker(deadlines: Any) -> Callable[[float], bool]:
    """Make the function that says whether a deadline (perhaps one since withdrawn) is at or before a time."""

    def has_due(now: float) -> bool:
        heap = deadlines._heap
        return bool(heap) and heap[0][0] <= now

    return has_due


#: How a step went: its task waits (or Trio has put it into the run queue), has merely passed a checkpoint and is in no
#: queue, or has ended.  `DUE` is added when a deadline may have come.
PARKED, GOES_ON, ENDED, DUE = 0, 1, 2, 4


def _stepper(runner: Any) -> Callable[[Any], int]:
    """Make the function that runs a task of `runner` to its next checkpoint, as one turn of Trio's loop does."""
    # A closure, because this runs once for every step: what never changes is looked up once.  The dictionary is this
    # thread's part of Trio's, and is filled and emptied but never replaced.
    context = _run.GLOBAL_RUN_CONTEXT.__dict__
    instruments, deadlines = runner.instruments, runner.deadlines
    hooks = instruments.data
    frames_to_drop = range(1 + _run.CONTEXT_RUN_TB_FRAMES)
    passed_checkpoint = _traps.CancelShieldedCheckpoint
    parked_message = _traps.WaitTaskRescheduled
    detached_message = _traps.PermanentlyDetachCoroutineObject

    def step(task: Any) -> int:
        context["task"] = task
        if "before_task_step" in hooks:
            instruments.call("before_task_step", task)
        resume = task._next_send_fn
        value = task._next_send
        task._next_send_fn = task._next_send = None
        ended: Any = None
        message: Any = None
        how = PARKED
        try:
            message = task.context.run(resume, value)
        except StopIteration as stop:
            ended = outcome.Value(stop.value)
        except BaseException as error:  # noqa: ASYNC103
            # The frames of this function and of Context.run say nothing to a reader of the traceback.
            traceback = error.__traceback__
            for _ in frames_to_drop:
                if traceback is not None:
                    traceback = traceback.tb_next
            ended = outcome.Error(error.with_traceback(traceback))
            del traceback
        # Not inside the except blocks: what is raised from here must not get `error` as its context.
        if ended is not None:
            runner.task_exited(task, ended)
            how = ENDED
        else:
            task._schedule_points += 1
            if message is passed_checkpoint:
                # Whoever was sent the like before is not about to be thrown into.
                task._next_send_fn = resume if value is _PASSED else task.coro.send
                task._next_send = _PASSED
                how = GOES_ON
                if "task_scheduled" in hooks:
                    instruments.call("task_scheduled", task)
            elif type(message) is parked_message:
                task._cancel_points += 1
                task._abort_func = message.abort_func
                # Ctrl-C is outside every cancel scope, so it is looked at first.
                if runner.ki_pending and task is runner.main_task:
                    task._attempt_delivery_of_pending_ki()
                task._attempt_delivery_of_any_pending_cancel()
            elif type(message) is detached_message:
                runner.task_exited(task, message.final_outcome)
                how = ENDED
            else:
                foreign = TypeError(
                    f"Trio got an unknown message {message!r} from a task: it awaited something made for "
                    "another framework, such as asyncio."
                )
                runner.reschedule(task, foreign)
                # Another framework's awaitable unwraps no outcome, so the error is thrown into it.
                task._next_send_fn = task.coro.throw
        if "after_task_step" in hooks:
            instruments.call("after_task_step", task)
        del context["task"]
        return how + DUE if deadlines._heap else how

    return step


class _Passed:
    """What a task is sent after a checkpoint it merely passed: ``outcome.Value(None)``, but to be used again."""

    def unwrap(self) -> None:
        """Give None, as often as asked."""


_PASSED = _Passed()


class _Shuffler:
    """Stands in for Trio's random generator: `shuffle` schedules our run, all else is the real one's."""

    def __init__(self, real: Any, tick: Callable[[list[Task]], bool]) -> None:
        self._real = real
        self._tick = tick

    def shuffle(self, batch: list[Task]) -> None:
        if not self._tick(batch):
            self._real.shuffle(batch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@contextmanager
def controlled(tick: Callable[[list[Task]], bool], seam: Callable[[], Seam | None]) -> Iterator[None]:
    """Let `tick` schedule the run of `seam()` inside the block.

    Args:
        tick: is given the runnable tasks of each pass of any Trio loop in this process; False says "not mine".
        seam: gives the run under control, or None while there is none yet.
    """

    def mine() -> Seam | None:
        current = seam()
        return current if current is not None and current.is_current() else None

    replaced: list[tuple[Any, str, Any]] = []

    def replace(holder: Any, name: str, value: Any) -> None:
        replaced.append((holder, name, holder.__dict__[name]))
        setattr(holder, name, value)

    def refuse(holder: Any, name: str, action: str, remedy: str, first: Callable[..., object] | None = None) -> None:
        real = holder.__dict__[name]

        @wraps(real)
        def refused(*args: Any, **kwargs: Any) -> Any:
            current = mine()
            if current is not None and current.owns(current.current_task()):
                if first is not None:
                    first(*args)
                raise NotSimulated(action, remedy)
            return real(*args, **kwargs)

        replace(holder, name, refused)

    had_hypothesis = "hypothesis" in sys.modules
    try:
        replace(_run, "_r", _Shuffler(_run._r, tick))
        replace(_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
        replace(_run.CancelStatus, "recalculate", recalculate_in_path_order(mine))
        replace(_run.Deadlines, "expire", expire_in_path_order(mine))
        thread = "a simulation is one thread: call the function directly, or give the program a stand-in for it"
        refuse(_thread_cache.ThreadCache, "start_thread_soon", "use a worker thread", thread)
        refuse(threading.Thread, "start", "start a thread", thread)
        refuse(_threads, "_send_message_to_trio", "call trio.from_thread", thread)
        # Both trio.run and guest mode begin here.
        own_run = "await the function itself; a simulation already is its Trio run"
        refuse(_run, "setup_runner", "start a Trio run of its own", own_run)
        outside = "nothing outside the program is simulated: give it a memory stream or a stand-in"
        # The socket of the operating system is already open, and nobody else may have it.
        refuse(_socket._SocketType, "__init__", "use a socket", outside, lambda _, sock: sock.close())
        # It would open two of the operating system's, and only one of them would get as far as the line above.
        refuse(_socket_names, "socketpair", "use a socket", outside)
        refuse(_subprocess, "_open_process", "start a subprocess", outside)
        if "open_process" in trio.lowlevel.__dict__:
            refuse(trio.lowlevel, "open_process", "start a subprocess", outside)
        for name in _IO_WAITS:
            if name in _run.TheIOManager.__dict__:
                refuse(_run.TheIOManager, name, "wait for real input or output", outside)
        yield
    finally:
        for holder, name, value in reversed(replaced):
            setattr(holder, name, value)
        if "hypothesis" in sys.modules and not had_hypothesis:
            # Hypothesis was imported meanwhile and met our stand-ins; it must find the real ones.
            _run._hypothesis_plugin_setup()


def outside_run(seam: Seam, call: Callable[[], None]) -> None:
    """Call `call` outside the run: `trio.run` and another simulation work in it as if the run were not there."""
    context = _run.GLOBAL_RUN_CONTEXT.__dict__
    inside = dict(context)
    hooks = sys.get_asyncgen_hooks()
    library = _run.sniffio_library.name
    context.clear()
    sys.set_asyncgen_hooks(*seam.runner.asyncgens.prev_hooks)
    _run.sniffio_library.name = None
    wakeup = signal.set_wakeup_fd(-1) if seam.in_main_thread else -1
    try:
        call()
    finally:
        if seam.in_main_thread:
            signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        _run.sniffio_library.name = library
        sys.set_asyncgen_hooks(*hooks)
        context.clear()
        context.update(inside)
