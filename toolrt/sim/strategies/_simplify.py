"""Shrinks a failing schedule to a simpler one that fails the same way, by local search.

Rules.  A candidate is a list of choices; it is run with `Choices`, which takes any list, so a candidate always
is a schedule of the program.  What counts is the schedule the program then made.  Simpler means: fewer preemptions
(a step given to another task although the one before could go on), then fewer steps, then lower choices.

Theory.  Choice 0 goes on with the task that stepped last, so a list of zeros is the schedule without
preemptions, and what remains after shrinking are the preemptions that matter.  First the largest runs of
choices are zeroed or cut, then ever smaller ones, down to single choices (the idea of delta debugging: Zeller
and Hildebrandt, 2002); then single choices are lowered.

Limits.  That finds a local minimum, with a bounded number of executions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from toolrt.sim.engine._execution import Execution

#: How many executions shrinking may take.
MAX_TRIES = 400

#: Tries a list of choices: gives the execution when it fails the same way, else None.
Trial = Generator[Any, Execution, Execution | None]


def shrink(
    first: Execution, attempt: Callable[[tuple[int, ...]], Trial], max_tries: int = MAX_TRIES
) -> Generator[Any, Execution, Execution]:
    """Give the simplest execution found that fails as `first` does; `first` itself when none is simpler."""
    search = _Search(first, attempt, max_tries)
    improved = True
    while improved and search.tries_left:
        improved = False
        size = max(1, len(search.best.choices) // 2)
        while size and search.tries_left:
            improved |= yield from search.pass_over(size)
            size //= 2
        improved |= yield from search.lower()
    return search.best


def _complexity(execution: Execution) -> tuple[int, int, tuple[int, ...]]:
    return execution.schedule.switches, len(execution.choices), execution.choices


class _Search:
    def __init__(self, first: Execution, attempt: Callable[[tuple[int, ...]], Trial], tries_left: int) -> None:
        self.best = first
        self.tries_left = tries_left
        self._attempt = attempt
        self._complexity = _complexity(first)
        self._seen = {_trimmed(first.choices)}

    def keep_if_simpler(self, choices: tuple[int, ...]) -> Generator[Any, Execution, bool]:
        candidate = _trimmed(choices)
        if candidate in self._seen or not self.tries_left:
            return False
        self._seen.add(candidate)
        self.tries_left -= 1
        execution = yield from self._attempt(candidate)
        if execution is None:
            return False
        complexity = _complexity(execution)
        if complexity >= self._complexity:
            return False
        self.best, self._complexity = execution, complexity
        return True

    def pass_over(self, size: int) -> Generator[Any, Execution, bool]:
        """Zero, then cut, every run of `size` choices that is not all zeros, from the end."""
        improved = False
        end = len(self.best.choices)
        # Only zeros are behind it.
        last = len(_trimmed(self.best.choices))
        while end > 0 and self.tries_left:
            choices = self.best.choices
            end = min(end, len(choices))
            start = max(0, end - size)
            if start >= last:
                end = start
                continue
            if any(choices[start:end]):
                zeroed = choices[:start] + (0,) * (end - start) + choices[end:]
                if (yield from self.keep_if_simpler(zeroed)):
                    improved = True
                    end = start
                    continue
            cut = choices[:start] + choices[end:]
            if (yield from self.keep_if_simpler(cut)):
                improved = True
            end = start
        return improved

    def lower(self) -> Generator[Any, Execution, bool]:
        """Lower single choices, to 1 or by one."""
        improved = False
        for index in range(len(self.best.choices)):
            choices = self.best.choices
            if index >= len(choices):
                break
            for value in dict.fromkeys((1, choices[index] - 1)):
                if 0 < value < choices[index]:
                    lowered = (*choices[:index], value, *choices[index + 1 :])
                    improved |= yield from self.keep_if_simpler(lowered)
        return improved


def _trimmed(choices: tuple[int, ...]) -> tuple[int, ...]:
    """Drop the zeros at the end: they are what follows anyhow."""
    end = len(choices)
    while end and not choices[end - 1]:
        end -= 1
    return choices[:end]
