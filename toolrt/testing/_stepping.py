"""A tool's coroutine, step by step: whether it holds up the loop, and what it does with a cancel.

Rules.  Between two of its checkpoints a tool holds up every other task, so what blocks there is noted: `time.sleep`,
Python's audit event for connecting, what the simulator refuses of the standard library (resolving names, starting
processes), and more than a second of processor time.
A cancel is asked for as the tool reaches a checkpoint, and whether it was delivered is seen in what Trio answers.

Limits.  Reading a file or waiting for a lock of `threading` is not heard: neither is an audit event that is worth
one's trust.  Only the tool's own task is looked at, not those it starts.
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

import sys
import threading
import time
import types
from collections.abc import Coroutine, Generator
from typing import Any

import attrs
import outcome
import trio

from toolrt.errors import NotSimulated

#: Audit events (docs.python.org, "Audit events table") of calls that wait in the thread.
_BLOCKING = {"socket.connect": "a blocking connect()", "time.sleep": "time.sleep()"}

#: Calls that would wait in the thread, by what the simulator says that it refuses.
_REFUSED = {
    "look up a host (socket.getaddrinfo)": "a blocking getaddrinfo()",
    "look up a host (socket.gethostbyname)": "a blocking gethostbyname()",
    "start a subprocess (subprocess.Popen)": "subprocess",
    "start a subprocess (os.system)": "os.system()",
}

_SLEEP = time.sleep

# Seconds of processor time in one step above which a tool holds up the loop.
_BUSY = 1.0

_REASON = "toolrt.testing.check_tool"


@attrs.define
class Steps:
    """What was seen of one run of a tool."""

    #: The number of its checkpoint at which a cancel is asked for, from 1; 0: none is.
    cancel_at: int = 0
    #: The scope that is cancelled.
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    #: How many checkpoints it has reached.
    count: int = 0
    #: What it did that held up the loop.
    blocked: list[str] = attrs.field(factory=list)
    #: Whether the cancel reached it.
    delivered: bool = False
    #: How it ended: "returned", what it raised, or None while it has not.
    ended: str | None = None
    #: Whether a cancel was in what it raised.
    passed_on: bool = False


# The run that is between two checkpoints, and its thread; an audit hook cannot be removed, only idle.
_running: tuple[Steps, int] | None = None
_listening = False


def _hear(event: str, _: tuple[Any, ...]) -> None:
    if _running is not None and event in _BLOCKING and _running[1] == threading.get_ident():
        _running[0].blocked.append(_BLOCKING[event])


def _see(_: types.FrameType, event: str, called: Any) -> None:
    # That of a name imported before, which the simulator does not meet; from Python 3.13 on it is an audit event.
    if event == "c_call" and called is _SLEEP and _running is not None and sys.version_info < (3, 13):
        _running[0].blocked.append("time.sleep()")


def _listen() -> None:
    global _listening
    if not _listening:
        sys.addaudithook(_hear)
        _listening = True


@types.coroutine
def stepped(coroutine: Coroutine[Any, Any, Any], steps: Steps) -> Generator[Any, Any, Any]:
    """Await `coroutine`, and note in `steps` what it does.

    Checkpoint: as the coroutine does.
    """
    _listen()
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            wish = _step(coroutine, steps, answer, error)
        except StopIteration as stop:
            steps.ended = "returned"
            return stop.value
        except BaseException as raised:
            steps.ended = f"raised {type(raised).__name__}"
            steps.passed_on = _has_cancel(raised)
            raise
        steps.count += 1
        if steps.count == steps.cancel_at:
            steps.scope.cancel(reason=_REASON)
        answer = error = None
        try:
            answer = yield wish
        except BaseException as thrown:  # noqa: ASYNC103  it is thrown into the tool
            error = thrown
        if isinstance(answer, outcome.Error):
            reason = getattr(answer.error, "reason", None)
            steps.delivered |= isinstance(answer.error, trio.Cancelled) and reason == _REASON


def _step(coroutine: Coroutine[Any, Any, Any], steps: Steps, answer: Any, error: BaseException | None) -> Any:
    """Let the tool go on to its next checkpoint."""
    global _running
    before = _running
    _running = (steps, threading.get_ident())
    profiler = sys.getprofile()
    if not steps.cancel_at and profiler is None:
        # Once for each input is enough, and another profiler is left alone.
        sys.setprofile(_see)
    began = time.thread_time()
    try:
        return coroutine.send(answer) if error is None else coroutine.throw(error)
    except NotSimulated as refused:
        if refused.action in _REFUSED:
            steps.blocked.append(_REFUSED[refused.action])
        raise
    finally:
        spent = time.thread_time() - began
        _running = before
        sys.setprofile(profiler)
        if spent > _BUSY:
            steps.blocked.append(f"{spent:.1f} s of computing between two checkpoints")


def _has_cancel(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)
