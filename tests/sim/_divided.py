"""What the tests of divided explorations share: strategies that can be divided, and what a report says."""

from __future__ import annotations

import os
from typing import Any

import trio
from trio.lowlevel import checkpoint

from toolrt import sim

STRATEGIES: list[sim.Strategy] = [
    sim.Exhaustive(),
    sim.Bounded(preemptions=2),
    sim.Portfolio(120, seed=3),
    sim.Random(sim.RandomWalk(1), 120),
    sim.Random(sim.PCT(2, 1), 120),
    sim.Random(sim.POS(1), 120),
    sim.Random(sim.URW(1), 120),
]


def shown(report: sim.Report) -> dict[str, Any]:
    """Everything a report says, in an order of its own where it has one."""
    return {
        "verdict": report.verdict,
        "claim": report.claim,
        "counts": (report.executions, report.distinct, report.failed, report.undecided, report.complete),
        "outcomes": list(report.outcomes.items()),
        "failures": [failure.execution.choices for failure in report.failures],
        "unfinished": report.unfinished,
    }


async def pid() -> int:
    """Some choices; its value says who ran it."""
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(checkpoint)
    return os.getpid()


def fine(execution: sim.Execution) -> bool:
    """Say that all is well."""
    return True


def reduced(report: sim.Report) -> dict[str, Any]:
    """What a reduction shows whoever runs which trace: not which of its schedules, nor in which order."""
    counts = (report.executions, report.failed, report.undecided, report.complete)
    return {**shown(report), "counts": counts, "outcomes": report.outcomes, "failures": len(report.failures)}
