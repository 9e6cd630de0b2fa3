"""Mixes whose calls use the tools of a workspace on a twin disk."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from toolrt.errors import DefinitionRefused
from toolrt.invariants import Mix, check, simulate
from toolrt.invariants.script import AddCell, Scripted, Sleep, SubBatch, UseTool
from toolrt.order import ClaimTable
from toolrt.testing import shipped_examples
from toolrt.testing._mutation_score import drawn
from toolrt.workspace import Symlink

ON_ONE_FILE = Mix(
    [
        Scripted([UseTool("edit_file", {"path": "link", "old": "one", "new": "1"})]),
        Scripted([AddCell("a", "x")]),
        Scripted([UseTool("edit_file", {"path": "way/b.txt", "old": "1", "new": "2"})]),
        Scripted([UseTool("move_path", {"source": "d/b.txt", "target": "e/b.txt"})]),
        Scripted([UseTool("read_file", {"path": "e/b.txt"})]),
    ]
)


@pytest.mark.parametrize("schedule", [[], [1] * 60, [0, 1, 2, 3] * 20])
def test_a_file_by_several_names_is_one_file(schedule: list[int]) -> None:
    """Every schedule edits, moves and reads it in call order, and its mix can be pasted back."""
    execution = simulate(ON_ONE_FILE, schedule, replayed=True)
    assert execution.error is None
    assert check(execution.trace) == []
    assert dict(execution.value.files)["e/b.txt"] == "2\n"
    assert eval(repr(ON_ONE_FILE)) == ON_ONE_FILE


def test_tickets_order_the_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tickets some schedule breaks a law."""
    ON_ONE_FILE.serial()
    take = ClaimTable.take
    monkeypatch.setattr(ClaimTable, "take", lambda self, claims, *rest: take(self, (), *rest))
    assert any(check(simulate(ON_ONE_FILE, [n] * 80, step_limit=3_000).trace) for n in range(4))


def test_a_cancel_leaves_one_of_the_versions() -> None:
    """The oracle knows what the disk held between two effects."""
    mix = attrs.evolve(ON_ONE_FILE, cancel_after=0.0)
    for schedule in ([0], [1] * 60, [2, 0, 1] * 20):
        assert check(simulate(mix, schedule).trace) == []
    assert mix.oracle()["versions"]["d/b.txt"][1:3] == ["one\n", "one\n"]


def test_the_disk_is_the_users() -> None:
    """What the twin holds can be said."""
    mix = Mix([Scripted([UseTool("read_file", {"path": "it"})])], disk={"x": "hello\n", "it": Symlink("x")})
    assert dict(simulate(mix).value.files) == {"x": "hello\n", "it": "-> x"}
    assert simulate(mix).value.outcomes == ("ok",)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda use: Scripted([Sleep(1), use]),
        lambda use: Scripted([use], timeout=1.0),
        lambda use: Scripted([use], approval="rewrite"),
        lambda use: Scripted([SubBatch([Scripted([use])])]),
    ],
)
def test_such_a_call_does_nothing_else(wrong: Any) -> None:
    """A script with other steps, or in a sub-batch, is refused."""
    with pytest.raises(DefinitionRefused):
        wrong(UseTool("read_file", {"path": "a.txt"}))


@pytest.mark.seldom
def test_random_mixes_use_tools() -> None:
    """Some of six hundred have such calls, beside calls that are scripted."""
    # What a seed draws depends on the constants of all modules that are loaded; half of the samples of fifty have none.
    found: list[Mix] = []
    drawn(shipped_examples(), 0, 600, lambda example: not found.append(example[0]))
    using = [mix for mix in found if any(call.uses for call in mix.calls)]
    assert any(not all(call.uses for call in mix.calls) for mix in using)
