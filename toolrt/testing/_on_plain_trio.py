"""Holds a failure that no order of steps brings about against plain Trio, before a test is said to fail.

Rules.
    1. An order has failed the test where the same choices fail it again and other choices pass.  That is told as it is.
    2. Where every order that is tried fails, or the same choices do not fail again, the cause is the test itself, what
       is outside of it, or the simulation.  The test then runs on plain Trio a few times, with its orders and clock.
       If it fails there, too, the failure stands; if it passes each time, nothing is decided.
    3. A fixture that is one of pytest-trio's clocks is that run's clock, and options of anyio's backend are that run's.
    4. What comes to no end is told as it was found.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from threading import Timer
from typing import Any

import pytest
import trio

from toolrt import sim
from toolrt.errors import StepLimit, StuckStep, errors_in
from toolrt.testing._fixtures import Recipe

#: What the test is then, in words that are the same for all such tests.
NOT_ON_PLAIN_TRIO = "it fails in the simulation whatever the order, and passes on plain Trio"

# The orders that are tried besides that in which it failed.
_ORDERS = (sim.Fifo(), sim.RandomWalk(1), sim.RandomWalk(2), sim.RandomWalk(3))

# How often an execution is repeated where something real may have failed it.
_REPEATS_OF_REAL = 3

# Plain Trio runs the test so often, and begins no further run after so many seconds.  One may take so many.
_RUNS, _SECONDS, _PATIENCE = 20, 3.0, 5.0

# What plain Trio is not asked about.
_NO_END = (StepLimit, StuckStep, KeyboardInterrupt)

# Fixtures of pytest-trio's that tell time.
_CLOCKS = ("mock_clock", "autojump_clock")

_Program = Callable[[], Awaitable[Any]]
_Plain = Callable[[Mapping[Recipe, Any]], Awaitable[Any]]


def passes_on_plain_trio(
    plain: _Plain,
    recipes: Sequence[Recipe],
    options: Mapping[str, Any],
    failure: sim.Failure,
    program: _Program,
    how: Mapping[str, Any],
) -> bool:
    """Say whether no order is what failed `program`, and plain Trio passes it.

    Args:
        plain: makes it for plain Trio, without what only a simulation may be told, from fixtures that are made already.
        recipes: how its fixtures are made.
        options: what its suite has `trio.run` called with.
        failure: how it failed.
        program: makes the test's execution.
        how: the other arguments of `sim.explore`.

    Checkpoint: never; call it outside Trio.
    """
    if failure.error is None or any(isinstance(error, _NO_END) for error in errors_in(failure.error)):
        return False
    # Beside something real each execution takes its time, and plain Trio is asked first.
    is_real = any(caveat.startswith("real ") for caveat in failure.execution.caveats)
    if not is_real and _is_of_an_order(failure, program, 1, how):
        return False
    clocks = [recipe for recipe in recipes if recipe.name in _CLOCKS]
    begun = time.monotonic()
    for _ in range(_RUNS):
        if not _ends_well(plain, clocks, options):
            return False
        if time.monotonic() - begun > _SECONDS:
            break
    return not is_real or not _is_of_an_order(failure, program, _REPEATS_OF_REAL, how)


def _is_of_an_order(failure: sim.Failure, program: _Program, times: int, how: Mapping[str, Any]) -> bool:
    """Say whether another order passes, and the one that failed fails again, so many times."""
    if not any(_passes(program, order, times, how) for order in _ORDERS):
        return False
    return all(failure.fails_again() for _ in range(times))


def _passes(program: _Program, order: sim.Policy, times: int, how: Mapping[str, Any]) -> bool:
    """Say whether executions in this order pass, all of so many."""
    reports = (sim.explore(program, sim.Random(order, 1), **how) for _ in range(times))
    return all(not report.failed and not report.undecided for report in reports)


def _ends_well(plain: _Plain, clocks: Sequence[Recipe], options: Mapping[str, Any]) -> bool:
    """Say whether plain Trio runs it without an error, and in time."""
    made = {recipe: recipe.function() for recipe in clocks if recipe.function is not None}
    patience = trio.CancelScope()

    async def main() -> bool:
        # Neither a deadline nor a task that the test could see.
        timer = Timer(_PATIENCE, trio.lowlevel.current_trio_token().run_sync_soon, [patience.cancel])
        timer.start()
        try:
            with patience:
                await plain(made)
        finally:
            timer.cancel()
            timer.join()
        return not patience.cancelled_caught

    main.__module__, main.__qualname__ = plain.__module__, plain.__qualname__
    try:
        return trio.run(main, **{**options, **dict(zip(["clock"], made.values(), strict=False))})
    except (KeyboardInterrupt, pytest.exit.Exception):
        raise
    except BaseException:
        return False
