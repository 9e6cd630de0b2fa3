"""Exercises whose answer is a set of outcomes, a number, a schedule or a strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from toolrt import sim
from toolrt.errors import Deadlock, ReplayDiverged, ScheduleRefused
from toolrt.teaching.lab._exercise import Finding, Graders
from toolrt.teaching.litmus import LITMUS, Litmus

# ---------------------------------------------------------------------- outcomes


def _outcomes(litmus: Litmus) -> Callable[[Any], Iterator[Finding]]:
    """Compare a set with what every schedule of a program gives."""

    def findings(answer: Any) -> Iterator[Finding]:
        if isinstance(answer, str | bytes | dict) or not isinstance(answer, Iterable):
            yield Finding(False, "it is a set of outcomes", f"expected a set such as {{0, 1}}, got {answer!r:.60}")
            return
        stated = set(answer)
        found: dict[Any, sim.Execution] = {}

        def note(execution: sim.Execution) -> bool:
            found.setdefault(litmus.read(execution), execution)
            return True

        report = sim.explore(litmus.program, sim.Exhaustive(), note)
        many = f"none of all {report.executions:,} schedules ends so"
        for outcome in sorted(stated - set(found), key=repr):
            yield Finding(False, f"{outcome!r} can come out", many)
        for outcome in sorted(stated & set(found), key=repr):
            yield Finding(True, f"{outcome!r} can come out")
        missing = len(set(found) - stated)
        shown = next((one for outcome, one in found.items() if outcome not in stated), None)
        detail = f"{missing} more {'outcome comes' if missing == 1 else 'outcomes come'} of some schedule"
        yield Finding(not missing, "nothing else can come out", detail if missing else "", shown)

    return findings


# ---------------------------------------------------------------------- numbers


def _numbers(answer: Any) -> Iterator[Finding]:
    wanted = {2: "lost_update_2x1", 3: "lost_update_3x1"}
    if not isinstance(answer, dict) or not all(
        isinstance(pair, tuple | list) and len(pair) == 2 for pair in answer.values()
    ):
        yield Finding(False, "it is {2: (schedules, classes), 3: (schedules, classes)}", f"got {answer!r:.80}")
        return
    for tasks, name in wanted.items():
        program = LITMUS[name].program
        strategies: dict[str, sim.Strategy] = {"schedules": sim.Exhaustive(), "classes": sim.DPOR()}
        for (what, strategy), stated in zip(strategies.items(), answer.get(tasks, (None, None)), strict=True):
            counted = sim.explore(program, strategy, lambda execution: True).executions
            side = "too many" if isinstance(stated, int | float) and stated > counted else "too few"
            detail = f"you say {stated}, which is {side}" if stated is not None else f"there is no entry for {tasks}"
            yield Finding(stated == counted, f"{what} of {tasks} tasks", "" if stated == counted else detail)


# ---------------------------------------------------------------------- schedules


def _schedule(
    program: Callable[[], Any], reached: Callable[[sim.Execution], str]
) -> Callable[[Any], Iterator[Finding]]:
    """Replay a schedule; `reached` says what is missing, or ""."""

    def findings(answer: Any) -> Iterator[Finding]:
        what = "it is a schedule of this program"
        try:
            execution = sim.replay(program, answer)
        except (ScheduleRefused, ReplayDiverged) as error:
            simplest = sim.run(program, sim.Choices()).schedule.short
            yield Finding(False, what, f"{error}\nfor comparison, the simplest schedule is: {simplest}")
            return
        yield Finding(True, what)
        missing = reached(execution)
        yield Finding(not missing, "it makes the failure", missing, execution if missing else None)

    return findings


def _loses(execution: sim.Execution) -> str:
    return "" if execution.value == 1 else f"the counter ends at {execution.value}: both additions are kept"


def _deadlocks(execution: sim.Execution) -> str:
    if isinstance(execution.error, Deadlock):
        return ""
    return f"it ends in {execution.outcome!r}: no task waits for ever"


# ---------------------------------------------------------------------- a strategy

_SEEDS = range(10)
_BUDGET = 300


def _strategy(answer: Any) -> Iterator[Finding]:
    litmus = LITMUS["uneven_25"]
    if not callable(answer):
        yield Finding(False, "it is a function of a seed", f"got {answer!r:.60}")
        return
    missed = []
    for seed in _SEEDS:
        strategy = answer(seed)
        if not callable(getattr(strategy, "begin", None)):
            yield Finding(False, "it gives a strategy", f"expected such as sim.Random(policy, n), got {strategy!r:.60}")
            return
        report = sim.explore(litmus.program, strategy, litmus.check, _BUDGET)
        if not report.failed:
            missed.append(seed)
    yield Finding(True, "it gives a strategy")
    detail = (
        f"not found with {len(missed)} of {len(_SEEDS)} seeds, the first of them {missed[0]}; "
        "what does a policy have to do so that one task runs to its end while another waits?"
        if missed
        else ""
    )
    yield Finding(not missed, f"within {_BUDGET} schedules it finds the bug, with each of {len(_SEEDS)} seeds", detail)


#: What grades each exercise, by name.
BY_SCHEDULE: Graders = {
    "two_adders": _outcomes(LITMUS["lost_update_2x1"]),
    "lose_it": _schedule(LITMUS["lost_update_2x1"].program, _loses),
    "how_many": _numbers,
    "embrace": _schedule(LITMUS["two_locks"].program, _deadlocks),
    "needle": _strategy,
}
