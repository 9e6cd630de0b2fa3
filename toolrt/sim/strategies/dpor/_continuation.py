"""What an execution of the reduction does where nothing is planned: which of the tasks that may step does.

Any answer keeps the reduction complete and optimal, as long as optional steps are left to their own rule.  The simplest
goes on with the task that stepped last.  `RandomContinuation` leaves that corner; `NearContinuation` stays around one
schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from toolrt.sim._paths import CANCEL, CLOCK
from toolrt.sim.policies._seeds import seed_of

_MASK = (1 << 64) - 1

# Of 256: how often an execution leaves the task that could go on.  Each execution has one of these.
_SWITCHES = (64, 128, 256)


class Continuation(Protocol):
    """Picks among what may step."""

    def begin(self) -> None:
        """Begin an execution."""

    def pick(self, enabled: tuple[str, ...], awake: Sequence[int], step: int) -> int:
        """Pick one of the indices `awake` into `enabled`; `step` is the number of the choice."""


class RandomContinuation:
    """Step any task; each execution switches with a probability of its own.

    Args:
        seed: an integer; another one, another order.
    """

    def __init__(self, seed: int) -> None:
        self._state = seed_of(seed, 0) or 1
        self._switches = 0

    def begin(self) -> None:
        """Draw how often this execution switches."""
        self._switches = _SWITCHES[self._draw(len(_SWITCHES))]

    def pick(self, enabled: tuple[str, ...], awake: Sequence[int], step: int) -> int:
        """Pick the first, or any: never a step that need not happen."""
        if len(awake) == 1 or self._draw(256) >= self._switches:
            return awake[0]
        tasks = [at for at in awake if enabled[at] != CLOCK and not enabled[at].startswith(CANCEL)]
        return tasks[self._draw(len(tasks))] if tasks else awake[0]

    def _draw(self, below: int) -> int:
        """Draw a number below `below` (xorshift: a state that a checkpoint can keep)."""
        state = self._state
        state ^= (state << 13) & _MASK
        state ^= state >> 7
        state ^= (state << 17) & _MASK
        self._state = state
        return (state >> 11) % below


class NearContinuation:
    """Choose as one schedule does at the same step, where that is possible.

    Args:
        choices: of the schedule.
    """

    def __init__(self, choices: tuple[int, ...]) -> None:
        self._choices = choices

    def begin(self) -> None:
        """Do nothing: the place is the number of the choice."""

    def pick(self, enabled: tuple[str, ...], awake: Sequence[int], step: int) -> int:
        """Pick what the schedule has there, if it is awake; else the first."""
        wanted = self._choices[step] if step < len(self._choices) else 0
        return wanted if wanted in awake else awake[0]
