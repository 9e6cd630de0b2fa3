"""Tests the independence that the reduction believes in, by what the program does in another order.

Rules.
- A *sample* is one random schedule.  Its steps are put into another order that the reduction takes for the same trace:
  of the steps that nothing orders, the later ones come first.  When that order has another outcome, some step touches
  what it does not report.  Which one is found by halving: between the two orders lie orders that differ by two
  neighbours each, and one such exchange brings the other outcome.  A sample with an outcome that no trace had
  contradicts the reduction, too.
- A *turned* trace is one that the search has run, put into another order in the same way.  Beside the outcome, what the
  program can reach before its last step is compared (`_reachable`); what differs when the first order is run again is
  no difference.  Where the rest differs, the two steps do not commute: they get a resource in common (`Unlike`).

Theory.  Two executions that differ in the order of independent steps are one Mazurkiewicz trace, and have one outcome.
The order that turns round as many pairs as it can is the one in which an unreported conflict shows most likely: one
sample in which the two steps are not ordered is then enough, whatever they did in the sample.

Limits.  What a sample does that does not show in its outcome is not seen; with a cancel at any moment, or a clock that
may move early, a sample is not put into another order.  In a trace these, and the last step, keep their places, and no
step is exchanged with one on their other side.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from toolrt._plain import stable_text
from toolrt.errors import StepLimit
from toolrt.sim._paths import CANCEL, CLOCK, DEADLINE, PROCESS, REAL, THREAD
from toolrt.sim.engine._execution import Execution, is_same_outcome
from toolrt.sim.policies._choices import Choices
from toolrt.sim.policies._policy import Policy, RunInfo
from toolrt.sim.policies._random_walk import RandomWalk
from toolrt.sim.strategies.dpor._current import CurrentExecution
from toolrt.sim.strategies.dpor._reachable import Reachable, reachable
from toolrt.sim.strategies.dpor._steps import Events
from toolrt.sim.strategies.dpor._unordered import Pair, UnorderedPairs, pair_of

if TYPE_CHECKING:
    from toolrt.sim.engine._record import ExecutionRecord
    from toolrt.sim.strategies.dpor._node import Node

# Longer samples are not put into another order: what that takes grows with the square of their steps.
_STEPS_MOST = 2_000

# The order of longer executions is not given.
_ORDERED_MOST = 400

# Steps that need not come.
_BESIDE = (CANCEL, DEADLINE, REAL, THREAD, PROCESS)

# Of an outcome and of what a step touches so much is shown.
_SHOWN_MOST = 120

_Looking = Generator[Policy, Execution, str | None]


@attrs.frozen
class Unlike:
    """Two steps that do not commute, although they report nothing which depends on each other."""

    #: Which steps.
    pair: Pair
    #: The variable that has one value or the other, in words.
    variable: str


class Samples:
    """The samples of one exploration.

    Args:
        declared: True: a step that reported nothing touched nothing.
        tree: what the search knows of steps.
    """

    def __init__(self, declared: bool, tree: CurrentExecution) -> None:
        self._declared = declared
        self._tree = tree
        self._seen: set[tuple[int, ...]] = set()
        #: The types of what no turned trace could be compared in.
        self.unseen: set[str] = set()
        #: How many objects turned traces were compared in.
        self.looked_at = 0
        self._texts: set[str] | None = None

    def hold_against(self, walk: RandomWalk, outcomes: Collection[Any]) -> _Looking:
        """Run a sample, and give what contradicts the reduction; None: nothing does."""
        policy = KeptExecution(walk)
        sample = yield policy
        assert policy.record is not None
        if isinstance(sample.error, StepLimit) or sample.choices in self._seen:
            return None
        self._seen.add(sample.choices)
        events = Events(policy.record)
        nodes = self._nodes_of(events)
        order = None if policy.record.has_optional else self._turned(events, nodes)
        if order is not None and (yield from self._differs(_names_of(events), order, sample)) is not None:
            return (yield from self._named(events, nodes, order, sample))
        if not self._had(outcomes, sample.outcome):
            return f"a random schedule had an outcome that no trace had: {_cut(stable_text(sample.outcome))}"
        return None

    def turn(
        self, choices: tuple[int, ...], pair: Pair | None, pairs: UnorderedPairs
    ) -> Generator[Policy, Execution, str | Unlike | None]:
        """Turn a trace, and note which pairs it shows to be independent.

        Args:
            choices: of the trace.
            pair: the pair that has to be exchanged; None: as many as can be.
            pairs: where those that were exchanged are noted.

        Returns:
            What contradicts the reduction, in words; or two steps that lead to other states, though not to another
            outcome; None: neither was found.
        """
        policy = KeptExecution(Choices(choices), len(choices) - 1)
        trace = yield policy
        if len(trace.choices) > len(choices):
            # It was ended there, as one of a trace that had been run.
            return (yield from self.turn(trace.choices, pair, pairs))
        assert policy.record is not None
        events = Events(policy.record)
        nodes = self._nodes_of(events)
        order = self._turned(events, nodes) if pair is None else _with_exchanged(nodes, pair)
        if order is None or policy.reached is None or trace.choices != choices:
            return None
        names = _names_of(events)
        turned = _InOrder(names, order)
        execution = yield turned
        if _another(trace, execution) is not None:
            return (yield from self._named(events, nodes, order, trace))
        first, then = policy.reached, turned.reached
        self.unseen |= first.unseen
        self.looked_at += len(first.entries)
        # Where another step of a deadlock comes last, or a task is woken once more or less, no moment can be compared.
        has_moment = order[-1] == len(nodes) - 1 and len(execution.choices) == len(choices)
        if has_moment and then is None:
            return None
        if has_moment and then is not None and first.differs_from(then, ()):
            again = _InOrder(names, list(range(len(order))))
            yield again
            noise = () if again.reached is None else first.noise(again.reached)
            if noise is None:
                return None
            if variable := first.differs_from(then, noise):

                def differs(between: Sequence[int]) -> _Looking:
                    policy = _InOrder(names, between)
                    yield policy
                    return None if policy.reached is None else first.differs_from(policy.reached, noise)

                _, exchanged, said = yield from _halved(order, differs)
                return Unlike(pair_of(*(nodes[at] for at in exchanged)), said or variable)
        pairs.turned |= _exchanged(nodes, order)
        return None

    def _nodes_of(self, events: Events) -> list[Node]:
        # Where a step was seen to touch other things without a reason, it is taken to touch all it ever has.
        tree = self._tree
        current = CurrentExecution(self._declared, tree if tree.joined else None)
        current.ever, current.unordered = dict(current.ever), UnorderedPairs()
        current.read(events)
        return current.nodes[: events.count]

    def _differs(self, names: Sequence[tuple[str, ...]], order: Sequence[int], sample: Execution) -> _Looking:
        """Run the events of `sample` in another order, and give the outcome where it is another; None: it is not."""
        return _another(sample, (yield _InOrder(names, order)))

    def _turned(self, events: Events, nodes: Sequence[Node]) -> list[int] | None:
        """Give the other order of a trace; None: there is none, or the trace is too long."""
        if events.count > _STEPS_MOST:
            return None
        record = events.record
        fixed = {len(nodes) - 1}
        if record.has_optional:
            names = (record.canceller, CLOCK)
            fixed |= {at for at, node in enumerate(nodes) if node.name in names or node.name.startswith(_BESIDE)}
        order: list[int] = []
        for last in sorted(fixed):
            order += _latest_first(nodes, len(order), last)
            order.append(last)
        return order if order != list(range(len(nodes))) else None

    def _named(self, events: Events, nodes: Sequence[Node], order: Sequence[int], sample: Execution) -> _Looking:
        """Find two neighbours whose exchange brings another outcome, and name them."""
        names = _names_of(events)

        def differs(between: Sequence[int]) -> _Looking:
            return self._differs(names, between, sample)

        exchanged, (first, second), _ = yield from _halved(order, differs)
        now = yield from differs(exchanged)
        return (
            f"step {second} ({_step_in_words(events, nodes, second)}) and step {first} "
            f"({_step_in_words(events, nodes, first)}) of a random schedule report nothing that depends on each other, "
            f"and exchanged they lead to {now or 'another outcome'}, not to {_cut(stable_text(sample.outcome))}: one "
            f"of them touches what it does not report; the schedule is {sample.schedule.short!r}"
        )

    def _had(self, outcomes: Collection[Any], outcome: Any) -> bool:
        try:
            if outcome in outcomes:
                return True
        except TypeError:
            # It is counted under its text.
            return stable_text(outcome) in outcomes
        if self._texts is None:
            self._texts = set(map(stable_text, outcomes))
        return stable_text(outcome) in self._texts


class KeptExecution:
    """A policy whose execution is kept, and what is reachable before one of its steps."""

    def __init__(self, policy: RandomWalk | Choices, last: int = -1) -> None:
        self.record: ExecutionRecord | None = None
        self.reached: Reachable | None = None
        self.start, self._choose, self._last = policy.start, policy.choose, last

    def attach(self, record: ExecutionRecord) -> None:
        """Keep the execution: what its steps touched is asked for afterwards."""
        self.record = record

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick as the policy does."""
        if step == self._last and self.record is not None:
            self.reached = reachable(self.record)
        return self._choose(enabled, step)


def order_of(record: ExecutionRecord) -> Callable[[int, int], bool]:
    """Give what says whether two steps are ordered, the earlier one first; every two are where there are too many."""
    events = Events(record)
    if events.count > _ORDERED_MOST or record.has_optional:
        return lambda one, other: True
    execution = CurrentExecution(declared=False)
    execution.read(events)

    def is_ordered(one: int, other: int) -> bool:
        first, second = events.at(one), events.at(other)
        return second >= events.count or bool(execution.nodes[second].before >> first & 1)

    return is_ordered


class _InOrder:
    """Step the tasks of a trace in another order, and keep what is reachable before the last step.

    A task may be woken once more or less often in another order, with nothing to do: where the next one cannot step,
    it is the first of the rest that can.
    """

    def __init__(self, names: Sequence[tuple[str, ...]], order: Sequence[int]) -> None:
        self._left = deque(name for event in order for name in names[event])
        self._last = len(names[order[-1]])
        self._record: ExecutionRecord | None = None
        self.reached: Reachable | None = None

    def attach(self, record: ExecutionRecord) -> None:
        """Keep the execution: it has the tasks."""
        self._record = record

    def start(self, info: RunInfo) -> None:
        """Do nothing: the place is in the list."""

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick the one that comes next."""
        left = self._left
        if len(left) == self._last and left[0] in enabled and self._record is not None:
            self.reached = reachable(self._record)
        if left and left[0] in enabled:
            return enabled.index(left.popleft())
        for name in left:
            if name in enabled:
                left.remove(name)
                return enabled.index(name)
        return 0


def _names_of(events: Events) -> list[tuple[str, ...]]:
    steps = events.record.steps
    return [tuple(step[0].name for step in steps[events.begin(at) : events.end(at)]) for at in range(events.count)]


def _latest_first(nodes: Sequence[Node], begin: int, end: int) -> list[int]:
    """Give an order of the steps from `begin` to `end` in which of those that can come next the latest does."""
    waiting: dict[str, list[int]] = {}
    for index in reversed(range(begin, end)):
        waiting.setdefault(nodes[index].name, []).append(index)
    order: list[int] = []
    done = (1 << begin) - 1
    while waiting:
        ready = (steps[-1] for steps in waiting.values() if not nodes[steps[-1]].before & ~done & ~(1 << steps[-1]))
        index = max(ready)
        order.append(index)
        done |= 1 << index
        steps = waiting[nodes[index].name]
        steps.pop()
        if not steps:
            del waiting[nodes[index].name]
    return order


def _with_exchanged(nodes: Sequence[Node], pair: Pair) -> list[int] | None:
    """Give an order in which the later step of a pair comes as early as it can; None: both are not in this trace."""
    at = [index for index, node in enumerate(nodes) if (node.key, node.story) in pair]
    if len(at) < 2:
        return None
    before = nodes[at[1]].before
    return sorted(range(len(nodes)), key=lambda index: not before >> index & 1)


def _exchanged(nodes: Sequence[Node], order: Sequence[int]) -> set[Pair]:
    """Give the pairs whose later step comes first in `order`."""
    pairs: set[Pair] = set()
    done = 0
    for index in order:
        later = done >> (index + 1)
        while later:
            other = later.bit_length() - 1
            later ^= 1 << other
            pairs.add(pair_of(nodes[index], nodes[index + 1 + other]))
        done |= 1 << index
    return pairs


def _exchanges(order: Sequence[int]) -> int:
    """Give how many exchanges of neighbours lead from the sample's order to `order`."""
    left = list(range(len(order)))
    count = 0
    for index in order:
        place = left.index(index)
        count += place
        del left[place]
    return count


def _between(order: Sequence[int], exchanges: int) -> tuple[list[int], tuple[int, int]]:
    """Give the order after so many exchanges on the way to `order`, and the two that were exchanged last."""
    done: list[int] = []
    left = list(range(len(order)))
    last = (0, 0)
    for index in order:
        place = left.index(index)
        if exchanges <= place:
            if exchanges:
                last = (index, left[place - exchanges])
                del left[place]
                left.insert(place - exchanges, index)
            break
        if place:
            last = (index, left[0])
        exchanges -= place
        del left[place]
        done.append(index)
        if not exchanges:
            break
    return [*done, *left], last


def _halved(
    order: Sequence[int], differs: Callable[[Sequence[int]], _Looking]
) -> Generator[Policy, Execution, tuple[list[int], tuple[int, int], str | None]]:
    """Find two neighbours whose exchange makes the difference on the way to `order`.

    Args:
        order: another order, which differs.
        differs: runs an order, and says how it differs; None: it does not.

    Returns:
        The order with the exchange, the two, and how it differs; None: as `order` does.
    """
    low, high, said = 0, _exchanges(order), None
    while high - low > 1:
        middle = (low + high) // 2
        if (found := (yield from differs(_between(order, middle)[0]))) is None:
            low = middle
        else:
            high, said = middle, found
    return *_between(order, high), said


def _step_in_words(events: Events, nodes: Sequence[Node], index: int) -> str:
    touched = ", ".join(
        f"{'writes' if write else 'reads'} {' '.join(map(str, resource))}"
        for resource, write in events.record.steps[events.begin(index)][3]
    )
    return f"{nodes[index].name}: {_cut(touched) if touched else 'touches nothing'}"


def _another(one: Execution, other: Execution) -> str | None:
    """Give the second outcome where the two differ; None: they do not, or a reader could not tell."""
    return None if is_same_outcome(one.outcome, other.outcome) else _cut(stable_text(other.outcome))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MOST else f"{text[:_SHOWN_MOST]}..."
