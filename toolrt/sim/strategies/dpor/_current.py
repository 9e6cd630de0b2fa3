"""The execution that the reduction runs now: a node for each step, what happens before it, and its races.

Theory.  A race is a pair of dependent steps of two tasks with nothing between them that orders them.  What happens
before a step is kept as a bit for each earlier step; a race is found by asking the latest that touched what it touches.
A resource's latest entry says who wrote last, so no step looks back over the readers before it unless it writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from toolrt.probe import Resource
from toolrt.sim._paths import CANCEL, CLOCK, DEADLINE, PROCESS, REAL, THREAD
from toolrt.sim.strategies.dpor._node import Key, Node, Sleep, could_at_rest, sleep_on
from toolrt.sim.strategies.dpor._steps import WILD, Events, Footprint, Footprints, number_of
from toolrt.sim.strategies.dpor._unordered import Pair, UnorderedPairs
from toolrt.sim.strategies.dpor._witness import Observed, Version, Witness

if TYPE_CHECKING:
    from toolrt.sim.engine._record import ExecutionRecord

# What steps whenever it likes, also in the middle of a pass.
_BESIDE = (DEADLINE, REAL, THREAD, PROCESS)

_MASK = (1 << 64) - 1

#: A number for each task.
label_of = lru_cache(4096)(number_of)

#: A step that touched a resource: its index; the last write up to it, or a later step that may have done anything; and
#: the sum of the stories of all that have read since.  A write is its own last write.
Use = tuple[int, int, int]


class CurrentExecution:
    """The execution that was taken in last, and all that is known of steps.

    Args:
        declared: True: a step that reported nothing touched nothing.
        before: the tree of an earlier pass, whose knowledge of steps is taken over: then a step is taken to touch all
            that the same step ever touched.
    """

    def __init__(self, declared: bool, before: CurrentExecution | None = None) -> None:
        self.footprints: Footprints = Footprints(declared) if before is None else before.footprints
        # With a tree before it, a step is taken to touch all that the same step ever touched: no label changes then.
        self.joined = before is not None
        self.nodes: list[Node] = []
        # How many of the nodes are those of the execution before.
        self.kept = 0
        # For each resource the steps that touched it, in order.
        self._users: dict[Resource, list[Use]] = {}
        self._latest: dict[str, int] = {}
        # All that the n-th step of a task has ever touched.
        self.ever: dict[Key, Footprint] = {} if before is None else before.ever
        # The optional steps: the clock beside others, and the cancel of a named scope.
        self.may: set[str] = set() if before is None else before.may
        # True once a step has chosen something.
        self.chooses: bool = before is not None and before.chooses
        #: True once a step has touched other things than in an earlier execution.
        self.unsteady = False
        #: True once a step touched different things although nothing it touched was different: it does not say all.
        self.withholds = False
        self._witness = Witness(self._version)
        #: The pairs of steps where one order was run for both.
        self.unordered: UnorderedPairs = UnorderedPairs()
        # The steps that may have done anything.
        self._wild: list[int] = []

    @property
    def again(self) -> bool:
        """Say whether the space has to be searched again, by all that each step has touched."""
        return self.unsteady if self.joined else self.withholds

    def sleep_at(self, index: int) -> Sleep:
        """Give those that are asleep before step `index` of the next path."""
        return self.nodes[index].sleep if index < len(self.nodes) else {}

    def still_asleep(self, sleep: Sleep, record: ExecutionRecord, begin: int) -> Sleep:
        """Give those that sleep on after the step that began at `begin` and is the last one made."""
        end = len(record.steps)
        if (record.rests and record.rests[-1] == end) or (record.passes and record.passes[-1] == end):
            return {}
        name, footprint = record.steps[begin][0].name, self.footprints.of(record, begin, end)
        if self.joined and name not in self.may:
            # It is taken to touch all that it ever has here, too, or more would sleep than this tree says.
            events = Events(record)
            mine = [at for at in range(events.count) if record.steps[events.begin(at)][0].name == name]
            chosen = tuple(choice for at in mine for choice, _ in events.choices(at))
            footprint = self.footprints.joint(footprint, self.ever.get((name, len(mine) - 1, chosen), footprint))
        return sleep_on(sleep, name, footprint)

    def need_not_step(self, name: str) -> bool:
        """Say whether `name` is one that may step and need not."""
        return name in self.may

    # ------------------------------------------------------------------ one execution

    def read(self, events: Events) -> None:
        """Make the nodes of the new steps, and find the races they are the second step of."""
        record = events.record
        nodes, steps, latest, users, wild = self.nodes, record.steps, self._latest, self._users, self._wild
        ever, may, footprints, joined = self.ever, self.may, self.footprints, self.joined
        kept, whole, has_extra = self.kept, events.are_whole, record.has_optional
        # No race goes across a rest, nor across the begin of a pass; only a rest is something that a step could know.
        begins = sorted({*record.rests, *record.passes}) if record.passes else record.rests
        rests = iter([*map(events.at, begins), len(steps) + 1])
        rest, next_rest, idle = 0, next(rests), 0
        in_passes = bool(record.passes)
        idle_at = set(map(events.at, record.rests))
        for index in range(kept, events.count):
            while next_rest <= index:
                rest, next_rest = next_rest, next(rests)
                if rest in idle_at:
                    idle = rest
            begin = index if whole else events.begin(index)
            actor, enabled, pick, _, _, causes = steps[begin]
            if index < len(nodes):
                node = nodes[index]
            else:
                node = Node({}, {})
                nodes.append(node)
            footprint = node.footprint = footprints.of(record, begin, begin + 1 if whole else events.end(index))
            if index > kept:
                above = nodes[index - 1]
                if above.sleep and rest != index:
                    node.sleep = sleep_on(above.sleep, above.name, above.footprint)
            name = node.name = actor.name
            node.enabled, node.pick, node.is_live = enabled, pick, True
            if has_extra:
                may.update(
                    name
                    for name in enabled
                    if name is CLOCK or name.startswith(CANCEL) or (in_passes and name.startswith(_BESIDE))
                )
            previous = node.previous = latest.get(name, -1)
            # Nothing that was not there before a rest can be run before it.
            waits = rest and not could_at_rest(nodes[rest - 1], name)
            before = (1 << rest) - 1 if waits else 0
            chosen: tuple[int, ...] = ()
            number = 0
            if previous >= 0:
                before |= nodes[previous].before
                _, number, chosen = nodes[previous].key
                number += 1
            node.chosen = ()
            if not whole:
                if choices := events.choices(index):
                    node.chosen = tuple(choice for choice, _ in choices)
                    self._choose(node, choices)
                    chosen = (*chosen, *node.chosen)
                causes = tuple(map(events.at, causes))
            key = node.key = (name, number, chosen)
            if name in may:
                # What it does depends on everything that may have happened.
                ever[key] = WILD
            else:
                known = ever.setdefault(key, footprint)
                if known is not footprint:
                    joint = footprints.joint(known, footprint)
                    # Less than before is a change too, unless all of it is taken to be touched anyway.
                    if joint is not known or not joined:
                        ever[key] = joint
                        self.unsteady = True
                    if joined:
                        footprint = node.footprint = joint
            if record.yields and previous >= 0:
                before |= self._until_woken(events, previous, index, rest)
            for cause in causes:
                before |= nodes[cause].before
            node.races = races = []
            others, uses = self._look_back(footprint, index, rest)
            if name is CLOCK and enabled[0] is CLOCK:
                before = (1 << index) - 1
            else:
                for other in others:
                    if not before >> other & 1:
                        races.append(other)
                        before |= nodes[other].before
            node.before = before | 1 << index
            self._tell(node, index, idle, causes, uses)
            latest[name] = index
            if footprint.anything:
                wild.append(index)
            for (resource, write), (_, written, readers) in zip(footprint.pairs, uses, strict=True):
                use = (index, index, 0) if write else (index, written, readers + node.story)
                if (entries := users.get(resource)) is None:
                    users[resource] = [use]
                else:
                    entries.append(use)
        del nodes[max(events.count, kept + 1) :]
        self.unordered.note(nodes, kept, events.count, record)

    def _until_woken(self, events: Events, previous: int, index: int, rest: int) -> int:
        """Give the steps that come before the step `index` because its task had yielded after its step `previous`.

        The first that may have changed what the task saw in its round let it go on.
        """
        nodes, record = self.nodes, events.record
        steps = record.yields.get(events.end(previous) - 1)
        if steps is None or rest > previous:
            return 0
        saw = self.footprints.of_all(record, steps)
        for at in range(previous + 1, index):
            if events.begin(at) not in record.quiet and nodes[at].footprint.conflicts_with(saw):
                return nodes[at].before
        return (1 << index) - 1

    def _choose(self, node: Node, choices: list[tuple[int, int]]) -> None:
        """Plan every value that a step can choose."""
        self.chooses = True
        chosen = node.chosen
        for place in range(node.forced, len(choices)):
            for other in reversed(range(choices[place][1])):
                begin = (*chosen[:place], other)
                if other != chosen[place] and (node.name, begin) not in node.sleep:
                    node.open.append(begin)

    def _tell(self, node: Node, index: int, rest: int, causes: tuple[int, ...], uses: list[Use]) -> None:
        """Hash what the step could know, and see whether it touched other things when it knew the same."""
        nodes, footprint = self.nodes, node.footprint
        above = nodes[index - 1].after if index else 0
        versions: list[Version] = [
            (write, nodes[last].story if last >= 0 else 0, readers & _MASK if write else 0)
            for (_, write), (_, last, readers) in zip(footprint.pairs, uses, strict=True)
        ]
        knew = hash(
            (
                label_of(node.name),
                *node.key[1:],
                nodes[node.previous].story if node.previous >= 0 else 0,
                nodes[rest - 1].after if rest else 0,
                *[nodes[cause].story for cause in causes],
            )
        )
        node.story = story = hash((knew, footprint.label, above if footprint.anything else 0, *versions))
        node.after = (above + story) & _MASK
        if not self.joined and not self.withholds and node.name not in self.may:
            self.withholds = self._witness.withholds(knew, story, footprint, versions)

    def _version(self, resource: Resource, write: bool) -> Version:
        """Give whether it is written, a hash of its last writer, and one of its readers since."""
        _, last, readers = self._last_use(resource)
        return write, self.nodes[last].story if last >= 0 else 0, readers & _MASK if write else 0

    def _last_use(self, resource: Resource) -> Use:
        """Give the last use of `resource`, as far as a step that may have done anything does not hide it."""
        last_wild = self._wild[-1] if self._wild else -1
        entries = self._users.get(resource)
        return entries[-1] if entries and entries[-1][0] > last_wild else (last_wild, last_wild, 0)

    def _look_back(self, footprint: Footprint, index: int, rest: int) -> tuple[list[int], list[Use]]:
        """Give the earlier steps that could be in a race with it, latest first, and the last use of what it touches."""
        wild = self._wild
        last_wild = wild[-1] if wild else -1
        uses = [self._last_use(resource) for resource, _ in footprint.pairs]
        if footprint.anything:
            return list(range(index - 1, (last_wild if wild else rest) - 1, -1)), uses
        found: list[int] = []
        for (resource, write), (at, last, _) in zip(footprint.pairs, uses, strict=True):
            if write and at > last:
                for reader, _, _ in reversed(self._users[resource]):
                    if reader <= last:
                        break
                    found.append(reader)
            if last > last_wild:
                found.append(last)
        if wild:
            found.append(last_wild)
        if len(found) > 1:
            found.sort(reverse=True)
        return found, uses

    def forget(self, node: Node) -> None:
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

    # ------------------------------------------------------------------ with others

    def learn_from(self, other: CurrentExecution) -> None:
        """Take over what `other` knows of all steps."""
        for key, footprint in other.ever.items():
            known = self.ever.get(key)
            self.ever[key] = footprint if known is None else self.footprints.joint(known, footprint)
        self.may |= other.may
        self.chooses |= other.chooses
        self.withholds |= other.withholds
        self.unordered.add(other.unordered)

    def let_depend(self, pairs: Mapping[Pair, str]) -> None:
        """Take the two steps of each pair to write one resource in common, wherever they are."""
        for (one, other), variable in pairs.items():
            common = Footprint({("unreported", variable): True}, False)
            for key, _ in (one, other):
                self.ever[key] = self.footprints.joint(self.ever[key], common)

    def observe_with(self, observed: Observed) -> None:
        """Compare what is observed with what other trees in this process have."""
        self._witness.observe_with(observed)

    def __getstate__(self) -> dict[str, Any]:
        # What was observed is compared within one process: hashes mean nothing in another one.
        return {name: value for name, value in self.__dict__.items() if name != "_witness"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._witness = Witness(self._version)
