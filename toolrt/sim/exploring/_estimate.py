"""Estimates how many schedules a program has, before a search begins.

Paper: Knuth, "Estimating the efficiency of backtrack programs" (Mathematics of Computation, 1975).  Walk down the
tree of schedules at random; the product of the numbers of branches along the way is, on the average over all
walks, the number of leaves.

Limits.  The average is right, one sample of it need not be: where a few walks carry most of the sum, the true
number is more likely above the estimate than below.  The standard error says how far the walks were apart.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._host import simulate
from toolrt.sim.engine._job import DEFAULT_STEP_LIMIT, Driver, checked_job
from toolrt.sim.policies._random_walk import RandomWalk
from toolrt.sim.programs._actors import DEFAULT_CLOCK_MOVES, actors_of

_DAY = 86_400
_YEAR = 365.25 * _DAY


@attrs.frozen
class Estimate:
    """How many schedules a program probably has; `str()` of it is for people."""

    #: The estimated number of schedules; infinity when it is beyond what a float holds, which `log10` never is.
    schedules: float
    #: Its standard error; infinity for the same reason.
    error: float
    #: The decimal logarithm of the number.
    log10: float
    #: The decimal logarithm of its standard error; minus infinity when that is 0.
    error_log10: float
    #: How many executions it was made from.
    samples: int
    #: How many of those the step limit ended: their true length is not known, and the number is too low.
    stopped: int
    #: The longest of them, in steps.
    steps: int
    #: Executions a second in one process, in wall seconds.
    rate: float
    #: How many processes would share them.
    jobs: int = 1
    #: What else may happen in each of them, as a claim says it; "" for nothing.
    actors: str = ""

    @property
    def seconds(self) -> float:
        """How many wall seconds all would take, if each process has a processor of its own."""
        return self.schedules / (self.rate * self.jobs)

    def __str__(self) -> str:
        if self.schedules == 1 and not self.error:
            text = "one schedule"
        else:
            number, error = _size(self.schedules, self.log10), _size(self.error, self.error_log10)
            text = f"about {number} schedules (give or take {error})"
        if self.actors:
            text += f" with {self.actors}"
        takes = duration(self.seconds)
        if self.seconds == math.inf:
            takes = f"{_size(math.inf, self.log10 - math.log10(self.rate * self.jobs * _YEAR))} years"
        text += f", of up to {self.steps:,} steps; all of them would take {takes}"
        each = f" in each of {self.jobs} processes" if self.jobs > 1 else ""
        text += f" at {self.rate:,.0f} executions/s{each} ({self.samples} samples)"
        if self.stopped:
            text += f"; the step limit ended {self.stopped} of the samples, so there are more"
        return text


def estimate(
    program: Callable[[], Awaitable[Any]],
    samples: int = 100,
    seed: int = 0,
    *,
    step_limit: int = DEFAULT_STEP_LIMIT,
    cancel_at: str | None = None,
    crash_at: str | None = None,
    clock: str | None = None,
    clock_moves: int = DEFAULT_CLOCK_MOVES,
    jobs: int = 1,
    order: str = "any",
) -> Estimate:
    """Estimate how many schedules `program` has, and how long it would take to run all.

    What else may happen, and what the program chooses (`choose`, `faults`), are branches as for `explore`.

    Args:
        program: an async function without arguments.
        samples: how many executions to look at, 1 or more.
        seed: an integer; each seed is another sample.
        step_limit: the number of steps after which an execution is stopped, 1 or more.
        cancel_at: as `explore` takes it.
        crash_at: the same.
        clock: the same.
        clock_moves: the same.
        jobs: how many processes would run them, 1 or more; the estimate is made by this one.
        order: as `explore` takes it.

    Returns:
        The estimate.  The number is the same for the same seed, the rate is the machine's.

    Raises:
        DefinitionRefused: an argument is not what it must be; nothing was run.

    And what `toolrt.sim.run` raises.

    Checkpoint: never (it is not async).

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> async def program():
        ...     async with trio.open_nursery() as nursery:
        ...         nursery.start_soon(trio.lowlevel.checkpoint)
        ...         nursery.start_soon(trio.lowlevel.checkpoint)
        >>> round(sim.estimate(program).schedules)  # two tasks of two steps: there are 6
        6
    """
    if not isinstance(samples, int) or isinstance(samples, bool) or samples < 1:
        raise DefinitionRefused("samples", "a number of executions, 1 or more", samples)
    if not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1:
        raise DefinitionRefused("jobs", "a number of processes, 1 or more", jobs)
    checked_job(program, RandomWalk(seed), step_limit)
    actors = actors_of(cancel_at, crash_at, clock, clock_moves, order)
    first = checked_job(actors.around(program), RandomWalk(seed), step_limit)

    def driver() -> Driver[Estimate]:
        logs: list[float] = []
        stopped = longest = 0
        began = time.perf_counter()
        for index in range(samples):
            first.policy, first.index = RandomWalk(seed).derive(index), index
            # Reported in full: the rate is that of executions that a check is shown.
            execution = yield first
            widths = [len(names) for names in execution.enabled]
            logs.append(sum(map(math.log, widths)))
            stopped += execution.schedule.stopped
            longest = max(longest, len(widths))
        rate = samples / max(time.perf_counter() - began, 1e-9)
        # Relative to the largest, so that a huge number of schedules is no overflow.
        top = max(logs)
        parts = [math.exp(log - top) for log in logs]
        spread = statistics.stdev(parts) / math.sqrt(samples) if samples > 1 else 0.0
        mean = statistics.fmean(parts)
        return Estimate(
            schedules=_times(mean, top),
            error=_times(spread, top),
            log10=_log10(mean, top),
            error_log10=_log10(spread, top),
            samples=samples,
            stopped=stopped,
            steps=longest,
            rate=rate,
            jobs=jobs,
            actors=", ".join(actors.in_words),
        )

    return simulate(driver())


def _times(part: float, log: float) -> float:
    """Give ``part * e**log``; a whole number is not left a rounding error off."""
    if not part:
        return 0.0
    try:
        value = part * math.exp(log)
    except OverflowError:
        return math.inf
    return float(round(value)) if abs(value - round(value)) < 1e-6 * max(1.0, value) and value < 2**50 else value


def _log10(part: float, log: float) -> float:
    """Give the decimal logarithm of ``part * e**log``."""
    return (math.log(part) + log) / math.log(10) if part else -math.inf


def _size(number: float, log10: float) -> str:
    """Give a number as people read it, from its logarithm where it is beyond a float."""
    if number < math.inf:
        return figure(number)
    exponent = math.floor(log10)
    digits = f"{10 ** (log10 - exponent):.1f}"
    return f"1.0e+{exponent + 1}" if digits == "10.0" else f"{digits}e+{exponent}"


def figure(number: float) -> str:
    """Give a number as people read it."""
    return f"{number:,.0f}" if number < 1e6 else f"{number:.1e}"


def duration(seconds: float) -> str:
    """Give seconds in the largest unit that fits in at least twice."""
    for unit, size in (("years", _YEAR), ("days", _DAY), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            amount = seconds / size
            return f"{amount:,.0f} {unit}" if amount < 1e6 else f"{amount:.1e} {unit}"
    return f"{seconds:.1f} seconds"
