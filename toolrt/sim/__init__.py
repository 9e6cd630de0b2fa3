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

from toolrt.errors import Blocked, ReplayDiverged
from toolrt.sim._schedule import Schedule
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._host import leave_real
from toolrt.sim.exploring._estimate import Estimate, estimate
from toolrt.sim.exploring._explore import explore, replay, run
from toolrt.sim.exploring._progress import ExplorationProgress as Progress
from toolrt.sim.exploring._report import Failure, Report, Verdict
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
from toolrt.sim.programs._watch import watch
from toolrt.sim.programs.network._network import Network
from toolrt.sim.programs.processes._child import ChildProcess
from toolrt.sim.programs.processes._declared import Process
from toolrt.sim.programs.real import _installed as _real_io  # noqa: F401  (it stands in from here on)
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

#: Nothing failed, as far as the report's claim goes.
PASS = Verdict.PASS
#: At least one execution failed.
FAIL = Verdict.FAIL
#: Nothing failed, and nothing was shown: `Report.unfinished` says why.
INCONCLUSIVE = Verdict.INCONCLUSIVE

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
    "Progress",
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
    "always",
    "asgi",
    "choose",
    "compare",
    "estimate",
    "eventually",
    "explore",
    "faults",
    "leave_real",
    "linearizable",
    "reachable",
    "recorded",
    "replay",
    "run",
    "scope",
    "serializable",
    "sometimes",
    "thread_seconds",
    "tracked",
    "watch",
]
