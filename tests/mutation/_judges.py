"""The property tests that judge mutants by machine, the quickest first.

A judge is asked only of mutants of functions that it runs: which these are is found once, on the code as it is.  Of the
shipped examples, too, a mutant meets only those that run its function.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
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
from tests.properties.test_a_batch_is_watched import test_progress_is_kept_up_to_a_bound_and_counted_beyond_it as kept
from tests.properties.test_a_batch_is_watched import test_what_is_shown_is_what_is_so as watched
from tests.properties.test_approvals import test_call_does_what_was_approved_and_no_more as approved
from tests.properties.test_concurrent_batches import test_laws_hold_for_batches_that_share_a_workspace as two_batches
from tests.properties.test_exits import test_exit_ends_the_batch_and_goes_out as exits
from tests.properties.test_how_calls_end import test_each_call_ends_as_what_came_first_says as ends
from tests.properties.test_left_open import (
    test_answer_is_looked_through_five_deep_and_for_a_thousand_values as looked_through,
)
from tests.properties.test_left_open import test_answer_that_is_not_a_value_is_refused as answers
from tests.properties.test_left_open import (
    test_scope_of_another_call_that_a_tool_leaves_is_its_own_error as scope_of_another,
)
from tests.properties.test_left_open import test_what_is_left_open_is_closed_and_said as left_open
from tests.properties.test_misuse import test_what_is_refused_changes_nothing as misuse
from tests.properties.test_owners import test_undeclared_is_alone_within_its_owner_and_claims_order_all as owners
from tests.properties.test_proof import refused
from tests.properties.test_root_claims import test_same_as_serial_where_calls_claim_everything as root_claims
from tests.properties.test_serial_oracle import (
    test_claims_on_everything_end_as_one_call_after_the_other as as_one_after_the_other,
)
from tests.properties.test_threads import (
    test_call_in_a_thread_ends_as_its_thread_does_unless_it_was_seen as in_threads,
)
from tests.properties.test_tool_context import test_events_keep_law_8_under_every_schedule as events_in_order
from tests.properties.test_turns_of_owners import test_batches_of_one_owner_take_turns as turns
from tests.properties.test_turns_of_owners import test_wait_for_what_declares_nothing_is_told_once as told_once
from tests.properties.test_what_a_call_lends import test_calls_inside_have_what_the_call_has_and_no_more as lent
from tests.properties.test_what_a_call_lends import test_no_call_inside_outlives_the_call as no_child_outlives
from tests.properties.test_what_a_call_lends import test_sub_batches_are_nested_so_deep_and_no_deeper as nested
from tests.runtime.test_results_are_bounded import test_bound_holds_for_every_value as bounded
from toolrt.invariants import check
from toolrt.testing import shipped_examples, simulate
from toolrt.testing._mutation_score import Example, drawn

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


@attrs.frozen
class Asked:
    """A judge or an example, with what it did on the code as it is."""

    what: Any
    #: The functions that it ran.
    runs: set[Place]
    #: How much processor time it took.
    seconds: float


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


#: Those that need no runtime.
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
    _of(tickets, 150),
    _of(machine, 150),
    Judge("long_lane", long_lane),
)
#: Those of what a runtime does beside ordering calls.
SHELL = (
    _of(answers, 40),
    _of(looked_through, 40),
    _of(left_open, 30),
    _of(scope_of_another, 20),
    _of(ends, 50),
    _of(in_threads, 40),
    _of(exits, 50),
    _of(misuse, 30),
    _of(turns, 50),
    _of(told_once, 20),
    _of(watched, 60),
    _of(kept, 8),
    _of(approved, 60),
    _of(lent, 25),
    _of(no_child_outlives, 30),
    _of(nested, 4),
    _of(root_claims, 30),
    _of(as_one_after_the_other, 20),
)
#: Behind the shipped examples.
LATE = (
    _of(events_in_order, 20),
    _of(two_batches, 20),
    _of(bounded, 10),
    _of(owners, 8),
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
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(before)


@attrs.define
class Bench:
    """The judges, and which functions each of them runs."""

    #: In the order in which they are asked; the shipped examples stand between the two.
    early: list[Asked]
    examples: list[Asked]
    late: list[Asked]

    def judge(self, mutant: CodeMutant, begins: Callable[[float], object] = float) -> tuple[int, str] | None:
        """Who kills the mutant, which is applied: its name, and of the shipped examples the number; None: none does.

        Args:
            begins: called before each test and each example, with the seconds that it took on the code as it is.
        """
        mine = place(mutant.code)
        numbered = list(enumerate(self.examples, 1))
        for number, asked in [*((0, one) for one in self.early), *numbered, *((0, one) for one in self.late)]:
            if mine not in asked.runs:
                continue
            begins(asked.seconds)
            if number:
                if laws := tripped(asked.what):
                    return number, laws[0]
                continue
            try:
                asked.what.run()
            except Exception:
                return 0, asked.what.name
        return None


def bench(seed: int, count: int, judges: Sequence[Judge] = JUDGES, late: Sequence[Judge] = LATE) -> Bench:
    """Run each judge, and `count` shipped examples, on the code as it is, and note what they run.

    Examples on which a law trips are left out.
    """
    gc.collect()
    gc.freeze()  # closing what is left open looks at all that is there
    found: list[Asked] = []

    def visit(example: Example) -> bool:
        if example[0].has_oracle:
            example[0].serial()
        with _noted() as runs:
            began = time.process_time()
            laws = tripped(example)
        if not laws:
            found.append(Asked(example, runs, time.process_time() - began))
        return True

    if count:
        drawn(shipped_examples(), seed, count, visit)
    return Bench(_asked(judges), found, _asked(late))


def _asked(judges: Sequence[Judge]) -> list[Asked]:
    found = []
    for judge in judges:
        began = time.process_time()
        with _noted() as runs:
            judge.run()
        found.append(Asked(judge, runs, time.process_time() - began))
    return found
