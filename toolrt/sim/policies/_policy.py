"""The contract between the scheduler and whoever picks its choices.

Rules.  `start` is called once before each execution, then `choose` once for every step, also when only one
task is enabled.  `enabled` holds the paths of the tasks that can run, in canonical order: the task that stepped
last first, if it still can, then the others by path; index 0 is the simplest choice.  The answer must depend on
nothing but what the policy was made with and what it was told, or no schedule can be made again.

A policy may raise.  It then is not asked again; the execution is given up and its caller gets the exception.

Two more methods are optional.  ``derive(index)`` gives the policy for the execution `index` of a sample (a new
seed); without it the same policy is used for all.  ``finish(steps)`` is called after an execution that was not
given up because of the policy, with how many steps it took; what it raises the caller gets.
"""

from __future__ import annotations

from typing import Protocol

import attrs

__all__ = ["Policy", "RunInfo"]


@attrs.frozen
class RunInfo:
    """What a policy is told before an execution."""

    #: Its place among the executions of one exploration, from 0.
    execution: int
    #: The number of steps after which it is stopped.
    step_limit: int


class Policy(Protocol):
    """Picks the next choice; see the module's header for the contract."""

    def start(self, info: RunInfo) -> None:
        """Begin an execution."""

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick an index into `enabled`, the paths of the tasks that can run; `step` counts from 0."""
