"""The property tests that judge mutants by machine, the quickest first.

A judge is asked only of mutants of functions that it runs: which these are is found once, on the code as it is.  Of the
shipped examples, too, a mutant meets only those that run its function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
from hypothesis import HealthCheck, Phase, settings

from tests.mutation._mutants import CodeMutant, Place, place
from tests.order.test_circles import test_call_is_refused_where_it_would_never_start as circles
from tests.order.test_lanes import test_claims_on_the_state_keep_calls_apart as state_keys
from tests.order.test_lanes import test_partition_follows_the_rules as lanes
from tests.order.test_machine import test_lane_of_many_calls_begins_in_one_step as long_lane
from tests.order.test_machine import test_machine_keeps_its_rules_whatever_happens as machine
from tests.order.test_merge import test_call_is_stale_where_a_modifier_sets_from_an_old_value as stale
from tests.order.test_merge import test_modifiers_apply_in_call_order_and_refused_ones_change_nothing as merges
from tests.order.test_merge import test_value_has_changed_where_it_is_not_the_same as values
from tests.order.test_slots import test_free_slots_go_to_the_outermost_lane_first_and_then_by_places as free_slots
from tests.order.test_slots import test_slots_are_counted as slots
from tests.order.test_tickets import test_tables_belong_to_one_run_of_an_event_loop_at_a_time as tenure
from tests.order.test_tickets import test_tickets_wait_for_earlier_conflicts_and_nothing_else as tickets
from tests.properties.test_concurrent_batches import test_laws_hold_for_batches_that_share_a_workspace as two_batches
from tests.properties.test_proof import refused
from tests.properties.test_tool_context import test_events_keep_law_8_under_every_schedule as events_in_order
from toolrt.invariants import check
from toolrt.testing import shipped_examples, simulate
from toolrt.testing._mutation_score import Example, drawn

__all__ = ["EXAMPLES", "JUDGES", "Bench", "Judge", "bench"]

#: How many examples of the shipped strategy a mutant meets, unless the command says something else.
EXAMPLES = 400

#: Enough steps for what the strategies draw, few enough to tell a mutant that never ends.
_STEP_LIMIT = 5_000


@attrs.frozen
class Judge:
    """One property test."""

    name: str
    #: Raises where the property does not hold.
    run: Callable[[], object]


def _settings(examples: int, **more: Any) -> settings:
    """The same examples at each run, and none is made smaller."""
    return settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        **more,
    )


def _of(test: Any, examples: int) -> Judge:
    def run() -> None:
        before = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = _settings(examples)
        try:
            test()
        finally:
            test._hypothesis_internal_use_settings = before

    return Judge(test.__name__.removeprefix("test_"), run)


#: Those that need no runtime; then, behind the shipped examples, those that do.
JUDGES = (
    _of(slots, 60),
    _of(free_slots, 30),
    _of(state_keys, 60),
    _of(values, 40),
    _of(merges, 60),
    _of(stale, 200),
    _of(lanes, 100),
    _of(circles, 200),
    _of(tenure, 100),
    _of(tickets, 500),
    _of(machine, 500),
    Judge("long_lane", long_lane),
)
LATE = (
    _of(events_in_order, 20),
    _of(two_batches, 40),
)


def tripped(example: Example) -> tuple[str, ...]:
    """Run one example; give the laws that it breaks, or why it is no run of the proof's model."""
    mix, schedule = example
    try:
        execution = simulate(mix, schedule, step_limit=_STEP_LIMIT)
        laws = tuple(dict.fromkeys(found.law for found in check(execution.trace)))
        if laws or execution.error is not None:
            return laws or ("an error",)
        return () if refused(execution.trace) is None else ("a run of the model",)
    except Exception:  # a broken runtime may break anything, also what judges it
        return ("an error",)


@contextmanager
def _noted() -> Iterator[set[Place]]:
    """Inside the block, note the functions that run, by where they are written."""
    found: set[Place] = set()
    seen: set[Any] = set()

    def note(frame: Any, event: str, arg: Any) -> None:
        if frame.f_code not in seen:
            seen.add(frame.f_code)
            found.add(place(frame.f_code))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)


@attrs.define
class Bench:
    """The judges, and which functions each of them runs."""

    #: In the order in which they are asked; the shipped examples stand between the two.
    early: list[tuple[Judge, set[Place]]]
    examples: list[tuple[Example, set[Place]]]
    late: list[tuple[Judge, set[Place]]]

    def judge(self, mutant: CodeMutant, begins: Callable[[], object] = lambda: None) -> tuple[int, str] | None:
        """Who kills the mutant, which is applied: its name, and of the shipped examples the number; None: none does.

        Args:
            begins: called before each test and each example.
        """
        mine = place(mutant.code)
        for judges in (self.early, None, self.late):
            if judges is None:
                for number, (example, runs) in enumerate(self.examples, 1):
                    if mine in runs:
                        begins()
                        if laws := tripped(example):
                            return number, laws[0]
                continue
            for judge, runs in judges:
                if mine in runs:
                    begins()
                    try:
                        judge.run()
                    except Exception:
                        return 0, judge.name
        return None


def bench(seed: int, count: int, judges: Sequence[Judge] = JUDGES, late: Sequence[Judge] = LATE) -> Bench:
    """Run each judge, and `count` shipped examples, on the code as it is, and note what they run.

    Examples on which a law trips are left out.
    """
    found: list[tuple[Example, set[Place]]] = []

    def visit(example: Example) -> bool:
        if example[0].has_oracle:
            example[0].serial()
        with _noted() as runs:
            laws = tripped(example)
        if not laws:
            found.append((example, runs))
        return True

    if count:
        drawn(shipped_examples(), seed, count, visit)
    return Bench(_asked(judges), found, _asked(late))


def _asked(judges: Sequence[Judge]) -> list[tuple[Judge, set[Place]]]:
    found = []
    for judge in judges:
        with _noted() as runs:
            judge.run()
        found.append((judge, runs))
    return found
