"""The scheduler's access to one Trio run: its queue, tasks, clock and cancellations."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from operator import attrgetter
from types import FrameType
from typing import Any

import outcome
import trio
from trio.lowlevel import Task

from toolrt.sim._paths import CALLBACKS, CALLBACKS_KEY, ROOT, TaskPath
from toolrt.sim._trio_internals._forced_end import Disarm, forced_end
from toolrt.sim._trio_internals._leftovers import Leftovers
from toolrt.sim._trio_internals._lent import lent
from toolrt.sim._trio_internals._step import ENDED, GOES_ON, PARKED, can_step_inside, stepper

_core: Any = trio._core
_run: Any = _core._run

_LOOP = _run.unrolled_run.__code__
_TIMEOUTS = trio.sleep.__code__.co_filename

#: Gives the nursery that a task is in.  The public property is the program's: reading it is reported as an access.
nursery_of: Callable[[Task], Any] = attrgetter("_parent_nursery")


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
        self._thread = threading.get_ident()
        #: Keeps a `ForcedEnd` from being raised again.
        self.disarm = Disarm()
        self.in_main_thread = threading.current_thread() is threading.main_thread()
        #: Runs a task to its next checkpoint; see `stepper`.
        self.step = stepper(runner, self.disarm)
        #: Gives a task's sort key; set by the host for each execution.
        self.key_of: Callable[[Task], tuple[int, ...]] = lambda task: (-1,)
        #: Gives whether a task belongs to the simulated program; set by the host for each execution.
        self.owns: Callable[[Task | None], bool] = lambda task: False
        #: Gives how many tasks of the program can run beside the one that does; set by the host for each execution.
        self.count_runnable: Callable[[], int] = lambda: 0
        #: Gives how many worker threads the program has; set by the host for each execution.
        self.count_threads: Callable[[], int] = lambda: 0
        #: Ends the execution because the program would leave the simulation; set by the host for each execution.
        self.refused: Callable[[BaseException], None] = lambda refusal: None
        #: True: deadlines expire when `expire` is called, and not when Trio's loop looks at them.
        self.holds_deadlines = False
        #: Takes Trio's task that calls callbacks for one of the program's; set by the host for each execution.
        self.adopts: Callable[[Task], None] = lambda task: None
        #: The paths of every execution's first task, and of the one that calls callbacks.
        self.root_path = TaskPath((), ROOT)
        self.callbacks_path = TaskPath(CALLBACKS_KEY, CALLBACKS)
        # Trio's task that calls callbacks.
        self._caller: Task | None = None
        for task in runner.tasks:
            if task.name == "<TrioToken.run_sync_soon task>":
                self._caller = task
        # The first task of the execution that runs.
        self._root: Task | None = None
        #: How many tasks each line of the program has started in this execution, since there were `MANY_TASKS`.
        self.started: Counter[str] = Counter()
        #: What executions leave in it.
        self.leftovers = Leftovers(runner, self.disarm)

    def is_current(self) -> bool:
        """Say whether this thread is inside this run."""
        return getattr(self._context, "runner", None) is self.runner or lent.here() is not None

    def forced_end(self) -> type[BaseException]:
        """Give what ends a step by force, to be raised in it; neither a worker thread nor Trio's loop disarms it."""
        return forced_end(can_step_inside() and threading.get_ident() == self._thread)

    def current_task(self) -> Task | None:
        """Give the task that runs now, or None between steps; of a worker thread, the one that stands for it."""
        task: Task | None = getattr(self._context, "task", None)
        if task is None and (holder := lent.here()) is not None:
            task = holder.task
        return task

    @contextmanager
    def between_steps(self) -> Iterator[None]:
        """Let no step of the program be under way inside the block: nothing is refused, and nothing reports."""
        inside = self._context.__dict__
        task = inside.pop("task", None)
        try:
            yield
        finally:
            if task is not None:
                inside["task"] = task

    @contextmanager
    def in_its_run(self) -> Iterator[None]:
        """Let a worker thread that has the turn be inside this run, too, in the block."""
        inside = self._context.__dict__
        is_outside = "runner" not in inside
        inside.setdefault("runner", self.runner)
        try:
            yield
        finally:
            if is_outside:
                del inside["runner"]

    @property
    def is_interrupted(self) -> bool:
        """Say whether Ctrl-C waits for the run's main task."""
        return bool(self.runner.ki_pending)

    def next_deadline(self) -> float:
        """Give the earliest deadline to which time moves by itself, in virtual seconds, or infinity."""
        deadline: float = inf if self.runner.clock.stands else self._deadlines.next_deadline()
        return deadline

    def has_due(self, now: float) -> bool:
        """Say whether a deadline, perhaps one since withdrawn, is at or before `now`."""
        heap = self._deadlines._heap
        return bool(heap) and heap[0][0] <= now

    def due_by(self, now: float) -> list[Any]:
        """Give the scopes whose deadlines are pending at or before `now`."""
        return [
            scope
            for deadline, _, scope in self._deadlines._heap
            if deadline <= now and deadline == scope._registered_deadline
        ]

    def expire(self, now: float) -> None:
        """Cancel every scope whose deadline is at or before `now`, in a stable order."""
        holds, self.holds_deadlines = self.holds_deadlines, False
        try:
            self._deadlines.expire(now)
        finally:
            self.holds_deadlines = holds

    def has_idle_waiters(self) -> bool:
        """Say whether a task is in `wait_all_tasks_blocked`."""
        return bool(self.runner.waiting_for_idle)

    def least_cushion(self) -> float | None:
        """Give the least cushion that a task in `wait_all_tasks_blocked` asked for, in seconds; None: there is none."""
        waiting = self.runner.waiting_for_idle
        return waiting.keys()[0][0] if waiting else None

    def wake_idle_waiters(self, cushion: float) -> None:
        """Wake the tasks in `wait_all_tasks_blocked` that asked for this cushion."""
        waiting = self.runner.waiting_for_idle
        for key in [key for key in waiting if key[0] == cushion]:
            self.runner.reschedule(waiting.pop(key))

    def foreign_among(self, tasks: Sequence[Task]) -> str | None:
        """Name what is about to run and is neither the program's task nor part of an empty Trio run; None: nothing."""
        for task in tasks:
            if not self.leftovers.was_there(task):
                return f"the system task {task.name}"
        for waiting in (self.callbacks, self.callbacks_once):
            for function, *_ in waiting:
                name = getattr(function, "__qualname__", type(function).__qualname__)
                return f"the callback {name} given to run_sync_soon"
        return None

    def age_of(self, task: Any) -> int:
        """Give a number that is higher the later `task` was spawned."""
        number: int = task._counter
        return number

    def is_main(self, task: Task) -> bool:
        """Say whether `task` is the run's main task: the harness."""
        return task is self.runner.main_task

    def has_system_nursery(self, nursery: Any) -> bool:
        """Say whether `nursery` is the one that system tasks are in."""
        return nursery is self.runner.system_nursery

    def call_soon(self) -> bool:
        """Wake Trio's task that calls callbacks, which is then one of the program's; say whether it could be woken.

        It waits for a socket that another thread, or a signal, would write to; the program is neither.
        """
        caller: Any = self._caller
        if caller is None:
            return False
        self.adopts(caller)
        abort = caller._abort_func
        if abort is not None:
            if abort(None) is not trio.lowlevel.Abort.SUCCEEDED:
                return False
            self.runner.reschedule(caller)
        return True

    def queue_of(self, token: Any) -> Any:
        """Give the queue of callbacks that `token` stands for, if it is this run's; None: it is another run's."""
        queue = self.runner.entry_queue
        return queue if token._reentry_queue is queue else None

    def calls_back_on(self, waits_for: object) -> bool:
        """Say whether Trio's task that calls callbacks waits for this."""
        return waits_for is self.runner.entry_queue.wakeup.wakeup_sock

    def is_parked(self, task: Task) -> bool:
        """Say whether `task` waits for something that would reschedule it."""
        private: Any = task
        return private._abort_func is not None

    def wake(self, task: Task) -> None:
        """Make a parked task runnable."""
        self.runner.reschedule(task)

    def spawn(self, root: Callable[[], Awaitable[None]], nursery: trio.Nursery, name: str, like: Task) -> Task:
        """Spawn a task in `nursery` from anywhere in this run, in a copy of the context of `like`; give it."""
        task: Task = self.runner.spawn_impl(root, (), nursery, name, context=like.context.copy())
        return task

    def spawn_root(self, root: Callable[[], Awaitable[None]], nursery: trio.Nursery, name: str, like: Task) -> None:
        """Spawn the program's own task as `spawn` does."""
        self.started.clear()
        self._root = self.spawn(root, nursery, name, like)

    def interrupt_instead(self, task: Task | None = None) -> None:
        """Have an interrupt reach `task`, or the program's own, and not what is the run's main task now."""
        runner = self.runner
        task = task or self._root
        if task is not None and runner.main_task is not task:
            runner.main_task, runner.main_task_outcome, runner.ki_pending = task, None, False

    def how_it_went(self, task: Task) -> int:
        """Say how the step of `task` went that Trio has just taken, as `step` does."""
        if task not in self.tasks:
            return ENDED
        private: Any = task
        if task in self.runq and isinstance(private._next_send, outcome.Value) and private._next_send.value is None:
            # It is in the queue only because it has passed a checkpoint.
            self.runq.remove(task)
            return GOES_ON
        return PARKED

    def is_closed(self, nursery: trio.Nursery) -> bool:
        """Say whether the body and every child of `nursery` have ended."""
        private: Any = nursery
        return bool(private._closed)


def begins_cancelled(task: Task) -> bool:
    """Say whether the step that `task` is about to take begins with `trio.Cancelled`, raised where the task stands."""
    private: Any = task
    return isinstance(private._next_send, outcome.Error) and isinstance(private._next_send.error, trio.Cancelled)


def begins_awake(task: Task) -> bool:
    """Say whether that `trio.Cancelled` only ends a sleep of the task, whose time has come."""
    private: Any = task
    if not begins_cancelled(task):
        return False
    names = [frame.f_code.co_name for frame, _ in task.iter_await_frames() if frame.f_code.co_filename == _TIMEOUTS]
    status = private._cancel_status
    return "sleep_until" in names and status._scope._cancel_called and not status._parent.effectively_cancelled


def is_loop(frame: FrameType) -> bool:
    """Say whether `frame` is that of Trio's loop: what called it is no part of the program."""
    return frame.f_code is _LOOP


def seam_of_this_run() -> Seam:
    """Give the seam of the run this thread is in; call it from its main task."""
    return Seam(_run.GLOBAL_RUN_CONTEXT.runner)


class OwnRun:
    """The Trio run under control, among all that this process has."""

    def __init__(self) -> None:
        #: Of that run; None before it has begun.
        self.seam: Seam | None = None

    def mine(self) -> Seam | None:
        """Give its seam in a thread that is inside that run, else None."""
        seam = self.seam
        return seam if seam is not None and seam.is_current() else None

    def in_step(self) -> Seam | None:
        """Give its seam where a step of the program, or of a worker thread of its, runs in this thread, else None."""
        seam = self.mine()
        return seam if seam is not None and seam.owns(seam.current_task()) else None


def is_host_of_guest() -> bool:
    """Say whether this thread is the host of a run in guest mode, and no task of it runs now."""
    runner = getattr(_run.GLOBAL_RUN_CONTEXT, "runner", None)
    return runner is not None and getattr(runner, "is_guest", False) and not trio.lowlevel.in_trio_task()
