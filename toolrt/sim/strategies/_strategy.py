"""The contract between an exploration and the strategy that picks its executions.

Rules.  A *strategy* is a value: the same one may serve many explorations.  Its `begin` gives a *search*, which is what
one exploration has learned so far: it gives a policy, learns from its execution, and gives the next policy, until it
has none or the budget has run out.  What an execution showed is in the execution: for each step the enabled list, the
choice, and what was touched (`Execution.enabled`, `Execution.choices`, `Execution.trace`).  A search that has to know
while an execution runs has it from its policy: `RunInfo.steps` grows step by step.

`claim` says in words and figures what was shown, and never more; `complete` is True only when the whole space of
the claim was run; `unfinished` says why a search that set out to run a whole space has not.  An exploration whose
search is unfinished, and in which nothing failed, is INCONCLUSIVE: a budget that ran out is no PASS.

A *shared* search can be done in parts, by several processes and in several sittings: the whole lends out what is left
of it, each part is a search that can be pickled, and what is left of a part is given back.  What is run in the end
is the same however it was divided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Sequence
from typing import Any, Protocol

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._execution import Execution
from toolrt.sim.policies._policy import Policy
from toolrt.sim.policies._seeds import checked_seed


class Redundant(Exception):
    """Raised by a policy: another execution has already shown what this one can show.  It is ended and not counted."""


class Search(ABC):
    """One exploration as its strategy sees it; see the module's header for the contract."""

    #: True when nothing here calls code of the user's: the explorer then need not step out of the Trio run.
    asks_nobody = False

    #: The stream of random numbers for the program under the policy given last: a sampler has one for each execution.
    chance = 0

    #: True when `judged` is to be called.
    minds_failures = False

    #: True when it leaves out executions because of what steps report: state that no step reports is then looked for.
    reduces = False

    @abstractmethod
    def policy(self) -> Policy | None:
        """Give the policy of the next execution, or None when there is none."""

    def learn(self, execution: Execution) -> None:  # noqa: B027  a search need not learn
        """Take in the `execution` of the last policy; not called when that policy raised `Redundant`."""

    def judged(self, failed: bool) -> None:  # noqa: B027  most searches do not mind
        """Hear whether the execution learned from last has failed; only if `minds_failures`."""

    def claim(self, executions: int, distinct: int) -> str:
        """Say what `executions` executions with `distinct` different schedules have shown."""
        return f"sampled(n={executions}, distinct={distinct})"

    def complete(self) -> bool:
        """Say whether the whole space of the claim was run."""
        return False

    def unfinished(self) -> str | None:
        """Say why the space that was to be run was not run; None when a part of it was all that was wanted."""
        return None

    def hold_against_samples(self, outcomes: Collection[Any]) -> Generator[Policy, Execution, str | None]:
        """Yield policies of executions beside the search, be sent each, and give how they contradict it; None: not.

        Asked once, when the search has ended, nothing failed and nothing is unfinished.

        Args:
            outcomes: what came out of the executions of the search.
        """
        yield from ()
        return None

    def reopens(self) -> bool:
        """Say whether what those executions have shown asks for more of the search; asked when nothing contradicts."""
        return False


class Shared(Search):
    """A search that can be done in parts; see the module's header for the contract."""

    #: True when two executions may have the same schedule.
    repeats = True
    #: The execution number for the policy given last; None: the number of executions before it.
    index: int | None = None
    #: True when what is left of this part can be divided again.
    divisible = True

    def divide(self) -> None:
        """Be done in parts from now on; called before anything was run."""

    @property
    def can_be_divided(self) -> bool:
        """Say whether it can be done in parts; a search that calls the user's code cannot."""
        return self.asks_nobody

    @abstractmethod
    def place(self, execution: Execution) -> tuple[Any, ...]:
        """Give the place of `execution` among all, before it was learned from; places can be compared."""

    @abstractmethod
    def lend(self, parts: int) -> list[Shared]:
        """Give away what is left, in at most so many parts; [] when nothing is, or nothing before a part is back."""

    @abstractmethod
    def take_back(self, part: Shared) -> None:
        """Take back what is left of a part."""

    def expected(self, executions: int, lent: Sequence[Shared]) -> float | None:
        """Say how many executions there will probably be in all.

        Args:
            executions: how many there were.
            lent: the parts that are lent out, as they were when they were.

        Returns:
            None when that cannot be estimated.
        """
        return None

    def at_most(self, executions: int) -> None:
        """Leave out what comes after so many executions, where that is known beforehand."""


def check_executions(strategy: object, field: attrs.Attribute[int], value: object) -> None:
    """Refuse the value of a strategy's field that is no number of executions."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise DefinitionRefused(_called_with(strategy, field), "a number of executions, 1 or more", value)


def check_seed(strategy: object, field: attrs.Attribute[int], value: object) -> None:
    """Refuse the value of a strategy's field that is no seed."""
    checked_seed(_called_with(strategy, field), value)


def _called_with(strategy: object, field: attrs.Attribute[int]) -> str:
    """Give the strategy's name with its fields up to `field`: ``Random(policy, n)``."""
    kind: Any = type(strategy)
    names = [each.name for each in attrs.fields(kind)]
    return f"{kind.__name__}({', '.join(names[: names.index(field.name) + 1])})"


class Strategy(Protocol):
    """Picks the executions of an exploration; see the module's header for the contract."""

    def begin(self) -> Search:
        """Begin an exploration that knows nothing of earlier ones."""


def uncontrolled(step: int, before: str, after: str) -> str:
    """Say that at `step` the same choices led to one thing `before` and another `after`: for `Search.unfinished`."""
    return (
        f"the same choices led to {before} at step {step} once, to {after} another time: the program depends on "
        "something the simulator does not control"
    )
