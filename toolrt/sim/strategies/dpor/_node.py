"""One step of the reduction's current execution, with its sleep set and the steps to run in its place."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

from toolrt.sim._paths import CLOCK
from toolrt.sim.strategies.dpor._steps import NOTHING, Footprint

#: What makes a step one and not another: its task and its number among that task's, with what was chosen up to then.
Key = tuple[str, int, tuple[int, ...]]

#: What sleeps: a task, or a task whose step chooses these values; a step with other values does not.
Sleep = dict[Any, Footprint]

#: A wakeup tree: for each task that may step first, what it is taken to touch, the tree after its step, and what that
#: step is taken to choose.
Branches = dict[str, tuple[Footprint, "Branches", tuple[int, ...]]]


class Prefix(NamedTuple):
    """The beginning of an execution."""

    #: The tasks to step.
    tasks: tuple[str, ...]
    #: How many of them have stepped in this order before.
    known: int
    #: What steps choose, by their place.
    chosen: dict[int, tuple[int, ...]]
    #: Where each of the known tasks stood in the list of those that could step; empty where steps choose.
    picks: tuple[int, ...] = ()


class Move(NamedTuple):
    """One step of what is to be run from a place."""

    #: The task that steps.
    name: str
    #: What the step touches.
    footprint: Footprint
    #: What it chooses.
    chosen: tuple[int, ...]
    #: True when no other move has to come before it.
    can_begin: bool
    #: True when what it touches there is not known: this is all it ever has.
    is_guess: bool


class Node:
    """One step of the current execution."""

    __slots__ = (
        "after",
        "asked",
        "before",
        "chosen",
        "done",
        "enabled",
        "footprint",
        "forced",
        "is_live",
        "key",
        "name",
        "open",
        "pick",
        "previous",
        "races",
        "sleep",
        "story",
        "tree",
    )

    def __init__(self, sleep: Sleep, tree: Branches) -> None:
        self.name = ""
        #: Its task, its number among that task's steps, and what was chosen up to it.
        self.key: Key = ("", 0, ())
        self.footprint: Footprint = NOTHING
        #: The enabled list, and its index there.
        self.enabled: tuple[str, ...] = ()
        self.pick = 0
        #: What it chose, and so many of these because they had to be tried.
        self.chosen: tuple[int, ...] = ()
        self.forced = 0
        #: What it has chosen here so far, with what it touched, and what it has yet to choose: the first numbers.
        self.done: dict[tuple[int, ...], Footprint] = {}
        self.open: list[tuple[int, ...]] = []
        #: True as long as it is a step of the execution taken in last.
        self.is_live = False
        #: The steps that happen before it, and itself, as a bit each.
        self.before = 0
        #: The earlier steps it is in a race with.
        self.races: list[int] = []
        #: The same task's step before, or -1.
        self.previous = -1
        #: Those whose next step has been dealt with, with what it touches.
        self.sleep = sleep
        #: What else is to be run from here.
        self.tree = tree
        #: The races that ask for more: the execution, the second step, what it is taken to touch, and the task that
        #: comes last.
        self.asked: list[tuple[tuple[Node, ...], int, Footprint, str]] = []
        #: A hash of the step with all it could know, and the sum of those of the steps up to it.
        self.story = 0
        self.after = 0

    def replaced(self) -> Node:
        """Give a node for another step at this place."""
        node = Node(self.sleep, self.tree)
        node.name, node.enabled, node.done, node.open = self.name, self.enabled, self.done, self.open
        node.forced, node.asked, node.is_live = self.forced, self.asked, self.is_live
        return node


def any_step() -> tuple[Footprint, Branches, tuple[int, ...]]:
    """Give a branch that names only its first step."""
    return NOTHING, {}, ()


def let_one_begin(
    sleep: Sleep, tree: Branches, begun: Container[str], enabled: tuple[str, ...], moves: list[Move]
) -> None:
    """Plan one of the tasks that can begin `moves`, unless one of them sleeps or has begun.

    A sleeping task that is merely independent of all `moves` is no reason to leave them out: what they touch is a
    guess.
    """
    for who, footprint in sleep.items():
        name, chosen = (who, None) if type(who) is str else who
        for move in moves:
            if move.name == name:
                if chosen is None or chosen == move.chosen:
                    return
                break
            if footprint.conflicts_with(move.footprint):
                break
    names = []
    for at, move in enumerate(moves):
        if not move.can_begin:
            continue
        if move.is_guess and any(move.footprint.conflicts_with(other.footprint) for other in moves[:at]):
            continue
        if move.name in tree or move.name in begun:
            return
        if move.name not in sleep and move.name in enabled:
            names.append(move.name)
    if names:
        tree[names[0]] = any_step()


def could_at_rest(node: Node, name: str) -> bool:
    """Say whether `name` could have stepped instead of the clock, when it moved because nothing else could happen."""
    return node.name == node.enabled[0] == CLOCK and name in node.enabled


def sleep_on(sleep: Sleep, name: str, footprint: Footprint) -> Sleep:
    """Give those that sleep on after a step."""
    return {
        who: touches
        for who, touches in sleep.items()
        if who != name and not touches.conflicts_with(footprint) and (type(who) is str or who[0] != name)
    }
