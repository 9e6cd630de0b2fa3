"""Which executions an explored test gets: a strategy by name or as an object, and how many.

Rules.  A name stands for the strategy with its usual arguments; a number of executions is the sample's size, or the
budget of a search that would otherwise run a whole space.  An object is taken as it is, and keeps its seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from toolrt import sim
from toolrt.errors import DefinitionRefused

#: How many executions a sample has by default: a second or so for most tests.
SAMPLE = 100

#: How many a search of a whole space named by its name may take; past that it is inconclusive.
BUDGET = 10_000

# How many preemptions "bounded" allows: most bugs need no more (Musuvathi and Qadeer, PLDI 2007).
_PREEMPTIONS = 2

# What "pct" looks for: an order of three steps.
_DEPTH = 3

_SAMPLERS: dict[str, Callable[[int], sim.Policy]] = {
    "random": sim.RandomWalk,
    "pct": lambda seed: sim.PCT(_DEPTH, seed),
    "pos": sim.POS,
    "urw": sim.URW,
}
_SEARCHES: dict[str, Callable[[], sim.Strategy]] = {
    "exhaustive": sim.Exhaustive,
    "dpor": sim.DPOR,
    "bounded": lambda: sim.Bounded(_PREEMPTIONS),
}

#: What a strategy can be called.
NAMES = ("portfolio", *_SAMPLERS, *_SEARCHES)


def chosen(wanted: sim.Strategy | str | None, executions: int | None, seed: int) -> tuple[sim.Strategy, int | None]:
    """Give the strategy that is `wanted`, and the most executions it may take.

    Raises:
        DefinitionRefused: no strategy has that name, or a number is none.
    """
    if executions is not None and (not isinstance(executions, int) or isinstance(executions, bool) or executions < 1):
        raise DefinitionRefused("executions", "a number of executions, 1 or more", executions)
    if wanted is None or isinstance(wanted, str):
        return _named("portfolio" if wanted is None else wanted.lower(), executions, seed)
    if isinstance(wanted, type) or not callable(getattr(wanted, "begin", None)):
        raise DefinitionRefused("strategy", f"a strategy such as sim.DPOR(), or one of {', '.join(NAMES)}", wanted)
    kind: Any = type(wanted)
    if executions is not None and attrs.has(kind) and "n" in attrs.fields_dict(kind):
        sample: Any = wanted
        return attrs.evolve(sample, n=executions), None
    return wanted, executions


def _named(name: str, executions: int | None, seed: int) -> tuple[sim.Strategy, int | None]:
    sample = SAMPLE if executions is None else executions
    if name == "portfolio":
        return sim.Portfolio(sample, seed), None
    if name in _SAMPLERS:
        return sim.Random(_SAMPLERS[name](seed), sample), None
    if name in _SEARCHES:
        return _SEARCHES[name](), BUDGET if executions is None else executions
    raise DefinitionRefused("strategy", f"one of {', '.join(NAMES)}, or an object such as sim.DPOR()", name)
