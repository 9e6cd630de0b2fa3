"""Two executions as words."""

from __future__ import annotations

import pytest

from tests.view import _traces as traces
from toolrt import sim, view
from toolrt.errors import DefinitionRefused
from toolrt.trace import Trace


def test_lost_update_is_told_with_its_race() -> None:
    """Where the failing schedule and the passing one part, what each does there, and the accesses that decide."""
    failing, passing = traces.lost_and_kept()
    assert view.diff(failing, passing, names=("loses", "keeps")) == (
        "loses: 6 steps; keeps: 6 steps; the first 2 are the same\n"
        "step 2\n"
        "  loses  main.1 reads x = 0\n"
        "  keeps  main.0 writes x 0 -> 1\n"
        "step 3\n"
        "  loses  main.1 writes x 0 -> 1\n"
        "  keeps  main.1 reads x = 1\n"
        "step 4\n"
        "  loses  main.0 writes x 1 -> 1\n"
        "  keeps  main.1 writes x 1 -> 2\n"
        "the race: main.1 reads x before main.0 writes x in loses, after it in keeps\n"
    )


def test_same_execution_differs_nowhere() -> None:
    """So it is said, and no race and no ending is made up."""
    execution = sim.run(traces.lost_update)
    assert view.diff(execution, execution) == "one: 6 steps; other: 6 steps; the same tasks ran in the same order\n"


def test_different_ends_are_told() -> None:
    """An error on one side is named; steps that only one side has are told as its end on the other."""

    async def fails() -> None:
        await traces.lost_update()
        raise ValueError("no")

    text = view.diff(sim.run(traces.lost_update), sim.run(fails))
    assert "the same tasks ran in the same order" in text
    assert "one ended: returned\nother ended: ValueError\n" in text

    async def short() -> None:
        pass

    text = view.diff(sim.run(short), sim.run(traces.lost_update))
    assert "the first 1 are the same\nstep 1\n  one    has ended\n  other  main.0 reads x\n" in text
    assert "… and so on to step 5\n" in text


def test_same_tasks_that_touch_other_things_are_told() -> None:
    """A program that has changed may step alike and do something else."""

    def program(name: str):
        async def run() -> None:
            sim.Cell(0, name=name).set(1)

        return run

    assert "step 0 differs: main writes x in one, main writes y in other\n" in view.diff(
        sim.run(program("x")), sim.run(program("y"))
    )


def test_recordings_are_compared_by_their_events() -> None:
    """They have no steps; the first event that differs is told."""
    two, three = traces.large(2), traces.large(3)
    assert view.diff(two, two) == f"one: {len(two.events)} events; other: {len(two.events)} events; they are the same\n"
    text = view.diff(two, three)
    assert "; the first 3 are the same\nevent 3\n  one    main " in text
    assert "\n  other  main " in text
    assert "has ended" in view.diff(Trace(), two)


@pytest.mark.parametrize("names", ["ab", ("one",), ("a", "b", "c"), (1, 2)])
def test_names_that_are_not_two_texts_are_refused(names: object) -> None:
    """As `show` does."""
    with pytest.raises(DefinitionRefused, match="2 texts"):
        view.diff(Trace(), Trace(), names=names)  # type: ignore[arg-type]


def test_hostile_text_stays_on_its_line() -> None:
    """A task's or a resource's name cannot write to the terminal."""

    async def run() -> None:
        sim.Cell(0, name="x\x1b[31m\nstep 99").set(1)

    async def other() -> None:
        sim.Cell(0, name="y").set(1)

    text = view.diff(sim.run(run), sim.run(other), names=("a\x1b[0m", "b\n"))
    assert "\x1b" not in text
    assert "\nstep 99" not in text
