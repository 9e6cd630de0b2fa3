"""The oracle of the reduction: every schedule is run, and the Mazurkiewicz traces among them are counted.

It shares with `toolrt.sim.DPOR` what a step touched and nothing else: which steps depend on each other is decided
pair by pair, and an order is closed under transitivity the slow way.
"""

from __future__ import annotations

import pickle
from collections.abc import Awaitable, Callable
from itertools import combinations
from random import Random
from typing import Any

import attrs

from toolrt import sim
from toolrt.probe import ALL_REPORTED, ANYTHING

Program = Callable[[], Awaitable[Any]]

#: A trace: of each step, whose it is, its number among that task's, what it chose, and all steps that happen before it.
Trace = frozenset[tuple[str, int, tuple[int, ...], frozenset[tuple[str, int]]]]


class _Prefix:
    """Makes the choices of a prefix, then 0, and keeps the execution."""

    def __init__(self, prefix: list[int]) -> None:
        self.prefix = prefix
        self.widths: list[int] = []
        self.scheduler: Any = None

    def attach(self, scheduler: Any) -> None:
        self.scheduler = scheduler

    def start(self, info: sim.RunInfo) -> None:
        self.widths = []

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        self.widths.append(len(enabled))
        return self.prefix[step] if step < len(self.prefix) else 0


class _Every(sim.Search):
    """Every schedule, as an odometer turns; it raises when there are more than `limit`."""

    def __init__(self, declared: bool, limit: int) -> None:
        self.declared = declared
        self.limit = limit
        self.executions = 0
        self.traces: dict[Trace, set[str]] = {}
        self.next: list[int] | None = []
        self.given = _Prefix([])

    def begin(self) -> _Every:
        return self

    def policy(self) -> _Prefix | None:
        if self.next is None:
            return None
        if self.executions == self.limit:
            raise TooMany
        self.given = _Prefix(self.next)
        return self.given

    def learn(self, execution: sim.Execution) -> None:
        self.executions += 1
        given = self.given
        self.traces.setdefault(trace_of(given.scheduler, self.declared), set()).add(outcome_of(execution))
        choices = given.prefix + [0] * (len(given.widths) - len(given.prefix))
        self.next = None
        for index in reversed(range(len(choices))):
            if choices[index] + 1 < given.widths[index]:
                self.next = [*choices[:index], choices[index] + 1]
                break


class TooMany(Exception):
    """The program has more schedules than anybody wants to wait for."""


@attrs.frozen
class Counted:
    """What a program's schedules are."""

    #: How many there are.
    schedules: int
    #: The outcomes of each trace: more than one means that something touched was not reported.
    traces: dict[Trace, set[str]]

    @property
    def outcomes(self) -> set[str]:
        return set().union(*self.traces.values())


def count_traces(program: Program, declared: bool = False, limit: int = 200_000, **actors: Any) -> Counted:
    """Run every schedule of `program`."""
    every = _Every(declared, limit)
    sim.explore(program, every, lambda execution: True, **actors)
    return Counted(every.executions, every.traces)


def trace_of(scheduler: Any, declared: bool) -> Trace:
    """Give the Mazurkiewicz trace of an execution."""
    steps: list[list[Any]] = []
    numbers: dict[str, int] = {}
    # For each raw step the step it belongs to: a choice is a part of the step it was made in, and so is what follows.
    whose: list[int] = []
    for index, (actor, enabled, choice, touched, _, causes) in enumerate(scheduler.steps):
        is_choice = "=" in enabled[0]
        if is_choice or (index and "=" in scheduler.steps[index - 1][1][0]):
            whose.append(len(steps) - 1)
            step = steps[-1]
        else:
            numbers[actor.name] = number = numbers.get(actor.name, -1) + 1
            whose.append(len(steps))
            # The clock, where it moves because nothing else can.
            idle = actor.name == enabled[0] == "clock"
            step = [actor.name, number, (), {}, idle, set(), False, index]
            steps.append(step)
        _, _, chosen, touches, _, after, reported, _ = step
        if is_choice:
            step[2] = (*chosen, choice)
        step[6] = reported or bool(touched)
        after.update(whose[cause] for cause in causes)
        scope = scheduler.things.scope_of(scheduler.begun_under[index])
        for resource, write in (*touched, *scheduler.implied.get(index, ()), *([(scope, False)] if scope else [])):
            touches[resource] = touches.get(resource, False) or write
    for step in steps:
        vouched = step[3].pop(ALL_REPORTED, None) is not None
        step[4] = step[3].pop(ANYTHING, False) or step[4] or not (step[6] or declared or vouched)
    before: list[set[int]] = [set() for _ in steps]
    for one, other in combinations(range(len(steps)), 2):
        name, _, _, touches, wild, _, _, _ = steps[one]
        name_too, _, _, touches_too, wild_too, causes, _, begun = steps[other]
        if (
            name == name_too
            or wild
            or wild_too
            or one in causes
            or any(steps[one][7] < rest <= begun for rest in (*scheduler.rests, *scheduler.passes))
            or any(write or touches_too[resource] for resource, write in touches.items() if resource in touches_too)
        ):
            before[other] |= before[one] | {one}
    labels = [(name, number) for name, number, *_ in steps]
    return frozenset(
        (*labels[index], steps[index][2], frozenset(labels[other] for other in earlier))
        for index, earlier in enumerate(before)
    )


def outcome_of(execution: sim.Execution) -> str:
    """Give what came out, as text."""
    return repr(execution.value) if execution.error is None else type(execution.error).__name__


class Kept(sim.DPOR):
    """The reduction, whose search can be looked at afterwards."""

    def begin(self) -> Any:
        search = super().begin()
        object.__setattr__(self, "search", search)
        return search


def reduced(program: Program, accesses: str = "reported", **actors: Any) -> tuple[sim.Report, Any, set[str]]:
    """Run `program` under the reduction; give its report, the search, and the outcomes as text."""
    strategy = Kept(accesses, samples=0)
    outcomes: set[str] = set()

    def look(execution: sim.Execution) -> bool:
        outcomes.add(outcome_of(execution))
        return True

    report = sim.explore(program, strategy, look, **actors)
    return report, strategy.search, outcomes


class InParts(sim.Search):
    """The reduction in parts, as several processes would do it: each has a few executions, and any is the next."""

    def __init__(self, accesses: str, seed: int) -> None:
        self.whole: Any = sim.DPOR(accesses, samples=0).begin()
        self.whole.divide()
        self.draw = Random(seed)
        self.parts: list[Any] = []
        self.current: Any = self.whole
        self.left = 1
        #: How many parts there were at once.
        self.most = 0

    def begin(self) -> InParts:
        return self

    def policy(self) -> Any:
        while True:
            if self.current is not None and self.left:
                policy = self.current.policy()
                if policy is not None:
                    return policy
            if self.current is not None and self.current is not self.whole:
                self.whole.take_back(pickle.loads(pickle.dumps(self.current)))
            self.parts += map(pickle.loads, map(pickle.dumps, self.whole.lend(max(0, 3 - len(self.parts)))))
            self.most = max(self.most, len(self.parts))
            if not self.parts:
                return None
            self.current = self.parts.pop(self.draw.randrange(len(self.parts)))
            self.left = self.draw.randint(1, 4)

    def learn(self, execution: sim.Execution) -> None:
        self.left -= 1
        self.current.learn(execution)

    def claim(self, executions: int, distinct: int) -> str:
        return str(self.whole.claim(executions, distinct))

    def complete(self) -> bool:
        return bool(self.whole.complete())

    def unfinished(self) -> str | None:
        return str(self.whole.unfinished()) if self.whole.unfinished() else None
