"""Be the scheduler: choose which task of a litmus program runs next, and try to make it go wrong.

Rules.  Each choice runs the program again from its start, with the choices so far and then the simplest ones.  So going
back costs nothing, and no execution stays half run.  The game takes a step without asking when only one task can take
it.  Two ways to the end are one class when their traces have the same happens-before order.  `Litmus.classes` may be
more: a search has to separate steps when it does not know what they touched.

Theory.  What a player does by hand is what a search does: `Game.hint` looks through the ways that begin like this one,
and `Game.proof` through all of them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs

from toolrt import sim
from toolrt.errors import MisuseError
from toolrt.teaching.litmus import MOST, Litmus, Verified, verify
from toolrt.teaching.play._tree import class_of, does, tree_of, values_of, ways

#: So many ways are looked through for a hint.
_MOST_WAYS = 2_000

#: Classes are counted for programs that have at most so many, or so many schedules.
_MOST_COUNTED = 3_000


@attrs.frozen
class Option:
    """A task that could run next."""

    #: The task's path, or the name of another choice: ``clock``, ``main.0=1``.
    task: str
    #: What that step would do.
    does: str
    #: The task's number, from 1 on: it keeps it in all of a game.
    number: int


@attrs.frozen
class Played:
    """A step that was taken."""

    #: The task that took it, and what the step does, in words.
    task: str
    does: str
    #: The time at which it was taken, in virtual seconds.
    time: float
    #: Whether there was a choice.
    chosen: bool


@attrs.frozen
class Hint:
    """What a search from here says."""

    #: The task that runs next on the way to the bug that was found, or None when there is none.
    task: str | None
    #: Whether every way from here was looked at.
    complete: bool

    def __str__(self) -> str:
        if self.task is not None:
            return f"let {self.task} run"
        if self.complete:
            return "no way from here goes wrong: go back, or begin again"
        return f"none of {_MOST_WAYS:,} ways from here goes wrong; there are more"


class Game:
    """A litmus program that a player schedules by hand.

    Args:
        litmus: the program.

    Example:
        >>> from toolrt.teaching.litmus import LITMUS
        >>> from toolrt.teaching.play import Game
        >>> game = Game(LITMUS["lost_update_2x1"])
        >>> [str(option.task) for option in game.options]
        ['main.0', 'main.1']
        >>> while not game.over:
        ...     game.choose(game.hint().task)
        >>> game.outcome, game.broken
        (1, True)
    """

    def __init__(self, litmus: Litmus) -> None:
        self.litmus = litmus
        self._choices: list[int] = []
        # How many choices there were before each that was made by hand.
        self._turns: list[int] = []
        self._seen: set[Any] = set()
        # The number of each task that could be chosen.
        self._numbers: dict[str, int] = {}
        self._verified: Verified | None = None
        self._played: sim.Execution
        self._play()

    # ---- where it is

    @property
    def over(self) -> bool:
        """Whether the program has ended."""
        return len(self._choices) >= len(self._played.choices)

    @property
    def outcome(self) -> Any:
        """What came of it.

        Raises:
            MisuseError: it has not ended.
        """
        if not self.over:
            raise MisuseError("Game.outcome was asked for before the program has ended: choose who runs next")
        return self.litmus.read(self._played)

    @property
    def broken(self) -> bool:
        """Whether it ended in the bug."""
        return self.over and self.outcome in self.litmus.wrong

    @property
    def execution(self) -> sim.Execution:
        """The execution so far; from here on it goes the simplest way."""
        return self._played

    @property
    def steps(self) -> list[Played]:
        """The steps that were taken, in order."""
        values = values_of(self._played)
        taken = self._played.trace.steps[: len(self._choices)]
        chosen = set(self._turns)
        return [Played(step.task, does(step, values), step.time, step.index in chosen) for step in taken]

    @property
    def options(self) -> list[Option]:
        """The tasks that could run next, the simplest choice first; empty when it is over."""
        if self.over:
            return []
        place = len(self._choices)
        found = []
        for choice, task in enumerate(self._played.enabled[place]):
            there = self._run([*self._choices, choice])
            found.append(Option(task, does(there.trace.steps[place], values_of(there)), self._numbers[task]))
        return found

    @property
    def classes_seen(self) -> int:
        """How many classes of ways to the end have been played."""
        return len(self._seen)

    @property
    def classes_unseen(self) -> int | None:
        """How many have not; None when they are too many to count.  They are counted the first time it is asked."""
        every = self._every_class
        return None if every is None else len(every - self._seen)

    @cached_property
    def _every_class(self) -> frozenset[Any] | None:
        schedules, classes = self.litmus.interleavings, self.litmus.classes
        strategy: sim.Strategy
        if schedules is not None and schedules.number <= _MOST_COUNTED:
            strategy = sim.Exhaustive()
        elif classes is not None and classes.number <= _MOST_COUNTED:
            strategy = sim.DPOR()
        else:
            return None
        found: set[Any] = set()

        def note(execution: sim.Execution) -> bool:
            found.add(class_of(execution))
            return True

        report = sim.explore(self.litmus.program, strategy, note, 2 * _MOST_COUNTED, **self.litmus.settings)
        return frozenset(found) if report.complete else None

    # ---- playing

    def choose(self, who: int | str | None) -> None:
        """Let a task run, and then every step without a choice, up to the next choice.

        Args:
            who: the index of an option, or its task's path.

        Raises:
            MisuseError: it is over, or no task of that name can run; nothing was changed.
        """
        enabled = () if self.over else self._played.enabled[len(self._choices)]
        if isinstance(who, str) and who in enabled:
            who = enabled.index(who)
        if not isinstance(who, int) or not 0 <= who < len(enabled):
            could = ", ".join(enabled) or "none: it is over"
            raise MisuseError(f"{who!r} cannot run now; who could is {could}")
        self._turns.append(len(self._choices))
        self._choices.append(who)
        self._play()

    def back(self) -> None:
        """Take back the last choice; nothing happens when there is none."""
        if self._turns:
            del self._choices[self._turns.pop() :]
            self._play()

    def restart(self) -> None:
        """Begin again; the classes that were seen stay seen."""
        self._choices.clear()
        self._turns.clear()
        self._play()

    def hint(self) -> Hint:
        """Look through the ways that begin like this one for the bug; at most 2,000 of them.

        When it is over, no way leads on from here.
        """
        place = len(self._choices)
        if not self.over:
            for count, execution in enumerate(ways(self.litmus, self._choices), 1):
                if self.litmus.read(execution) in self.litmus.wrong:
                    return Hint(execution.trace.steps[place].task, False)
                if count == _MOST_WAYS:
                    return Hint(None, False)
        return Hint(None, True)

    def proof(self, most: int = MOST) -> Verified:
        """The proof: every schedule, or one of each class, as `verify` does, a sample if there are more than `most`."""
        if self._verified is None:
            self._verified = verify(self.litmus, most)
        return self._verified

    def why(self) -> list[str]:
        """Why it goes wrong: the pattern of the simplest failing schedule, and what would mend it, as far as known."""
        one = self.litmus
        if not one.wrong:
            return []
        report = sim.explore(one.program, sim.DPOR(), one.check, 2_000, seconds=5, **one.settings)
        if not report.failures:
            return []
        failure = report.failures[0]
        said = [f"In the simplest one: {told}" for told in [dict(failure.about_minimal).get("Pattern")] if told]
        return said + ([] if failure.first_repair is None else [f"What would mend it: {failure.first_repair}"])

    def tree(self, most: int = 2_000) -> dict[str, Any]:
        """Give all there is to play, as JSON values: what `toolrt.view.play` makes a page of.

        Args:
            most: so many schedules at most, 1 or more.  Of a program with more there is a part: one of each class as
                far as half of them go, then random ones.

        Raises:
            MisuseError: `most` is below 1.
        """
        if most < 1:
            raise MisuseError(f"Game.tree(most={most}): expected 1 or more schedules")
        return tree_of(self.litmus, most) | {"why": self.why()}

    # ---- running

    def _run(self, choices: list[int]) -> sim.Execution:
        return sim.run(self.litmus.program, sim.Choices(choices), details=True, **self.litmus.settings)

    def _play(self) -> None:
        self._played = self._run(self._choices)
        enabled = self._played.enabled
        while len(self._choices) < len(enabled) and len(enabled[len(self._choices)]) == 1:
            self._choices.append(0)
        could = {task for tasks in enabled if len(tasks) > 1 for task in tasks}
        for task in sorted(could, key=lambda task: [(len(part), part) for part in task.split(".")]):
            self._numbers.setdefault(task, len(self._numbers) + 1)
        if self.over:
            self._seen.add(class_of(self._played))
