"""What of `os` sends signals to children by their numbers, and to their process groups.

Rules.  A number that no child in memory has is the operating system's.  A child that has ended is not found.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.programs.network._endpoints import failed
from toolrt.sim.programs.network._links import touch
from toolrt.sim.programs.processes._child import FIRST_PID, ScriptedPopen


def _children() -> Iterator[ScriptedPopen]:
    """Give the children of this execution that have not ended."""
    scheduler = current_scheduler()
    for made in () if scheduler is None else scheduler.record.threads.values():
        if isinstance(made, ScriptedPopen) and made.poll() is None:
            yield made


def _child(pid: int) -> ScriptedPopen:
    for made in _children():
        if made.pid == pid:
            return made
    raise failed(errno.ESRCH)


def _kill(pid: int, number: int) -> None:
    _child(pid).send_signal(number)


def _killpg(group: int, number: int) -> None:
    touch(("process group", group), False)
    members = [made for made in _children() if made.group == group]
    if not members:
        raise failed(errno.ESRCH)
    for made in members:
        made.send_signal(number)


def _getpgid(pid: int) -> int:
    return _child(pid).group or os.getpgrp()


_OWN: dict[str, Callable[..., Any]] = {"kill": _kill, "killpg": _killpg, "getpgid": _getpgid}


def by_number(name: str, here: Callable[[], object]) -> Callable[..., Any]:
    """Make what stands in for a function of `os` that takes the number of a process, or of a group, first.

    Args:
        name: that function's.
        here: gives something where a step of the program calls it.
    """
    real: Callable[..., Any] = vars(os)[name]
    own: Callable[..., Any] = _OWN[name]

    @functools.wraps(real)
    def stand_in(number: int, *args: Any) -> Any:
        is_group = name == "kill" and isinstance(number, int) and -number >= FIRST_PID
        if is_group:
            return _killpg(-number, *args)
        if isinstance(number, int) and number >= FIRST_PID:
            return own(number, *args)
        scheduler = current_scheduler()
        outside = None if scheduler is None or here() is None else scheduler.record.outside
        if outside is not None and name != "getpgid":
            outside.signals()
        return real(number, *args)

    return stand_in
