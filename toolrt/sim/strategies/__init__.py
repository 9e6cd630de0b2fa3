"""Strategies: each picks the next execution of an exploration."""

from toolrt.sim.strategies._hybrid import Hybrid
from toolrt.sim.strategies._pairs import Guided, PairCoverage, RacingPair
from toolrt.sim.strategies._portfolio import Portfolio
from toolrt.sim.strategies._random import Random
from toolrt.sim.strategies._strategy import Redundant, Search, Shared, Strategy, uncontrolled
from toolrt.sim.strategies._tree import Bounded, Exhaustive
from toolrt.sim.strategies.dpor._dpor import DPOR

__all__ = [
    "DPOR",
    "Bounded",
    "Exhaustive",
    "Guided",
    "Hybrid",
    "PairCoverage",
    "Portfolio",
    "RacingPair",
    "Random",
    "Redundant",
    "Search",
    "Shared",
    "Strategy",
    "uncontrolled",
]
