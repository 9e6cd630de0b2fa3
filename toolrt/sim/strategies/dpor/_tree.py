"""The tree of executions that the reduction walks: the branches left to run, and the path of the next execution.

Rules.  The tree takes in each execution, with what its steps touched and what caused them, and gives the tasks to step
first in the next one.  It keeps the current execution, what is left to run beside it, and what sleeps.

Theory.  A race is a pair of dependent steps of two tasks with nothing between them that orders them (`_current`).  The
steps after the first that do not depend on it, and then the second, reverse the race.  They go into the wakeup tree of
the place before the first, unless a step that sleeps there leads to the same trace.  The paper and the differences from
it are at the head of the folder.
"""

from __future__ import annotations

import gc
import pickle
from typing import TYPE_CHECKING, Any

from toolrt.errors import Deadlock, Livelock
from toolrt.sim._paths import CANCEL, CLOCK
from toolrt.sim.strategies.dpor._current import CurrentExecution
from toolrt.sim.strategies.dpor._node import Branches, Move, Node, Prefix, Sleep, any_step, let_one_begin
from toolrt.sim.strategies.dpor._plan import Plan, reversal
from toolrt.sim.strategies.dpor._steps import NOTHING, WILD, Events

if TYPE_CHECKING:
    from toolrt.sim.engine._record import ExecutionRecord

# A race so many steps from the end of its execution is planned at once.  One further off costs as much as it is long,
# and is asked for: it is planned when the search comes back to its place, which may be never; or with so many others.
_NEAR, _MOST_ASKED = 100, 16


class ExecutionTree:
    """The tree of executions, as far as it is needed: the current one, and what is left to run beside it.

    Its first nodes may belong to other trees too.  What its races ask for at those is not put into this tree but
    reported (`found`); the whole search decides which tree runs it.

    Args:
        declared: True: a step that reported nothing touched nothing.
        before: the tree of an earlier pass, whose knowledge of steps is taken over.
    """

    def __init__(self, declared: bool, before: ExecutionTree | None = None) -> None:
        #: The execution taken in last, and all that is known of steps.
        self.current: CurrentExecution = CurrentExecution(declared, None if before is None else before.current)
        #: The beginning of the next execution.
        self.path = Prefix((), 0, {})
        #: True once labels were seen to change, unless they are joined: from then on by source sets, in which nothing
        #: is planned ahead.
        self.careful = False
        # So many of the first nodes are shared with other trees.  Their choices are fixed here, except at the last one,
        # where only the branches are shared.
        self._base = 0
        #: What is to be run from those: where, and what.
        self.found: list[tuple[int, list[Move]]] = []
        #: True when nothing is left to run.
        self.done = False
        # The current execution as it was, for races that are planned later; None: there are none.
        self._execution: tuple[Node, ...] | None = None

    def take_in(self, record: ExecutionRecord, offered: tuple[str, ...] | None = None) -> None:
        """Take in an execution, and find the next path; `offered`: the enabled list where a redundant one ended."""
        collecting = gc.isenabled()
        # What is made here is kept: a collector would look through it again and again while it grows.
        gc.disable()
        try:
            self._take_in(record, offered)
        finally:
            if collecting:
                gc.enable()

    def _take_in(self, record: ExecutionRecord, offered: tuple[str, ...] | None) -> None:
        redundant = offered is not None
        self._execution = None
        if record.has_optional and not self.careful:
            # Optional steps are no part of any plan.  What was asked for before is planned as it was then.
            self._settle_all()
            self.careful = True
        kept = self.current.kept
        events = Events(record)
        self.current.read(events)
        # What a step chooses is no guess, but what follows from it is.
        self.current.unsteady = self.current.unsteady or (self.current.chooses and not self.current.joined)
        nodes = self.current.nodes
        if self.current.unsteady and not self.current.joined and not self.careful:
            self.careful = True
            # What was planned here rests on guesses, and what was asked for is among all that can step.
            for node in nodes:
                node.asked = []
                names = (*node.tree, *node.enabled)
                node.tree = {name: any_step() for name in names if name != node.name and name not in node.sleep}
        elif self.careful:
            for second in range(kept, len(nodes)):
                for first in nodes[second].races:
                    self._reverse(first, second)
        elif not redundant:
            ever = self.current.ever
            for second in range(0 if self.current.unsteady else kept, len(nodes)):
                node = nodes[second]
                if node.races and (second >= kept or ever[node.key] is not node.footprint):
                    for first in node.races:
                        self._reverse(first, second)
        if record.cut and not redundant:
            self._let_others_step_before_the_end()
        if self.current.chooses:
            self._let_others_begin(kept + 1)
        if record.has_optional:
            self._let_others_step(events, kept, offered or ())
            # Where there are passes, what may happen between two of them is tried between any two.
            if not redundant and not record.passes:
                self._let_time_pass_before_a_cancel(events, kept)
                self._let_others_finish_before_a_cancel(events)
            if record.things.timed and not record.passes:
                self._let_the_clock_move(events, kept)
        self._backtrack()

    # ------------------------------------------------------------------ reversing a race

    def _reverse(self, first: int, second: int) -> None:
        """Plan an execution in which `second` runs before `first`, from the place where `first` was; or ask for it.

        What `second` would touch there is not known: all that it ever has, then.
        """
        nodes, place, current = self.current.nodes, self.current.nodes[first], self.current
        guess = current.ever[nodes[second].key]
        # An optional step is planned to come later.
        finally_ = place.name if place.name in current.may else ""
        if len(nodes) - first <= _NEAR or first < self._base or current.joined:
            self._settle(first)
            self._plan(first, reversal(nodes, first, second, guess, finally_))
            return
        if self._execution is None:
            self._execution = tuple(nodes)
        place.asked.append((self._execution, second, guess, finally_))
        if len(place.asked) == _MOST_ASKED:
            self._settle(first)

    def _settle(self, first: int) -> None:
        """Plan what was asked for at a place; call it before anything else changes what is to be run from there."""
        place = self.current.nodes[first]
        if place.asked:
            asked, place.asked = place.asked, []
            for nodes, second, guess, finally_ in asked:
                self._plan(first, reversal(nodes, first, second, guess, finally_))

    def _settle_all(self) -> None:
        for index in range(len(self.current.nodes)):
            self._settle(index)

    def _plan(self, first: int, plan: Plan) -> None:
        """Plan an execution that runs `plan` from where `first` was."""
        place, may = self.current.nodes[first], self.current.may
        if self.careful:
            moves = plan.moves()
            if first < self._base:
                self.found.append((first, moves))
            else:
                let_one_begin(place.sleep, place.tree, (), place.enabled, moves)
        elif all(plan.starts_with(who, footprint, may) is None for who, footprint in place.sleep.items()):
            plan.insert(place, may)

    # ------------------------------------------------------------------ what may happen and need not

    def _let_others_begin(self, begin: int) -> None:
        """Where some values of a step sleep, and a plan let it be the first, let all others step, too."""
        nodes = self.current.nodes
        for index in range(begin, len(nodes)):
            node = nodes[index]
            if any(type(who) is tuple and who[0] == node.name for who in node.sleep):
                self._settle(index)
                for name in node.enabled:
                    if name != node.name and name not in self.current.may and name not in node.sleep:
                        node.tree.setdefault(name, any_step() if self.careful else (WILD, {}, ()))

    def _let_others_step_before_the_end(self) -> None:
        """Try each task that the end of the program has kept from its step, in the place of the step that ended it."""
        index = len(self.current.nodes) - 1
        node = self.current.nodes[index]
        names = [name for name in node.enabled if name != node.name and name not in node.sleep]
        if index < self._base:
            self.found += [(index, [Move(name, WILD, (), True, False)]) for name in names]
            return
        for name in names:
            node.tree.setdefault(name, any_step() if self.careful else (WILD, {}, ()))

    def _let_others_step(self, events: Events, kept: int, offered: tuple[str, ...]) -> None:
        """Try each optional step that did not happen, where it was enabled last; between passes everywhere."""
        nodes, may, canceller = self.current.nodes, self.current.may, events.record.canceller
        in_passes = bool(events.record.passes)
        rests = set(map(events.at, events.record.rests))
        for index in range(kept, len(nodes)):
            node = nodes[index]
            is_last = index + 1 == len(nodes)
            after = offered if is_last else nodes[index + 1].enabled
            idle = after[:1] == (CLOCK,) or index + 1 in rests
            cancels = self._cancels(node, events.record)
            self._settle(index)
            for name in node.enabled:
                if (
                    (name in may or (name == canceller and (is_last or in_passes)))
                    and name != node.name
                    and (in_passes or name not in after or (name == CLOCK and idle))
                    and name not in node.sleep
                    and name not in node.tree
                    and not name == node.enabled[0] == CLOCK
                    # Of several scopes one is cancelled: the others are where none was.
                    and not (cancels and name.startswith(CANCEL))
                ):
                    node.tree[name] = (WILD, {}, ())

    def _let_time_pass_before_a_cancel(self, events: Events, kept: int) -> None:
        """Time passed, or nothing could happen any more, right after a cancel: that could have come before it."""
        nodes, record = self.current.nodes, events.record
        cancels = (index for index, node in enumerate(nodes) if self._cancels(node, record))
        if (cancel := next(cancels, -1)) < 0:
            return
        rests = [
            *map(events.at, record.rests),
            *([len(nodes)] if isinstance(record.error, Deadlock | Livelock) else []),
        ]
        rest = min((rest for rest in rests if rest > cancel), default=-1)
        if rest > kept and not any(nodes[index].before >> cancel & 1 for index in range(cancel + 1, rest)):
            self._let_time_pass_before(cancel, rest)

    def _let_others_finish_before_a_cancel(self, events: Events) -> None:
        """Run what does not depend on a cancel before it: then nothing else may be left to run, and time passes."""
        nodes, record = self.current.nodes, events.record
        cancel = next((index for index, node in enumerate(nodes) if self._cancels(node, record)), len(nodes))
        later = [index for index in range(cancel + 1, len(nodes)) if not nodes[index].before >> cancel & 1]
        if later and {nodes[index].name for index in later} >= {*nodes[cancel].enabled} - {nodes[cancel].name}:
            self._settle(cancel)
            self._plan(cancel, Plan(nodes, later))

    def _cancels(self, node: Node, record: ExecutionRecord) -> bool:
        return node.name == record.canceller or node.name.startswith(CANCEL)

    def _let_the_clock_move(self, events: Events, kept: int) -> None:
        """Where nothing could run any more, try the clock while a task still could.

        A step that brings a deadline and waits for it may be the last that could run, and then the clock could never
        move beside others; but it could if another task were run later.
        """
        nodes, record = self.current.nodes, events.record
        begin = 0
        for rest in sorted(set(map(events.at, record.rests))):
            # An idle clock is the last step before its rest.
            end = rest - 1 if nodes[rest - 1].name == nodes[rest - 1].enabled[0] == CLOCK else rest
            if rest > kept:
                later = 0
                for first in reversed(range(begin, end)):
                    if not later >> first & 1 and nodes[first].name not in self.current.may and first + 1 < end:
                        self._let_time_pass_before(first, end)
                    later |= nodes[first].before
            begin = rest

    def _let_time_pass_before(self, first: int, rest: int) -> None:
        """Let time pass before `first`, on which nothing depends that comes before `rest`."""
        self._settle(first)
        self._plan(first, Plan(self.current.nodes, list(range(first + 1, rest)), finally_=CLOCK))

    # ------------------------------------------------------------------ the next execution

    def _backtrack(self) -> None:
        """Forget the steps back to the last place where something is left to run."""
        nodes = self.current.nodes
        while nodes:
            node = nodes[-1]
            if node.is_live:
                self.current.forget(node)
            if node.open:
                break
            if len(nodes) <= self._base:
                self.done = True
                return
            self._settle(len(nodes) - 1)
            self._let_sleep(node)
            # What was put here before it was known what its first step would touch may be asleep by now.
            for name in [name for name in node.tree if name in node.sleep]:
                del node.tree[name]
            if node.tree:
                break
            nodes.pop()
        else:
            self.done = True
            return
        # Races that are planned later know the step that was here.
        node = nodes[-1] = node.replaced()
        kept = self.current.kept = len(nodes) - 1
        tasks = [node.name for node in nodes[:-1]]
        chosen = (
            {index: above.chosen for index, above in enumerate(nodes[:-1]) if above.chosen}
            if self.current.chooses
            else {}
        )
        if node.open:
            begin = node.open.pop()
            tasks.append(node.name)
            chosen[kept], node.forced = begin, len(begin)
            self.path = Prefix(tuple(tasks), kept, chosen)
            return
        picks = () if self.current.chooses else tuple([above.pick for above in nodes[:-1]])
        node.forced, node.done = 0, {}
        tree = node.tree
        while True:
            name = next(iter(tree))
            _, below, values = tree.pop(name)
            if tree is node.tree:
                node.name = name
            if values:
                chosen[len(tasks)] = values
            tasks.append(name)
            if not below:
                break
            nodes.append(Node({}, below))
            tree = below
        self.path = Prefix(tuple(tasks), kept, chosen, picks)

    def _let_sleep(self, node: Node) -> None:
        """Whatever the step chooses has been run from here."""
        name, sleep = node.name, node.sleep
        if node.is_live:
            node.done[node.chosen] = node.footprint
        if node.done.keys() == {()}:
            sleep[name] = node.footprint
            return
        everything = NOTHING
        for chosen, footprint in node.done.items():
            sleep[name, chosen] = footprint
        for who, footprint in sleep.items():
            if type(who) is tuple and who[0] == name:
                everything = self.current.footprints.joint(everything, footprint)
        sleep[name] = everything

    # ------------------------------------------------------------------ shared with other trees

    def be_careful(self) -> None:
        """Guess nothing, because another tree may know more.  Call it before anything was taken in."""
        self.careful = True

    def __getstate__(self) -> dict[str, Any]:
        self._settle_all()
        return {**self.__dict__, "_execution": None}

    def share(self) -> tuple[ExecutionTree, list[tuple[Sleep, Branches, tuple[str, ...]]]] | None:
        """Give up the first branches that are left.

        Returns:
            The tree as it was, for `branch`; and for each of its nodes that becomes shared: what sleeps there once this
            tree has gone on, what is to be run, and what could step.  None when there is nothing, or not yet.
        """
        nodes, base = self.current.nodes, self._base
        if base and nodes[base - 1].open:
            return None
        self._settle_all()
        for index in range(base, min(self.current.kept, len(nodes))):
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

    def branch(self, index: int, name: str, sleep: Sleep) -> ExecutionTree:
        """Give a tree of what begins as this does up to node `index`, and then with a step of `name`."""
        tree = self.copy()
        nodes = tree.current.nodes
        while len(nodes) > index:
            node = nodes.pop()
            if node.is_live:
                tree.current.forget(node)
        node = Node(sleep, {})
        node.name = name
        nodes.append(node)
        tree.current.kept, tree._base, tree.done = index, index + 1, False
        tree.path = Prefix(
            (*(above.name for above in nodes[:-1]), name),
            index,
            {place: above.chosen for place, above in enumerate(nodes[:-1]) if above.chosen},
        )
        return tree

    def copy(self) -> ExecutionTree:
        """Give another one that is the same."""
        made: ExecutionTree = pickle.loads(pickle.dumps(self))
        return made

    def sleepers(self) -> Sleep | None:
        """Give what may sleep at the last shared node because of this tree; None when that is not known yet."""
        node = self.current.nodes[self._base - 1]
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
        """The task that steps at the last shared node."""
        return self.current.nodes[self._base - 1].name
