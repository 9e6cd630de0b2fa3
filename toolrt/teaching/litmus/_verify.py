"""Verifies that a litmus program has exactly the outcomes and counts that it states.

Rules.
    1. A program that is small enough is run under every schedule.  Its outcomes must be exactly those stated: one
       that is not stated fails, one that is stated and never comes fails too.  Where the schedules are counted, they
       must be as many.
    2. Where the classes are counted, and are few enough, it is run once for each (`toolrt.sim.DPOR`): again the
       outcomes must be exactly those, and the executions as many as the classes.  For a program that is too large
       for the first rule this is the verification.
    3. Any other is sampled.  A sample cannot show that an outcome never comes, so the program says by which argument
       its outcomes are all there are; it can show that each does come, and must.
    4. A search that was cut short verifies nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from toolrt import sim
from toolrt.errors import DefinitionRefused
from toolrt.invariants._shared_out import shared_out
from toolrt.sim.exploring._executors import JobsArgument
from toolrt.teaching.litmus._catalogue import LITMUS
from toolrt.teaching.litmus._litmus import Count, Litmus

#: A program with more schedules than this is not run under every one of them, unless asked for.
MOST = 5_000

Method = Literal["every schedule", "every class", "sampled"]


@attrs.frozen
class Verified:
    """What came of the verification of one program."""

    #: The program.
    litmus: Litmus
    #: How it was run.
    method: Method
    #: How many executions that took.
    executions: int
    #: How often each outcome came.
    seen: Mapping[Any, int]
    #: How many classes were run, one execution each; None when that was not done.
    classes: int | None
    #: What is not as it is stated; empty when all is well.
    problems: tuple[str, ...]
    #: The exploration's claim.
    claim: str
    #: The first execution whose outcome is the bug, or is not stated; None when there was none.
    failure: sim.Failure | None = attrs.field(repr=False, eq=False)

    @property
    def ok(self) -> bool:
        """Whether everything is as it is stated."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return {
            "name": self.litmus.name,
            "method": self.method,
            "executions": self.executions,
            "classes": self.classes,
            "outcomes": [
                {"outcome": str(outcome), "count": self.seen.get(outcome, 0), "wrong": outcome in self.litmus.wrong}
                for outcome in in_order({*self.seen, *self.litmus.outcomes})
            ],
            "problems": list(self.problems),
            "ok": self.ok,
        }


def in_order(outcomes: Iterable[Any]) -> list[Any]:
    """Outcomes in an order that is the same in every process: numbers by size, all else by its text."""
    return sorted(outcomes, key=lambda found: (found, "") if isinstance(found, int) else (float("inf"), str(found)))


def method_of(litmus: Litmus, most: int = MOST) -> Method:
    """How `verify` runs the program `litmus`, with at most so many (`most`) schedules or classes."""
    if litmus.interleavings is None:
        small = not litmus.proof
    else:
        small = litmus.interleavings.number <= most
    if small:
        return "every schedule"
    return "every class" if _has_few_classes(litmus, most) else "sampled"


def _has_few_classes(litmus: Litmus, most: int) -> bool:
    return litmus.classes is not None and litmus.classes.number <= most


def verify(litmus: Litmus, most: int = MOST) -> Verified:
    """Run `litmus` and compare what comes with what is stated.

    Args:
        litmus: the program.
        most: how many executions one search of it may take, 1 or more; a program with more schedules and more
            classes than this is sampled.

    Raises:
        DefinitionRefused: `most` is no such number.
    """
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise DefinitionRefused("verify(most)", "a whole number, 1 or more", most)
    method = method_of(litmus, most)
    problems: list[str] = []
    classes = None
    if method == "every schedule":
        report, seen = _searched(litmus, sim.Exhaustive(), most, "schedules", litmus.interleavings, problems)
    elif method == "sampled":
        report, seen = _explored(litmus, sim.Random(sim.RandomWalk(seed=0), litmus.sample), litmus.sample)
        problems += _differences(litmus, seen)
        if not litmus.proof:
            problems.append("sampled, and `proof` does not say how the outcomes are known")
    if _has_few_classes(litmus, most):
        reduced, seen_reduced = _searched(litmus, sim.DPOR(), most, "classes", litmus.classes, problems)
        classes = reduced.executions
        if method == "every class":
            report, seen = reduced, seen_reduced
    failure = report.failures[0] if report.failures else None
    return Verified(litmus, method, report.executions, seen, classes, tuple(problems), report.claim, failure)


def _searched(
    litmus: Litmus, strategy: sim.Strategy, most: int, what: str, stated: Count | None, problems: list[str]
) -> tuple[sim.Report, dict[Any, int]]:
    """Search the whole space of `strategy`, and note what is not as it is stated."""
    # A program that has more than is stated is not run for ever.
    report, seen = _explored(litmus, strategy, 2 * most)
    problems += (problem for problem in _differences(litmus, seen) if problem not in problems)
    if not report.complete:
        problems.append(f"more than {report.executions:,} {what}, or not all of them: {report.claim}")
    elif stated is not None and report.executions != stated.number:
        problems.append(f"{report.executions:,} {what}, expected {stated}")
    return report, seen


def _explored(litmus: Litmus, strategy: sim.Strategy, most: int) -> tuple[sim.Report, dict[Any, int]]:
    seen: Counter[Any] = Counter()

    def note(execution: sim.Execution) -> bool | list[str]:
        seen[litmus.read(execution)] += 1
        return litmus.check(execution)

    report = sim.explore(litmus.program, strategy, note, max_executions=most, **litmus.settings)
    # A copy: `Failure.minimal` runs the check again, which would count more outcomes.
    return report, dict(seen)


def _differences(litmus: Litmus, seen: Mapping[Any, int]) -> list[str]:
    return [
        *(f"unexpected outcome {outcome!r}" for outcome in in_order(set(seen) - litmus.outcomes)),
        *(f"missing outcome {outcome!r}" for outcome in in_order(litmus.outcomes - set(seen))),
    ]


class _Verifier:
    """Verifies one program after the other, in a worker; the task is how many executions a search may take."""

    def __init__(self, most: int, worker: int, told: Callable[[], int]) -> None:
        self._most = most

    def do(self, order: str) -> tuple[Any, ...]:
        one = verify(LITMUS[order], self._most)
        return one.method, one.executions, one.seen, one.classes, one.problems, one.claim, None


def verified_on(workers: JobsArgument | None, programs: Sequence[Litmus], most: int = MOST) -> Iterator[Verified]:
    """Verify programs of the gallery, and give what came of each in their order.

    Args:
        workers: as `toolrt.sim.explore` takes `jobs`; None: in this process.
        programs: of `LITMUS`.
        most: as `verify` takes it.

    What came of a program on a worker has no failing execution: that stays there.  A program whose workers were lost
    is verified here.
    """
    if workers is None:
        for program in programs:
            yield verify(program, most)
        return
    answers = shared_out([program.name for program in reversed(programs)], most, _Verifier, workers)
    found: dict[str, tuple[Any, ...]] = {}
    for program in programs:
        while program.name not in found:
            name, answer = next(answers)
            found[name] = answer
        yield Verified(program, *found.pop(program.name))
