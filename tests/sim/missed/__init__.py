"""Litmus programs for what searches have missed: each shares something in a way of its own, beside all it can end in.

Most of them lose an update: two tasks read a number, pass a checkpoint, and write one more.  What differs is where the
number is, and by which way it is reached.
"""

from tests.sim.missed import _contents, _moments, _names, _objects  # noqa: F401  they fill the table
from tests.sim.missed._table import MISSED, Missed

__all__ = ["MISSED", "Missed"]
