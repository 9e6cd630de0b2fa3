"""The search of `DPOR`: its contract with an exploration, its claims, and its parts.

Rules.
- A step that reported nothing may have done anything, unless the caller says ``accesses="declared"``.
- What a step wakes, spawns or joins comes after it, and so does everything after a moment at which nothing could run:
  no choice could reverse that.
- A cancel, an early move of the clock and a chosen value are steps with accesses of their own.  A cancel writes the
  scope, which every step under it reads; an early clock writes the time, and the scopes whose deadlines it meets; a
  value belongs to the step that asks for it, and every value is tried.
- If a task could step after the same steps before, and cannot now, the search ends: no schedule decides such a program.
- A broken assumption of the reduction (a task that should have been able to step and was not, a step limit) is reported
  in `Report.unfinished`, and nothing is complete then.
- When all traces were run, random schedules are compared with equal ones: a step that touches what it does not report
  is found and named.  Then traces are turned: their steps are run in another order that the reduction takes for the
  same, until both orders of each pair of steps that nothing orders were run (`_samples`, `_unordered`).
- Two steps that lead to another state in the other order depend on each other from then on, and the search goes on; at
  most twice, and with at most `_MORE` executions more for each trace.
- The claim is ``exhaustive(traces=)`` when both orders of all pairs were run and led to the same.  It has the share
  beside it when at least half of the pairs were; else, and where the search could not go on, it is ``reduced``.

Limits.  Traces are turned until a number of objects were compared.  What the comparison cannot look into, such as an
object of a compiled extension, is named in the claim.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Collection, Generator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NoReturn

import attrs

from toolrt.errors import Livelock, StepLimit
from toolrt.sim._paths import CLOCK, task_of
from toolrt.sim.engine._execution import Execution
from toolrt.sim.policies._fair_tail import FairTail
from toolrt.sim.policies._policy import Policy, RunInfo
from toolrt.sim.policies._random_walk import RandomWalk
from toolrt.sim.strategies._strategy import Redundant, Shared, uncontrolled
from toolrt.sim.strategies.dpor._continuation import Continuation
from toolrt.sim.strategies.dpor._node import Branches, Sleep, let_one_begin
from toolrt.sim.strategies.dpor._samples import Samples, Unlike
from toolrt.sim.strategies.dpor._tree import ExecutionTree
from toolrt.sim.strategies.dpor._unordered import Pair
from toolrt.sim.strategies.dpor._waiting import Waiting
from toolrt.sim.strategies.dpor._witness import Observed

if TYPE_CHECKING:
    from toolrt.sim.engine._record import ExecutionRecord

# Unless the caller says how many samples are drawn.
_SAMPLES_LEAST, _SAMPLES_MOST = 4, 100

# A search goes on so often with steps that do not commute, with so many executions more for each trace, and some.
_GOES_ON, _MORE, _MORE_LEAST = 2, 4, 100

# More are not looked for at once: a common cause has most of them.
_MOST_UNLIKE = 8

# Traces are turned until they were compared in so many objects: two seconds or so.
_MOST_LOOKED_AT = 500_000


@attrs.define
class BranchPoint:
    """A place that several parts begin with: what is to be run from there is chosen by the whole search."""

    #: The places up to this one.
    above: tuple[int, ...]
    #: A tree that came through here, and the number of the step.
    tree: ExecutionTree
    index: int
    #: What sleeps here, what is to be run, and what can step.
    sleep: Sleep
    left: Branches
    enabled: tuple[str, ...]
    #: What was run from here, and whether it is known what that touched.
    begun: dict[str, bool] = attrs.Factory(dict)

    def next(self) -> ExecutionTree | None:
        """Give a tree of the next that is to be run from here; None when there is none, or not yet."""
        if not all(self.begun.values()):
            # A later branch sleeps on what was run before, so that has to be known first.
            return None
        while self.left:
            name = next(iter(self.left))
            del self.left[name]
            if name not in self.sleep and name not in self.begun:
                self.begun[name] = False
                return self.tree.branch(self.index, name, dict(self.sleep))
        return None


class DPORSearch(Shared):
    """One exploration by `DPOR`.

    In parts: a part has a tree whose first nodes belong to other parts too.  When the part comes back, the whole search
    takes what its races ask for at those nodes, and runs each branch there as a part in which the earlier branches
    sleep; so each trace is run once.  No part plans ahead, because no part has seen all steps.
    """

    repeats = False
    asks_nobody = True

    def __init__(self, declared: bool, samples: int | None, continuation: Continuation | None = None) -> None:
        self._declared = declared
        # What executions do where nothing is planned; None: the simplest.
        self._continuation = continuation
        self._samples = samples
        # Without samples the traces alone decide.
        # With "declared" the caller promises that what is not reported does not matter.
        self.reduces = samples != 0 and not declared
        self._tree = ExecutionTree(declared)
        #: How many traces were run; in a pass after the first, at most.
        self.traces = 0
        #: How often the whole space was searched.
        self.passes = 1
        #: How many executions turned out to be of a trace that had been run, and were ended there.
        self.redundant = 0
        #: Why what was run may not be all there is.
        self.doubts: set[str] = set()
        # The program is not decided by its schedule: a doubt says where.
        self._lost = False
        self._given: _TreePolicy | None = None
        self._sampled = 0
        # Once traces were turned: what could not be compared; steps that do not commute; how often the search went on
        # with such steps, and the number of traces at which it gives up.
        self._unseen: set[str] | None = None
        self._unlike: dict[Pair, str] = {}
        self._went_on, self._most = 0, inf
        # In parts: the places that several begin with, what is left of parts, how many are lent out, and whether any
        # were; for a part, the places it begins with.
        self._places: list[BranchPoint] = []
        self._back: list[DPORSearch] = []
        self._lent = 0
        self._is_divided = self._is_part = False
        self._above: tuple[int, ...] = ()
        # What all parts of one search have in common.
        self._name = ""

    def policy(self) -> Policy | None:
        """Give the policy of the next execution, or None when there is none."""
        given, tree = self._given, self._tree
        if given is not None and given.lost is not None:
            self.doubts.add(given.lost)
            self._lost = tree.done = True
            given.record = self._given = None
        if self._lost:
            return None
        if given is not None and given.record is not None:
            # It raised `Redundant`.
            self.redundant += 1
            tree.take_in(given.record, given.offered)
            given.record = self._given = None
        if tree.done and self._is_part:
            return None
        if tree.done and tree.current.again:
            # A reduction by what steps withheld may have missed a trace: once more, by all that each step touched.
            self.passes += 1
            self.traces = 0
            tree = self._tree = ExecutionTree(self._declared, tree)
        if self.traces >= self._most:
            return None
        if not tree.done:
            self._given = _TreePolicy(tree, self._continuation)
            return self._given
        return None

    @property
    def is_pending(self) -> bool:
        """Whether the policy given last has raised `Redundant`, and the next one was not asked for."""
        return self._given is not None and self._given.record is not None

    def learn(self, execution: Execution) -> None:
        """Take in the execution of the policy given last."""
        given, self._given = self._given, None
        assert given is not None and given.record is not None  # noqa: PT018
        self.traces += 1
        if given.diverged:
            self.doubts.add("a step had an effect it did not report")
        if isinstance(execution.error, StepLimit) and not isinstance(execution.error, Livelock):
            self.doubts.add("the step limit ended an execution")
        self._tree.take_in(given.record)
        # The execution knows its policy: without this only the collector of garbage would end them, which takes long.
        given.record = None

    def claim(self, executions: int, distinct: int) -> str:
        """Say how many traces were run, and what the claim rests on."""
        notes = [f"traces{'=' if self.passes == 1 else '<='}{self.traces}"]
        if self._declared:
            notes.append("accesses=declared")
        if self._sampled and (self._declared or self._samples is not None):
            notes.append(f"sampled={self._sampled}")
        word = "exhaustive" if self.complete() else "incomplete"
        if self._unseen is not None:
            pairs = self._tree.current.unordered
            turned, known = len(pairs.kept & pairs.turned), len(pairs.kept)
            if turned < known or pairs.is_partial:
                notes.append(f"pairs={turned} of {known}{' or more' if pairs.is_partial else ''}")
            if self._unlike:
                notes.append(f"unlike={len(self._unlike)}")
            if self._unseen:
                notes.append(f"unseen={sorted(self._unseen)}")
            if self.complete() and (self._unlike or 2 * turned < known):
                word = "reduced"
        return f"{word}({', '.join(notes)})"

    def complete(self) -> bool:
        """Say whether every trace was run."""
        return self.unfinished() is None

    def unfinished(self) -> str | None:
        """Say why not every trace was run; None: every known one was."""
        if self.doubts:
            return "; ".join(sorted(self.doubts))
        if self._unlike:
            return None  # it has run each trace of what steps report
        left = self._back or self._lent or any(place.left for place in self._places)
        if left or not self._tree.done or self._tree.current.again:
            return "the budget ran out"
        return None

    def hold_against_samples(self, outcomes: Collection[Any]) -> Generator[Policy, Execution, str | None]:
        """Run random schedules, and compare each with one that should be equal; see `_samples`."""
        number = self._samples
        if number is None:
            number = _SAMPLES_MOST if self._declared else max(_SAMPLES_LEAST, min(_SAMPLES_MOST, self.traces // 100))
        samples = Samples(self._declared, self._tree.current)
        for seed in range(1, number + 1):
            self._sampled += 1
            contradiction = yield from samples.hold_against(RandomWalk(seed), outcomes)
            if contradiction is not None:
                return contradiction
        if not self.reduces or self.traces >= self._most:
            return None
        self._unseen, self._unlike = samples.unseen, {}
        pairs = self._tree.current.unordered
        for choices, pair in pairs.to_turn():
            if pair in self._unlike:
                continue
            if samples.looked_at > _MOST_LOOKED_AT:
                break
            found = yield from samples.turn(choices, pair, pairs)
            if isinstance(found, Unlike):
                self._unlike[found.pair] = found.variable
                if len(self._unlike) == _MOST_UNLIKE:
                    break
            elif found is not None:
                return found
        return None

    def reopens(self) -> bool:
        """Let steps that do not commute depend on each other, and say whether there is more to run because of that."""
        if not self._unlike or self._is_divided or self._went_on == _GOES_ON:
            return False
        self._went_on += 1
        self._most = (1 + _MORE) * self.traces + _MORE_LEAST
        self._tree.current.let_depend(self._unlike)
        self.passes += 1
        self.traces = 0
        self._tree = ExecutionTree(self._declared, self._tree)
        return True

    # ------------------------------------------------------------------ in parts

    @property
    def can_be_divided(self) -> bool:
        """It can: it asks values for their text only."""
        return True

    def divide(self) -> None:
        """Be done in parts from now on; nothing was run yet."""
        self._is_divided = True
        self._name = os.urandom(8).hex()
        self._tree.be_careful()

    def place(self, execution: Execution) -> tuple[Any, ...]:
        """Say where `execution` comes among all: by its choices, as chance decides which worker runs what."""
        return execution.choices

    def lend(self, parts: int) -> list[Shared]:
        """Give away what is left; see `Shared`."""
        if self._lost:
            return []
        if not self._tree.done and self._is_divided and not self._places and not self._lent and not self._back:
            self._back.append(self._part(self._tree, ()))
        lent: list[DPORSearch] = []
        while len(lent) < parts and (part := self._next_part()) is not None:
            lent.append(part)
        while len(lent) < parts and any(map(self._share, lent)):
            while len(lent) < parts and (part := self._next_part()) is not None:
                lent.append(part)
        if not lent and not self._lent and not self._back and self.unfinished() is not None and not self.doubts:
            # The rest is run as if by itself.
            rest = copy.copy(self)
            rest._places, rest._is_divided, rest.divisible = [], False, False
            lent.append(rest)
        self._lent += len(lent)
        return list(lent)

    def take_back(self, part: Shared) -> None:
        """Take back what is left of a part; see `Shared`."""
        assert isinstance(part, DPORSearch)
        self._lent -= 1
        if not part._is_part:
            for name in ("_tree", "traces", "passes", "redundant", "doubts", "_lost"):
                setattr(self, name, getattr(part, name))
            return
        self.traces += part.traces
        self.redundant += part.redundant
        self.doubts |= part.doubts
        self._lost |= part._lost
        part.traces = part.redundant = 0
        part.doubts = set()
        tree = part._tree
        for index, moves in tree.found:
            place = self._places[part._above[index]]
            let_one_begin(place.sleep, place.left, place.begun, place.enabled, moves)
        tree.found = []
        if part._above and tree.last in (last := self._places[part._above[-1]]).begun:
            sleepers = tree.sleepers()
            last.begun[tree.last] = tree.done or sleepers is not None
            last.sleep.update((who, footprint) for who, footprint in (sleepers or {}).items() if who not in last.sleep)
        if tree is not self._tree:
            self._tree.current.learn_from(tree.current)
        if not tree.done:
            self._back.append(part)
        elif not self._back and not self._lent:
            self._tree.done = True

    def _part(self, tree: ExecutionTree, above: tuple[int, ...]) -> DPORSearch:
        part = copy.copy(self)
        part._tree, part._above, part._is_part = tree, above, True
        part._places, part._back, part._given = [], [], None
        part.traces = part.redundant = 0
        part.doubts = set()
        return part

    def _next_part(self) -> DPORSearch | None:
        if self._back:
            return self._back.pop()
        for number, place in enumerate(self._places):
            if (tree := place.next()) is not None:
                return self._part(tree, (*place.above, number))
        return None

    def _share(self, part: DPORSearch) -> bool:
        """Let a part give up the first branches it has left, which others may run; say whether there were any."""
        shared = part._tree.share() if part.divisible else None
        if shared is None:
            return False
        tree, given = shared
        for sleep, left, enabled in given:
            self._places.append(BranchPoint(part._above, tree, len(part._above), sleep, left, enabled))
            part._above = (*part._above, len(self._places) - 1)
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_given": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._is_part:
            self._tree.current.observe_with(_observed_by(self._name))


# What the parts of one search that this process runs have observed, and whose they are.
_observed: tuple[str, Observed] = ("", {})


def _observed_by(name: str) -> Observed:
    global _observed
    if _observed[0] != name:
        _observed = name, {}
    return _observed[1]


class _TreePolicy:
    """Step the tasks that the tree names, then any task that is not asleep."""

    def __init__(self, tree: ExecutionTree, continuation: Continuation | None = None) -> None:
        self._tree = tree
        self._continuation = continuation
        if continuation is not None:
            continuation.begin()
        self._tasks, self._known, self._planned, self._picks = tree.path
        self._sleep = tree.current.sleep_at(self._known)
        #: The execution, once it has begun.
        self.record: ExecutionRecord | None = None
        #: True when a task could not step where the reduction says it can.
        self.diverged = False
        #: How a step that was to come again could not: the program depends on something that no schedule holds.
        self.lost: str | None = None
        #: The enabled list, all asleep, where it was given up.
        self.offered: tuple[str, ...] = ()
        # True when one that need not step could not: what was planned after it may not be possible.
        self._is_free = False
        # How many of the steps were choices within another, or the rest of it; and where the step before began.
        self._within = 0
        self._begun = 0
        self._waiting = Waiting(tree.current.footprints)
        # What the running step has chosen, and whether its rest comes next.
        self._chosen: tuple[int, ...] = ()
        self._goes_on = False

    def attach(self, record: ExecutionRecord) -> None:
        """Keep the execution: what its steps touched is asked for afterwards."""
        self.record = record

    def start(self, info: RunInfo) -> None:
        """Begin the execution."""
        self._tail = FairTail(info)
        self._fair_from = self._tail.begins

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick the task whose turn it is.

        Raises:
            Redundant: whichever task steps now, the trace has been run; or the steps so far were the same as in an
                earlier execution, and the tasks that can run are not, which `lost` says.
        """
        if step < len(self._picks):
            # As in the execution before.
            pick = self._picks[step]
            if pick < len(enabled) and enabled[pick] == self._tasks[step]:
                self._begun = step
                return pick
        if self._goes_on:
            self._goes_on = False
            return 0
        if "=" in enabled[0]:
            return self._choose_within(enabled, step)
        begun, self._begun = self._begun, step
        index = step - self._within
        sleep, known = self._sleep, self._known
        if sleep and index > known:
            assert self.record is not None
            sleep = self._sleep = self._tree.current.still_asleep(sleep, self.record, begun)
        if self._within:
            self._chosen = ()
        assert self.record is not None
        waiting = self._waiting.now(self.record) if self.record.yields and self.record.order == "any" else {}
        if index < len(self._tasks) and not self._is_free:
            task = self._tasks[index]
            if task in enabled:
                if not (sleep and index > known and task in sleep):
                    return enabled.index(task)
                # Only what need not happen can be new here.
                self._is_free = True
            elif index < known:
                self._lose(step, task, enabled)
            else:
                self._is_free = True
                self.diverged = not (task in waiting or self._tree.current.need_not_step(task))
        if waiting and not waiting.keys().isdisjoint(enabled):
            return self._choose_beside(enabled, sleep, waiting, step)
        if not sleep:
            if self._continuation is None and step < self._fair_from and enabled[0] != self.record.canceller:
                return 0
            return self._go_on_from(enabled, range(len(enabled)), step)
        # A task with all its values comes first: one value of a step that was tried says nothing of the others.
        partly = {who[0] for who in sleep if type(who) is tuple}
        awake = [choice for choice, task in enumerate(enabled) if task not in sleep]
        if awake:
            awake = [choice for choice in awake if enabled[choice] not in partly] or awake
            return self._go_on_from(enabled, awake, step)
        self.offered = enabled
        raise Redundant

    def _go_on_from(self, enabled: tuple[str, ...], awake: Sequence[int], step: int) -> int:
        """Pick where nothing is planned; steps that need not happen come by their own rule."""
        assert self.record is not None
        if self.record.passes:
            # A cancel is tried before each step, so it comes last here: time may pass before it.
            canceller = self.record.canceller
            return next((choice for choice in awake if enabled[choice] != canceller), awake[0])
        if self.record.has_optional or enabled[awake[0]] == CLOCK:
            return awake[0]
        if step >= self._fair_from:
            return self._tail.pick(enabled, awake)
        return awake[0] if self._continuation is None else self._continuation.pick(enabled, awake, step)

    def _choose_beside(self, enabled: tuple[str, ...], sleep: Sleep, waiting: Collection[str], step: int) -> int:
        """Pick a task beside those that have yielded and would only make the same round again."""
        may = self._tree.current.need_not_step
        awake = [choice for choice, task in enumerate(enabled) if task not in sleep]
        others = [choice for choice in awake if enabled[choice] not in waiting and not may(enabled[choice])]
        if others:
            return self._go_on_from(enabled, others, step)
        if any(task in sleep and task not in waiting for task in enabled) or not awake:
            self.offered = enabled
            raise Redundant
        # Nothing else can run: after another round nothing can.
        return next((choice for choice in awake if enabled[choice] in waiting), awake[0])

    def _choose_within(self, enabled: tuple[str, ...], step: int) -> int:
        """Choose what the tree says, or else the first that was not chosen here."""
        index = step - 1 - self._within
        self._within += 2
        self._goes_on = True
        begin = self._chosen
        planned = () if self._is_free else self._planned.get(index, ())
        if len(begin) < len(planned):
            choice = planned[len(begin)]
            if choice < len(enabled) and (index < self._known or not self._sleeps(enabled, choice)):
                self._chosen = (*begin, choice)
                return choice
            if index < self._known:
                self._lose(step, f"choice {choice}", enabled)
        for choice in range(len(enabled)):
            if not self._sleeps(enabled, choice):
                self._chosen = (*begin, choice)
                return choice
        raise Redundant

    def _lose(self, step: int, before: str, enabled: tuple[str, ...]) -> NoReturn:
        """End the execution: what was to come again cannot."""
        self.lost = uncontrolled(step, before, ", ".join(enabled))
        raise Redundant

    def _sleeps(self, enabled: tuple[str, ...], choice: int) -> bool:
        return (task_of(enabled[choice]), (*self._chosen, choice)) in self._sleep
