"""Checks, verdicts, reports, cells, and the shrunk schedule."""

from __future__ import annotations

import pytest
import trio
from trio.lowlevel import checkpoint

from tests.sim._programs import lost_update
from toolrt import sim
from toolrt.errors import DefinitionRefused


async def fails() -> None:
    """Raise."""
    raise ValueError("no")


def verdict(program, check) -> sim.Verdict:
    """Explore three executions."""
    return sim.explore(program, sim.Random(sim.RandomWalk(0), 3), check).verdict


def _assertion(execution: sim.Execution) -> None:
    raise AssertionError("wrong")


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (None, sim.PASS),
        (lambda execution: None, sim.PASS),
        (lambda execution: [], sim.PASS),
        (lambda execution: True, sim.PASS),
        (lambda execution: False, sim.FAIL),
        (lambda execution: ["broken"], sim.FAIL),
        (_assertion, sim.FAIL),
    ],
)
def test_check_decides_an_execution_without_error(check, expected: sim.Verdict) -> None:
    """A check complains by AssertionError, False, or violations."""
    assert verdict(checkpoint, check) is expected


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (None, sim.FAIL),
        (lambda execution: None, sim.FAIL),
        (lambda execution: [], sim.FAIL),
        (lambda execution: True, sim.PASS),
        (lambda execution: isinstance(execution.error, ValueError), sim.PASS),
        (lambda execution: len(execution.value) == 1, sim.FAIL),
    ],
)
def test_check_decides_an_execution_with_an_error(check, expected: sim.Verdict) -> None:
    """An error is a failure unless the check says exactly True; so is one whose value the check cannot look at."""
    assert verdict(fails, check) is expected


def test_check_that_answers_nonsense_is_refused() -> None:
    """A number is no answer."""
    with pytest.raises(DefinitionRefused, match="answer"):
        verdict(checkpoint, lambda execution: 1)


def test_check_that_raises_about_no_missing_value_is_raised_of_a_failing_execution_too() -> None:
    """A signal of the check's own, or a mistake that has nothing to do with the value."""
    for raised in (LookupError("broken check"), KeyboardInterrupt()):

        def broken(execution: sim.Execution, raised: BaseException = raised) -> None:
            raise raised

        with pytest.raises(type(raised)):
            sim.explore(fails, sim.Random(sim.RandomWalk(0), 3), broken)


def test_check_that_raises_something_else_is_raised() -> None:
    """A broken check is the caller's error, not a failure of the program."""

    def broken(execution: sim.Execution) -> None:
        raise LookupError("broken check")

    with pytest.raises(LookupError, match="broken check"):
        verdict(checkpoint, broken)


def test_report_counts_outcomes() -> None:
    """Values and the names of error types are counted; what cannot be hashed is counted by its repr."""

    async def listing() -> list[int]:
        return [1]

    assert sim.explore(listing, sim.Random(sim.Fifo(), 2)).outcomes == {"[1]": 2}
    assert sim.explore(fails, sim.Random(sim.Fifo(), 2)).outcomes == {"ValueError": 2}
    assert sim.explore(checkpoint, sim.Random(sim.Fifo(), 2)).outcomes == {None: 2}


def test_report_says_when_nothing_was_explored() -> None:
    """A program with one schedule is told apart from one that was explored."""
    assert "Only one schedule" in str(sim.explore(checkpoint, sim.Random(sim.RandomWalk(0), 5)))
    assert "Only one schedule" not in str(sim.explore(lost_update, sim.Random(sim.RandomWalk(0), 50)))


def test_max_executions_bounds_the_sample() -> None:
    """The claim counts what was run, not what was asked for."""
    report = sim.explore(lost_update, sim.Random(sim.RandomWalk(0), 100), max_executions=7)
    assert (report.executions, report.claim) == (7, f"sampled(n=7, distinct={report.distinct})")


def test_failures_are_kept_up_to_a_bound() -> None:
    """All failures are counted, the first hundred are kept."""
    report = sim.explore(fails, sim.Random(sim.Fifo(), 150))
    assert (report.failed, len(report.failures)) == (150, 100)


def test_cell_outside_a_simulation_is_a_box() -> None:
    """What was set is what get gives."""
    cell = sim.Cell("a")
    cell.set("b")
    assert cell.get() == "b"


def test_cell_accesses_are_seen_once_and_sorted() -> None:
    """A step's accesses are each noted once, by name, reads before writes."""

    async def program() -> None:
        second, first = sim.Cell(0, name="b"), sim.Cell(0, name="a")
        for cell in (second, first, second):
            cell.get()
            cell.set(1)

    (step,) = sim.run(program).trace.steps
    assert [(access.resource, access.write) for access in step.accesses] == [
        (("cell", "a"), False),
        (("cell", "a"), True),
        (("cell", "b"), False),
        (("cell", "b"), True),
    ]


def test_nameless_cells_are_named_after_their_maker() -> None:
    """A nameless cell has the same name in every schedule."""

    async def program() -> None:
        async def make() -> None:
            await checkpoint()
            sim.Cell(0).set(1)
            sim.Cell(0).set(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(make)
            nursery.start_soon(make)

    def names(seed: int) -> set[tuple[object, ...]]:
        steps = sim.run(program, sim.RandomWalk(seed)).trace.steps
        return {access.resource for step in steps for access in step.accesses}

    wanted = {("cell", task, number) for task in ("main.0", "main.1") for number in (0, 1)}
    assert all(names(seed) == wanted for seed in range(10))


def test_odd_resources_do_not_break_a_step() -> None:
    """A resource that cannot be hashed or compared is named by its JSON value."""
    from toolrt import probe

    async def program() -> str:
        probe.access(("table", [1]), True)  # type: ignore[arg-type]
        probe.access(("table", 1), True)
        probe.access(("table", "a"), False)
        return "done"

    execution = sim.run(program)
    assert execution.value == "done"
    assert len(execution.trace.steps[0].accesses) == 3


class _Told(sim.Search):
    """Three executions of which the second is redundant; keeps what it is told."""

    def __init__(self) -> None:
        self.given = 0
        self.told: list[tuple[tuple[str, ...], ...]] = []
        self.seen: list[int] = []

    def begin(self) -> sim.Search:
        return self

    def policy(self) -> sim.Policy | None:
        self.given += 1
        return None if self.given > 3 else self

    def start(self, info: sim.RunInfo) -> None:
        self.steps = info.steps

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        assert len(self.steps) == step
        self.seen.append(sum(len(touched) for _, _, _, touched, _, _ in self.steps))
        if self.given == 2 and step == 2:
            raise sim.Redundant
        return 0

    def learn(self, execution: sim.Execution) -> None:
        self.told.append(execution.enabled)

    def unfinished(self) -> str | None:
        return "it lost interest"


def test_redundant_execution_is_not_counted() -> None:
    """A policy that raises Redundant ends an execution that nobody judges, counts or is told of."""
    search = _Told()
    report = sim.explore(lost_update, search, lambda execution: True)
    assert (report.executions, len(search.told)) == (2, 2)


def test_search_is_told_what_was_enabled_and_touched() -> None:
    """A search sees the enabled lists afterwards, its policy the accesses of each step as it has been made."""
    search = _Told()
    sim.explore(lost_update, search)
    assert search.told[0][:3] == (("main",), ("main.0", "main.1"), ("main.0", "main.1"))
    assert search.seen[:6] == [0, 0, 1, 2, 3, 4]


def test_unfinished_search_is_inconclusive() -> None:
    """A search that has not run what it set out to run is no PASS, and the report says why."""
    report = sim.explore(lost_update, _Told())
    assert report.verdict is sim.INCONCLUSIVE
    assert "Not finished: it lost interest." in str(report)


def _leaves(error: BaseException | None) -> set[type]:
    if isinstance(error, BaseExceptionGroup):
        return set().union(*map(_leaves, error.exceptions))
    return {type(error)}


@pytest.mark.seldom
def test_minimal_keeps_the_kind_of_error_inside_a_group() -> None:
    """Two bugs that both end in an exception group are told apart by what is in it."""

    async def program() -> None:
        cell = sim.Cell(0, name="x")

        async def early() -> None:
            for _ in range(3):
                await checkpoint()
            if cell.get() == 1:
                raise ValueError("one")

        async def count() -> None:
            for number in (1, 2):
                await checkpoint()
                cell.set(number)

        async def late() -> None:
            await checkpoint()
            if cell.get() == 2:
                raise KeyError("two")

        async with trio.open_nursery() as nursery:
            for task in (early, count, late):
                nursery.start_soon(task)

    report = sim.explore(program, sim.Random(sim.RandomWalk(0), 200))
    assert len({frozenset(_leaves(failure.error)) for failure in report.failures}) > 1
    for failure in report.failures:
        assert _leaves(sim.replay(program, failure.minimal).error) == _leaves(failure.error)


def test_minimal_keeps_what_is_violated() -> None:
    """A violation of one law is not shrunk into a violation of another."""

    class Broken:
        def __init__(self, law: str) -> None:
            self.law = law

    def check(execution: sim.Execution) -> list[Broken]:
        first, *_, last = execution.schedule.tasks[1:-1]
        return [Broken("first")] * (first == "main.1") + [Broken("last")] * (last == "main.0")

    report = sim.explore(lost_update, sim.Random(sim.RandomWalk(0), 50), check)
    found = [failure for failure in report.failures if [v.law for v in failure.violations] == ["last"]]
    assert found
    for failure in found:
        assert [v.law for v in check(sim.replay(lost_update, failure.minimal))] == ["last"]
