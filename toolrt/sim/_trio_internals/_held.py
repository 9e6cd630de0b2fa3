"""Takes deadlines out of those that Trio lets expire together, so that each can come by itself.

Rules.  A held deadline is the scope's as before: the program reads and changes it, and leaving the scope ends it.  It
comes when it is released, unless the scope has ended, was cancelled, or has another deadline by then.
"""

from __future__ import annotations

from math import inf
from typing import Any

from toolrt.sim._trio_internals._order import in_path_order
from toolrt.sim._trio_internals._seam import Seam
from toolrt.sim._trio_internals._sockets import Arrivals
from toolrt.sim._trio_internals._things import Primitives, cancels, touch


def hold_due(seam: Seam, now: float) -> list[Any]:
    """Hold every deadline at or before `now` if there are two or more; give their scopes in the order of paths."""
    due = seam.due_by(now)
    if len(due) < 2:
        return []
    scopes = in_path_order(due, seam.key_of)
    for scope in scopes:
        if isinstance(scope, Arrivals):
            scope.register(inf)
        else:
            seam.runner.deadlines.remove(scope._registered_deadline, scope)
            scope._registered_deadline = inf
    return scopes


def release(seam: Seam, things: Primitives, scope: Any, now: float) -> None:
    """Let the deadline of `scope` come that was held at `now`, and report it, in a step of the program."""
    if isinstance(scope, Arrivals):
        if scope._registered_deadline == inf:
            scope.register(now)
    else:
        # Whether it comes or not, leaving the scope before it and after it are two orders.
        touch(things, scope, True)
        with scope._might_change_registered_deadline():
            pass
    if scope._registered_deadline <= now:
        cancels(things, scope)
        seam.expire(now)
