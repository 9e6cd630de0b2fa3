"""The contract between the scheduler and a policy, which picks its choices.

Rules.  `start` is called once before each execution, then `choose` once for every step, also when only one
task is enabled.  `enabled` holds the paths of the tasks that can run, in canonical order: the task that stepped
last first, if it still can, then the others by path; index 0 is the simplest choice.  The answer must depend on
nothing but what the policy was made with and what it was given, or no schedule can be made again.

A policy may raise.  It then is not asked again; the execution is given up and its caller gets the exception.

More methods are optional.  ``derive(index)`` gives the policy for the execution `index` of a sample (a new
seed); without it the same policy is used for all.  ``sample()`` is called once before a sample and gives the policy
whose ``derive`` is asked: one that has learned nothing yet, for policies that learn from one execution to the
next.  ``finish(steps)`` is called after an execution that was not given up because of the policy, with its number
of steps; what it raises goes to the caller.  ``bound`` is a text that a sample adds to its claim.
``chance`` is the stream of random numbers that the program draws from, where the policy makes an execution again.
``reads_accesses = False`` says that what steps touch decides nothing, and ``pick_any(count)`` picks like `choose` where
names decide nothing either: the scheduler may leave them out of executions that are not shown.
toolrt's own policies have ``_pick_kept(names, place, changes)``, which picks like `choose` from the list that the
scheduler keeps: the names by path, the place of the task to go on or -1, and a log of the pairs (place, name) where a
name was put in or, with None, taken out.  The scheduler calls one of the three for each step.  These two count only
where the policy's own class has them, so a subclass can replace `choose` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.probe import Resource


@attrs.frozen
class RunInfo:
    """What a policy gets before an execution."""

    #: Its place among the executions of one exploration, from 0.
    execution: int
    #: The number of steps after which it is stopped.
    step_limit: int
    #: The steps of this execution, one more each time `Policy.choose` is called.  A step is its actor (with a `name`),
    #: the enabled list, the choice, what was touched (pairs of a resource and True for a write, sorted), the time
    #: and the causes.  Read it, never change it.
    steps: Sequence[tuple[Any, tuple[str, ...], int, tuple[tuple[Resource, bool], ...], float, tuple[int, ...]]] = (
        attrs.field(default=(), repr=False, eq=False)
    )
    #: In which orders tasks step: "any", or "trio".
    order: str = "any"


class Policy(Protocol):
    """Picks the next choice; see the module's header for the contract."""

    def start(self, info: RunInfo) -> None:
        """Begin an execution; `info` is what is known of the program."""

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick an index into `enabled`, the paths of the tasks that can run; `step` counts from 0."""


def checked_choice(choice: object, enabled: tuple[str, ...], policy: object) -> int:
    """Give `choice` as an int.

    Raises:
        DefinitionRefused: it is no index into `enabled`.
    """
    try:
        index = choice.__index__()  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        index = None
    if index is None or not 0 <= index < len(enabled):
        raise DefinitionRefused(
            f"{type(policy).__name__}.choose()", f"an index into the {len(enabled)} enabled tasks", choice
        )
    return int(index)
