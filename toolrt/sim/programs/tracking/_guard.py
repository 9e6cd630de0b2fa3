"""Looks for shared state that a reduction was not told of.

Rules.
    1. A few random executions are run with the program's own module rewritten.  What that touches of plain objects is
       kept aside: it is no part of what the steps report.  Two steps that touch one variable, where one writes it, have
       to be ordered by what is reported.  Where they are not, the reduction has taken them to be independent.
    2. The guard notes every function of Python that runs in a step.  It rewrites the function's module, too, if nothing
       orders the step and one of another task that touches anything; not Python's, Trio's or toolrt's own modules.
       What cannot be rewritten, because its source is not at hand, may touch anything.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Callable
from pathlib import PurePath
from types import CodeType
from typing import Any

import attrs

from toolrt.probe import ANYTHING, Resource
from toolrt.sim.engine._looks import only_looks
from toolrt.sim.programs.tracking._kinds import code_reports, is_tracked
from toolrt.sim.programs.tracking._sources import expressions_of, module_of
from toolrt.sim.programs.tracking._touch import let_go, name_of


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
        #: By id, because the hash of code is one of all that it holds.
        self._runs: dict[int, tuple[CodeType, str]] = {}
        #: The code that ran and does not report, with its module, in order of the steps: step, task, code, module.
        self.ran: list[tuple[int, str, CodeType, str]] = []
        #: What was touched, in order.
        self.seen: list[SeenAccess] = []
        scheduler.record.watched.append(self)

    @only_looks
    def note(self, resource: Resource, write: bool) -> None:
        """Keep an access of the running step."""
        if resource == ANYTHING:
            return
        frame = sys._getframe(2)
        while frame is not None and not is_tracked(frame.f_code):
            frame = frame.f_back  # type: ignore[assignment]
        if frame is None:
            return
        code = frame.f_code
        # The `__repr__` of a record keeps a set of what it is at, by thread.
        if resource[-1] != "repr_running" and (resource[0] != "set" or not code.co_filename.startswith("<attrs gen")):
            self._now.append((resource, write, code.co_filename, frame.f_lineno, code.co_name))

    def profile(self, frame: Any, event: str, argument: Any) -> None:
        """Note the function that is called."""
        if event != "call":
            return
        code = frame.f_code
        if code.co_qualname.startswith("__create_fn__."):
            for record in [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]]:
                if dataclasses.is_dataclass(record) and not isinstance(record, type):
                    read = [(*name_of(record), field.name) for field in dataclasses.fields(record)]
                    self._now += [(name, False, code.co_filename, frame.f_lineno, code.co_name) for name in read]
        if id(code) not in self._runs:
            self._runs[id(code)] = code, module_of(frame.f_globals)

    def thing(self) -> KeptAside:
        """Give what is looked at."""
        return self

    def look(self) -> bool:
        """Take in the step that has just run; it is what it has reported."""
        let_go()
        actor = self._roster.spawner
        runs, self._runs = self._runs, {}  # what is called here is noted, too
        if actor is not None:
            step = len(self._steps)
            self.seen += [SeenAccess(step, actor.name, *access) for access in dict.fromkeys(self._now)]
            for code, module in runs.values():
                if not code_reports(code) and not _is_of_a_record(code):
                    self.ran.append((step, actor.name, code, module))
        self._now.clear()
        return False

    def was_written(self, touched: Any) -> bool:
        """Say no; it is not asked."""
        return False


def _is_of_a_record(code: CodeType) -> bool:
    """Say whether attrs, dataclasses or namedtuple made it: it touches no more than the fields of what it is handed."""
    return (
        code.co_filename.startswith("<attrs gen")
        or code.co_qualname.startswith("__create_fn__.")
        or (code.co_filename == "<string>" and code.co_varnames[:1] == ("_cls",))
    )


def said_of(seen: list[SeenAccess], is_ordered: Callable[[int, int], bool]) -> str | None:
    """Say which variable two steps touch that nothing orders; None: there is none.

    Args:
        seen: what was touched, in order.
        is_ordered: says whether something that was reported orders two steps, the earlier one first.
    """
    # Of each task the newest read and the newest write are enough: what is ordered behind them is behind all before.
    newest: dict[Resource, dict[tuple[str, bool], SeenAccess]] = {}
    for access in seen:
        others = newest.setdefault(access.resource, {})
        for other in others.values():
            if other.task == access.task or not (other.write or access.write) or other.step == access.step:
                continue
            if not is_ordered(other.step, access.step):
                return (
                    f"{_in_words(other, access)}, and neither step reports it, so their order was not tried both ways: "
                    "track=True sees it, or sim.watch"
                )
        others[access.task, access.write] = access
    return None


#: So many pairs of steps are compared at the most; a longer execution is taken to have one that nothing orders.
_MOST_COMPARED = 20_000


def modules_of(
    ran: list[tuple[int, str, CodeType, str]], seen: list[SeenAccess], is_ordered: Callable[[int, int], bool]
) -> dict[str, tuple[CodeType, str, str]]:
    """Give the modules whose code a task ran in a step that nothing orders before or behind one of another task.

    The other step ran such code, too, or touched something.  Each module comes with one code, and both tasks.

    Args:
        ran: as `KeptAside.ran`, of the modules that count.
        seen: as `KeptAside.seen`.
        is_ordered: as of `said_of`.
    """
    found: dict[str, tuple[CodeType, str, str]] = {}
    steps: dict[tuple[int, str, str], CodeType | None] = {}
    for access in seen:
        steps[access.step, access.task, ""] = None
    for step, task, code, module in ran:
        steps.setdefault((step, task, module), code)
    compared = 0
    modules = {module for *_, module in ran}
    for one, other in itertools.combinations(sorted(steps), 2):
        if modules == found.keys():
            break
        if one[1] == other[1] or all(key[2] in found or steps[key] is None for key in (one, other)):
            continue
        compared += 1
        if compared > _MOST_COMPARED or not is_ordered(one[0], other[0]):
            for key in (one, other):
                if (hidden := steps[key]) is not None:
                    found.setdefault(key[2], (hidden, one[1], other[1]))
    return found


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
