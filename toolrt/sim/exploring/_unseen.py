"""Looks for shared state that the steps of a program do not report, when a reduction is about to claim a PASS."""

from __future__ import annotations

import sys
from pathlib import PurePath
from types import CodeType

import attrs

from toolrt.sim.engine._job import Driver, Job
from toolrt.sim.exploring._program import ExploredProgram
from toolrt.sim.policies import RandomWalk
from toolrt.sim.programs.tracking._guard import KeptAside, modules_of, said_of
from toolrt.sim.programs.tracking._tracking import can_be_seen, guard_of
from toolrt.sim.strategies.dpor._samples import KeptExecution, order_of

# At least, and at most, so many executions are looked at, and one more for so many that were run.
_LEAST, _MOST, _EVERY = 2, 20, 20


def unseen_state(task: ExploredProgram, executions: int) -> Driver[str | None]:
    """Run some executions, and say which variable two tasks touch unordered and unreported; None: there is none.

    Args:
        task: what was explored, without tracking, by a search that reduces.
        executions: how many executions there were.
    """
    more: set[str] = set()
    while True:
        said = yield from _unseen(task, executions, more)
        if not isinstance(said, _Others):
            return said
        more |= said.modules


@attrs.frozen
class _Others:
    """Modules whose code unordered steps run, and which can be rewritten."""

    modules: set[str]


def _unseen(task: ExploredProgram, executions: int, more: set[str]) -> Driver[str | _Others | None]:
    kept: list[KeptAside] = []
    guard = guard_of(task.program, kept.append, sorted(more))
    if guard is None:
        return None
    program = attrs.evolve(task, tracking=guard).bound()
    with guard.active():
        if guard.stale is not None:
            code = guard.stale.__code__
            place = f"{code.co_qualname} ({PurePath(code.co_filename).name}:{code.co_firstlineno})"
            edited = f"the file of {place} was edited since it was imported"
            return f"{edited}, so what its steps touch was not looked at: run it anew"
        for seed in range(1, 1 + min(_MOST, _LEAST + executions // _EVERY)):
            walk = KeptExecution(RandomWalk(seed))
            kept.clear()
            # Not within a step: another watch of a step's calls puts back the hook that it has found.
            before = sys.getprofile()
            sys.setprofile(lambda *called: kept[-1].profile(*called) if kept else None)
            try:
                yield Job(program, walk, task.step_limit)
            finally:
                sys.setprofile(before)
            if kept and walk.record is not None:
                is_ordered = order_of(walk.record)
                said = said_of(kept[-1].seen, is_ordered)
                if said is not None:
                    return said
                seen = {module for *_, module in kept[-1].ran}
                hidden = {module for module in seen if module not in sys.modules or module == "builtins"}
                counts = hidden | set(can_be_seen(seen))
                ran = modules_of([each for each in kept[-1].ran if each[3] in counts], kept[-1].seen, is_ordered)
                others = ran.keys() - {*guard.modules} - hidden
                if others:
                    return _Others(others)
                for module in sorted(ran):
                    return _without_source(module, *ran[module])
    return None


def _without_source(module: str, code: CodeType, one: str, other: str) -> str:
    return (
        f"{one} and {other} run {code.co_qualname} of {module}, whose source is not at hand, in steps that report "
        "nothing which depends on each other, so what it touches was not looked at: put it into a file, or use "
        "sim.Exhaustive()"
    )
