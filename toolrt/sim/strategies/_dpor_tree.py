"""The tree of executions that dynamic partial-order reduction walks.

Rules.  It is told of each execution what its steps touched and what caused them, and gives the tasks to step first in
the next one.  Of all that has been run it keeps the current execution, what is left to run beside it, and what sleeps.

Theory.  Abdulla, Aronis, Jonsson, Sagonas: Optimal dynamic partial order reduction (POPL 2014; Source sets, JACM
2017): source sets, sleep sets and wakeup trees.  A race is a pair of dependent steps of two tasks with nothing
between them that orders them.  For each, the steps that do not depend on the first, and then the second, are a way
to turn it round; unless what is asleep at that place would lead there too, it is put into the wakeup tree of that
place.  Nothing is ever disabled in Trio: a task that waits has made its attempt, which is a step like any other,
so there is no rule for blocking, and a lock that is taken and a lock that is waited for are both found.

Differences from the paper.  What a step would touch once its race is turned round is not known before it is run: it
is taken to touch all that the same step of that task has touched so far.  Wakeup trees are built on such guesses, and
are given up once one was seen that could be wrong, because a step touched other things than before: wherever the
current execution stands, everybody who can step is let step, and from then on races are turned round by source sets,
which plan one step and guess nothing.  An execution may then turn out to be of a trace that has been run; it is ended
there, and not counted.

A step that asks for choices is tried with each value at each place it is run from, and sleeps as a whole when all of
them were; one of its values sleeps by itself.

Some may step and need not: the clock beside tasks that can run, and whoever cancels a named scope.  What others do does
not wait for them, so they are no reason to leave anything out, awake or asleep, but where they have stepped.  They
are let step where they could last, and the races of that execution move them to earlier places.  Where nothing could
run any more the clock could have moved before had somebody else been run later.  And where time passes because nothing
else can happen, that is a step that depends on all others: the task that cancels the program may come before or after.

That a step touches different things is no matter as long as it reports what decides.  One that touches different
things when it knows the same, and nothing that it touches was touched differently before, *withholds* something.
Labels of such steps cannot be relied on.  Not every one is found: what decides is compared where both touch it.

Where anything but the tasks' own steps can happen nothing is planned ahead, either.

Limits.  This module is long because what it keeps of the current execution is changed by every part of it.
"""

from __future__ import annotations

import pickle
from collections.abc import Container
from typing import TYPE_CHECKING, Any, NamedTuple

from toolrt.errors import Deadlock
from toolrt.probe import Resource
from toolrt.sim._paths import CANCEL, CLOCK
from toolrt.sim.strategies._dpor_steps import NOTHING, WILD, Events, Footprint, Footprints

if TYPE_CHECKING:
    from toolrt.sim._hook import Scheduler

__all__ = ["Branches", "Move", "Observed", "Path", "Sleep", "Tree", "let_one_begin"]


#: What makes a step one and not another: its task and its number among that task's, with what was chosen up to then.
_Key = tuple[str, int, tuple[int, ...]]

#: Who sleeps: a task, or a task whose step chooses these values, which another step of it does not.
Sleep = dict[Any, Footprint]

#: A wakeup tree: for each task that may step first, what it is taken to touch, the tree after its step, and what that
#: step is taken to choose.
Branches = dict[str, tuple[Footprint, "Branches", tuple[int, ...]]]

#: Of each resource, whether a step wrote it, a hash of who wrote it last before, and one of those who read it since.
_Versions = dict[Resource, tuple[bool, int, int]]


#: By what a step knew when it began: what it touched, and who had touched that before.
Observed = dict[int, list[tuple[Footprint, _Versions]]]


class Path(NamedTuple):
    """The beginning of an execution."""

    #: The tasks to step.
    tasks: tuple[str, ...]
    #: How many of them have stepped in this order before.
    known: int
    #: What steps choose, by their place.
    chosen: dict[int, tuple[int, ...]]


class Move(NamedTuple):
    """One step of what is to be run from a place."""

    #: Who steps.
    name: str
    #: What the step touches.
    footprint: Footprint
    #: What it chooses.
    chosen: tuple[int, ...]
    #: True when nothing of it has to come before.
    can_begin: bool
    #: True when what it touches there is not known: this is all it ever has.
    is_guess: bool


class _Node:
    """One step of the current execution."""

    __slots__ = (
        "after",
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
        "previous",
        "races",
        "sleep",
        "story",
        "tree",
    )

    def __init__(self, sleep: Sleep, tree: Branches) -> None:
        self.name = ""
        #: Its task, its number among that task's steps, and what was chosen up to it.
        self.key: _Key = ("", 0, ())
        self.footprint: Footprint = NOTHING
        #: Who could step.
        self.enabled: tuple[str, ...] = ()
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
        #: A hash of the step with all it could know, and the sum of those of the steps up to it.
        self.story = 0
        self.after = 0


# So many observations are kept: a step that does not say all is mostly seen early.
_OBSERVATIONS = 100_000
_MASK = (1 << 64) - 1


def _anybody() -> tuple[Footprint, Branches, tuple[int, ...]]:
    return NOTHING, {}, ()


class Tree:
    """The tree of executions, as far as it is needed: the current one, and what is left to run beside it."""

    def __init__(self, declared: bool, before: Tree | None = None) -> None:
        self._footprints: Footprints = Footprints(declared) if before is None else before._footprints
        # With a tree before it, a step is taken to touch all that the same step ever touched: no label changes then.
        self._joined = before is not None
        self._nodes: list[_Node] = []
        # How many of the nodes are those of the execution before.
        self._kept = 0
        # For each resource the steps that touched it, in order: 2 * index, plus 1 for a write.
        self._users: dict[Resource, list[int]] = {}
        self._latest: dict[str, int] = {}
        # All that the n-th step of a task has ever touched.
        self._ever: dict[_Key, Footprint] = {} if before is None else before._ever
        # Those that may step and need not: the clock beside others, and who cancels a named scope.
        self._may: set[str] = set() if before is None else before._may
        # True once a step has chosen something.
        self._chooses: bool = before is not None and before._chooses
        #: True once a step has touched other things than in an earlier execution.
        self.unsteady = False
        #: True from then on, unless labels are joined: by source sets, in which nothing is planned ahead.
        self.careful = False
        #: True once a step touched different things although nothing it touched was different: it does not say all.
        self.withholds = False
        self._observed: Observed = {}
        self._observations = 0
        # The steps that may have done anything.
        self._wild: list[int] = []
        # So many of the first nodes are others' too: what they choose is chosen here, but for the last, which is this
        # tree's own but for its other branches.
        self._base = 0
        #: What is to be run from those: where, and what.
        self.found: list[tuple[int, list[Move]]] = []
        #: True when nothing is left to run.
        self.done = False
        #: The beginning of the next execution.
        self.path = Path((), 0, {})

    @property
    def again(self) -> bool:
        """Say whether the space has to be gone through again, by all that each step has touched."""
        return self.unsteady if self._joined else self.withholds

    def take_in(self, scheduler: Scheduler, offered: tuple[str, ...] | None = None) -> None:
        """Take an execution in, and find the next path; `offered` is who could step where a redundant one was ended."""
        redundant = offered is not None
        if scheduler.offers is not None or scheduler.canceller is not None:
            # Who may step and need not is no part of any plan.
            self.careful = True
        kept = self._kept
        events = Events(scheduler)
        self._read(events)
        # What a step chooses is no guess, but what follows from it is.
        self.unsteady = self.unsteady or (self._chooses and not self._joined)
        nodes = self._nodes
        if self.unsteady and not self._joined and not self.careful:
            self.careful = True
            # What was planned here rests on guesses.
            for node in nodes:
                names = (*node.tree, *node.enabled)
                node.tree = {name: _anybody() for name in names if name != node.name and name not in node.sleep}
        elif self.careful:
            for second in range(kept, len(nodes)):
                for first in nodes[second].races:
                    self._turn_round(first, second)
        elif not redundant:
            ever = self._ever
            for second in range(0 if self.unsteady else kept, len(nodes)):
                node = nodes[second]
                if node.races and (second >= kept or ever[node.key] is not node.footprint):
                    for first in node.races:
                        self._turn_round(first, second)
        if self._chooses:
            self._let_others_begin(kept + 1)
        if scheduler.offers is not None or scheduler.canceller is not None:
            self._let_others_step(events, kept, offered or ())
            if not redundant:
                self._let_time_pass_before_a_cancel(events, kept)
            if scheduler.things.timed:
                self._let_the_clock_move(events, kept)
        self._backtrack()

    def sleep_at(self, index: int) -> Sleep:
        """Give those that are asleep before step `index` of the next path."""
        return self._nodes[index].sleep if index < len(self._nodes) else {}

    def still_asleep(self, sleep: Sleep, scheduler: Scheduler, begin: int) -> Sleep:
        """Give those that sleep on after the step that began at `begin` and is the last one made."""
        end = len(scheduler.steps)
        if scheduler.rests and scheduler.rests[-1] == end:
            return {}
        name, footprint = scheduler.steps[begin][0].name, self._footprints.of(scheduler, begin, end)
        if self._joined and name not in self._may:
            # It is taken to touch all that it ever has here, too, or more would sleep than this tree says.
            events = Events(scheduler)
            mine = [at for at in range(events.count) if scheduler.steps[events.begin(at)][0].name == name]
            chosen = tuple(choice for at in mine for choice, _ in events.choices(at))
            footprint = self._footprints.joint(footprint, self._ever.get((name, len(mine) - 1, chosen), footprint))
        return _sleep_on(sleep, name, footprint)

    def need_not_step(self, name: str) -> bool:
        """Say whether `name` is one that may step and need not."""
        return name in self._may

    # ------------------------------------------------------------------ one execution

    def _read(self, events: Events) -> None:
        """Make the nodes of the new steps, and find the races they are the second step of."""
        scheduler = events.scheduler
        nodes, steps, latest, users, wild = self._nodes, scheduler.steps, self._latest, self._users, self._wild
        ever, may = self._ever, self._may
        rests = iter([*map(events.at, scheduler.rests), len(steps) + 1])
        rest, next_rest = 0, next(rests)
        for index in range(self._kept, events.count):
            while next_rest <= index:
                rest, next_rest = next_rest, next(rests)
            begin = events.begin(index)
            actor, enabled, _, _, _, causes = steps[begin]
            if index < len(nodes):
                node = nodes[index]
            else:
                node = _Node({}, {})
                nodes.append(node)
            footprint = node.footprint = self._footprints.of(scheduler, begin, events.end(index))
            if index > self._kept:
                above = nodes[index - 1]
                if above.sleep and rest != index:
                    node.sleep = _sleep_on(above.sleep, above.name, above.footprint)
            name = node.name = actor.name
            node.enabled, node.is_live = enabled, True
            if scheduler.offers is not None:
                may.update(name for name in enabled if name is CLOCK or name.startswith(CANCEL))
            choices = events.choices(index)
            node.chosen = tuple(choice for choice, _ in choices)
            if choices:
                self._choose(node, choices)
            previous = node.previous = latest.get(name, -1)
            # Nothing that was not there before a rest can be run before it.
            waits = not (rest and _could_at_rest(nodes[rest - 1], name))
            before = (1 << rest) - 1 if waits else 0
            if previous >= 0:
                before |= nodes[previous].before
                _, number, chosen = nodes[previous].key
                key = node.key = (name, number + 1, (*chosen, *node.chosen) if choices or chosen else chosen)
            else:
                key = node.key = (name, 0, node.chosen)
            is_clock = name is CLOCK and enabled[0] is CLOCK
            if name in may:
                # What it does depends on everything that may have happened.
                ever[key] = WILD
            else:
                known = ever.setdefault(key, footprint)
                if known is not footprint:
                    joint = self._footprints.joint(known, footprint)
                    # Less than before is a change too, unless all of it is taken to be touched anyway.
                    if joint is not known or not self._joined:
                        ever[key] = joint
                        self.unsteady = True
                    if self._joined:
                        footprint = node.footprint = joint
            for cause in causes:
                before |= nodes[events.at(cause)].before
            node.races = races = []
            if is_clock:
                before = (1 << index) - 1
            else:
                for other in self._dependent(footprint, index, rest):
                    if not before >> other & 1:
                        races.append(other)
                        before |= nodes[other].before
            node.before = before | 1 << index
            if not self._joined:
                self._tell(node, index, rest, [events.at(cause) for cause in causes])
            latest[name] = index
            if footprint.anything:
                wild.append(index)
            for resource, write in footprint.pairs:
                users.setdefault(resource, []).append(2 * index + write)
        del nodes[max(events.count, self._kept + 1) :]

    def _choose(self, node: _Node, choices: list[tuple[int, int]]) -> None:
        """See to it that a step chooses everything it can."""
        self._chooses = True
        chosen = node.chosen
        for place in range(node.forced, len(choices)):
            for other in reversed(range(choices[place][1])):
                begin = (*chosen[:place], other)
                if other != chosen[place] and (node.name, begin) not in node.sleep:
                    node.open.append(begin)

    def _tell(self, node: _Node, index: int, rest: int, causes: list[int]) -> None:
        """Hash what the step could know, and see whether it touched other things when it knew the same."""
        nodes, footprint = self._nodes, node.footprint
        above = nodes[index - 1].after if index else 0
        knew = hash(
            (
                node.key,
                nodes[node.previous].story if node.previous >= 0 else 0,
                nodes[rest - 1].after if rest else 0,
                *(nodes[cause].story for cause in causes),
            )
        )
        saw = {resource: self._version(resource, write) for resource, write in footprint.pairs}
        node.story = story = hash((knew, footprint, above if footprint.anything else 0, *saw.values()))
        node.after = (above + story) & _MASK
        if self.withholds or self._observations >= _OBSERVATIONS or node.name in self._may:
            return
        observed = self._observed.setdefault(knew, [])
        known = False
        for other, seen in observed:
            if other is footprint or (other.pairs == footprint.pairs and other.anything is footprint.anything):
                known = known or seen == saw
            elif self._same(other, seen, footprint, saw):
                self.withholds = True
                self._observed.clear()
                return
        if not known:
            observed.append((footprint, saw))
            self._observations += 1

    def _same(self, other: Footprint, seen: _Versions, footprint: Footprint, saw: _Versions) -> bool:
        """Say whether what a step touched once is untouched this time, as far as it goes, and it does not touch it."""
        if any(resource in saw and _tells(version, saw[resource]) for resource, version in seen.items()):
            return False
        if other.anything is not footprint.anything:
            # Where it says nothing it looked at nothing that is reported; so what it went by it never reports.
            return True
        # What decides may be where a task is parked, which shows in what is touched there and in nothing else.
        missing = [(resource, version) for resource, version in seen.items() if resource not in saw]
        return bool(missing) and not any(
            _tells(version, self._version(resource, version[0])) for resource, version in missing
        )

    def _version(self, resource: Resource, write: bool) -> tuple[bool, int, int]:
        """Give whether it is written, a hash of who wrote it last, and one of those who read it since."""
        nodes, last, readers = self._nodes, self._wild[-1] if self._wild else -1, 0
        for entry in reversed(self._users.get(resource, ())):
            if entry >> 1 <= last:
                break
            if entry & 1:
                last = entry >> 1
                break
            readers += nodes[entry >> 1].story
        return write, nodes[last].story if last >= 0 else 0, readers & _MASK if write else 0

    def _dependent(self, footprint: Footprint, index: int, rest: int) -> list[int]:
        """Give the earlier steps that could be in a race with a step, the latest first."""
        wild, users = self._wild, self._users
        if footprint.anything:
            return list(range(index - 1, (wild[-1] if wild else rest) - 1, -1))
        found: list[int] = []
        for resource, write in footprint.pairs:
            entries = users.get(resource)
            if not entries:
                continue
            if write:
                for entry in reversed(entries):
                    found.append(entry >> 1)
                    if entry & 1:
                        break
            else:
                for entry in reversed(entries):
                    if entry & 1:
                        found.append(entry >> 1)
                        break
        if wild:
            found.append(wild[-1])
        if len(found) > 1:
            found.sort(reverse=True)
        return found

    # ------------------------------------------------------------------ turning a race round

    def _turn_round(self, first: int, second: int) -> None:
        """See to it that `second` is run before `first`, from the place where `first` was."""
        nodes = self._nodes
        place, bit = nodes[first], 1 << first
        sequence = [
            index for index in range(first + 1, len(nodes)) if index != second and not nodes[index].before & bit
        ]
        sequence.append(second)
        # Who need not step at all is said to step later.
        self._plan(first, sequence, second, place.name if place.name in self._may else "")

    def _plan(self, first: int, sequence: list[int], second: int = -1, finally_: str = "") -> None:
        """See to it that `sequence` is run from where `first` was, and then a step of `finally_`.

        What `second` would touch there is not known: all that it ever has, then.
        """
        nodes = self._nodes
        place = nodes[first]
        if finally_:
            # Of its step nothing is known.
            phantom = _Node({}, {})
            phantom.name, phantom.key, phantom.footprint = finally_, (finally_, -1, ()), WILD
            phantom.before = (2 << len(nodes)) - 1
            self._ever[phantom.key] = WILD
            sequence.append(len(nodes))
            nodes.append(phantom)
        if self.careful:
            moves = self._moves(sequence, second)
            if first < self._base:
                self.found.append((first, moves))
            else:
                let_one_begin(place.sleep, place.tree, (), place.enabled, moves)
        elif all(self._starts(who, footprint, sequence, second) is None for who, footprint in place.sleep.items()):
            self._insert(place, sequence, second)
        if finally_:
            nodes.pop()

    def _moves(self, sequence: list[int], second: int) -> list[Move]:
        nodes = self._nodes
        within = _mask(sequence)
        moves = []
        for index in sequence:
            node = nodes[index]
            footprint = self._ever[node.key] if index == second else node.footprint
            can_begin = not node.before & within & ~(1 << index)
            moves.append(Move(node.name, footprint, node.chosen, can_begin, index == second))
        return moves

    def _let_others_begin(self, begin: int) -> None:
        """Where some values of a step sleep, and a plan let it be the first, let all others step, too."""
        for node in self._nodes[begin:]:
            if any(type(who) is tuple and who[0] == node.name for who in node.sleep):
                for name in node.enabled:
                    if name != node.name and name not in self._may and name not in node.sleep:
                        node.tree.setdefault(name, _anybody() if self.careful else (WILD, {}, ()))

    def _let_others_step(self, events: Events, kept: int, offered: tuple[str, ...]) -> None:
        """Let who could step and did not do so where it last could."""
        nodes, may, canceller = self._nodes, self._may, events.scheduler.canceller
        rests = set(map(events.at, events.scheduler.rests))
        for index in range(kept, len(nodes)):
            node = nodes[index]
            is_last = index + 1 == len(nodes)
            after = offered if is_last else nodes[index + 1].enabled
            idle = after[:1] == (CLOCK,) or index + 1 in rests
            cancels = self._cancels(node, events.scheduler)
            for name in node.enabled:
                if (
                    (name in may or (name == canceller and is_last))
                    and name != node.name
                    and (name not in after or (name == CLOCK and idle))
                    and name not in node.sleep
                    and name not in node.tree
                    and not name == node.enabled[0] == CLOCK
                    # Of several scopes one is cancelled: the others are where none was.
                    and not (cancels and name.startswith(CANCEL))
                ):
                    node.tree[name] = (WILD, {}, ())

    def _let_time_pass_before_a_cancel(self, events: Events, kept: int) -> None:
        """Time passed, or nothing could happen any more, right after a cancel: that could have come before it."""
        nodes, scheduler = self._nodes, events.scheduler
        cancels = (index for index, node in enumerate(nodes) if self._cancels(node, scheduler))
        if (cancel := next(cancels, -1)) < 0:
            return
        rests = [*map(events.at, scheduler.rests), *([len(nodes)] if isinstance(scheduler.error, Deadlock) else [])]
        rest = min((rest for rest in rests if rest > cancel), default=-1)
        if rest > kept and not any(nodes[index].before >> cancel & 1 for index in range(cancel + 1, rest)):
            self._let_time_pass_before(cancel, rest)

    def _cancels(self, node: _Node, scheduler: Scheduler) -> bool:
        return node.name == scheduler.canceller or node.name.startswith(CANCEL)

    def _let_the_clock_move(self, events: Events, kept: int) -> None:
        """Where nothing could run any more, the clock could have moved while somebody still could.

        A step that brings a deadline and waits for it may be the last that could run, and then the clock could never
        move beside others; but it could if somebody else were run later.
        """
        nodes, scheduler = self._nodes, events.scheduler
        begin = 0
        for rest in sorted(set(map(events.at, scheduler.rests))):
            # An idle clock is the last step before its rest.
            end = rest - 1 if nodes[rest - 1].name == nodes[rest - 1].enabled[0] == CLOCK else rest
            if rest > kept:
                later = 0
                for first in reversed(range(begin, end)):
                    if not later >> first & 1 and nodes[first].name not in self._may and first + 1 < end:
                        self._let_time_pass_before(first, end)
                    later |= nodes[first].before
            begin = rest

    def _let_time_pass_before(self, first: int, rest: int) -> None:
        """Let time pass before `first`, on which nothing depends that comes before `rest`."""
        self._plan(first, list(range(first + 1, rest)), finally_=CLOCK)

    def _starts(self, who: Any, footprint: Footprint, sequence: list[int], second: int) -> int | None:
        """Say where in `sequence` a step of `who` could be taken out and put first: -1 for beside it, None for no.

        What the step touches is known from when it was run here, which `sequence` may have wrong; `second` is taken to
        touch all that it ever has.
        """
        nodes = self._nodes
        name, chosen = (who, None) if type(who) is str else who
        for index in sequence:
            node = nodes[index]
            if node.name == name:
                return index if chosen is None or chosen == node.chosen else None
            if footprint.conflicts_with(self._ever[node.key] if index == second else node.footprint):
                return None
        # Beside it only where it is certain to step, and to choose this, some day.
        return -1 if chosen is None and name not in self._may else None

    def _insert(self, place: _Node, sequence: list[int], second: int) -> None:
        nodes, tree = self._nodes, place.tree
        at_root = True
        while tree:
            within = _mask(sequence)
            for name, (footprint, below, chosen) in tree.items():
                at = self._starts(name, footprint, sequence, second)
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
            tree[node.name] = (WILD if node.name in self._may else node.footprint, below, node.chosen)
            tree = below

    # ------------------------------------------------------------------ the next execution

    def _backtrack(self) -> None:
        """Forget the steps back to the last place where something is left to run."""
        nodes = self._nodes
        while nodes:
            node = nodes[-1]
            if node.is_live:
                self._forget(node)
            if node.open:
                break
            if len(nodes) <= self._base:
                self.done = True
                return
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
        kept = self._kept = len(nodes) - 1
        tasks = [node.name for node in nodes[:-1]]
        chosen = (
            {index: above.chosen for index, above in enumerate(nodes[:-1]) if above.chosen} if self._chooses else {}
        )
        if node.open:
            begin = node.open.pop()
            tasks.append(node.name)
            chosen[kept], node.forced = begin, len(begin)
            self.path = Path(tuple(tasks), kept, chosen)
            return
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
            nodes.append(_Node({}, below))
            tree = below
        self.path = Path(tuple(tasks), kept, chosen)

    def _let_sleep(self, node: _Node) -> None:
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
                everything = self._footprints.joint(everything, footprint)
        sleep[name] = everything

    # ------------------------------------------------------------------ in parts

    def be_careful(self) -> None:
        """Guess nothing: another tree may know more.  Call it before anything was taken in."""
        self.careful = True

    def share(self) -> tuple[Tree, list[tuple[Sleep, Branches, tuple[str, ...]]]] | None:
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
            sleeper = _Node(dict(node.sleep), {})
            sleeper.name, sleeper.done, sleeper.footprint = node.name, dict(node.done), node.footprint
            sleeper.chosen, sleeper.is_live = node.chosen, True
            self._let_sleep(sleeper)
            given.append((sleeper.sleep, node.tree, node.enabled))
            node.tree = {}
        self._base = index + 1
        return before, given

    def branch(self, index: int, name: str, sleep: Sleep) -> Tree:
        """Give a tree of what begins as this does up to node `index`, and then with a step of `name`."""
        tree = self.copy()
        nodes = tree._nodes
        while len(nodes) > index:
            node = nodes.pop()
            if node.is_live:
                tree._forget(node)
        node = _Node(sleep, {})
        node.name = name
        nodes.append(node)
        tree._kept, tree._base, tree.done = index, index + 1, False
        tree.path = Path(
            (*(above.name for above in nodes[:-1]), name),
            index,
            {place: above.chosen for place, above in enumerate(nodes[:-1]) if above.chosen},
        )
        return tree

    def copy(self) -> Tree:
        """Give another one that is the same."""
        made: Tree = pickle.loads(pickle.dumps(self))
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

    def learn_from(self, other: Tree) -> None:
        """Take over what `other` knows of all steps."""
        for key, footprint in other._ever.items():
            known = self._ever.get(key)
            self._ever[key] = footprint if known is None else self._footprints.joint(known, footprint)
        self._may |= other._may
        self._chooses |= other._chooses
        self.withholds |= other.withholds

    def __getstate__(self) -> dict[str, Any]:
        # What was observed is compared within one process: hashes mean nothing in another one.
        return {**self.__dict__, "_observed": {}, "_observations": 0}

    def observe_with(self, observed: Observed) -> None:
        """Compare what is observed with what other trees in this process have."""
        self._observed, self._observations = observed, len(observed)

    def _forget(self, node: _Node) -> None:
        node.is_live = False
        node.done[node.chosen] = node.footprint
        if node.previous >= 0:
            self._latest[node.name] = node.previous
        else:
            del self._latest[node.name]
        if node.footprint.anything:
            self._wild.pop()
        for resource, _ in node.footprint.pairs:
            self._users[resource].pop()


def let_one_begin(
    sleep: Sleep, tree: Branches, begun: Container[str], enabled: tuple[str, ...], moves: list[Move]
) -> None:
    """See to it that one of those that can begin `moves` does, unless somebody who sleeps or has begun is one.

    That somebody could be put first because nothing of it is in the way is no reason: what the others touch is a guess.
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
        tree[names[0]] = _anybody()


def _could_at_rest(node: _Node, name: str) -> bool:
    """Say whether `name` could have stepped instead of the clock, when it moved because nothing else could happen."""
    return node.name == node.enabled[0] == CLOCK and name in node.enabled


def _sleep_on(sleep: Sleep, name: str, footprint: Footprint) -> Sleep:
    """Give those that sleep on after a step."""
    return {
        who: touches
        for who, touches in sleep.items()
        if who != name and not touches.conflicts_with(footprint) and (type(who) is str or who[0] != name)
    }


def _tells(one: tuple[bool, int, int], other: tuple[bool, int, int]) -> bool:
    """Say whether two steps could see a difference in something both touched; only who writes sees the readers."""
    return one[1] != other[1] or (one[0] and other[0] and one[2] != other[2])


def _mask(indices: list[int]) -> int:
    mask = 0
    for index in indices:
        mask |= 1 << index
    return mask
