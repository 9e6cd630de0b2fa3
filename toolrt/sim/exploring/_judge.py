"""Judges one execution by the user's check.

A check is called with the execution.  It complains by raising AssertionError, by returning False, by returning a
text, which is the violation, or by returning violations (anything iterable that is not empty).  ``None``, an empty
text and an empty list are no complaint; then an execution that ended with an error is still a failure.  Exactly
``True`` says that all is well, also with an error.  An execution that the step limit ended while the clock waited, or a
task that was never given a turn, decides nothing and is not shown to the check: time only moves when nothing can run,
and a schedule may starve a task as no scheduler of Trio's does, so it may have been about to end.  An answer with a
true attribute ``undecided`` decides nothing either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused, Livelock, NotSimulated, RealTimeout, StepLimit, errors_in
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._fairness import POLLED_UNSEEN

Check = Callable[[Execution], Any]


@attrs.frozen
class Judgement:
    """What is to be said of one execution."""

    #: It is wrong.
    failed: bool
    #: It decides nothing.
    undecided: bool = False
    #: What the check complained of, in order.
    violations: tuple[Any, ...] = ()
    #: Why it decides nothing, and what would decide it; "" where it does.
    why: str = ""

    def same_kind(self, other: Judgement, error: BaseException | None, other_error: BaseException | None) -> bool:
        """Say whether this failure looks like the bug of `other`.

        It does when the same types of error are in both, whatever groups they are in, and when it complains of
        nothing that the other does not, and of something if the other does.
        """
        complaints, others = _kinds(self.violations), _kinds(other.violations)
        return (
            self.failed == other.failed
            and _types(error) == _types(other_error)
            and complaints <= others
            and bool(complaints) == bool(others)
        )


_FINE, _WRONG = Judgement(failed=False), Judgement(failed=True)


def _undecided(why: str) -> Judgement:
    return Judgement(failed=False, undecided=True, why=why)


def _why_stopped(error: StepLimit) -> str:
    """Say why an execution that the step limit or a livelock ended may have been about to end."""
    if isinstance(error, Livelock):
        return (
            "a loop waits for the clock, which moves to deadlines only, and none is pending: let the loop sleep, or "
            "give it a deadline"
        )
    limit = f"the step limit of {error.limit} ended it"
    if error.time_stood_still:
        return f"{limit} while a deadline was pending, and tasks that go on keep the clock from it: let them sleep"
    return f"{limit} while {', '.join(error.starved)} could run and had no turn for long: give a higher step_limit"


def _types(error: BaseException | None) -> frozenset[type]:
    return frozenset(map(type, errors_in(error)))


def _kinds(violations: tuple[Any, ...]) -> frozenset[str]:
    """Give what is broken: the law a violation names, or else its type."""
    return frozenset(str(getattr(violation, "law", type(violation).__name__)) for violation in violations)


def judge(execution: Execution, check: Check | None) -> Judgement:
    """Judge `execution`.

    Raises:
        DefinitionRefused: the check returned something that is no answer.

    What the check raises, other than AssertionError, is raised as it is.  But where the execution ended with an error,
    and so without a value, a TypeError or AttributeError of the check is no more than that: the error is the failure.
    """
    judgement = _judged(execution, check)
    if judgement.failed and POLLED_UNSEEN in execution.caveats:
        return _undecided(
            "time moved to a deadline while a loop polled the clock, which may have left it before: compare seconds "
            "(trio.current_time, time.monotonic, time.time), or let the loop sleep"
        )
    return judgement


def _judged(execution: Execution, check: Check | None) -> Judgement:
    error = execution.error
    if isinstance(error, StepLimit) and (error.time_stood_still or error.starved):
        return _undecided(_why_stopped(error))
    if isinstance(error, RealTimeout):
        return _undecided(f"it could not {error.action}: {error.remedy.partition('  It was in:')[0]}")
    if check is None:
        return _FINE if error is None else _WRONG
    try:
        answer = check(execution)
    except AssertionError as complaint:
        return Judgement(failed=True, violations=(complaint,))
    except (TypeError, AttributeError):
        # It looked at a value that an execution with an error has not.
        if error is None or execution.value is not None:
            raise
        return _WRONG
    if answer is True:
        # No check can tell what a program that would have left the simulation would have done.
        if isinstance(error, NotSimulated):
            return _undecided(f"a step asked for what is not simulated ({error.action}): {error.remedy}")
        return _FINE
    if answer is False:
        return Judgement(failed=True, violations=("the check returned False",))
    if answer is None:
        return _FINE if error is None else _WRONG
    if isinstance(answer, Judgement):
        return answer
    if getattr(answer, "undecided", False) is True:
        # A judge that ran out of its budget; an error is a failure all the same.
        return _WRONG if error is not None else _undecided(f"the check could not decide: {answer}")
    if isinstance(answer, Iterable) and not isinstance(answer, bytes):
        violations = (() if not answer else (answer,)) if isinstance(answer, str) else tuple(answer)
        return Judgement(failed=bool(violations) or error is not None, violations=violations)
    raise DefinitionRefused("a check's answer", "None, a bool, a text, or an iterable of violations", answer)
