"""What a page says above the steps of a batch: the verdict, what is wrong, and how to run it again."""

from __future__ import annotations

from collections.abc import Sequence

from toolrt import invariants, sim
from toolrt.cli._tally import calls_of
from toolrt.cli.experiment._experiment import Experiment, ExperimentEnding
from toolrt.cli.screen._escape import on_one_line
from toolrt.errors import StepLimit
from toolrt.trace import stable_text


def title_of(name: str, experiment: Experiment) -> str:
    """Name a batch: the response, how many calls, and how they are run."""
    calls, lanes, limit = experiment.calls, experiment.lanes, experiment.limit
    lanes += "" if experiment.slots is None else f", slots {experiment.slots}"
    return f"{on_one_line(name, 200)}: {calls_of(len(calls))}, {lanes}, at most {limit:,} at once"


def verdict_of(execution: sim.Execution, violations: Sequence[invariants.Violation]) -> sim.Verdict:
    """Judge one execution: undecided when the step limit ended it while time, or a task, waited."""
    error = execution.error
    if isinstance(error, StepLimit) and (error.time_stood_still or error.starved):
        return sim.INCONCLUSIVE
    return sim.PASS if error is None and not violations else sim.FAIL


def about_batch(
    name: str,
    experiment: Experiment,
    execution: sim.Execution,
    violations: Sequence[invariants.Violation],
    verdict: sim.Verdict,
    held: str,
    again: str | None,
) -> list[tuple[str, str]]:
    """Give the pairs for `toolrt.view.show(about=)`.

    Args:
        name: of the response.
        execution: the one that the page shows.
        violations: of that execution.
        verdict: what the page says first.
        held: what to say beside the verdict when nothing is wrong.
        again: the command that repeats the execution; None when nothing was kept to repeat it from.
    """
    error = execution.error
    wrong = [("Violation", str(violation)) for violation in violations]
    if error is not None:
        wrong.append(("Error", f"the execution ended by {type(error).__name__}: {error}"))
    value = execution.value.in_words if isinstance(execution.value, ExperimentEnding) else stable_text(execution.value)
    also = experiment.variation.in_words()
    return [
        (verdict.name, wrong[0][1] if wrong else held),
        *wrong,
        *([] if error is not None else [("Value", value)]),
        ("Program", title_of(name, experiment) + (f"; {also}" if also else "")),
        ("Schedule", execution.schedule.short),
        *([] if again is None else [("Run it again", again)]),
    ]
