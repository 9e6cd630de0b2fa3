"""Builds the report of an exploration, its verdict and its claim, from the evidence.

Rules.  One failure makes the verdict FAIL.  It is PASS only when the search was finished, no execution was undecided,
and nothing casts doubt on the evidence; else it is INCONCLUSIVE, and `Report.unfinished` says why.  If the same choices
led to different things, schedules decide nothing: the claim is then the number of executions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from toolrt._plain import counted, stable_text
from toolrt.errors import RealTimeout, StepLimit
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._job import Driver, Job
from toolrt.sim.engine._record import THREADS_AT_ACCESSES
from toolrt.sim.exploring._judge import Judgement, judge
from toolrt.sim.exploring._outcomes import never_made
from toolrt.sim.exploring._program import ExploredProgram
from toolrt.sim.exploring._repeats import another_outcome
from toolrt.sim.exploring._report import Failure, Report, Verdict
from toolrt.sim.exploring._tally import ExecutionCounts, outcome_key
from toolrt.sim.exploring._temporal import shown, unmet
from toolrt.sim.exploring._unseen import unseen_state
from toolrt.sim.policies import Choices, Policy
from toolrt.sim.programs._actors import CRASH, enters_scope
from toolrt.sim.strategies import Search

# So many executions are run again without tracking.
_UNTRACKED = 4

# Caveats of executions that what is outside of them may have failed.
_REAL = frozenset({"real files", "real sockets", "real processes"})


@attrs.define
class Evidence(ExecutionCounts):
    """What the executions of an exploration have shown, and what casts doubt on it."""

    #: How many different schedules were among them.
    distinct: int = 0
    #: How often each outcome came.
    outcomes: dict[Any, int] = attrs.Factory(dict)
    #: The first failures.
    failures: list[tuple[Execution, Judgement]] = attrs.Factory(list)
    #: Of executions number 1, 2, 4, 8 and so on the choices, the number, and the outcome.
    some: list[tuple[Choices, int, Any]] = attrs.Factory(list)
    #: What executions leave behind that fails later ones; None: nothing, as far as was seen.
    left_behind: str | None = None
    #: How a sample contradicts the search's reduction; None: none does, or none was drawn.
    contradiction: str | None = None
    #: What was not run, or not run again as it was; None: nothing.
    lost: str | None = None
    #: True when Ctrl-C ended it.
    interrupted: bool = False

    def count(self, outcome: Any, times: int = 1) -> Any:
        """Count an outcome, and give its key."""
        key = outcome_key(outcome)
        self.outcomes[key] = self.outcomes.get(key, 0) + times
        return key

    def note_left_behind(self, first: Execution, again: Execution) -> None:
        """Take note that the schedule which was run first ends otherwise after all the others."""
        if first.error is None and again.error is not None and not isinstance(again.error, RealTimeout):
            self.left_behind = (
                "a schedule passes when it is run first, and fails after the others: what executions leave behind "
                "(variables of a module, hooks, what ends late) fails it, and no order of steps; make it anew each time"
            )

    def hold_against_samples(
        self, task: ExploredProgram, search: Search, job: Callable[[Policy, int], Job]
    ) -> Driver[None]:
        """Run the samples that the search asks for, count only their failures, and keep the contradiction."""
        check = task.check
        held = search.hold_against_samples(self.outcomes)
        try:
            policy = next(held)
            while True:
                execution = yield job(policy, self.executions)
                judgement = judge(execution, check)
                if judgement.failed:
                    self.executions += 1
                    self.failed += 1
                    self.count(execution.outcome)
                    self.failures.append((execution, judgement))
                policy = held.send(execution)
        except StopIteration as stop:
            self.contradiction = stop.value
        if not self.failed:
            # What tracking changes is the cause of what else is seen.
            self.contradiction = (yield from self._without_tracking(task, search)) or self.contradiction
        if search.reduces and task.tracking is None and self.contradiction is None and not self.failed:
            self.contradiction = yield from unseen_state(task, self.executions)

    def _without_tracking(self, task: ExploredProgram, search: Search) -> Driver[str | None]:
        """Run some of the schedules without tracking, and give what that changes; None: nothing, as far as is seen."""
        if task.tracking is None:
            return None
        # Untracked threads hand over elsewhere: the same choices are another schedule, one of those that were explored.
        same_schedule = THREADS_AT_ACCESSES not in self.caveats
        if not same_schedule and not search.complete():
            return None
        program = attrs.evolve(task, tracking=None).bound()
        for choices, index, tracked in self.some[-_UNTRACKED:]:
            plain = yield Job(program, choices, task.step_limit, index)
            if isinstance(plain.error, StepLimit):
                continue  # it decides nothing
            is_known = not same_schedule and outcome_key(plain.outcome) in self.outcomes
            if not is_known and another_outcome(tracked, plain.outcome) is not None:
                was, now = (f"{stable_text(outcome):.100}" for outcome in (tracked, plain.outcome))
                return (
                    f"one schedule has the outcome {was} with tracking and {now} without: tracking changes what the "
                    "program does; explore it with track=False"
                )
        return None

    def doubt(self, own: str | None) -> str | None:
        """Give the doubt that counts most; `own` is the search's."""
        if own is not None and "the simulator does not control" in own:
            return own
        beside = self.beside and (
            f"{self.beside} ran beside the program's tasks; when it runs is no choice, so one order was tried of many"
        )
        return self.difference or self.lost or self.contradiction or beside or own


def report_of(task: ExploredProgram, search: Search, seen: Evidence) -> Report:
    """Give the report of an exploration that has ended.

    A PASS runs the program once more if `cancel_at` names a scope: the simplest schedule has to enter one.
    """
    own, is_complete, claim = search.unfinished(), search.complete(), search.claim(seen.executions, seen.distinct)
    why = seen.doubt(own)
    complete = is_complete and why is None
    if why is not None and why == seen.difference and why != own:
        claim = f"uncontrolled(n={seen.executions})"
    elif why is not None and is_complete:
        claim = "incomplete" + claim[claim.find("(") :] if "(" in claim else f"incomplete({claim})"
    if seen.failed:
        verdict = Verdict.FAIL
    else:
        verdict = Verdict.INCONCLUSIVE if seen.undecided or why or not seen.executions else Verdict.PASS
    name = None if task.actors.cancel_at in ("any", CRASH) else task.actors.cancel_at
    if verdict is Verdict.PASS and name is not None and not _enters_scope(task, name):
        # No scope has this name, so no execution was cancelled.
        verdict, complete, why = Verdict.INCONCLUSIVE, False, f"the simplest schedule enters no scope named {name!r}"
    missing = never_made(task.check, seen.outcomes)
    if missing and verdict is Verdict.PASS:
        verdict = Verdict.FAIL if complete else Verdict.INCONCLUSIVE
        why = None if complete else "expected outcomes were not seen; more executions may make them"
    if (wanted := unmet(task.check)) is not None and verdict is Verdict.PASS:
        verdict, why = (Verdict.FAIL if complete else Verdict.INCONCLUSIVE), wanted
    claim += shown(task.check)
    actors = task.actors.in_words
    if task.tracking is not None:
        actors.append(f"track={task.tracking}")
    if task.world is not None:
        actors.append(f"given {task.world}")
    actors += sorted(seen.caveats)
    if seen.streams:
        # What another stream would have shown was not tried.
        many = counted(len(seen.streams), "stream") if len(seen.streams) > 1 else "one stream"
        actors.append(f"{many} of random numbers")
    if actors:
        claim += f" with {', '.join(actors)}"
    failures = [Failure(task, *each) for each in seen.failures]
    if seen.failed and seen.left_behind is not None:
        verdict, why = Verdict.INCONCLUSIVE, seen.left_behind
    if seen.difference and _REAL.intersection(seen.caveats) and not any(each.fails_again() for each in failures):
        # What is real has failed it, and does so no more: no schedule did.
        verdict = Verdict.INCONCLUSIVE
    return Report(
        verdict=verdict,
        claim=claim,
        executions=seen.executions,
        repeated=seen.repeated,
        distinct=seen.distinct,
        complete=complete,
        outcomes=seen.outcomes,
        failed=seen.failed,
        undecided=seen.undecided,
        reasons=dict(sorted(seen.reasons.items(), key=lambda reason: -reason[1])),
        failures=failures,
        unfinished=why,
        interrupted=seen.interrupted,
        checked=task.check is not None,
        leaves_out=tuple(getattr(task.check, "leaves_out", ())),
        missing=missing,
        order=task.actors.order,
        pairs=getattr(search, "pairs", None),
    )


def _enters_scope(task: ExploredProgram, name: str) -> bool:
    """Say whether the simplest schedule enters a scope of this name."""
    uncancelled = attrs.evolve(task, actors=attrs.evolve(task.actors, cancel_at=None, order="any"))
    return enters_scope(uncancelled.bound(), name, task.step_limit)
