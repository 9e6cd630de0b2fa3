"""Compares the outcomes of an exploration with the exact set that a program must have.

Rules.  An execution whose outcome is not in the set fails, whatever else judges it.  An execution whose outcome is in
the set is fine, also when it ended with an error that the set names; then the user's check is asked, if there is one.
An outcome of the set that no execution made fails an exploration that ran its whole space, and leaves a sample
INCONCLUSIVE: a larger sample might make it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._execution import Execution
from toolrt.sim.exploring._judge import Check, judge
from toolrt.sim.exploring._tally import outcome_key
from toolrt.trace import stable_text


@attrs.frozen
class OutcomeCheck:
    """Complains of an outcome that is not expected; then asks another check, if there is one."""

    #: What the outcomes are counted under, in the order they were given.
    expected: tuple[Any, ...]
    #: What is asked of an execution whose outcome is expected; None: nothing.
    check: Check | None

    @property
    def leaves_out(self) -> tuple[str, ...]:
        """What the other check leaves out."""
        return tuple(getattr(self.check, "leaves_out", ()))

    @property
    def as_argument(self) -> str:
        """The arguments of `toolrt.sim.explore` that make this check."""
        own = f"outcomes=[{', '.join(map(stable_text, self.expected))}]"
        return own if self.check is None else f"{getattr(self.check, '__name__', 'check')}, {own}"

    def __call__(self, execution: Execution) -> Any:
        """Answer as a check does."""
        outcome = execution.outcome
        if outcome_key(outcome) not in self.expected:
            return [f"the outcome {stable_text(outcome)} is none of {_listed(self.expected)}"]
        if self.check is None:
            return True
        judgement = judge(execution, self.check)
        if judgement.undecided or judgement.violations:
            return judgement
        # An error that the set names is no failure.
        return True


def with_outcomes(check: Check | None, outcomes: Iterable[Any]) -> Check:
    """Give the check that also compares each outcome with `outcomes`.

    Raises:
        DefinitionRefused: `outcomes` is no collection, or is empty.
    """
    if isinstance(outcomes, str | bytes | Mapping) or not isinstance(outcomes, Collection) or not outcomes:
        raise DefinitionRefused("outcomes", "a set, or a list, of the outcomes that the program must have", outcomes)
    return OutcomeCheck(named_outcomes(outcomes), check)


def named_outcomes(outcomes: Iterable[Any]) -> tuple[Any, ...]:
    """Give what `outcomes` are counted under in a report: a type of error is its name."""
    names = [
        one.__name__ if isinstance(one, type) and issubclass(one, BaseException) else outcome_key(one)
        for one in outcomes
    ]
    return tuple(dict.fromkeys(names))


def never_made(check: Check | None, made: Collection[Any]) -> tuple[Any, ...]:
    """Give the expected outcomes that are not in `made`."""
    if not isinstance(check, OutcomeCheck):
        return ()
    return tuple(one for one in check.expected if one not in made)


def _listed(outcomes: Iterable[Any]) -> str:
    return "{" + ", ".join(map(stable_text, outcomes)) + "}"
