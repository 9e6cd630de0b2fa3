"""Policies, laws and mutants of a user's own on the command line: MODULE:NAME."""

import json
from pathlib import Path
from typing import Any

import pytest

MODULE = """
import toolrt
from toolrt import LaneChoice, invariants
from toolrt.order import Machine

class PerLane:
    def place(self, call, lane):
        if not toolrt.by_claims(call.tool, call.input):
            return LaneChoice.ALONE
        return LaneChoice.JOIN if len(lane) < 2 else LaneChoice.OPEN

class Counting:
    count = 0
    def place(self, call, lane):
        self.count += 1
        return self.count % 2 == 0

two, counting = PerLane(), Counting()

def last(ready):
    return ready[-1]

@invariants.law("few", "Few calls.")
def few(trace):
    return []

def apply():
    return invariants.patched(Machine, "seal", lambda seal: seal)

idle = invariants.Mutant("idle", "few", "Nothing is broken.", apply, invariants.Mix())
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's in the current directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_things.py").write_text(MODULE)
    return "own_things"


def test_explore_takes_policies_of_ones_own(explored: Any, module: str, tmp_path: Path) -> None:
    """Replayed from the file that was kept, under the same policies; what they give up is said."""
    options = ("--lanes", f"{module}:two", "--slots", f"{module}:last", "--limit", "2", "--executions", 2)
    ended = explored(*options)
    assert ended.code == 0
    assert f"{module}:two, slots {module}:last, at most 2 at once" in ended.out
    assert "left out: the call order of slots (RULES 7), which the slot policy last replaces" in ended.out


def test_run_plans_by_policies_of_ones_own(toolrt: Any, response: Path, shop: Path, module: str) -> None:
    """No lane has more than two calls."""
    options = ("--lanes", f"{module}:two", "--dry-run", "--format", "json")
    plan = json.loads(toolrt("run", response, "--workspace", shop, *options).out)
    assert max(len(lane["calls"]) for lane in plan["lanes"]) == 2


@pytest.mark.seldom
def test_census_takes_a_policy_and_a_law_of_ones_own(toolrt: Any, module: str) -> None:
    """Under a limit, and with the order of slots left out."""
    options = ("--lanes", f"{module}:two", "--slots", f"{module}:last", "--limit", "1", "--law", f"{module}:few")
    ended = toolrt("laws", "--strategy", "dpor", "--calls", "1", *options)
    assert ended.code == 0
    assert "18 laws" in ended.out
    assert "left out: the call order of slots" in ended.out


@pytest.mark.seldom
def test_laws_tries_the_named_mutants_alone(toolrt: Any, module: str) -> None:
    """One row for each mutant that is named, toolrt's own or the user's; the other mutants are not run."""
    options = ("--mutant", "answers twice", "--mutant", f"{module}:idle", "--law", f"{module}:few", "--executions", "1")
    ended = toolrt("laws", *options, "--json")
    assert [row["name"] for row in json.loads(ended.out)["mutants"]] == ["answers twice", "idle"]
    assert (ended.code, "few does not catch idle" in ended.err) == (1, True)


def test_mutant_whose_law_is_not_given_says_how_to_give_it(toolrt: Any, module: str) -> None:
    """The law of a user's own mutant is no law of toolrt's."""
    ended = toolrt("laws", "--mutant", f"{module}:idle", "--executions", "1")
    assert ended.code == 2
    assert "your own is added by laws= or --law" in " ".join(ended.err.split())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--lanes", "by_luck"), "or MODULE:NAME of your own"),
        (("--lanes", "own_things:"), "or MODULE:NAME of your own"),
        (("--lanes", "absent_module:x"), "cannot be imported"),
        (("--lanes", "own_things:absent"), "has no 'absent'"),
        (("--lanes", "own_things:PerLane"), "give an instance"),
        (("--lanes", "own_things:counting"), "the same lanes when it is asked twice"),
        (("--slots", "own_things:two"), "a slot policy"),
        (("--slots", "last"), "MODULE:NAME"),
    ],
)
def test_explore_refuses_what_is_no_policy(explored: Any, module: str, options: tuple[str, ...], expected: str) -> None:
    """Before anything is run."""
    ended = explored(*options)
    assert ended.code == 2
    assert expected in " ".join(ended.err.split())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--lanes", "own_things:two"), "--strategy dpor"),
        (("--law", "own_things:last"), "expected a law"),
        (("--mutant", "own_things:few"), "expected a toolrt.invariants.Mutant"),
        (("--mutant", "own_things:few", "--strategy", "dpor"), "--strategy random"),
        (("--law", "own_things:few", "--law", "own_things:few"), "already"),
    ],
)
def test_laws_refuses_what_is_none(toolrt: Any, module: str, options: tuple[str, ...], expected: str) -> None:
    """Before anything is run."""
    ended = toolrt("laws", *options)
    assert ended.code == 2
    assert expected in " ".join(ended.err.split())
