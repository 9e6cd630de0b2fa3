"""Checks over executions: what always holds, in the end comes, can be at the end, and can be at all.

Rules.  A predicate without parameters is asked after every step of the program, and looks at state that it shares with
the program, which must make that state anew in each execution.  One with a parameter is asked once, with the
execution, at its end.  A step that writes what the predicate read when it was last asked depends on all such steps, and
it reads what the predicate read before it and after it: so a reduction keeps every state that the predicate can tell
apart.  Where the predicate reports nothing, every step is one.

Limits.  A predicate that reports some of what it reads is believed to read no more.  It must not checkpoint nor write.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.lowlevel import Task

from toolrt._plain import counted
from toolrt.errors import DefinitionRefused
from toolrt.probe import ANYTHING, Resource
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.engine._job import called_like
from toolrt.sim.exploring._judge import judge

_Program = Callable[[], Awaitable[Any]]
_LOOKED_AT: Resource = ("check", "state")


class TemporalCheck:
    """A predicate, and when it has to hold; a check for `toolrt.sim.explore`, alone, in a list, or joined by ``&``.

    Args:
        kind: "always", "eventually", "sometimes" or "reachable".
        predicate: takes nothing, or the execution.
    """

    def __init__(self, kind: str, predicate: Callable[..., Any]) -> None:
        if not callable(predicate):
            raise DefinitionRefused(f"{kind}(p)", "a function of nothing, or of an execution", predicate)
        self.kind = kind
        self.predicate = predicate
        self.takes_execution = bool(inspect.signature(predicate).parameters)
        #: True once it has held where "sometimes" and "reachable" want it.
        self.met = False
        self.steps = 0
        self.executions = 0
        self._held: list[bool] = []
        self._error: BaseException | None = None
        #: What the predicate read when it was asked last.
        self._reads: dict[Resource, None] = {}

    @property
    def name(self) -> str:
        """The kind and the predicate's name, as a claim says it."""
        return f"{self.kind}({getattr(self.predicate, '__name__', 'p')})"

    def begin(self) -> None:
        """Forget the execution before."""
        self._held, self._error, self._reads = [], None, {}

    def look(self, touched: list[tuple[Resource, bool]]) -> None:
        """Ask the predicate after a step, which has touched these."""
        own, before = len(touched), self._reads
        try:
            self._held.append(bool(self.predicate()))
        except BaseException as error:  # noqa: ASYNC103  it is sync, and raised when the execution is judged
            self._error = self._error or error
            self._held.append(False)
        self._reads = dict.fromkeys(resource for resource, _ in touched[own:])
        del touched[own:]
        if not own:
            touched.append((ANYTHING, True))
        elif not before or not self._reads or any(write and resource in before for resource, write in touched):
            # What another step writes of these decides what this answer, and the one before, would be beside it.
            touched.extend((resource, False) for resource in before | self._reads)
            touched.append((_LOOKED_AT, True))

    def __call__(self, execution: Execution) -> Any:
        """Answer as a check does."""
        held = [bool(self.predicate(execution))] if self.takes_execution else self._held
        self.executions += 1
        self.steps += len(held)
        if self._error is not None:
            raise self._error
        if self.kind == "always":
            wrong = next((step for step, one in enumerate(held) if not one), None)
            return None if wrong is None else f"{self.name} does not hold after step {wrong}"
        if self.kind == "eventually":
            return None if any(held) else f"{self.name} never held, in {counted(len(held), 'step')}"
        self.met = self.met or any(held if self.kind == "reachable" else held[-1:])
        return None

    def __and__(self, other: Any) -> Any:
        return together([self, other])


class _Together:
    """Several checks; all have to be content."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def __call__(self, execution: Execution) -> Any:
        """Answer as a check does."""
        judgements = [judge(execution, part) for part in self.parts]
        complaints = [violation for each in judgements for violation in each.violations]
        if complaints:
            return complaints
        return None if any(each.failed for each in judgements) or execution.error is not None else True

    def __and__(self, other: Any) -> Any:
        return together([*self.parts, other])


def together(check: Any) -> Any:
    """Give one check for a list of them; any other as it is.

    Raises:
        DefinitionRefused: one of them is no check, or there is none.
    """
    if not isinstance(check, list | tuple):
        return check
    if not check or not all(map(callable, check)):
        raise DefinitionRefused("check", "a function of an execution, or a list of such functions", check)
    return _Together([part for each in check for part in (each.parts if isinstance(each, _Together) else [each])])


def _temporal(check: Any) -> list[TemporalCheck]:
    check = getattr(check, "check", check)
    return [part for part in getattr(check, "parts", [check]) if isinstance(part, TemporalCheck)]


def observing(program: _Program, check: Any) -> _Program:
    """Give `program`, in which the predicates of `check` are asked after every step."""
    asked = [part for part in _temporal(check) if not part.takes_execution]
    if not asked:
        return program

    async def observed() -> Any:
        scheduler = current_scheduler()
        if scheduler is None:
            return await program()
        for part in asked:
            part.begin()
        observer = _Observer(asked, scheduler)
        trio.lowlevel.add_instrument(observer)
        return await program()

    return called_like(program, observed)


class _Observer(trio.abc.Instrument):
    """Asks predicates after each step of one execution."""

    def __init__(self, checks: list[TemporalCheck], scheduler: Any) -> None:
        self._checks = checks
        self._scheduler = scheduler

    def after_task_step(self, task: Task) -> None:
        """Ask, unless the execution is over."""
        record = self._scheduler.record
        if task in self._scheduler.roster.actors:
            own = bool(record.touched)
            for check in self._checks:
                check.look(record.touched)
            if not own and record.touched[1:]:
                del record.touched[1:]
        if record.over:
            trio.lowlevel.remove_instrument(self)


def needs_one_process(check: Any) -> bool:
    """Say whether `check` adds up what it has seen in this process."""
    return bool(_temporal(check))


def unmet(check: Any) -> str | None:
    """Say which of "sometimes" and "reachable" no execution has met; None: each was."""
    names = [part.name for part in _temporal(check) if part.kind in ("sometimes", "reachable") and not part.met]
    return f"no execution met {', '.join(names)}" if names else None


def shown(check: Any) -> str:
    """Say what was shown, for the claim; "" when there is nothing of this kind."""
    parts = [f"{part.name} over {part.steps} states of {part.executions} executions" for part in _temporal(check)]
    return f"; {', '.join(parts)}" if parts else ""


def always(p: Callable[..., Any]) -> TemporalCheck:
    """Give the check that `p` holds after every step; with a parameter, of every execution at its end."""
    return TemporalCheck("always", p)


def eventually(p: Callable[..., Any]) -> TemporalCheck:
    """Give the check that `p` holds after some step of every execution; a livelock fails in any case."""
    return TemporalCheck("eventually", p)


def sometimes(p: Callable[..., Any]) -> TemporalCheck:
    """Give the check that `p` holds at the end of some execution; no execution fails it alone."""
    return TemporalCheck("sometimes", p)


def reachable(p: Callable[..., Any]) -> TemporalCheck:
    """Give the check that `p` holds after some step of some execution; no execution fails it alone."""
    return TemporalCheck("reachable", p)
