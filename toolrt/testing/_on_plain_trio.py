"""Holds a failure that no order of steps brings about against plain Trio, before a test is said to fail.

Rules.
    1. An order has failed the test where the same choices fail it again and other choices pass.  That is told as it is.
    2. Where every order that is tried fails, or the same choices do not fail again, the cause is the test itself, what
       is outside of it, or the simulation.  The test then runs on plain Trio a few times, with its orders and clock.
       If it fails there, too, the failure stands; if it passes each time, nothing is decided.
    3. A fixture that is one of pytest-trio's clocks is that run's clock, and options of anyio's backend are that run's.
    4. It runs in a copy of this process, which is killed where it takes too long: no test can defeat that.  A system
       that makes no such copies is not asked, and neither is it for what comes to no end; that is told as it was found.
"""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import trio

from toolrt import sim
from toolrt.errors import StepLimit, StuckStep, errors_in
from toolrt.sim.engine._watchdog import end_of_limit
from toolrt.testing._fixtures import Recipe

#: What the test is then, in words that are the same for all such tests.
NOT_ON_PLAIN_TRIO = "it fails in the simulation whatever the order, and passes on plain Trio"

# The orders that are tried besides that in which it failed.
_ORDERS = (sim.Fifo(), sim.RandomWalk(1), sim.RandomWalk(2), sim.RandomWalk(3))

# How often an execution is repeated where something real may have failed it.
_REPEATS_OF_REAL = 3

# Plain Trio runs the test so often, and begins no further run after so many seconds.  The last may take so many more.
_RUNS, _SECONDS, _PATIENCE = 20, 3.0, 2.0

# It has at most this part of what a search has left of its limit.
_SHARE = 0.75

# So often the end of that is looked for.
_BETWEEN_LOOKS = 0.005

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
    if not _in_a_copy(partial(_run_on_plain_trio, plain, recipes, options)):
        return False
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


def _run_on_plain_trio(plain: _Plain, recipes: Sequence[Recipe], options: Mapping[str, Any]) -> None:
    """Run it some times; what it raises is raised."""
    begun = time.monotonic()
    for _ in range(_RUNS):
        made = {recipe: recipe.function() for recipe in recipes if recipe.name in _CLOCKS and recipe.function}
        trio.run(plain, made, **{**options, **dict(zip(["clock"], made.values(), strict=False))})
        if time.monotonic() - begun > _SECONDS:
            break


def _in_a_copy(function: Callable[[], None]) -> bool:
    """Call it in a copy of this process, which can be ended whatever runs there; say whether it returns, in time."""
    if not hasattr(os, "fork"):
        return False
    with warnings.catch_warnings():
        # There are other threads: a lock that one of them holds is waited for in vain, up to the limit.
        warnings.simplefilter("ignore", DeprecationWarning)
        copy = os.fork()
    if not copy:
        code = 1
        try:
            os.setpgid(0, 0)  # what it starts is killed with it
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (1, 2):
                os.dup2(null, stream)
            function()
            code = 0
        finally:
            os._exit(code)
    ends = time.monotonic() + min(_SECONDS + _PATIENCE, _SHARE * end_of_limit()[0])
    ended, status = 0, 0
    try:
        while not ended and time.monotonic() < ends:
            ended, status = os.waitpid(copy, os.WNOHANG)
            time.sleep(0 if ended else _BETWEEN_LOOKS)
    finally:
        if not ended:
            with suppress(ProcessLookupError):
                os.killpg(copy, signal.SIGKILL)
            os.kill(copy, signal.SIGKILL)
            os.waitpid(copy, 0)
    return bool(ended) and status == 0
