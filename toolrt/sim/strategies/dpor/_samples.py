"""Samples that test the reduction against what the program does.

Rules.  A sample is one random schedule.  Its steps are put into another order that the reduction takes for the same
trace: of the steps that nothing orders, the later ones come first.  When that order has another outcome, some step
touches what it does not report.  Which one is found by halving: between the two orders lie orders that
differ by two neighbours each, and one such exchange brings the other outcome.  A sample with an outcome that no trace
had contradicts the reduction, too.

Theory.  Two executions that differ in the order of independent steps are one Mazurkiewicz trace, and have one outcome.
The order that turns round as many pairs as it can is the one in which an unreported conflict shows most likely: one
sample in which the two steps are not ordered is then enough, whatever they did in the sample.

Limits.  What does not show in the outcome is not seen.  Where the program is cancelled at any moment, or the clock may
move early, samples are not put into another order: only their outcomes are looked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Generator, Sequence
from typing import TYPE_CHECKING, Any

from toolrt._plain import stable_text
from toolrt.errors import StepLimit
from toolrt.sim.engine._execution import Execution
from toolrt.sim.policies._policy import Policy, RunInfo
from toolrt.sim.policies._random_walk import RandomWalk
from toolrt.sim.strategies.dpor._current import CurrentExecution
from toolrt.sim.strategies.dpor._steps import Events

if TYPE_CHECKING:
    from toolrt.sim.engine._record import ExecutionRecord
    from toolrt.sim.strategies.dpor._node import Node

__all__ = ["Samples"]

# Longer samples are not put into another order: what that takes grows with the square of their steps.
_STEPS_MOST = 2_000

# Of an outcome and of what a step touches so much is shown.
_SHOWN_MOST = 120

_Looking = Generator[Policy, Execution, str | None]


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
        self._texts: set[str] | None = None

    def hold_against(self, walk: RandomWalk, outcomes: Collection[Any]) -> _Looking:
        """Run a sample, and give what contradicts the reduction; None: nothing does."""
        policy = _KeptWalk(walk)
        sample = yield policy
        assert policy.record is not None
        if isinstance(sample.error, StepLimit) or sample.choices in self._seen:
            return None
        self._seen.add(sample.choices)
        events = Events(policy.record)
        if _can_be_turned(events):
            nodes = self._nodes_of(events)
            order = _turned(nodes)
            is_turned = order != list(range(len(nodes)))
            if is_turned and (yield from self._differs(_names_of(events), order, sample)) is not None:
                return (yield from self._named(events, nodes, order, sample))
        if not self._had(outcomes, sample.outcome):
            return f"a random schedule had an outcome that no trace had: {_cut(stable_text(sample.outcome))}"
        return None

    def _nodes_of(self, events: Events) -> list[Node]:
        # Where a step was seen to touch other things without a reason, it is taken to touch all it ever has.
        tree = self._tree
        current = CurrentExecution(self._declared, tree if tree.joined else None)
        current.ever = dict(current.ever)
        current.read(events)
        return current.nodes[: events.count]

    def _differs(self, names: Sequence[tuple[str, ...]], order: Sequence[int], sample: Execution) -> _Looking:
        """Run the events of `sample` in another order, and give the outcome where it is another; None: it is not."""
        execution = yield _InOrder([name for event in order for name in names[event]])
        before, after = stable_text(sample.outcome), stable_text(execution.outcome)
        return None if _same(sample.outcome, execution.outcome) or before == after else _cut(after)

    def _named(self, events: Events, nodes: Sequence[Node], order: Sequence[int], sample: Execution) -> _Looking:
        """Find two neighbours whose exchange brings another outcome, and name them."""
        names = _names_of(events)
        low, high = 0, _exchanges(order)
        while high - low > 1:
            middle = (low + high) // 2
            if (yield from self._differs(names, _between(order, middle)[0], sample)) is None:
                low = middle
            else:
                high = middle
        exchanged, (first, second) = _between(order, high)
        now = yield from self._differs(names, exchanged, sample)
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


class _KeptWalk:
    """A random walk whose execution is kept."""

    def __init__(self, walk: RandomWalk) -> None:
        self.record: ExecutionRecord | None = None
        self.start, self.choose = walk.start, walk.choose

    def attach(self, record: ExecutionRecord) -> None:
        """Keep the execution: what its steps touched is asked for afterwards."""
        self.record = record


class _InOrder:
    """Step the task that comes next in a list of names.

    A task may be woken once more or less often in another order, with nothing to do: where the next one cannot step,
    it is the first of the rest that can.
    """

    reads_accesses = False

    def __init__(self, names: Sequence[str]) -> None:
        self._left = deque(names)

    def start(self, info: RunInfo) -> None:
        """Do nothing: the place is in the list."""

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick the one that comes next."""
        left = self._left
        if left and left[0] in enabled:
            return enabled.index(left.popleft())
        for name in left:
            if name in enabled:
                left.remove(name)
                return enabled.index(name)
        return 0


def _can_be_turned(events: Events) -> bool:
    record = events.record
    return record.extra is None and record.canceller is None and events.count <= _STEPS_MOST


def _names_of(events: Events) -> list[tuple[str, ...]]:
    steps = events.record.steps
    return [tuple(step[0].name for step in steps[events.begin(at) : events.end(at)]) for at in range(events.count)]


def _turned(nodes: Sequence[Node]) -> list[int]:
    """Give the order in which of the steps that can come next the latest does."""
    waiting: dict[str, list[int]] = {}
    for index in reversed(range(len(nodes))):
        waiting.setdefault(nodes[index].name, []).append(index)
    order: list[int] = []
    done = 0
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


def _step_in_words(events: Events, nodes: Sequence[Node], index: int) -> str:
    touched = ", ".join(
        f"{'writes' if write else 'reads'} {' '.join(map(str, resource))}"
        for resource, write in events.record.steps[events.begin(index)][3]
    )
    return f"{nodes[index].name}: {_cut(touched) if touched else 'touches nothing'}"


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one is other or one == other)
    except Exception:
        return False


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MOST else f"{text[:_SHOWN_MOST]}..."
