"""The schedules of a litmus program as one tree, which a page can play without Python.

Rules.  What schedules have in common at their beginning is in the tree once.  A program with more schedules than fit is
searched in part: first for one schedule of each class, then at random.  A choice that was not explored is there by its
name, so that a player sees that it exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from toolrt import sim
from toolrt.teaching.litmus import Litmus, in_order
from toolrt.teaching.play._words import words_in
from toolrt.trace import Step, stable_text

#: Where a search in part found no bug, so many schedules more are tried.
_MOST_FOR_A_BUG = 3_000

#: The resource of an access, whether it writes, and what is known of it: its line, and its value or None.
Values = dict[tuple[int, tuple[Any, ...], bool], tuple[str, str | None]]

#: The words of the page itself.
_PAGE_WORDS = "step schedule class"

_Note = Callable[[sim.Execution], bool | list[str]]


@attrs.frozen
class PlayedTree:
    """A tree that was made, for `toolrt.view.play`."""

    made: Mapping[str, Any]

    def tree(self) -> Mapping[str, Any]:
        """Give it."""
        return self.made


def tree_of(litmus: Litmus, most: int) -> dict[str, Any]:
    """Give the tree of `litmus`, of at most `most` schedules, as JSON values."""
    tree = _ScheduleTree(litmus)
    is_whole = litmus.interleavings is None or litmus.interleavings.number <= most
    for count, execution in enumerate(ways(litmus, details=True) if is_whole else (), 1):
        if count > most:
            is_whole = False
            break
        tree.add(execution)
    has_every_class, chance = is_whole, tree.chance() if is_whole else None
    if not is_whole:
        tree = _ScheduleTree(litmus)
        has_every_class, chance = tree.sample(most)
    return tree.to_json() | {"whole": is_whole, "every_class": has_every_class, "chance": chance}


def ways(litmus: Litmus, begun: Sequence[int] = (), details: bool = False) -> Iterator[sim.Execution]:
    """Give every execution that begins with the choices `begun`, the simplest first."""
    fixed = len(begun)
    choices: list[int] | None = list(begun)
    while choices is not None:
        execution = sim.run(litmus.program, sim.Choices(choices), details=details, **litmus.settings)
        yield execution
        made, enabled = execution.choices, execution.enabled
        choices = None
        for place in range(len(made) - 1, fixed - 1, -1):
            if made[place] + 1 < len(enabled[place]):
                choices = [*made[:place], made[place] + 1]
                break


def class_of(execution: sim.Execution) -> Any:
    """What two executions have in common when only steps that do not matter to each other are swapped."""
    trace = execution.trace
    return frozenset((step.task, tuple(sorted(trace.clock_of(step).items()))) for step in trace.steps)


def values_of(execution: sim.Execution) -> Values:
    """What is known of each access of `execution`, which was run with details."""
    accesses = execution.trace.notes["details"]["accesses"]
    return {(step, tuple(resource), write): (line, value) for step, resource, write, _, line, value in accesses}


def does(step: Step, values: Values) -> str:
    """Say what a step does, with what it read or wrote where that is known."""
    told = []
    for access in step.accesses:
        _, value = values.get((step.index, access.resource, access.write), ("", None))
        resource = access.resource[1:] if access.resource[0] in ("cell", "watched") else access.resource
        verb = "writes" if access.write else "reads"
        told.append(f"{verb} {' '.join(map(str, resource))}{'' if value is None else f' = {value}'}")
    if told:
        return ", ".join(told)
    task, _, choice = step.task.partition("=")
    if choice:
        return f"chooses {choice}"
    return {"clock": "lets time pass", "cancel": "cancels a scope"}.get(task.partition(".")[0], "runs")


class _ScheduleTree:
    def __init__(self, litmus: Litmus) -> None:
        self._litmus = litmus
        self._texts: dict[str, int] = {}
        # For each step its task and what it does, by their places among the texts, and who may come next.
        self._nodes: list[tuple[int, int, tuple[str, ...]]] = []
        # For each step the steps that were explored after it, by the number of the choice.
        self._after: list[dict[int, int]] = []
        # For each last step the outcome, whether it is the bug, and the number of its class.
        self._ends: dict[int, tuple[str, bool, int]] = {}
        self._classes: dict[Any, int] = {}
        self._functions: dict[str, str] = {}

    def add(self, execution: sim.Execution) -> None:
        """Add one execution, which was run with details."""
        values, enabled = values_of(execution), execution.enabled
        functions = execution.trace.notes["details"].get("functions", {})
        self._functions |= {task: name for task, name in functions.items() if task != "main" and name.isidentifier()}
        at = -1
        for place, (step, choice) in enumerate(zip(execution.trace.steps, execution.choices, strict=True)):
            known = self._after[at].get(choice) if at >= 0 else (0 if self._nodes else None)
            if known is None:
                known = len(self._nodes)
                nexts = enabled[place + 1] if place + 1 < len(enabled) else ()
                self._nodes.append((self._text(step.task), self._text(does(step, values)), tuple(nexts)))
                self._after.append({})
                if at >= 0:
                    self._after[at][choice] = known
            at = known
        outcome = self._litmus.read(execution)
        number = self._classes.setdefault(class_of(execution), len(self._classes))
        self._ends[at] = (stable_text(outcome), outcome in self._litmus.wrong, number)

    def chance(self) -> float:
        """How often a player who chooses blindly ends in the bug, of a tree that is whole."""
        chances = [0.0] * len(self._nodes)
        for place in reversed(range(len(self._nodes))):
            after = self._after[place].values()
            end = self._ends.get(place)
            chances[place] = float(end[1]) if end else sum(chances[each] for each in after) / len(after)
        return round(chances[0], 6)

    def sample(self, most: int) -> tuple[bool, float]:
        """Explore in part.  Say whether every class is there, and how often a random walk ended in the bug."""
        litmus, found = self._litmus, dict[tuple[int, ...], bool]()

        def note(execution: sim.Execution) -> bool:
            found.setdefault(tuple(execution.choices), litmus.read(execution) in litmus.wrong)
            return True

        def explore(strategy: sim.Strategy, count: int, check: _Note = note) -> sim.Report:
            return sim.explore(litmus.program, strategy, check, count, **litmus.settings)

        half = max(1, most // 2)
        report = explore(sim.DPOR(), half)
        walked: list[bool] = []

        def walk(execution: sim.Execution) -> bool:
            walked.append(litmus.read(execution) in litmus.wrong)
            return note(execution)

        count = max(1, most - len(found))
        explore(sim.Random(sim.RandomWalk(seed=0), count), count, walk)
        if litmus.wrong and not any(found.values()):
            failing = explore(sim.DPOR(), _MOST_FOR_A_BUG, litmus.check).failures
            if failing:
                found[tuple(failing[0].execution.choices)] = True
        for choices in found:
            self.add(sim.run(litmus.program, sim.Choices(list(choices)), details=True, **litmus.settings))
        return report.complete, round(sum(walked) / len(walked), 6)

    def to_json(self) -> dict[str, Any]:
        litmus = self._litmus
        nodes = [
            [task, done, [after.get(choice, -1 - self._text(name)) for choice, name in enumerate(nexts)]]
            for (task, done, nexts), after in zip(self._nodes, self._after, strict=True)
        ]
        return {
            "name": litmus.name,
            "story": litmus.story,
            "source": litmus.source,
            "wrong": [stable_text(outcome) for outcome in in_order(litmus.wrong)],
            "words": words_in([litmus.story, litmus.source, _PAGE_WORDS]),
            "texts": list(self._texts),
            "functions": self._functions,
            "nodes": nodes,
            "ends": {str(place): list(end) for place, end in self._ends.items()},
            "classes": len(self._classes),
            "stated": None if litmus.interleavings is None else litmus.interleavings.number,
        }

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))
