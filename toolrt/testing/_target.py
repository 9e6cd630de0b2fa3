"""Features of an interleaving that Hypothesis can aim at."""

from __future__ import annotations

from hypothesis import target

from toolrt.sim import Execution, PairCoverage

__all__ = ["interleaving_features", "target_interleaving"]


def interleaving_features(execution: Execution) -> dict[str, int]:
    """Say how much of an interleaving `execution` was.

    Returns:
        ``preemptions``: how often a step was given to another task although the one before could go on.  ``overlaps``:
        how many pairs of tasks had a step of one between two steps of the other.  ``races``: how many racing pairs of
        accesses there were.  ``both_orders``: how often two tasks raced for one resource in both orders.

    Checkpoint: never (it is not async).
    """
    spans: dict[str, list[int]] = {}
    steps = [step.task for step in execution.schedule.steps]
    for index, task in enumerate(steps):
        spans.setdefault(task, []).append(index)
    overlaps = 0
    tasks = list(spans)
    for place, one in enumerate(tasks):
        for other in tasks[place + 1 :]:
            overlaps += _is_within(spans[one], spans[other]) or _is_within(spans[other], spans[one])
    pairs = PairCoverage()
    races = pairs.note(execution)
    tasks_of = {(pair.resource, pair.first, pair.second) for pair in pairs.one_way}
    return {
        "preemptions": execution.schedule.switches,
        "overlaps": overlaps,
        "races": races,
        "both_orders": len(tasks_of & {(resource, second, first) for resource, first, second in tasks_of}) // 2,
    }


def _is_within(one: list[int], other: list[int]) -> bool:
    return any(one[0] < index < one[-1] for index in other)


def target_interleaving(execution: Execution, label: str = "") -> dict[str, int]:
    """Let Hypothesis look for examples with more of each of `interleaving_features`; call it inside ``@given``.

    Args:
        execution: of the example.
        label: tells several executions of one example apart.

    Returns:
        The features.

    Hypothesis refuses (`hypothesis.errors.InvalidArgument`) one label twice in an example, and a call outside of one.

    Checkpoint: never (it is not async).

    Example:
        ``testing.target_interleaving(testing.simulate(mix, schedule))``
    """
    features = interleaving_features(execution)
    for name, value in features.items():
        target(value, label=f"{label} {name}".strip())
    return features
