"""Partial order sampling: a random priority for every step, drawn anew where two steps race.

Paper: Yuan, Yang, Gu, "Partial order aware concurrency sampling" (CAV 2018).  The next step of every enabled task
has a random priority; the highest runs.  Then the steps that could have run in its place and conflict with it
draw again: how they come out against each other is no longer decided by a draw that has been used.  So steps
that do not conflict do not dilute the sample, and a partial order is drawn with a probability that falls far
slower than that of an order of steps.

Differences from the paper.  What a step is going to touch is not known before it runs: Trio's tasks announce
nothing.  A task that waited goes on with what it waited for, which its step before has reported: a lock's next holder
touches the lock.  Taken besides is what the same step (the same task's path, the same number) touched last time in this
sample.  A step with neither conflicts with everything, and so does one that reported no access (which makes
the first execution of a program without locks and the like a random walk).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from toolrt.probe import Resource
from toolrt.sim.policies._kept import Change, PriorityRow, choice_of
from toolrt.sim.policies._policy import RunInfo
from toolrt.sim.policies._seeds import checked_seed, seed_of

_Footprint = tuple[tuple[Resource, bool], ...]

# The kinds of things that tasks park on.
_WAITED_FOR = frozenset(
    ("Event", "Lock", "StrictFIFOLock", "Semaphore", "CapacityLimiter", "Condition", "ParkingLot", "MemoryChannel")
)

# Steps whose footprints are remembered; a program with more of them is remembered in part.
_MOST_FOOTPRINTS = 100_000


class POS:
    """Give each task's next step a random priority, anew where steps race.

    Args:
        seed: an integer; the same seed makes the same choices wherever the same tasks are enabled, the same is
            touched, and the same was seen before.

    Raises:
        DefinitionRefused: the seed is not an integer.
    """

    def __init__(self, seed: int) -> None:
        #: The seed it was made with.
        self.seed = checked_seed("POS(seed)", seed)
        # What the step of this number of this task touched last time.
        self._footprints: dict[tuple[str, int], _Footprint] = {}

    def start(self, info: RunInfo) -> None:
        """Begin the sequence of draws again."""
        self._draw = Random(self.seed).random
        self._chosen = ""
        self._steps: Sequence[tuple[object, ...]] = info.steps
        # The priority of each enabled task's next step, and how many steps each task has made.
        self._priorities: dict[str, float] = {}
        self._made: dict[str, int] = {}
        # What each task waits for, or goes on with when it is its turn.
        self._parked: dict[str, _Footprint] = {}
        # What each task's next step probably touches, and whether it writes it, where that was asked for.
        self._next: dict[str, dict[Resource, bool]] = {}
        # Beside the scheduler's list, the same by what is touched, and the tasks that said nothing.
        self._touchers: dict[Resource, dict[str, bool]] = {}
        self._unknown: set[str] = set()
        # The priorities beside the scheduler's list; None: they are not kept now.
        self._row: PriorityRow | None = None

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick the step of the highest priority."""
        if self._row is not None:
            self._priorities, self._row = self._row.known(), None
        priorities = self._priorities
        if step and self._steps:
            touched = self._note(self._steps[-1], self._chosen in enabled)
            priorities.pop(self._chosen, None)
            if not touched:
                priorities.clear()
            for other in list(priorities):
                expected = self._expected_of(other)
                for resource, write in touched:
                    if resource in expected and (write or expected[resource]):
                        break
                else:
                    if expected:
                        continue
                del priorities[other]
        best, highest = 0, -1.0
        for index, name in enumerate(enabled):
            priority = priorities.get(name)
            if priority is None:
                priority = priorities[name] = self._draw()
            if priority > highest:
                best, highest = index, priority
        self._chosen = enabled[best]
        return best

    def _pick_kept(self, names: Sequence[str], place: int, changes: Sequence[Change]) -> int:
        """Pick as `choose` does from the list that the scheduler keeps."""
        row, draw = self._row, self._draw
        if row is None:
            row = self._row = PriorityRow(self._priorities, names, changes)
            self._touchers, self._unknown = {}, set()
            for name in self._next:
                self._expect(name)
        else:
            row.follow(changes)
        if self._steps:
            goes_on = (place >= 0 and names[place] == self._chosen) or self._chosen in names
            raced = self._raced(self._note(self._steps[-1], goes_on))
            if not row.is_drawn:
                row.forget(raced)
            elif raced is None:
                row.draw_all(place, draw)
            else:
                row.draw_again(raced, place, draw)
        if not row.is_drawn:
            for name in names:
                if name not in self._next:
                    self._expect(name)
            row.draw_missing(place, draw)
        best = row.best(place)
        self._chosen = names[best]
        return choice_of(best, place)

    def _note(self, step: tuple[object, ...], goes_on: bool) -> _Footprint:
        """Remember what the step just made has touched, and give it."""
        touched: _Footprint = step[3]  # type: ignore[assignment]
        name, made = self._chosen, self._made
        number = made.get(name, 0)
        made[name] = number + 1
        if len(self._footprints) < _MOST_FOOTPRINTS:
            self._footprints[name, number] = touched
        before = self._next.pop(name, None)
        if self._row is not None:
            for resource in before or ():
                del self._touchers[resource][name]
            self._unknown.discard(name)
        self._parked.pop(name, None)
        if not goes_on:
            self._parked[name] = tuple(access for access in touched if access[0][0] in _WAITED_FOR)
        return touched

    def _expected_of(self, name: str) -> dict[Resource, bool]:
        """Give what the next step of a task probably touches, and whether it writes it; nothing: that is not known."""
        expected = self._next.get(name)
        if expected is None:
            expected = self._next[name] = {}
            last_time = self._footprints.get((name, self._made.get(name, 0)), ())
            for resource, write in self._parked.get(name, ()) + last_time:
                expected[resource] = write or expected.get(resource, False)
        return expected

    def _expect(self, name: str) -> None:
        """Note a task under what its next step probably touches."""
        expected = self._expected_of(name)
        if not expected:
            self._unknown.add(name)
        for resource, write in expected.items():
            self._touchers.setdefault(resource, {})[name] = write

    def _raced(self, touched: _Footprint) -> set[str] | None:
        """Give the tasks whose next steps conflict with the step just made, and its own; None: all do."""
        raced: set[str] | None = None
        if touched:
            raced = {self._chosen}
            raced.update(self._unknown)
            for resource, write in touched:
                if others := self._touchers.get(resource):
                    raced.update(others if write else [other for other in others if others[other]])
        self._expect(self._chosen)
        return raced

    def finish(self, steps: int) -> None:
        """Remember the last footprint; how many steps there were does not matter."""
        if steps and self._steps:
            self._note(self._steps[-1], goes_on=False)

    def sample(self) -> POS:
        """Give the same with nothing seen yet."""
        return POS(self.seed)

    def derive(self, index: int) -> POS:
        """Give the policy for execution `index` of a sample that starts from this seed; they see together."""
        derived = POS(seed_of(self.seed, index))
        derived._footprints = self._footprints
        return derived

    def __repr__(self) -> str:
        return f"POS(seed={self.seed})"
