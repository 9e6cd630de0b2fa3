"""Looks for shared state that the steps of a program do not report, when a reduction is about to claim a PASS."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import attrs

from toolrt.sim.engine._job import Driver, Job
from toolrt.sim.programs.tracking._guard import KeptAside, said_of
from toolrt.sim.programs.tracking._tracking import guard_of
from toolrt.sim.strategies import Search
from toolrt.sim.strategies.dpor._ordered import RecordedWalk, order_of

if TYPE_CHECKING:
    from toolrt.sim.exploring._workers import ExploredProgram

__all__ = ["unseen_state"]

# At least, and at most, so many executions are looked at, and one more for so many that were run.
_LEAST, _MOST, _EVERY = 2, 20, 20


def unseen_state(task: ExploredProgram, search: Search, executions: int) -> Driver[str | None]:
    """Run some executions, and say which variable two tasks touch unordered and unreported; None: there is none.

    Args:
        task: what was explored.
        search: what has explored it; one that reduces nothing needs no look.
        executions: how many executions there were.
    """
    kept: list[KeptAside] = []
    guard = guard_of(task.program, kept.append) if search.reduces and task.tracking is None else None
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
            walk = RecordedWalk(seed)
            kept.clear()
            yield Job(program, walk, task.step_limit)
            if kept and walk.record is not None:
                said = said_of(kept[-1].seen, order_of(walk.record))
                if said is not None:
                    return said
    return None
