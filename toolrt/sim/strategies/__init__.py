"""Strategies: each picks the next execution of an exploration."""

from toolrt.sim.strategies._dpor import DPOR
from toolrt.sim.strategies._random import Random
from toolrt.sim.strategies._strategy import Redundant, Search, Strategy

__all__ = ["DPOR", "Random", "Redundant", "Search", "Strategy"]
