"""One tool on one program: hunts for its bug, and prints what came of each seed as a line of JSON.

``python -m tests.benchmarks.head_to_head.hunt ROW PROGRAM EXECUTIONS SECONDS SEED...`` runs in the environment that has
the tool.  Each tool is imported by the function that drives it.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.head_to_head import libraries
from tests.benchmarks.head_to_head.programs import PROGRAMS, Shared

__all__ = ["HUNTS", "Found"]

Program = type[Shared]

#: What a tool says of a program: an execution failed; or none did of the whole space, of the space within a bound, or
#: of a sample; or the property holds, although the budget ended the search; or that it cannot decide.
FAILED, ALL, BOUNDED, SAMPLE, CUT, UNDECIDED = "failed", "all", "bounded", "sample", "cut", "undecided"

#: How many executions were run, and what the tool then says.
Found = tuple[int, str]

Hunt = Callable[[Program, int, int, float], Found]


class _Wrong(Exception):
    """An execution failed: ends an exploration at its first failure."""


def _on_trio(program: Program, library: libraries.OnTrio) -> Callable[[], Any]:
    async def main() -> None:
        shared = program(library)
        await library.together(*shared.tasks())
        assert shared.holds()

    return main


def _on_asyncio(program: Program) -> Callable[[], Any]:
    async def main() -> None:
        shared = program(libraries.OnAsyncio())
        await asyncio.gather(*(task() for task in shared.tasks()))
        assert shared.holds()

    return main


def in_a_loop(pauses: bool) -> Hunt:
    """Drive `trio.run` in a loop.  The clock is virtual; what has not ended after 1,000 seconds is deadlocked."""

    def hunt(program: Program, seed: int, executions: int, seconds: float) -> Found:
        import trio
        from trio._core._run import _r
        from trio.testing import MockClock

        drawn = random.Random(seed)
        library = libraries.OnTrioWithPauses(drawn) if pauses else libraries.OnTrio()
        program_main = _on_trio(program, library)

        async def main() -> None:
            with trio.fail_after(1_000):
                await program_main()

        # Trio's scheduler draws the order of a pass from a generator of its own.
        _r.seed(seed)
        began = time.perf_counter()
        for index in range(1, executions + 1):
            try:
                trio.run(main, clock=MockClock(autojump_threshold=0))
            except Exception:
                return index, FAILED
            if time.perf_counter() - began > seconds:
                break
        return index, SAMPLE

    return hunt


def by_toolrt(strategy: Callable[[Any, int, int], Any], claim: str, track: bool = False) -> Hunt:
    """Drive `toolrt.sim.explore` with the strategy made from the module, a seed and a number of executions."""

    def hunt(program: Program, seed: int, executions: int, seconds: float) -> Found:
        from toolrt import errors, sim

        seen = 0

        def check(execution: sim.Execution) -> bool | None:
            nonlocal seen
            seen += 1
            if execution.error is None:
                return True
            if isinstance(execution.error, errors.StepLimit):
                return None
            raise _Wrong

        tracked = [program.__module__] if track else False
        main = _on_trio(program, libraries.OnTrio())
        try:
            report = sim.explore(
                main, strategy(sim, seed, executions), check, executions, seconds=seconds, track=tracked
            )
        except _Wrong:
            return seen, FAILED
        if report.verdict is sim.FAIL:
            return report.executions, FAILED
        if report.verdict is not sim.PASS:
            return report.executions, UNDECIDED
        return report.executions, claim if claim != ALL or report.complete else SAMPLE

    return hunt


#: Seconds after which frontrun gives one execution up; with its own 5 a sampler gives up after four of those.
_STUCK = 1.0


def by_frontrun(threads: bool, **options: Any) -> Hunt:
    """Drive `frontrun.explore`, on asyncio or in threads, with a virtual clock, in which it tells deadlocks exactly."""

    def hunt(program: Program, seed: int, executions: int, seconds: float) -> Found:
        import frontrun

        library = libraries.InThreads() if threads else libraries.OnAsyncio()

        def in_thread(place: int) -> Callable[[Shared], None]:
            return lambda shared: libraries.driven(shared.tasks()[place]())

        def in_task(place: int) -> Callable[[Shared], Any]:
            async def work(shared: Shared) -> None:
                await shared.tasks()[place]()

            return work

        places = range(len(program(library).tasks()))
        samples = options.get("strategy") == "random"
        limits: dict[str, Any] = {"timeout_per_run": _STUCK, "deadlock_timeout": _STUCK}
        limits |= {"max_attempts": executions, "seed": seed} if samples else {"max_executions": executions}
        if threads or not samples:
            limits["reproduce_on_failure"] = 0
        began = time.perf_counter()
        result = frontrun.explore(
            setup=lambda: program(library),
            workers=[(in_thread if threads else in_task)(place) for place in places],
            invariant=lambda shared: shared.holds(),
            total_timeout=seconds,
            clock="virtual",
            **limits,
            **options,
        )
        if not threads:
            result = asyncio.run(result)
        took = time.perf_counter() - began
        if result.property_holds is False:
            return result.num_explored, FAILED
        if result.property_holds is None:
            return result.num_explored, UNDECIDED
        if samples:
            return result.num_explored, SAMPLE
        if result.num_explored >= executions or took >= seconds:
            return result.num_explored, CUT
        return result.num_explored, BOUNDED if options["preemption_bound"] else ALL

    return hunt


#: After so many executions the time is looked at, where a tool has no limit of its own.
_CHUNK = 50


def _in_chunks(run: Callable[[int, int], int | None], seed: int, executions: int, seconds: float) -> Found:
    """Run seeds in chunks: `run` takes the first seed and how many, and gives how many passed before one failed."""
    began, first = time.perf_counter(), 1_000_000 * seed + 1
    for done in range(0, executions, _CHUNK):
        passed = run(first + done, min(_CHUNK, executions - done))
        if passed is not None:
            return done + passed + 1, FAILED
        if time.perf_counter() - began > seconds:
            return done + _CHUNK, SAMPLE
    return executions, SAMPLE


def by_simloom(scheduler: str) -> Hunt:
    """Drive `simloom.explore`."""

    def hunt(program: Program, seed: int, executions: int, seconds: float) -> Found:
        import simloom

        def run(first: int, count: int) -> int | None:
            found = simloom.explore(_on_asyncio(program), runs=count, start_seed=first, scheduler=scheduler)
            return found.runs - 1 if found.failed else None

        return _in_chunks(run, seed, executions, seconds)

    return hunt


def by_simloom_systematic(delays: int, claim: str) -> Hunt:
    """Drive `simloom.explore_systematic` with at most so many delays."""

    def hunt(program: Program, seed: int, executions: int, seconds: float) -> Found:
        import simloom

        main, ends, is_cut = _on_asyncio(program), time.perf_counter() + seconds, False

        async def in_time() -> None:
            nonlocal is_cut
            if time.perf_counter() > ends:
                # The search has no limit of its own; a failure ends it.
                is_cut = True
                raise TimeoutError
            await main()

        found = simloom.explore_systematic(in_time, max_delays=delays, max_schedules=executions)
        if is_cut:
            return found.schedules - 1, UNDECIDED
        return found.schedules, FAILED if found.failed else claim if found.proven_correct else UNDECIDED

    return hunt


def by_simloop() -> Hunt:
    """Drive `simloop.explore`."""

    def hunt(program: Program, seed: int, executions: int, seconds: float) -> Found:
        import simloop

        def run(first: int, count: int) -> int | None:
            report = simloop.explore(_on_asyncio(program), range(first, first + count))
            return None if report is None else report.seeds_passed

        return _in_chunks(run, seed, executions, seconds)

    return hunt


#: What drives each row of the table.
HUNTS: dict[str, Hunt] = {
    "trio loop": in_a_loop(pauses=False),
    "trio loop with pauses": in_a_loop(pauses=True),
    "toolrt walk": by_toolrt(lambda sim, seed, n: sim.Random(sim.RandomWalk(seed), n), SAMPLE),
    "toolrt PCT(3)": by_toolrt(lambda sim, seed, n: sim.Random(sim.PCT(3, seed), n), SAMPLE),
    "toolrt POS": by_toolrt(lambda sim, seed, n: sim.Random(sim.POS(seed), n), SAMPLE, track=True),
    "toolrt URW": by_toolrt(lambda sim, seed, n: sim.Random(sim.URW(seed), n), SAMPLE),
    "toolrt Portfolio": by_toolrt(lambda sim, seed, n: sim.Portfolio(n, seed=seed), SAMPLE),
    "toolrt Hybrid": by_toolrt(lambda sim, seed, n: sim.Hybrid(n, seed=seed), ALL, track=True),
    "toolrt Guided": by_toolrt(lambda sim, seed, n: sim.Guided(n, seed=seed), SAMPLE, track=True),
    "toolrt Bounded(2)": by_toolrt(lambda sim, seed, n: sim.Bounded(2), BOUNDED),
    "toolrt DPOR": by_toolrt(lambda sim, seed, n: sim.DPOR(), ALL),
    "toolrt DPOR, tracked": by_toolrt(lambda sim, seed, n: sim.DPOR(), ALL, track=True),
    "toolrt DPOR, random": by_toolrt(lambda sim, seed, n: sim.DPOR(branches="random", seed=seed), ALL, track=True),
    "frontrun asyncio DPOR": by_frontrun(threads=False, preemption_bound=None),
    "frontrun asyncio default": by_frontrun(threads=False, preemption_bound=2),
    "frontrun asyncio random": by_frontrun(threads=False, strategy="random"),
    "frontrun threads DPOR": by_frontrun(threads=True, preemption_bound=None),
    "frontrun threads default": by_frontrun(threads=True, preemption_bound=2),
    "frontrun threads random": by_frontrun(threads=True, strategy="random"),
    "simloom random": by_simloom("random"),
    "simloom PCT": by_simloom("pct:auto"),
    "simloom systematic(2)": by_simloom_systematic(2, BOUNDED),
    "simloom systematic": by_simloom_systematic(1_000, ALL),
    "simloop random": by_simloop(),
}


def main() -> None:
    """Hunt as the arguments say."""
    row, program, executions, seconds, *seeds = sys.argv[1:]
    # What is imported, rewritten and measured once is not part of a hunt.
    HUNTS[row](PROGRAMS["account, locked"], 0, 2, 5.0)
    for seed in seeds:
        began, used = time.perf_counter(), time.process_time()
        try:
            ran, said = HUNTS[row](PROGRAMS[program], int(seed), int(executions), float(seconds))
            result: dict[str, Any] = {"executions": ran, "said": said}
        except Exception as error:
            result = {"executions": 0, "said": "error", "error": f"{type(error).__name__}: {error}"[:300]}
        times = {
            "seconds": round(time.perf_counter() - began, 3),
            "processor": round(time.process_time() - used, 3),
        }
        print(json.dumps({"seed": int(seed), **result, **times}), flush=True)


if __name__ == "__main__":
    main()
