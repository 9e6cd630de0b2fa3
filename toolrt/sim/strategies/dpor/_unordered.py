"""The pairs of steps that a reduction never runs in both orders, and which traces have them.

Rules.  A *pair* is two steps of two tasks that nothing orders in a trace: the reduction takes their two orders for one.
A step is known by its task, its number among that task's, and what was chosen up to it.  Each pair is kept in up to
three traces, because what a step touches may differ from trace to trace.  Once a trace was run in another order and led
to the same, the pairs that were exchanged in it are *turned*.

Limits.  Of one trace about `_MOST_IN_ONE` pairs are looked at, and `_MOST_PAIRS` in all; then `is_partial` is true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from toolrt.sim.strategies.dpor._node import Key

if TYPE_CHECKING:
    from toolrt.sim.engine._record import ExecutionRecord
    from toolrt.sim.strategies.dpor._node import Node

Pair = tuple[Key, Key]

_TIMES = 3
_MOST_IN_ONE = 2_000
_MOST_PAIRS = 10_000

# So many traces are kept, and one more for so many pairs.
_LEAST_KEPT, _PAIRS_OF_ONE = 64, 16


class UnorderedPairs:
    """Those of one search of the space.

    Args:
        before: those of an earlier search, by less: what was turned stays so, and what it took for unordered may be
            ordered now.
    """

    def __init__(self, before: UnorderedPairs | None = None) -> None:
        #: In how many kept traces each pair is, and in how many it was turned.
        self.kept: dict[Pair, int] = {}
        self.turned: dict[Pair, int] = {} if before is None else before.turned
        #: The kept traces: their choices, and the pairs that they were kept for.
        self.traces: list[tuple[tuple[int, ...], tuple[Pair, ...]]] = []
        #: True once not all pairs were looked at.
        self.is_partial = False

    @property
    def turned_once(self) -> int:
        """Of how many pairs both orders were run."""
        return sum(pair in self.turned for pair in self.kept)

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
                times = kept.get(pair, 0)
                if times < _TIMES:
                    kept[pair] = times + 1
                    new.append(pair)
                looked_at += 1
        if new and len(self.traces) < _LEAST_KEPT + len(kept) // _PAIRS_OF_ONE:
            self.traces.append((tuple([step[2] for step in record.steps]), tuple(new)))

    def to_turn(self, most: int) -> Iterator[tuple[tuple[int, ...], Pair | None]]:
        """Give the choices of traces to turn, with the pair that has to be exchanged; None: as many as can be.

        Each pair is turned once, then oftener, in at most so many (`most`) traces more.
        """
        for choices, pairs in self.traces:
            if any(pair not in self.turned for pair in pairs):
                yield choices, None
        for choices, pairs in self.traces:
            for pair in pairs:
                if pair not in self.turned:
                    yield choices, pair
        for times in range(2, 1 + _TIMES):
            for choices, pairs in self.traces:
                if most and any(self.turned.get(pair, 0) < times for pair in pairs):
                    most -= 1
                    yield choices, None

    def add(self, other: UnorderedPairs) -> None:
        """Take over what another part of the search has seen."""
        if other is not self:
            for pair, times in other.kept.items():
                self.kept[pair] = max(times, self.kept.get(pair, 0))
            known = {choices for choices, _ in self.traces}
            self.traces += [trace for trace in other.traces if trace[0] not in known]
            self.is_partial |= other.is_partial


def pair_of(one: Node, other: Node) -> Pair:
    """Give the name of a pair, whichever of its steps comes first."""
    return (one.key, other.key) if one.key <= other.key else (other.key, one.key)
