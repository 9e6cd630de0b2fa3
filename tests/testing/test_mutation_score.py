"""How many random examples a mutant survives, and the laws that the generators gained."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import Any

import pytest

from toolrt.cli import main
from toolrt.cli.commands import _laws
from toolrt.errors import DefinitionRefused
from toolrt.invariants import MUTANTS, Mix, Mutant, check, exhaust, patched, simulate
from toolrt.invariants.script import ChangeState, Fail, LeaveOpen, Scripted, Shield, Sleep
from toolrt.order import ClaimTable
from toolrt.testing import MutationScore, _mutation_score, mutation_score, shipped_examples
from toolrt.testing._mutation_score import drawn

#: Mutants that many examples catch, so that a few do.
_EASY = [MUTANTS[name] for name in ("answers twice", "tickets are kept", "waits for more calls")]
_IDLE = Mutant(
    "idle", "batch_ends", "Nothing is broken.", lambda: patched(ClaimTable, "take", lambda take: take), Mix()
)


@pytest.fixture(scope="module")
def few() -> MutationScore:
    """The score of easy mutants, and of one in which nothing is broken."""
    return mutation_score(8, [*_EASY, _IDLE], seeds=(0, 1))


@pytest.mark.seldom
def test_sample_of_mutants_is_caught_by_generated_examples(few: MutationScore) -> None:
    """A handful of random examples catches each of these under both seeds."""
    assert [row.name for row in few.rows if row.median is not None] == [mutant.name for mutant in _EASY]
    assert few.false_alarms == ()


def test_mutant_that_is_not_caught_is_named(few: MutationScore) -> None:
    """It survives, and then the score is not whole."""
    assert few.survivors == ("idle",)
    assert not few.ok
    assert "idle" in str(few)
    assert "NOT CAUGHT" in str(few)


@pytest.mark.seldom
def test_score_is_a_value_of_its_seeds(few: MutationScore) -> None:
    """The same seeds give the same score, over two processes as well, and as JSON."""
    again = mutation_score(8, [*_EASY, _IDLE], seeds=(0, 1), jobs=2)
    assert again == few
    assert json.loads(json.dumps(again.to_json()))["mutants"]["idle"]["by_seed"] == [None, None]


def test_example_on_which_the_runtime_as_it_is_breaks_a_law_counts_for_no_mutant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A false alarm is told, and catches nothing."""
    monkeypatch.setattr(_mutation_score, "_STEP_LIMIT", 2)
    score = mutation_score(1, [_EASY[0]], seeds=(0,))
    assert score.survivors == ("answers twice",)
    assert "batch_ends" in score.false_alarms[0]
    assert not score.ok


def test_interrupt_gives_the_score_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends it, and what was found is there."""
    monkeypatch.setattr(_mutation_score, "PART", 5)
    score = mutation_score(10, [_EASY[0], _IDLE], seeds=(0, 1), progress=lambda _: os.kill(os.getpid(), signal.SIGINT))
    assert score.interrupted
    assert not score.ok
    assert score.rows[0].catches[0] is not None
    assert score.rows[0].catches[1] is None


def test_drawing_ends_when_it_is_enough() -> None:
    """What visits may say that it has seen enough, and the same seed draws the same."""
    seen: list[list[Any]] = [[], []]
    for mine in seen:

        def visit(example: Any, mine: list[Any] = mine) -> bool:
            mine.append(example)
            return len(mine) < 5

        drawn(shipped_examples(), 3, 100, visit)
    assert seen[0] == seen[1]
    assert len(seen[0]) == 5


@pytest.mark.parametrize("wrong", [{"examples": 0}, {"examples": True}, {"jobs": 0}])
def test_counts_below_one_are_refused(wrong: dict[str, Any]) -> None:
    """Nothing is run."""
    with pytest.raises(DefinitionRefused):
        mutation_score(**wrong)


def test_command_prints_the_score_and_names_survivors(capsys: pytest.CaptureFixture[str]) -> None:
    """One mutant that lives on one example, and one that does not."""
    chosen = ["--mutant", "answers twice", "--mutant", "stale writes apply"]
    assert main(["laws", "--generated", "2", "--seeds", "1", "--json", *chosen]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["survivors"] == ["stale writes apply"]
    assert "not caught: stale writes apply" in err
    assert main(["laws", "--generated", "3", "--seeds", "1", "--mutant", "answers twice"]) == 0
    out = capsys.readouterr().out
    assert "PASS: every mutant is caught" in out
    assert "caught: answers twice, the median after 1 example, by answered_once" in out


def test_command_says_how_fast_it_is_and_what_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each mutant as it falls, and those that stand."""
    monkeypatch.setattr(_laws, "_EVERY", 0.0)
    chosen = ["--mutant", "answers twice", "--mutant", "state keys share a lane"]
    main(["laws", "--generated", "3", "--seeds", "1", *chosen])
    out, err = capsys.readouterr()
    assert out.index("caught: answers twice") < out.index("median  examples by seed")
    assert re.search(r"[\d,]+ executions a second, 1 mutant left: state keys share a lane", err)


@pytest.mark.parametrize(
    "wrong",
    [
        ("--seeds", "2"),
        ("--mutant", "absent"),
        ("--generated", "2", "--executions", "3"),
        ("--generated", "2", "--strategy", "dpor"),
        ("--generated", "2", "--mutant", "absent"),
        ("--generated", "0"),
    ],
)
def test_options_that_do_not_go_together_are_refused(wrong: tuple[str, ...]) -> None:
    """Nothing is run, and the exit code is that of bad usage."""
    assert main(["laws", *wrong]) == 2


# What the laws gained


@pytest.mark.parametrize(
    "name", ["a cancel outranks a return", "a cancel silences the reader", "a cancel cuts what may finish"]
)
def test_census_with_a_cancel_catches(name: str) -> None:
    """The first traces of a cancelled batch keep the laws, and the mutant breaks its own in one of them."""
    mutant = MUTANTS[name]
    assert exhaust([mutant.workload], most=20).alarms == ()
    with mutant.apply():
        (alarm,) = exhaust([mutant.workload], most=20).alarms
    assert alarm.violation.law == mutant.law


@pytest.mark.parametrize(
    "call",
    [
        Scripted([Shield(2)], says="safe"),
        Scripted([Shield(2), Fail()], says="safe"),
        Scripted([Shield(2)], says="safe", timeout=1.5),
        Scripted([Shield(2), LeaveOpen()], says="safe"),
        Scripted([Shield(2), ChangeState("x", "a")], says="nothing"),
    ],
    ids=["returns", "raises", "returns late", "leaves open", "alone"],
)
def test_call_that_returns_after_a_cancel_breaks_no_law(call: Scripted) -> None:
    """It keeps its answer; a call that left a nursery open may be cut while that ends."""
    execution = simulate(Mix([call, Scripted([Sleep(3)], says="safe")], cancel_after=1.0))
    assert check(execution.trace) == []


def test_calls_submitted_after_a_cancel_need_no_reader() -> None:
    """The updates have ended by then, and their slots are filled all the same."""
    mix = Mix([Scripted(), Scripted()], delays=(2.0, 1.0), cancel_after=1.0)
    assert check(simulate(mix).trace) == []


def test_examples_have_the_policies_that_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """The command takes lanes and a limit, and every example has them."""
    found: list[Mix] = []
    drawn(shipped_examples(lanes="serial", limit=2), 0, 8, lambda example: not found.append(example[0]))
    assert {(mix.lanes, mix.limit) for mix in found} == {("serial", 2)}
    chosen = ["--seeds", "1", "--mutant", "answers twice", "--lanes", "serial", "--limit", "2"]
    assert main(["laws", "--generated", "3", *chosen]) == 0
    assert "answered_once" in capsys.readouterr().out
