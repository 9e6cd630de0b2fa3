"""Runs one step of a task, as Trio's loop would.

Theory.  Trio steps every task that its run queue holds before it looks again.  To choose after each step, the simulator
takes that turn itself: `stepper` is what Trio's loop does with one task, written out.

Limits.  `can_step_inside` compares that part of the installed Trio with the ones it was written for.  Where it differs,
the scheduler leaves one task per tick to Trio's loop instead: the same schedules, about half the speed.
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import outcome
import trio

from toolrt.sim._trio_internals._forced_end import BOUNDARIES, Disarm, ForcedEnd
from toolrt.sim._trio_internals._slim import PASSED, digest_of, is_known

_core: Any = trio._core
_run: Any = _core._run
_traps: Any = sys.modules["trio._core._traps"]
_parking_lot: Any = sys.modules["trio._core._parking_lot"]

# The first 16 hex digits of the SHA-256 of unrolled_run (see `digest_of`), and the versions that have it.
_KNOWN_LOOPS = {"af7728cbbd4221d7": "0.31 to 0.35"}

#: How a step went: its task waits (or Trio has put it into the run queue), has merely passed a checkpoint and is in no
#: queue, or has ended.  `DUE` is added when a deadline may have come.
PARKED, GOES_ON, ENDED, DUE = 0, 1, 2, 4


@cache
def can_step_inside() -> bool:
    """Say whether the installed Trio's loop is one that `stepper` was written for."""
    return digest_of(_run.unrolled_run) in _KNOWN_LOOPS


def stepper(runner: Any, disarm: Disarm) -> Callable[[Any], int]:
    """Make the function that runs a task of `runner` to its next checkpoint, as one turn of Trio's loop does."""
    # A closure, because this runs once for every step: what never changes is looked up once.  The dictionary is this
    # thread's part of Trio's, and is filled and emptied but never replaced.
    context = _run.GLOBAL_RUN_CONTEXT.__dict__
    instruments, deadlines = runner.instruments, runner.deadlines
    hooks = instruments.data
    frames_to_drop = range(1 + _run.CONTEXT_RUN_TB_FRAMES)
    passed_checkpoint = _traps.CancelShieldedCheckpoint
    parked_message = _traps.WaitTaskRescheduled
    slim, breakers, tasks = is_known(), _parking_lot.GLOBAL_PARKING_LOT_BREAKER, runner.tasks
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
            status = task._cancel_status
            if (
                slim
                and not task._child_nurseries
                and task not in breakers
                and not status.abandoned_by_misnesting
                and not (nursery := task._parent_nursery)._closed
                and "task_exited" not in hooks
            ):
                # What `task_exited` does where there is nothing to complain of.
                status._tasks.remove(task)
                task._cancel_status = None
                tasks.remove(task)
                nursery._children.remove(task)
                nursery._check_nursery_closed()
                how = ENDED
            else:
                ended = outcome.Value(stop.value)
        except BaseException as error:  # noqa: ASYNC103
            if error.__class__.__base__ is ForcedEnd:
                try:
                    disarm.replace()
                    while True:
                        pass
                except ForcedEnd:
                    pass
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
        elif how is not ENDED:
            task._schedule_points += 1
            if message is passed_checkpoint:
                # A task that was resumed by send before is not about to be thrown into.
                task._next_send_fn = resume if value is PASSED else task.coro.send
                task._next_send = PASSED
                # As in Trio when a task becomes runnable.
                task.custom_sleep_data = None
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

    BOUNDARIES.add(step.__code__)
    return step
