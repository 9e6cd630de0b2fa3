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

That a step touches different things is no matter as long as it reports what decides.  One that touches different
things when it knows the same, and nothing that it touches was touched differently before, *withholds* something.
Labels of such steps cannot be relied on.  Not every one is found: what decides is compared where both touch it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolrt.probe import Resource
from toolrt.sim._trio_internals_things import ANYTHING

if TYPE_CHECKING:
    from toolrt.sim._hook import Scheduler

__all__ = ["Footprint", "Tree"]


class Footprint:
    """What one step touched."""

    __slots__ = ("anything", "pairs", "reads", "writes")

    def __init__(self, pairs: dict[Resource, bool], anything: bool) -> None:
        #: Each resource, and whether it was written.
        self.pairs = tuple(pairs.items())
        self.reads = frozenset(resource for resource, write in pairs.items() if not write)
        self.writes = frozenset(resource for resource, write in pairs.items() if write)
        #: True when nobody knows.
        self.anything = anything

    def conflicts_with(self, other: Footprint) -> bool:
        """Say whether the order of the two steps matters."""
        return (
            self.anything
            or other.anything
            or not self.writes.isdisjoint(other.writes)
            or not self.writes.isdisjoint(other.reads)
            or not self.reads.isdisjoint(other.writes)
        )


class Footprints:
    """Makes the footprints of an execution's steps; equal ones are one object."""

    def __init__(self, declared: bool) -> None:
        self._declared = declared
        self._known: dict[Any, Footprint] = {}
        self._all: dict[Any, Footprint] = {}
        self._joint: dict[tuple[Footprint, Footprint], Footprint] = {}

    def of(self, scheduler: Scheduler, index: int) -> Footprint:
        """Give what step `index` touched."""
        touched = scheduler.steps[index][3]
        implied = scheduler.implied.get(index, ())
        scope = scheduler.things.scope_of(scheduler.begun_under[index])
        key = (touched, implied, scope)
        found = self._known.get(key)
        if found is None:
            pairs: dict[Resource, bool] = {} if scope is None else {scope: False}
            for resource, write in (*touched, *implied):
                pairs[resource] = write or pairs.get(resource, False)
            anything = pairs.pop(ANYTHING, False) or not (touched or self._declared)
            found = self._known[key] = self._one(pairs, anything)
        return found

    def _one(self, pairs: dict[Resource, bool], anything: bool) -> Footprint:
        key = (frozenset(pairs.items()), anything)
        found = self._all.get(key)
        if found is None:
            found = self._all[key] = Footprint(pairs, anything)
        return found

    def joint(self, one: Footprint, other: Footprint) -> Footprint:
        """Give one that touches what either touches."""
        found = self._joint.get((one, other))
        if found is None:
            pairs = dict(one.pairs)
            for resource, write in other.pairs:
                pairs[resource] = write or pairs.get(resource, False)
            found = self._joint[one, other] = self._one(pairs, one.anything or other.anything)
        return found


#: A wakeup tree: for each task that may step first, what it is taken to touch and the tree after its step.
Branches = dict[str, tuple[Footprint, "Branches"]]


#: Of each resource, whether a step wrote it, a hash of who wrote it last before, and one of those who read it since.
_Versions = dict[Resource, tuple[bool, int, int]]


class _Node:
    """One step of the current execution."""

    __slots__ = ("after", "before", "footprint", "key", "name", "previous", "races", "sleep", "story", "tree")

    def __init__(self, sleep: dict[str, Footprint], tree: Branches) -> None:
        self.name = ""
        #: Its task, and its number among that task's steps.
        self.key: tuple[str, int] = ("", 0)
        self.footprint: Footprint = _NOTHING
        #: The steps that happen before it, and itself, as a bit each.
        self.before = 0
        #: The earlier steps it is in a race with.
        self.races: list[int] = []
        #: The same task's step before, or -1.
        self.previous = -1
        #: The tasks whose next step has been dealt with, with what it touches.
        self.sleep = sleep
        #: What else is to be run from here.
        self.tree = tree
        #: A hash of the step with all it could know, and the sum of those of the steps up to it.
        self.story = 0
        self.after = 0


_NOTHING = Footprint({}, False)

# So many observations are kept: a step that does not say all is mostly seen early.
_OBSERVATIONS = 100_000
_MASK = (1 << 64) - 1


def _anybody() -> tuple[Footprint, Branches]:
    return _NOTHING, {}


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
        self._ever: dict[tuple[str, int], Footprint] = {} if before is None else before._ever
        #: True once a step has touched other things than in an earlier execution.
        self.unsteady = False
        #: True from then on, unless labels are joined: by source sets, in which nothing is planned ahead.
        self.careful = False
        #: True once a step touched different things although nothing it touched was different: it does not say all.
        self.withholds = False
        # By what a step knew when it began: what it touched, and who had touched that before.
        self._observed: dict[int, list[tuple[Footprint, _Versions]]] = {}
        self._observations = 0
        # The steps that may have done anything.
        self._wild: list[int] = []
        #: True when nothing is left to run.
        self.done = False
        #: The tasks to step in the next execution, and how many of them have stepped in this order before.
        self.path: tuple[tuple[str, ...], int] = ((), 0)

    @property
    def again(self) -> bool:
        """Say whether the space has to be gone through again, by all that each step has touched."""
        return self.unsteady if self._joined else self.withholds

    def take_in(self, scheduler: Scheduler, redundant: bool) -> None:
        """Take an execution in, and find the next path."""
        kept = self._kept
        self._read(scheduler)
        nodes = self._nodes
        if self.unsteady and not self._joined and not self.careful:
            self.careful = True
            # What was planned here rests on guesses.
            for index, node in enumerate(nodes):
                names = (*node.tree, *scheduler.steps[index][1])
                node.tree = {name: _anybody() for name in names if name != node.name and name not in node.sleep}
        elif self.careful:
            for second in range(kept, len(nodes)):
                for first in nodes[second].races:
                    self._let_begin(first, second)
        elif not redundant:
            ever = self._ever
            for second in range(0 if self.unsteady else kept, len(nodes)):
                node = nodes[second]
                if node.races and (second >= kept or ever[node.key] is not node.footprint):
                    for first in node.races:
                        self._turn_round(first, second)
        self._backtrack()

    def sleep_at(self, index: int) -> dict[str, Footprint]:
        """Give the tasks that are asleep before step `index` of the next path."""
        return self._nodes[index].sleep if index < len(self._nodes) else {}

    def still_asleep(
        self, sleep: dict[str, Footprint], scheduler: Scheduler | None, index: int
    ) -> dict[str, Footprint]:
        """Give the tasks that sleep on after step `index`."""
        assert scheduler is not None
        name, footprint = scheduler.steps[index][0].name, self._footprints.of(scheduler, index)
        return {
            task: touches for task, touches in sleep.items() if task != name and not touches.conflicts_with(footprint)
        }

    # ------------------------------------------------------------------ one execution

    def _read(self, scheduler: Scheduler) -> None:
        """Make the nodes of the new steps, and find the races they are the second step of."""
        nodes, steps, latest, users, wild = self._nodes, scheduler.steps, self._latest, self._users, self._wild
        ever = self._ever
        rests = iter([*scheduler.rests, len(steps) + 1])
        rest, next_rest = 0, next(rests)
        for index in range(self._kept, len(steps)):
            while next_rest <= index:
                rest, next_rest = next_rest, next(rests)
            actor, _, _, _, _, causes = steps[index]
            if index < len(nodes):
                node = nodes[index]
            else:
                node = _Node({}, {})
                nodes.append(node)
            if index > self._kept:
                above = nodes[index - 1]
                if above.sleep:
                    node.sleep = {
                        name: footprint
                        for name, footprint in above.sleep.items()
                        if name != above.name and not footprint.conflicts_with(above.footprint)
                    }
            name = node.name = actor.name
            footprint = node.footprint = self._footprints.of(scheduler, index)
            previous = node.previous = latest.get(name, -1)
            before = (1 << rest) - 1
            if previous >= 0:
                before |= nodes[previous].before
                key = node.key = (name, nodes[previous].key[1] + 1)
            else:
                key = node.key = (name, 0)
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
                before |= nodes[cause].before
            node.races = races = []
            for other in self._dependent(footprint, index, rest):
                if not before >> other & 1:
                    races.append(other)
                    before |= nodes[other].before
            node.before = before | 1 << index
            if not self._joined:
                self._tell(node, index, rest, causes)
            latest[name] = index
            if footprint.anything:
                wild.append(index)
            for resource, write in footprint.pairs:
                users.setdefault(resource, []).append(2 * index + write)
        del nodes[len(steps) :]

    def _tell(self, node: _Node, index: int, rest: int, causes: tuple[int, ...]) -> None:
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
        if self.withholds or self._observations >= _OBSERVATIONS:
            return
        observed = self._observed.setdefault(knew, [])
        known = False
        for other, seen in observed:
            if other is footprint:
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
        place = nodes[first]
        bit = 1 << first
        sequence = [
            index for index in range(first + 1, len(nodes)) if index != second and not nodes[index].before & bit
        ]
        sequence.append(second)
        for name, footprint in place.sleep.items():
            if self._starts(name, footprint, sequence) is not None:
                return
        self._insert(place.tree, sequence)

    def _let_begin(self, first: int, second: int) -> None:
        """See to it that one of those that can begin what comes before `second` without `first` does."""
        nodes = self._nodes
        place = nodes[first]
        bit = 1 << first
        between = [index for index in range(first + 1, second) if not nodes[index].before & bit]
        within = _mask(between)
        names = [nodes[index].name for index in between if not nodes[index].before & within & ~(1 << index)]
        if not names:
            names.append(nodes[second].name)
        if not any(name in place.tree or name in place.sleep for name in names):
            place.tree[names[0]] = _anybody()

    def _starts(self, name: str, footprint: Footprint, sequence: list[int]) -> int | None:
        """Say where in `sequence` a step of `name` could be taken out and put first: -1 for beside it, None for no.

        What the step touches is known from when it was run here, which `sequence` may have wrong.
        """
        nodes = self._nodes
        last = sequence[-1] if sequence else -1
        for index in sequence:
            node = nodes[index]
            if node.name == name:
                return index
            # What the last one would touch without the first of the race is not known: all that it ever has, then.
            if footprint.conflicts_with(self._ever[node.key] if index == last else node.footprint):
                return None
        return -1

    def _insert(self, tree: Branches, sequence: list[int]) -> None:
        nodes = self._nodes
        at_root = True
        while tree:
            within = _mask(sequence)
            for name, (footprint, below) in tree.items():
                at = self._starts(name, footprint, sequence)
                if at is None or (at >= 0 and nodes[at].before & within & ~(1 << at)):
                    continue
                if at >= 0:
                    sequence.remove(at)
                tree, at_root = below, False
                break
            else:
                break
        if not tree and not at_root:
            # A leaf: whatever follows it will be run.
            return
        for index in sequence:
            below = {}
            tree[nodes[index].name] = (nodes[index].footprint, below)
            tree = below

    # ------------------------------------------------------------------ the next execution

    def _backtrack(self) -> None:
        """Forget the steps back to the last place where something is left to run."""
        nodes = self._nodes
        while nodes:
            node = nodes[-1]
            self._forget(node)
            node.sleep[node.name] = node.footprint
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
        tree = node.tree
        while True:
            name = next(iter(tree))
            _, below = tree.pop(name)
            tasks.append(name)
            if not below:
                break
            nodes.append(_Node({}, below))
            tree = below
        self.path = tuple(tasks), kept

    def _forget(self, node: _Node) -> None:
        if node.previous >= 0:
            self._latest[node.name] = node.previous
        else:
            del self._latest[node.name]
        if node.footprint.anything:
            self._wild.pop()
        for resource, _ in node.footprint.pairs:
            self._users[resource].pop()


def _tells(one: tuple[bool, int, int], other: tuple[bool, int, int]) -> bool:
    """Say whether two steps could see a difference in something both touched; only who writes sees the readers."""
    return one[1] != other[1] or (one[0] and other[0] and one[2] != other[2])


def _mask(indices: list[int]) -> int:
    mask = 0
    for index in indices:
        mask |= 1 << index
    return mask
