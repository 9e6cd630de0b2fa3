"""A policy that takes its choices from a list of small integers, one for each step.

Rules.  It never raises, whatever the list holds: a choice past the last enabled task is the last, a negative
one is 0, and past the end of the list every choice is 0.  So any list is a schedule of any program, which is
what a shrinker and a Hypothesis strategy need: a simpler list is a simpler schedule.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolrt.errors import DefinitionRefused
from toolrt.sim.policies._policy import RunInfo


class Choices:
    """Make the given choices, then choice 0.

    Args:
        choices: for each step an index into the enabled list.
        chance: the stream of random numbers that the program draws from, 0 or more; None: what the caller has.

    Raises:
        DefinitionRefused: `choices` is not a sequence of integers, or `chance` no such number.
    """

    #: What steps touch decides nothing here.
    reads_accesses = False

    def __init__(self, choices: Sequence[int] = (), chance: int | None = None) -> None:
        if chance is not None and (not isinstance(chance, int) or isinstance(chance, bool) or chance < 0):
            raise DefinitionRefused("Choices(chance)", "the number of a stream, 0 or more, or None", chance)
        self.chance = chance
        try:
            self._choices = tuple(choices)
            fine = all(isinstance(choice, int) for choice in self._choices)
        except TypeError:
            fine = False
        if not fine:
            raise DefinitionRefused("Choices(choices)", "a sequence of integers", choices)

    def start(self, info: RunInfo) -> None:
        """Do nothing: the place in the list is the step's index."""

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Make the choice at the step's place."""
        if step >= len(self._choices):
            return 0
        return max(0, min(int(self._choices[step]), len(enabled) - 1))

    def __repr__(self) -> str:
        return f"Choices({list(self._choices)})"


class NamelessChoices(Choices):
    """Makes choices without asking for the names of the tasks that can run, which costs a step as many as there are."""

    def start(self, info: RunInfo) -> None:
        """Keep the steps: how many there are is the place in the list."""
        self._steps = info.steps

    def pick_any(self, count: int) -> int:
        """Make the choice at the step's place among `count`."""
        step = len(self._steps)
        if step >= len(self._choices):
            return 0
        return max(0, min(int(self._choices[step]), count - 1))
