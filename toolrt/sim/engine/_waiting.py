"""Says in words what a parked task waits for, with the line of the program.

Limits.  The words come from the frames the task is parked in; a primitive of another library is named by its
own class and method.  Paths of the machine are not shown: a file is named by its last part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import PurePath
from types import FrameType

import trio
from trio.lowlevel import Task

from toolrt.sim import _trio_internals
from toolrt.sim._paths import key_of_path

_TRIO_HOME = PurePath(trio.__file__).parent
_SIM_HOME = PurePath(__file__).parent

# Frames of Trio's that say nothing about what is waited for.
_NO_WORDS = ("__aenter__", "__aexit__", "wait_task_rescheduled", "_async_yield", "_real_async_yield")
# Frames of what reports, and of the network, stand between Trio's own.
_HIDDEN = (PurePath(_trio_internals.__file__).parent, _SIM_HOME.parent / "programs" / "network")


def waits_for(task: Task, name_of: Callable[[object], str | None], runnable: bool) -> str:
    """Say what `task` waits for and where; `name_of` gives the path of a task of the program."""
    words, place = waited_for(task, name_of)
    return ("its turn (it can run)" if runnable else words) + place


def waited_for(task: Task, name_of: Callable[[object], str | None]) -> tuple[str, str]:
    """Say what a parked task waits for, and where: " at file.py:7", or "" when it is nowhere in the program."""
    own: list[tuple[FrameType, int]] = []
    trios: list[FrameType] = []
    for frame, line in task.iter_await_frames():
        is_hidden, is_ours, is_trios = _whose(frame.f_code.co_filename)
        if is_hidden or (is_ours and not own):
            continue
        if is_trios:
            trios.append(frame)
        else:
            own.append((frame, line))
            trios.clear()
    place = f" at {PurePath(own[-1][0].f_code.co_filename).name}:{own[-1][1]}" if own else ""
    return _in_words(trios, name_of, task, own[-1][0] if own else None), place


@cache
def _whose(file: str) -> tuple[bool, bool, bool]:
    """Say whether a file's frames stand between Trio's own, and whether it is of the simulator's engine, or Trio's."""
    home = PurePath(file)
    return any(map(home.is_relative_to, _HIDDEN)), home.is_relative_to(_SIM_HOME), home.is_relative_to(_TRIO_HOME)


def _in_words(
    frames: list[FrameType], name_of: Callable[[object], str | None], task: Task, caller: FrameType | None
) -> str:
    """Name what the innermost frames of Trio, outermost first, are doing for `caller`."""
    words = None
    for frame in frames:
        owner = frame.f_locals.get("self")
        name = frame.f_code.co_name
        said = _known(owner, name, frame, name_of, task)
        if said is not None:
            return said
        if words is None and name not in _NO_WORDS:
            words = name if owner is None else f"{type(owner).__name__}.{name}"
    if words is not None:
        return f"trio {words}"
    # It parks by itself: a primitive of another library, or the program.
    owner = None if caller is None else caller.f_locals.get("self")
    if caller is not None and owner is not None:
        return f"{type(owner).__name__}.{caller.f_code.co_name}"
    return "a task or callback that reschedules it"


def _known(
    owner: object, name: str, frame: FrameType, name_of: Callable[[object], str | None], task: Task
) -> str | None:
    match owner:
        case trio.Event() if name == "wait":
            return "an Event that is not set"
        case trio.Lock() | trio.StrictFIFOLock() if name == "acquire":
            holder = owner.statistics().owner
            return f"a {type(owner).__name__} held by {_named(holder, name_of)}"
        case trio.Semaphore() if name == "acquire":
            return "a Semaphore at 0"
        case trio.Condition() if name == "wait":
            return "a Condition that is not notified"
        case trio.CapacityLimiter() if name.startswith("acquire"):
            counts = owner.statistics()
            return f"a CapacityLimiter with {counts.borrowed_tokens} of {counts.total_tokens} tokens borrowed"
        case trio.MemoryReceiveChannel() if name == "receive":
            return f"a memory channel to receive from ({owner.statistics().open_send_channels} senders open)"
        case trio.MemorySendChannel() if name == "send":
            counts_of = owner.statistics()
            return (
                f"a memory channel to send to (buffer full: {counts_of.current_buffer_used} of "
                f"{counts_of.max_buffer_size})"
            )
        case trio.socket.SocketType():
            # Most of its methods have one body.
            return f"a socket to {getattr(frame.f_locals.get('fn'), '__name__', name)}"
        case trio.Nursery() if name == "start":
            return "a child to call task_status.started()"
        case trio.Nursery() if name == "_nested_child_finished":
            children = sorted((_named(child, name_of) for child in owner.child_tasks), key=_place)
            return f"its nursery's children {', '.join(children)}" if children else "its nursery to close"
        case _:
            pass
    if owner is None and name == "sleep_forever":
        return "nothing (sleep_forever)"
    if owner is None and name in ("sleep", "sleep_until"):
        return "a sleep to end"
    if name == "wait_all_tasks_blocked":
        return "all other tasks to block"
    return None


def _place(name: str) -> tuple[int, ...]:
    try:
        return key_of_path(name)
    except ValueError:
        return (-1,)


def _named(task: object, name_of: Callable[[object], str | None]) -> str:
    if task is None:
        return "no task"
    return name_of(task) or "a task outside the program"
