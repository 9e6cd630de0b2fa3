"""What to run from a place of the current execution so that a race comes out the other way round.

Theory.  The steps after the first of a race that do not depend on it, and then the second, reverse the race.  They go
into the wakeup tree of the place where the first was.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from toolrt.sim.strategies.dpor._node import Move, Node
from toolrt.sim.strategies.dpor._steps import WILD, Footprint


class Plan:
    """Steps of an execution, to be run from another place than where they were.

    Args:
        nodes: the execution.
        indices: which of its steps, in order.
        second: the one that is the second of a race, or -1.
        guess: what that one is taken to touch.
        finally_: the task of a step that comes last and is unknown otherwise; "": none.
    """

    __slots__ = ("_guess", "_indices", "_nodes", "_second")

    def __init__(
        self, nodes: Sequence[Node], indices: list[int], second: int = -1, guess: Footprint = WILD, finally_: str = ""
    ) -> None:
        if finally_:
            unknown = Node({}, {})
            unknown.name, unknown.key, unknown.footprint = finally_, (finally_, -1, ()), WILD
            unknown.before = (2 << len(nodes)) - 1
            indices.append(len(nodes))
            nodes = [*nodes, unknown]
        self._nodes = nodes
        self._indices = indices
        self._second = second
        self._guess = guess

    def _footprint(self, index: int) -> Footprint:
        return self._guess if index == self._second else self._nodes[index].footprint

    def moves(self) -> list[Move]:
        """Give the steps as moves."""
        within = _mask(self._indices)
        moves = []
        for index in self._indices:
            node = self._nodes[index]
            can_begin = not node.before & within & ~(1 << index)
            moves.append(Move(node.name, self._footprint(index), node.chosen, can_begin, index == self._second))
        return moves

    def starts_with(self, who: Any, footprint: Footprint, may: Container[str]) -> int | None:
        """Say where a step of `who` could be taken out and put first: -1 for beside the plan, None for nowhere.

        What the step touches is known from when it was run at the place, which the plan may have wrong.
        """
        name, chosen = (who, None) if type(who) is str else who
        for index in self._indices:
            node = self._nodes[index]
            if node.name == name:
                return index if chosen is None or chosen == node.chosen else None
            if footprint.conflicts_with(self._footprint(index)):
                return None
        # Beside it only where it is certain to step, and to choose this, some day.
        return -1 if chosen is None and name not in may else None

    def insert(self, place: Node, may: Container[str]) -> None:
        """Put the steps into the wakeup tree of `place`; those in `may` need not happen."""
        nodes, sequence, tree = self._nodes, self._indices, place.tree
        at_root = True
        while tree:
            within = _mask(sequence)
            for name, (footprint, below, chosen) in tree.items():
                at = self.starts_with(name, footprint, may)
                if at is None or (at >= 0 and nodes[at].before & within & ~(1 << at)):
                    continue
                if at >= 0:
                    if nodes[at].chosen != chosen:
                        # Everything that it can choose is run there.
                        return
                    sequence.remove(at)
                tree, at_root = below, False
                break
            else:
                break
        if not tree and not at_root:
            # A leaf: whatever follows it will be run.
            return
        if at_root and nodes[sequence[0]].name not in place.enabled:
            # The clock, or a cancel, that was made possible by what it was to come before.
            return
        for index in sequence:
            below = {}
            node = nodes[index]
            tree[node.name] = (WILD if node.name in may else node.footprint, below, node.chosen)
            tree = below


def reversal(nodes: Sequence[Node], first: int, second: int, guess: Footprint, finally_: str) -> Plan:
    """Give what reverses a race: what does not depend on its first step, and then its second."""
    bit = 1 << first
    indices = [index for index in range(first + 1, len(nodes)) if index != second and not nodes[index].before & bit]
    indices.append(second)
    return Plan(nodes, indices, second, guess, finally_)


def _mask(indices: list[int]) -> int:
    mask = 0
    for index in indices:
        mask |= 1 << index
    return mask
