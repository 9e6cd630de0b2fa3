"""A deterministic simulator for any Trio program.

It owns every choice Trio makes: which task steps next, and when time moves.  So a schedule is a value: it can
be drawn, enumerated, replayed and shrunk.

    >>> import trio
    >>> from toolrt import sim
    >>> async def program():
    ...     cell = sim.Cell(0, name="x")
    ...     async def add():
    ...         seen = cell.get()
    ...         await trio.lowlevel.checkpoint()
    ...         cell.set(seen + 1)
    ...     async with trio.open_nursery() as nursery:
    ...         nursery.start_soon(add)
    ...         nursery.start_soon(add)
    ...     return cell.get()
    >>> report = sim.explore(program, check=lambda execution: execution.value == 2)
    >>> report.verdict is sim.FAIL
    True
    >>> sorted(report.outcomes)
    [1, 2]
    >>> report.failures[0].minimal.switches
    1

Rules.  Call it from sync code.  A program may use all of Trio: sockets are of a network in memory (`Network`), and a
child process runs a script (`Process`); a sync tool of toolrt's own runs in place, as one step.  Time is virtual,
starts at 0, and moves only when nothing can run.
Nothing runnable and no deadline is a deadlock, reported with what each task waits for.

Random numbers of ``random``, ``secrets``, ``uuid`` and ``os.urandom`` are the same in every execution, and the clocks
of ``time`` and ``datetime`` tell virtual time, unless the program says `leave_real`.

Limits.  Choices are made at Trio's checkpoints; a program that looks at addresses, at the order of a set, or at a
clock in another way is not controlled, and its replays may diverge (which is noticed).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolrt.errors import Blocked, ReplayDiverged
    from toolrt.sim._schedule import Schedule
    from toolrt.sim.engine._execution import Execution
    from toolrt.sim.engine._host import leave_real
    from toolrt.sim.exploring._estimate import Estimate, estimate
    from toolrt.sim.exploring._explore import explore, replay, run
    from toolrt.sim.exploring._progress import ExplorationProgress
    from toolrt.sim.exploring._report import FAIL, INCONCLUSIVE, PASS, Failure, Report, Verdict
    from toolrt.sim.exploring._temporal import always, eventually, reachable, sometimes
    from toolrt.sim.judging._history import Operation, OperationEnd, recorded
    from toolrt.sim.judging._history import OperationHistory as History
    from toolrt.sim.judging._judges import HistoryJudgement, linearizable, serializable
    from toolrt.sim.judging._outcome_sets import OutcomeComparison, compare
    from toolrt.sim.policies import PCT, POS, URW, Choices, Fifo, Follow, Policy, RandomWalk, Replay, RunInfo, Strayed
    from toolrt.sim.programs._actors import CANCELLED
    from toolrt.sim.programs._asgi import asgi
    from toolrt.sim.programs._cell import Cell
    from toolrt.sim.programs._chances import choose, faults, scope
    from toolrt.sim.programs._crashes import durable
    from toolrt.sim.programs._watch import watch
    from toolrt.sim.programs.given._constraints import again, atomic, before, line, lock_order, shielded
    from toolrt.sim.programs.network._network import Network
    from toolrt.sim.programs.processes._child import ChildProcess
    from toolrt.sim.programs.processes._declared import Process
    from toolrt.sim.programs.threads._worker import thread_seconds
    from toolrt.sim.programs.tracking._tracking import tracked
    from toolrt.sim.strategies import (
        DPOR,
        Bounded,
        Exhaustive,
        Guided,
        Hybrid,
        PairCoverage,
        Portfolio,
        RacingPair,
        Random,
        Redundant,
        Search,
        Strategy,
    )

__all__ = [
    "CANCELLED",
    "DPOR",
    "FAIL",
    "INCONCLUSIVE",
    "PASS",
    "PCT",
    "POS",
    "URW",
    "Blocked",
    "Bounded",
    "Cell",
    "ChildProcess",
    "Choices",
    "Estimate",
    "Execution",
    "Exhaustive",
    "ExplorationProgress",
    "Failure",
    "Fifo",
    "Follow",
    "Guided",
    "History",
    "HistoryJudgement",
    "Hybrid",
    "Network",
    "Operation",
    "OperationEnd",
    "OutcomeComparison",
    "PairCoverage",
    "Policy",
    "Portfolio",
    "Process",
    "RacingPair",
    "Random",
    "RandomWalk",
    "Redundant",
    "Replay",
    "ReplayDiverged",
    "Report",
    "RunInfo",
    "Schedule",
    "Search",
    "Strategy",
    "Strayed",
    "Verdict",
    "again",
    "always",
    "asgi",
    "atomic",
    "before",
    "choose",
    "compare",
    "durable",
    "estimate",
    "eventually",
    "explore",
    "faults",
    "leave_real",
    "line",
    "linearizable",
    "lock_order",
    "reachable",
    "recorded",
    "replay",
    "run",
    "scope",
    "serializable",
    "shielded",
    "sometimes",
    "thread_seconds",
    "tracked",
    "watch",
]

#: Where each name comes from when it is first used, and what it is called there where that is another name.
_NAMES = {
    "errors": "Blocked ReplayDiverged",
    "sim._schedule": "Schedule",
    "sim.engine._execution": "Execution",
    "sim.engine._host": "leave_real",
    "sim.exploring._estimate": "Estimate estimate",
    "sim.exploring._explore": "explore replay run",
    "sim.exploring._progress": "ExplorationProgress",
    "sim.exploring._report": "FAIL INCONCLUSIVE PASS Failure Report Verdict",
    "sim.exploring._temporal": "always eventually reachable sometimes",
    "sim.judging._history": "History Operation OperationEnd recorded",
    "sim.judging._judges": "HistoryJudgement linearizable serializable",
    "sim.judging._outcome_sets": "OutcomeComparison compare",
    "sim.policies": "PCT POS URW Choices Fifo Follow Policy RandomWalk Replay RunInfo Strayed",
    "sim.programs._actors": "CANCELLED",
    "sim.programs._asgi": "asgi",
    "sim.programs._cell": "Cell",
    "sim.programs._chances": "choose faults scope",
    "sim.programs._crashes": "durable",
    "sim.programs._watch": "watch",
    "sim.programs.given._constraints": "again atomic before line lock_order shielded",
    "sim.programs.network._network": "Network",
    "sim.programs.processes._child": "ChildProcess",
    "sim.programs.processes._declared": "Process",
    "sim.programs.threads._worker": "thread_seconds",
    "sim.programs.tracking._tracking": "tracked",
    "sim.strategies": (
        "DPOR Bounded Exhaustive Guided Hybrid PairCoverage Portfolio RacingPair Random Redundant Search Strategy"
    ),
}
_WHERE = {name: room for room, names in _NAMES.items() for name in names.split()}
_CALLED = {"History": "OperationHistory"}
_ROOMS = ("engine", "exploring", "judging", "policies", "programs", "strategies")


def __getattr__(name: str) -> Any:
    """Import a room, or what a name stands for, at its first use: ``import toolrt.sim`` costs next to nothing."""
    if name in _ROOMS:
        return importlib.import_module(f"toolrt.sim.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'toolrt.sim' has no attribute {name!r}")
    room = importlib.import_module(f"toolrt.{_WHERE[name]}")
    return globals().setdefault(name, getattr(room, _CALLED.get(name, name)))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
