"""Whether two executions of one program are what they must be: alike as far as their choices are.

Rules.  The same choices lead to the same steps, with the same tasks that could run and the same accesses; and up to the
first choice every execution is the same.  Where one is not, the program depends on something that no schedule holds.
"""

from __future__ import annotations

from itertools import zip_longest

from toolrt.sim._cell import OUTSIDE
from toolrt.sim._execution import Execution
from toolrt.sim.strategies import uncontrolled
from toolrt.trace import Access, Step

__all__ = ["beginning_of", "begins_otherwise", "difference_between", "step_in_words", "told_by"]


def told_by(step: Step) -> tuple[float, tuple[Access, ...]]:
    """Give when a step was, and what it touched that has a name in every process."""
    # The number of a nameless cell made outside the execution means nothing in another process.
    named = tuple(access for access in step.accesses if access.resource[:2] != ("cell", OUTSIDE))
    return step.time, named


def step_in_words(step: Step) -> str:
    """Say what a step did."""
    time, accesses = told_by(step)
    return f"{step.task} at {time:g} s ({', '.join(map(str, accesses)) or 'touches nothing'})"


def beginning_of(execution: Execution) -> tuple[tuple[str, ...], ...]:
    """Give who could run at each step up to the first at which there was a choice; where that was not kept, nothing."""
    beginning = []
    for _, enabled, *_ in execution._raw_steps:
        if not enabled:
            return ()
        beginning.append(enabled)
        if len(enabled) > 1:
            break
    return tuple(beginning)


def begins_otherwise(beginning: tuple[tuple[str, ...], ...], execution: Execution) -> str | None:
    """Say where an execution went another way than the first although there was no choice; None: nowhere."""
    now = beginning_of(execution)
    if now == beginning or not (now and beginning):
        return None
    for step, (before, after) in enumerate(zip_longest(beginning, now)):
        if before != after:
            return uncontrolled(step, ", ".join(before or ("its end",)), ", ".join(after or ("its end",)))
    return None


def difference_between(first: Execution, again: Execution) -> str | None:
    """Say where two executions of one schedule differ, in what could run or in what was touched; None: nowhere."""
    for step, (before, after) in enumerate(zip_longest(first.schedule.steps, again.schedule.steps)):
        if before is None or after is None or _offered(before) != _offered(after):
            return uncontrolled(step, _offered(before), _offered(after))
        if told_by(before) != told_by(after):
            return uncontrolled(step, step_in_words(before), step_in_words(after))
    if type(first.error) is not type(again.error):
        return uncontrolled(len(first.choices), _ended(first), _ended(again))
    return None


def _offered(step: Step | None) -> str:
    return "its end" if step is None else ", ".join(step.enabled)


def _ended(execution: Execution) -> str:
    return "a return" if execution.error is None else type(execution.error).__name__
