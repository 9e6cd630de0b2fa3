"""Every interleaving can happen, and each is told apart."""

from __future__ import annotations

from collections import Counter
from functools import partial

import trio
from trio.lowlevel import checkpoint

from tests.sim._programs import lost_update
from toolrt import sim


class Prefix:
    """Makes the choices of a prefix, then 0, and notes how many there were at each step."""

    def __init__(self, prefix: list[int]) -> None:
        self.prefix = prefix
        self.widths: list[int] = []

    def start(self, info: sim.RunInfo) -> None:
        self.widths = []

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        self.widths.append(len(enabled))
        return self.prefix[step] if step < len(self.prefix) else 0


class EverySchedule(sim.Search):
    """A depth-first strategy in the fewest lines: the next list of choices, as an odometer turns."""

    def begin(self) -> sim.Search:
        self.next: list[int] | None = []
        return self

    def policy(self):
        self.given = None if self.next is None else Prefix(self.next)
        return self.given

    def learn(self, execution: sim.Execution) -> None:
        policy = self.given
        choices = policy.prefix + [0] * (len(policy.widths) - len(policy.prefix))
        self.next = None
        for index in reversed(range(len(choices))):
            if choices[index] + 1 < policy.widths[index]:
                self.next = [*choices[:index], choices[index] + 1]
                break

    def claim(self, executions: int, distinct: int) -> str:
        return f"all {executions} schedules"

    def complete(self) -> bool:
        return self.next is None


def test_lost_update_outcomes_are_those_of_a_model() -> None:
    """How many schedules give each value is what a model without Trio counts."""

    def model(value: int, tasks: tuple[tuple[int, int | None], ...]) -> Counter[int]:
        # A task is (writes left, value it has read); a first step reads, a middle one writes and reads.
        total: Counter[int] = Counter()
        for index, (left, seen) in enumerate(tasks):
            if left == 0 and seen is None:
                continue
            after = value if seen is None else seen + 1
            task = (left - 1, after) if left else (0, None)
            total += model(after, (*tasks[:index], task, *tasks[index + 1 :]))
        return total or Counter({value: 1})

    report = sim.explore(partial(lost_update, 3, 2), EverySchedule(), lambda execution: True)
    assert Counter(report.outcomes) == model(0, ((2, None),) * 3)


def test_children_are_ordered_by_number() -> None:
    """main.2 comes before main.10: paths are compared number by number."""

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(11):
                nursery.start_soon(trio.lowlevel.checkpoint)

    step = sim.run(program, sim.Choices()).schedule.steps[1]
    assert step.enabled == tuple(f"main.{index}" for index in range(11))


def test_current_task_comes_first() -> None:
    """Choice 0 goes on with the task that stepped last."""
    schedule = sim.run(partial(lost_update, 3, 2), sim.Choices()).schedule
    assert schedule.short == "main main.0*3 main.1*3 main.2*3 main"
    assert schedule.switches == 0


def test_grandchildren_are_named_after_who_spawned_them() -> None:
    """A task spawned in another task's nursery is named after the task that spawned it."""

    async def program() -> None:
        async with trio.open_nursery() as nursery:

            async def spawn() -> None:
                nursery.start_soon(checkpoint)

            nursery.start_soon(spawn)
            nursery.start_soon(spawn)

    assert set(sim.run(program).schedule.tasks) == {"main", "main.0", "main.0.0", "main.1", "main.1.0"}


def test_nurseries_of_one_task_count_together() -> None:
    """A task numbers what it spawns over all its nurseries."""

    async def program() -> None:
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(checkpoint)

    assert sim.run(program).schedule.short.split() == ["main", "main.0*2", "main", "main.1*2", "main"]
