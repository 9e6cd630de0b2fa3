"""Checks that two executions of one program are alike as far as their choices are.

Rules.  The same choices lead to the same steps, with the same tasks that could run and the same accesses, and to the
same outcome; and up to the first choice every execution with the same random numbers is.  Where one is not, the program
depends on something that no schedule holds.

Which executions are run twice: the first, those numbered by a power of two up to 32, and one in fifty.  A value that
chance decides between two is then seen in a small exploration, too.  After the first thousand it is one in two hundred.
Of executions of 1,000 steps or more those numbered by a power of four: each has many chances to differ.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from toolrt.sim.engine._execution import Execution, is_same_outcome
from toolrt.sim.exploring._tally import fingerprint
from toolrt.sim.programs._cell import OUTSIDE
from toolrt.sim.strategies import uncontrolled
from toolrt.trace import Access, Step, stable_text

_OFTEN, _EVERY = frozenset((1, 2, 4, 8, 16, 32)), 50

# The same in executions of many steps, and after many executions.
_OFTEN_IN_LONG, _LONG, _SELDOM, _MANY = frozenset((1, 4, 16)), 1_000, 200, 1_000


class Repeats:
    """Holds the executions of one exploration against each other."""

    def __init__(self) -> None:
        self._beginning: tuple[tuple[str, ...], ...] | None = None
        self._chance: int | None = None
        #: How many second runs there were.
        self.runs = 0
        #: The outcome of each list of choices.
        self.outcomes: dict[Any, Any] = {}
        #: How two executions differ that must be alike; None: no two do.
        self.difference: str | None = None
        #: What a claim has to say of executions of one schedule that read different bytes from what is real.
        self.caveats: frozenset[str] = frozenset()

    def note(self, execution: Execution, outcome: Any, repeats: bool = True) -> None:
        """Hold `execution`, which has this `outcome`, against those before it.

        Args:
            execution: the execution.
            outcome: what it is counted under.
            repeats: False: its schedule is known to be no other's, and is not kept.
        """
        if self._beginning is None:
            self._beginning, self._chance = beginning_of(execution), execution.chance
        elif self.difference is None and (None in (one := {self._chance, execution.chance}) or len(one) == 1):
            self.difference = begins_otherwise(self._beginning, execution)
        if not repeats:
            return
        known = self.outcomes.setdefault(fingerprint(execution), outcome)
        if known is not outcome and self.difference is None:
            self.difference = another_outcome(known, outcome)

    def compare(self, execution: Execution, again: Execution, touched: bool = True) -> None:
        """Hold `execution` against another run of its choices; `touched`: both say what their steps touched."""
        self.runs += 1
        if self.difference is None and not _looks_alike(execution, again, touched):
            self.difference = difference_between(execution, again, touched)
        if (what := _heard_otherwise(execution, again)) is not None:
            self.caveats |= {"real bytes that differ when the same choices are made again"}
            if self.difference is not None and _HEARD not in self.difference:
                self.difference += f"; {what}"

    @staticmethod
    def is_due(index: int, steps: int) -> bool:
        """Say whether the execution of this number, from 0, is run twice at once; the first is when all is over."""
        every = _EVERY if index < _MANY else _SELDOM
        return index % every == every - 1 or index in (_OFTEN if steps < _LONG else _OFTEN_IN_LONG)


# What a difference says of real bytes begins with this.
_HEARD = "other bytes came from"


def _heard_otherwise(execution: Execution, again: Execution) -> str | None:
    """Say which read of a real file or socket gave two executions different bytes; None: none did."""
    for before, after in zip_longest(execution.heard, again.heard):
        if before != after:
            (_, *name), number, *_ = before or after
            return f"{_HEARD} real {'.'.join(map(str, name))} (read {number})"
    return None


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
    """Give the enabled lists up to the first with a choice; nothing if they were not kept."""
    beginning = []
    for _, enabled, *_ in execution._one_by_one():
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


def difference_between(first: Execution, again: Execution, touched: bool = True) -> str | None:
    """Say where two executions of one schedule differ, in what could run or in what was touched; None: nowhere."""
    # Not `schedule`: it would have the program run again where no record was kept.
    steps = first._steps(with_causes=False), again._steps(with_causes=False)
    for step, (before, after) in enumerate(zip_longest(*steps)):
        if before is None or after is None or not _offer_the_same(before, after):
            return uncontrolled(step, _offered(before), _offered(after))
        if touched and told_by(before) != told_by(after):
            return uncontrolled(step, step_in_words(before), step_in_words(after))
    if type(first.error) is not type(again.error):
        return uncontrolled(len(first.choices), _ended(first), _ended(again))
    return another_outcome(first.outcome, again.outcome)


def another_outcome(one: Any, other: Any) -> str | None:
    """Say how two outcomes of the same choices differ; None: they do not, or a reader could not tell."""
    if is_same_outcome(one, other):
        return None
    before, after = _cut(stable_text(one)), _cut(stable_text(other))
    return (
        f"the same choices led to the outcome {before} once, to {after} another time: the program depends on something "
        "the simulator does not control"
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_OF_AN_OUTCOME else f"{text[:_MOST_OF_AN_OUTCOME]}..."


# Of an outcome's text so many characters are shown.
_MOST_OF_AN_OUTCOME = 200


def _looks_alike(one: Execution, other: Execution, touched: bool) -> bool:
    """Say whether two executions of the same choices are plainly the same; False where it takes a closer look."""
    # Where the changes of enabled lists are alike, so are the lists, and need not be made.
    unmade = one._changes == other._changes
    steps, others = (one._made, other._made) if unmade else (one._raw_steps, other._raw_steps)
    if len(steps) != len(others) or type(one.error) is not type(other.error):
        return False
    for (actor, enabled, choice, felt, time, _), (its, could, made, now, then, _) in zip(steps, others, strict=True):
        # Enabled lists are not kept in an execution that is not shown.
        if actor.name != its.name or choice != made or time != then or (touched and felt != now):
            return False
        if enabled != could and enabled and could:
            return False
    return another_outcome(one.outcome, other.outcome) is None


def _offer_the_same(one: Step, other: Step) -> bool:
    if one.enabled and other.enabled:
        return one.enabled == other.enabled
    # Enabled lists are not kept in an execution that is not shown.
    return one.task == other.task


def _offered(step: Step | None) -> str:
    return "its end" if step is None else ", ".join(step.enabled or (step.task,))


def _ended(execution: Execution) -> str:
    return "a return" if execution.error is None else type(execution.error).__name__
