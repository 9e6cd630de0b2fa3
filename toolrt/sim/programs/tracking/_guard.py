"""Looks for shared state that a reduction was not told of.

Rules.  A few random executions are run with the program's own module rewritten.  What that touches of plain objects is
kept aside: it is no part of what the steps report.  Two steps that touch one variable, where one writes it, have to
be ordered by what is reported.  Where they are not, the reduction has taken them to be independent.

Limits.  Only what the program's own module does is seen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import attrs

from toolrt.probe import ANYTHING, Resource
from toolrt.sim.programs.tracking._kinds import is_tracked
from toolrt.sim.programs.tracking._sources import expressions_of

__all__ = ["KeptAside", "SeenAccess", "said_of", "variable_at"]


@attrs.frozen
class SeenAccess:
    """One access that was kept aside."""

    #: The step, the task, the variable's resource, and whether it was written.
    step: int
    task: str
    resource: Resource
    write: bool
    #: Where, by file and line; and the function.
    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        """Where it was, in words."""
        return f"{PurePath(self.file).name}:{self.line} ({self.function} of {self.task})"


class KeptAside:
    """Stands among the watched containers of an execution, and keeps what rewritten code touches.

    Args:
        scheduler: the execution.
    """

    def __init__(self, scheduler: Any) -> None:
        self._roster, self._steps = scheduler.roster, scheduler.record.steps
        self._now: list[tuple[Resource, bool, str, int, str]] = []
        #: What was touched, in order.
        self.seen: list[SeenAccess] = []
        scheduler.record.watched.append(self)

    def note(self, resource: Resource, write: bool) -> None:
        """Keep an access of the running step."""
        if resource == ANYTHING:
            return
        frame = sys._getframe(2)
        while frame is not None and not is_tracked(frame.f_code):
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None:
            code = frame.f_code
            self._now.append((resource, write, code.co_filename, frame.f_lineno, code.co_name))

    def thing(self) -> KeptAside:
        """Give what is looked at."""
        return self

    def look(self) -> bool:
        """Take in the step that has just run; it is what it has reported."""
        actor = self._roster.spawner
        if actor is not None:
            step = len(self._steps)
            self.seen += [SeenAccess(step, actor.name, *access) for access in dict.fromkeys(self._now)]
        self._now.clear()
        return False

    def was_written(self, touched: Any) -> bool:
        """Say no; it is not asked."""
        return False


def said_of(seen: list[SeenAccess], is_ordered: Callable[[int, int], bool]) -> str | None:
    """Say which variable two steps touch that nothing orders; None: there is none.

    Args:
        seen: what was touched, in order.
        is_ordered: says whether something that was reported orders two steps, the earlier one first.
    """
    by: dict[Resource, list[SeenAccess]] = {}
    for access in seen:
        others = by.setdefault(access.resource, [])
        for other in others:
            if other.task == access.task or not (other.write or access.write) or other.step == access.step:
                continue
            if not is_ordered(other.step, access.step):
                return (
                    f"{_in_words(other, access)}, and neither step reports it, so their order was not tried both ways: "
                    "track=True sees it, or sim.watch"
                )
        others.append(access)
    return None


def _in_words(one: SeenAccess, other: SeenAccess) -> str:
    name = variable_at(other.file, other.line, other.resource) or variable_at(one.file, one.line, one.resource)
    name = name or ".".join(map(str, (one.resource[0], *one.resource[3:])))
    kinds = ["written" if each.write else "read" for each in (one, other)]
    return f"{name} {kinds[0]} at {one.place}, {kinds[1]} at {other.place}"


def variable_at(file: str, line: int, resource: Resource) -> str | None:
    """Give the expression of a line that `resource` is; None when none of them is."""
    last = str(resource[-1])
    found = expressions_of(file, line)
    for text in found:
        if text.endswith((f".{last}", f"[{last!r}]", f"[{last}]")) or text == last:
            return text
    if len(resource) == 3:
        # A container as a whole, or a variable that functions share.
        return str(resource[0]) if str(resource[0]) not in _BUILTINS else (found[0] if len(found) == 1 else None)
    return None


_BUILTINS = frozenset(("list", "dict", "set", "deque", "Counter", "bytearray", "defaultdict", "OrderedDict"))
