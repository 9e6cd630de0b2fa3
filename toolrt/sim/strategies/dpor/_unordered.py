"""The pairs of steps that a reduction never runs in both orders, and which traces have them.

Rules.  A *pair* is two steps of two tasks that nothing orders in a trace: the reduction takes their two orders for one.
A step is known by its task, its number among that task's, what was chosen up to it, and its story: a hash of all that
it could know by what is reported.  What else it touches may depend on that, so a pair is another one where either step
knew something else.  Once a trace was run in another order and led to the same, the pairs that were exchanged in it are
*turned*.

Limits.  Of one trace about `_MOST_IN_ONE` pairs are looked at, and `_MOST_PAIRS` in all; then `is_partial` is true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from toolrt.sim.strategies.dpor._node import Key

if TYPE_CHECKING:
    from toolrt.sim.engine._record import ExecutionRecord
    from toolrt.sim.strategies.dpor._node import Node

#: A step, and its story.
Told = tuple[Key, int]

Pair = tuple[Told, Told]

_MOST_IN_ONE = 2_000
_MOST_PAIRS = 10_000


class UnorderedPairs:
    """Those of one search of the space."""

    def __init__(self) -> None:
        #: All pairs, and those that were turned.
        self.kept: set[Pair] = set()
        self.turned: set[Pair] = set()
        #: The kept traces: their choices, and the pairs that were new in them.
        self.traces: list[tuple[tuple[int, ...], tuple[Pair, ...]]] = []
        #: True once not all pairs were looked at.
        self.is_partial = False

    def note(self, nodes: Sequence[Node], begin: int, end: int, record: ExecutionRecord) -> None:
        """Take in the pairs whose second step is one of those from `begin` to `end`."""
        kept, new, looked_at = self.kept, [], 0
        for index in range(begin, end):
            if looked_at >= _MOST_IN_ONE or len(kept) > _MOST_PAIRS:
                self.is_partial = True
                break
            free = ~nodes[index].before & ((1 << index) - 1)
            while free:
                last = free.bit_length() - 1
                free ^= 1 << last
                pair = pair_of(nodes[last], nodes[index])
                if pair not in kept:
                    kept.add(pair)
                    new.append(pair)
                looked_at += 1
        if new:
            self.traces.append((tuple([step[2] for step in record.steps]), tuple(new)))

    def to_turn(self) -> Iterator[tuple[tuple[int, ...], Pair | None]]:
        """Give the choices of traces to turn, with the pair that has to be exchanged; None: as many as can be."""
        for choices, pairs in self.traces:
            if any(pair not in self.turned for pair in pairs):
                yield choices, None
        for choices, pairs in self.traces:
            for pair in pairs:
                if pair not in self.turned:
                    yield choices, pair

    def add(self, other: UnorderedPairs) -> None:
        """Take over what another part of the search has seen."""
        self.kept |= other.kept
        known = {choices for choices, _ in self.traces}
        self.traces += [trace for trace in other.traces if trace[0] not in known]
        self.is_partial |= other.is_partial


def pair_of(one: Node, other: Node) -> Pair:
    """Give the name of a pair, whichever of its steps comes first."""
    first, second = (one.key, one.story), (other.key, other.story)
    return (first, second) if first <= second else (second, first)
