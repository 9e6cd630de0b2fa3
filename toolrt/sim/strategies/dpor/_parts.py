"""A tree of executions that several have: it gives up branches, which others run as trees of their own.

Rules.  A tree may begin with nodes that are others' too; what its races ask for at those is not put into it but told
(`Tree.found`), and whoever keeps the whole search decides who runs it.  No such tree plans ahead: no one has seen all.
"""

from __future__ import annotations

import pickle

from toolrt.sim.strategies.dpor._node import Branches, Node, Path, Sleep
from toolrt.sim.strategies.dpor._tree import Tree

__all__ = ["SharedTree"]


class SharedTree(Tree):
    """A tree whose first nodes may be others' too."""

    def be_careful(self) -> None:
        """Guess nothing: another tree may know more.  Call it before anything was taken in."""
        self.careful = True

    def share(self) -> tuple[SharedTree, list[tuple[Sleep, Branches, tuple[str, ...]]]] | None:
        """Give up the first branches that are left.

        Returns:
            The tree as it was, for `branch`; and for each of its nodes that becomes others' too who sleeps there once
            this tree has gone on, what is to be run, and who could step.  None when there is nothing, or not yet.
        """
        nodes, base = self._nodes, self._base
        if base and nodes[base - 1].open:
            return None
        for index in range(base, min(self._kept, len(nodes))):
            if nodes[index].open:
                return None
            if nodes[index].tree:
                break
        else:
            return None
        before = self.copy()
        given = []
        for node in nodes[base : index + 1]:
            sleeper = Node(dict(node.sleep), {})
            sleeper.name, sleeper.done, sleeper.footprint = node.name, dict(node.done), node.footprint
            sleeper.chosen, sleeper.is_live = node.chosen, True
            self._let_sleep(sleeper)
            given.append((sleeper.sleep, node.tree, node.enabled))
            node.tree = {}
        self._base = index + 1
        return before, given

    def branch(self, index: int, name: str, sleep: Sleep) -> SharedTree:
        """Give a tree of what begins as this does up to node `index`, and then with a step of `name`."""
        tree = self.copy()
        nodes = tree._nodes
        while len(nodes) > index:
            node = nodes.pop()
            if node.is_live:
                tree._forget(node)
        node = Node(sleep, {})
        node.name = name
        nodes.append(node)
        tree._kept, tree._base, tree.done = index, index + 1, False
        tree.path = Path(
            (*(above.name for above in nodes[:-1]), name),
            index,
            {place: above.chosen for place, above in enumerate(nodes[:-1]) if above.chosen},
        )
        return tree

    def copy(self) -> SharedTree:
        """Give another one that is the same."""
        made: SharedTree = pickle.loads(pickle.dumps(self))
        return made

    def sleepers(self) -> Sleep | None:
        """Give who may sleep, where the last of the others' nodes is, because of this tree; None when nobody knows."""
        node = self._nodes[self._base - 1]
        if node.open or not (node.is_live or self.done):
            # Not all that it can choose was run as far as to see what it touches.
            return None
        before = node.sleep
        node.sleep = dict(before)
        self._let_sleep(node)
        given, node.sleep = node.sleep, before
        return given

    @property
    def last(self) -> str:
        """Who steps where the last of the others' nodes is."""
        return self._nodes[self._base - 1].name
