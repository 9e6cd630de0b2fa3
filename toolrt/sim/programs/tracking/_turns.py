"""Where rewritten code of a worker thread hands its turn over: at each access.

Rules.
    1. A site hands over before it touches anything, and touches it in the step that follows.  Where the load or the
       store of a variable comes before its report, the site hands over after both.
    2. It does so only where all code that the thread is in reports: what calls back from elsewhere may hold a lock.
    3. An operator may read its first operand after a site of its second one has handed over, and a loop goes on
       reading what it goes through: what a function has used is reported again in each step until it returns.
"""

from __future__ import annotations

import sys
from functools import cached_property
from types import CodeType
from typing import Any

from toolrt.sim._trio_internals._lent import lent
from toolrt.sim.programs.threads._worker import SimulatedThread
from toolrt.sim.programs.tracking import _touch
from toolrt.sim.programs.tracking._kinds import code_reports, is_tracked

# Before Python 3.12 it computes its value under a lock of its own, in code that otherwise reports.
_UNDER_A_LOCK: CodeType | None = cached_property.__get__.__code__ if sys.version_info < (3, 12) else None


def _reports_and_holds_no_lock(code: CodeType) -> bool:
    return code_reports(code) and code is not _UNDER_A_LOCK


def take_turn(used: Any = None, what: str = "") -> None:
    """Hand the turn over, where the caller of the caller is rewritten code of a worker thread.

    Args:
        used: an operand; None: there is none.
        what: the operation on it, one of those `_kinds.dunders_of` knows; "": none.
    """
    thread, site = lent.here(), sys._getframe(2)
    if not isinstance(thread, SimulatedThread) or _touch.now.aside is not None or not is_tracked(site.f_code):
        return
    if not thread.all_report(_reports_and_holds_no_lock):
        return
    thread.hand_over()
    frame, inside = site, set()
    while frame is not None:
        inside.add(id(frame))
        frame = frame.f_back  # type: ignore[assignment]
    thread.used = [each for each in thread.used if each[0] in inside]
    for _, thing, how in thread.used:
        _touch.use_again(thing, how)
    if what:
        thread.used.append((id(site), used, what))
