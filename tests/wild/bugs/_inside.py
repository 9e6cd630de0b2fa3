"""Runs in a bug's own environment: explores its program, runs it in plain loops, confirms it, and prints JSON.

Started as `python -m tests.wild.bugs._inside NAME EXECUTIONS SEED`, with trio, attrs and the library at hand.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import logging
import random
import sys
import time
import warnings
from collections.abc import Callable
from types import ModuleType

import trio
from trio.testing import MockClock

from tests.wild.bugs._folders import Bug, bug
from toolrt import sim

#: A plain loop pauses for fewer checkpoints than this before the program cancels, hangs up, or does what it does.
LONGEST_PAUSE = 20
CONFIRMATIONS = 20


def program_of(one: Bug) -> ModuleType:
    """Import the program of a bug."""
    spec = importlib.util.spec_from_file_location(f"wild_{one.name.replace('-', '_')}", one.folder / "program.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _explored(module: ModuleType, one: Bug, strategy: sim.Strategy, explain: bool) -> dict[str, object]:
    async def program() -> None:
        await module.program()

    began = time.perf_counter()
    count = 0
    first: tuple[int, float] | None = None

    def check(execution: sim.Execution) -> bool:
        nonlocal count, first
        count += 1
        if execution.error is None:
            return True
        if one.expects not in repr(execution.error):
            raise execution.error
        if first is None:
            first = count, round(time.perf_counter() - began, 3)
        return False

    report = sim.explore(program, strategy, check, **one.options)  # type: ignore[arg-type]
    found: dict[str, object] = {
        "executions": report.executions,
        "failures": report.failed,
        "undecided": report.undecided,
        "seconds": round(time.perf_counter() - began, 2),
        "verdict": str(report.verdict),
        "claim": str(report.claim),
    }
    if first is not None and report.failures:
        failure = report.failures[0]
        found |= {"first": first[0], "seconds_to_first": first[1], "error": repr(failure.error)[:300]}
        if explain:
            began = time.perf_counter()
            found |= {"schedule": str(failure.schedule), "explanation": failure.explain()}
            found["seconds_to_explain"] = round(time.perf_counter() - began, 2)
    return found


def _looped(one: Bug, once: Callable[[], object], runs: int, seconds: float) -> dict[str, object]:
    """Run until both `runs` and `seconds` are spent, and count within each."""
    began = time.perf_counter()
    done = failed_runs = failed_all = 0
    first: int | None = None
    error = ""
    while done < runs or time.perf_counter() - began < seconds:
        done += 1
        try:
            once()
        except Exception as caught:
            if one.expects not in repr(caught):
                raise
            failed_all += 1
            failed_runs += done <= runs
            if first is None:
                first, error = done, repr(caught)
    return {
        "asked": runs,
        "runs": done,
        "failures_in_as_many_runs": failed_runs,
        "failures": failed_all,
        "first": first,
        "error": error[:300],
        "seconds": round(time.perf_counter() - began, 2),
    }


def main(name: str, executions: int, seed: int) -> dict[str, object]:
    """Measure one bug."""
    one = bug(name)
    module = program_of(one)
    random.seed(seed)
    library = one.library.split()[0]
    found: dict[str, object] = {
        "name": name,
        "library": library,
        "version": importlib.metadata.version(library),
        "trio": trio.__version__,
    }
    found["portfolio"] = portfolio = _explored(module, one, sim.Portfolio(executions, seed), True)
    found["walk"] = _explored(module, one, sim.Random(sim.RandomWalk(seed), executions), False)
    found["hybrid"] = _explored(module, one, sim.Hybrid(executions, seed), False)
    spent = float(str(portfolio["seconds"]))

    def plain() -> None:
        trio.run(module.program, clock=MockClock(autojump_threshold=0))

    def paused() -> None:
        trio.run(module.program, random.randrange(LONGEST_PAUSE), clock=MockClock(autojump_threshold=0))

    found["loop"] = _looped(one, plain, executions, spent)
    found["loop_with_pauses"] = _looped(one, paused, executions, spent)
    confirmed, error = 0, ""
    for _ in range(CONFIRMATIONS):
        try:
            trio.run(module.on_plain_trio)
        except Exception as caught:
            if one.expects not in repr(caught):
                raise
            confirmed += 1
            error = error or repr(caught)
    found["confirmed"] = {"of": CONFIRMATIONS, "failures": confirmed, "error": error[:300]}
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
