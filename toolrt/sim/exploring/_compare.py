"""Shows a failing execution beside the nearest one that passes.

Rules.  The nearest is looked for among the executions in which one choice is another one, and those after it are
either the same or zeros.  The nearest is the one that goes the same way longest, then the one whose order of steps
has the fewest steps out of place, then the one with the fewest preemptions.

Theory.  In a failure with as few preemptions as there can be, each preemption matters: without any one of them it
passes (Zeller, 2002: the cause is the smallest difference between what fails and what does not).

Limits.  Bounded searches: what is found is near, not always nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

from toolrt.sim.engine._execution import Execution
from toolrt.sim.exploring._judge import Judgement
from toolrt.trace import parting_of

# How many executions are run to find one that passes, and how many steps those may have altogether.
_MOST_TRIES = 200
_MOST_STEPS = 100_000

#: Runs a list of choices, and judges the execution.
Attempt = Callable[[tuple[int, ...]], Generator[Any, Execution, tuple[Execution, Judgement]]]


def passing_beside(failing: Execution, attempt: Attempt) -> Generator[Any, Execution, Execution | None]:
    """Give the nearest execution found that passes; None when there is none."""
    best: Execution | None = None
    least: tuple[int, int, int] | None = None
    steps_left = _MOST_STEPS
    tasks = failing.schedule.tasks
    seen = {failing.choices}
    tries = 0
    for choices in _one_choice_away(failing):
        if tries == _MOST_TRIES or steps_left <= 0:
            break
        tries += 1
        execution, judgement = yield from attempt(choices)
        steps_left -= len(execution.choices)
        if judgement.failed or judgement.undecided or execution.choices in seen:
            continue
        seen.add(execution.choices)
        schedule = execution.schedule
        parting = parting_of(tasks, schedule.tasks)
        measure = (-parting.before, parting.distance, schedule.switches)
        if least is None or measure < least:
            best, least = execution, measure
    return best


def _one_choice_away(execution: Execution) -> Iterator[tuple[int, ...]]:
    choices, enabled = execution.choices, execution.enabled
    # Preemptions first: they are what the failure needs.
    places = sorted(range(len(choices)), key=lambda step: (choices[step] == 0, -step))
    for step in places:
        for other in range(len(enabled[step])):
            if other != choices[step]:
                yield (*choices[:step], other)
                if any(choices[step + 1 :]):
                    yield (*choices[:step], other, *choices[step + 1 :])
