"""``toolrt explore`` and ``toolrt replay``: what is shown, what is kept, what is never touched."""

import json
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from toolrt import invariants, sim
from toolrt.cli._experiment import Experiment
from toolrt.cli._failure import FailureFile
from toolrt.cli._input import load_response
from toolrt.workspace import MemoryDisk
from toolrt.workspace._identity import Identity


@pytest.fixture
def unordered(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """File tools that claim nothing, so that nothing orders them."""
    with monkeypatch.context() as patched:
        patched.setattr(Identity, "claims", lambda self, mode, subtree=False: ())
        yield patched


@pytest.fixture
def failure(toolrt: Any, response: Path, shop: Path, tmp_path: Path, unordered: pytest.MonkeyPatch) -> Iterator[Path]:
    """A replay file, found while nothing orders the file tools."""
    path = tmp_path / "failure.json"
    assert toolrt("explore", response, "--workspace", shop, "--executions", 3, "--save", path).code == 1
    return path


def test_explore_passes_on_the_example(toolrt: Any, response: Path, shop: Path) -> None:
    """All laws hold on a hundred schedules, and all end alike."""
    ended = toolrt.spawned("explore", response, "--workspace", shop, "--executions", 100)
    assert ended.code == 0
    assert "PASS: sampled(n=100, distinct=100)" in ended.out
    assert "100 x 12 ok, 1 error, 1 invalid" in ended.out


@pytest.mark.parametrize("lanes", ["by_safety", "parallel", "serial"])
def test_explore_passes_under_every_lane_policy(toolrt: Any, response: Path, shop: Path, lanes: str) -> None:
    """By claims is the test above."""
    assert toolrt("explore", response, "--workspace", shop, "--executions", 20, "--lanes", lanes).code == 0


def test_explore_never_writes_to_the_workspace(
    toolrt: Any, response: Path, shop: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """The directory is byte for byte what it was."""
    before = tree(shop)
    toolrt("explore", response, "--workspace", shop, "--executions", 5)
    assert tree(shop) == before


def test_explore_json_says_what_was_shown(toolrt: Any, response: Path, shop: Path) -> None:
    """One JSON value on standard output; people read standard error."""
    ended = toolrt("explore", response, "--workspace", shop, "--executions", 12, "--json")
    shown = json.loads(ended.out)
    assert (shown["verdict"], shown["executions"], shown["failure"]) == ("pass", 12, None)
    assert shown["laws"] == list(invariants.LAWS)
    assert [outcome["count"] for outcome in shown["outcomes"]] == [12]
    assert "PASS" in ended.err


def test_explore_same_seed_shows_the_same(toolrt: Any, response: Path, shop: Path) -> None:
    """Apart from how long it took."""

    def shown(seed: int) -> dict[str, Any]:
        options = ("--executions", 4, "--seed", seed, "--json", "--limit", 3)
        found: dict[str, Any] = json.loads(toolrt("explore", response, "--workspace", shop, *options).out)
        del found["seconds"], found["executions_per_second"]
        return found

    assert shown(7) == shown(7)


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_explore_with_jobs_shows_the_same(
    toolrt: Any, response: Path, shop: Path, tmp_path: Path, unordered: pytest.MonkeyPatch
) -> None:
    """Endings, verdict, and the failure that is kept; and it says how many were run twice."""

    def shown(jobs: int) -> dict[str, Any]:
        path = tmp_path / "failure.json"
        options = ("--executions", 30, "--jobs", jobs, "--json", "--limit", 3, "--save", path)
        found: dict[str, Any] = json.loads(toolrt("explore", response, "--workspace", shop, *options).out)
        del found["seconds"], found["executions_per_second"]
        return {**found, "kept": path.read_text()}

    one = shown(1)
    assert (one["verdict"], one["run_twice"]) == ("fail", 10)
    assert shown(2) == one


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_explore_with_jobs_counts_what_was_run_twice(toolrt: Any, response: Path, shop: Path) -> None:
    """Whichever process did it, and where nothing fails that would be run again here."""
    ended = toolrt("explore", response, "--workspace", shop, "--executions", 14, "--jobs", 2, "--json")
    found = json.loads(ended.out)
    assert (found["verdict"], found["run_twice"]) == ("pass", 10)


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_explore_with_jobs_stops_when_the_time_is_up(toolrt: Any, response: Path, shop: Path) -> None:
    """As with one."""
    options = ("--executions", 1_000_000, "--seconds", 0.0001, "--json", "--jobs", 2)
    ended = toolrt("explore", response, "--workspace", shop, *options)
    assert json.loads(ended.out)["claim"] == "sampled(n=1, distinct=1)"


def test_explore_refuses_no_jobs(toolrt: Any, response: Path, shop: Path) -> None:
    """Exit 2."""
    ended = toolrt("explore", response, "--workspace", shop, "--jobs", 0)
    assert (ended.code, "--jobs" in ended.err) == (2, True)


def test_explore_stops_when_the_time_is_up(toolrt: Any, response: Path, shop: Path) -> None:
    """At least one execution is run, and the verdict says how many were; before that, what all would have taken."""
    options = ("--executions", 1_000_000, "--seconds", 0.0001, "--json")
    ended = toolrt("explore", response, "--workspace", shop, *options)
    assert ended.code == 0
    assert json.loads(ended.out)["claim"] == "sampled(n=1, distinct=1)"
    assert "1,000,000 would take about" in ended.err


def test_explore_finds_the_violation(
    toolrt: Any, response: Path, shop: Path, tmp_path: Path, unordered: pytest.MonkeyPatch
) -> None:
    """With the order taken away the law of files is broken; the sentence, the schedule and the command are printed."""
    path = tmp_path / "failure.json"
    ended = toolrt("explore", response, "--workspace", shop, "--executions", 3, "--save", path)
    assert ended.code == 1
    assert "FAIL: sampled(n=3" in ended.out
    assert invariants.LAWS["same_file_in_call_order"].sentence in ended.out
    assert f"toolrt replay {path}" in ended.out


def test_explore_prints_the_command_that_repeats_it(
    toolrt: Any,
    response: Path,
    shop: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unordered: pytest.MonkeyPatch,
) -> None:
    """Without --save the file lies in the current directory, whatever its name, and the command works as it is."""
    here = tmp_path / "with space"
    here.mkdir()
    monkeypatch.chdir(here)
    ended = toolrt("explore", response, "--workspace", shop, "--executions", 3)
    command = next(line.strip() for line in ended.out.splitlines() if line.strip().startswith("toolrt replay"))
    assert [path.name for path in here.iterdir()] == shlex.split(command)[2:]
    assert toolrt(*shlex.split(command)[1:]).code == 1


def test_explore_keeps_the_replay_file_out_of_the_workspace(
    toolrt: Any,
    response: Path,
    shop: Path,
    monkeypatch: pytest.MonkeyPatch,
    tree: Callable[[Path], dict[str, str]],
    unordered: pytest.MonkeyPatch,
) -> None:
    """Also when the current directory is the workspace: then it lies beside it."""
    before = tree(shop)
    monkeypatch.chdir(shop / "data")
    toolrt("explore", response, "--workspace", "..", "--executions", 3)
    assert tree(shop) == before
    assert len(list(shop.parent.glob("toolrt-failure-*.json"))) == 1


def test_explore_names_the_same_failure_alike(
    toolrt: Any, response: Path, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unordered: object
) -> None:
    """Exploring again does not pile up files."""
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        toolrt("explore", response, "--workspace", shop, "--executions", 3)
    assert len(list(tmp_path.glob("toolrt-failure-*.json"))) == 1


def test_explore_writes_no_replay_file_when_all_is_well(
    toolrt: Any, response: Path, shop: Path, tmp_path: Path
) -> None:
    """There is nothing to repeat."""
    toolrt("explore", response, "--workspace", shop, "--executions", 3, "--save", tmp_path / "failure.json")
    assert not (tmp_path / "failure.json").exists()


def test_replay_repeats_the_violation(toolrt: Any, failure: Path) -> None:
    """The same sentence, with the events that show it marked."""
    ended = toolrt("replay", failure)
    assert ended.code == 1
    assert json.loads(failure.read_text())["violations"][0].splitlines()[0] in ended.out
    assert any(line.startswith(">") for line in ended.out.splitlines())


def test_replay_twice_prints_the_same(toolrt: Any, failure: Path) -> None:
    """It is one execution."""
    assert toolrt("replay", failure).out == toolrt("replay", failure).out


def test_replay_never_writes_to_the_workspace(
    toolrt: Any, failure: Path, shop: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """It works on a copy, as explore does."""
    before = tree(shop)
    toolrt("replay", failure)
    assert tree(shop) == before


def test_replay_takes_a_workspace_that_was_moved(toolrt: Any, failure: Path, shop: Path, tmp_path: Path) -> None:
    """What counts is what is in it."""
    shutil.move(shop, tmp_path / "moved")
    assert toolrt("replay", failure).code == 2
    assert toolrt("replay", failure, "--workspace", tmp_path / "moved").code == 1


def test_replay_says_that_the_workspace_has_changed(toolrt: Any, failure: Path, shop: Path) -> None:
    """A file that no call touches changes nothing else."""
    (shop / "unrelated.txt").write_text("new")
    ended = toolrt("replay", failure)
    assert ended.code == 1
    assert "not as it was" in ended.out


def test_replay_that_diverges_is_inconclusive(toolrt: Any, failure: Path, unordered: pytest.MonkeyPatch) -> None:
    """With the order back, the schedule fits no more; that is said, and nothing is guessed."""
    unordered.undo()
    ended = toolrt("replay", failure)
    assert ended.code == 3
    assert "diverged" in ended.out


def test_replay_of_a_schedule_that_keeps_all_laws_passes(
    toolrt: Any, response: Path, shop: Path, tmp_path: Path
) -> None:
    """Exit 0, and what the file told of is said not to have happened."""
    loaded = load_response(str(response))
    experiment = Experiment(loaded.calls, MemoryDisk.copy_of(shop), "by_claims", 10)
    schedule = sim.run(experiment.program).schedule
    kept = FailureFile(
        "r.json", loaded.text, str(shop), experiment.tree_digest, "by_claims", 10, schedule, ("a law was broken",)
    )
    (tmp_path / "kept.json").write_text(kept.to_json())
    assert FailureFile.load(str(tmp_path / "kept.json")) == kept
    ended = toolrt("replay", tmp_path / "kept.json")
    assert ended.code == 0
    assert "a law was broken" in ended.out


def test_laws_catches_every_mutant(toolrt: Any) -> None:
    """Exit 0; the table as JSON has a row for each mutant."""
    ended = toolrt("laws", "--executions", 8, "--json")
    table = json.loads(ended.out)
    assert (ended.code, table["survivors"], table["false_alarms"]) == (0, [], [])
    assert [row["name"] for row in table["mutants"]] == list(invariants.MUTANTS)


def test_laws_exits_1_when_a_mutant_survives(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that sees nothing."""
    laws = {name: (lambda trace: []) if name == "answered_once" else law for name, law in invariants.LAWS.items()}
    real = invariants.table
    chosen = [mutant for mutant in invariants.MUTANTS.values() if mutant.law == "answered_once"]
    monkeypatch.setattr(invariants, "table", lambda n, seed: real(n, seed, chosen, laws, []))
    ended = toolrt("laws", "--executions", 1)
    assert ended.code == 1
    assert "SURVIVED" in ended.out
    assert "answered_once does not catch answers twice" in ended.out


def test_laws_in_every_trace(toolrt: Any) -> None:
    """Exit 0; every batch of one call, each of its traces once."""
    ended = toolrt("laws", "--strategy", "dpor", "--calls", 1, "--json")
    (found,) = json.loads(ended.out).values()
    assert (ended.code, found["batches"], found["alarms"]) == (0, len(invariants.KINDS), [])
    assert "PASS: all laws hold" in toolrt("laws", "--strategy", "dpor", "--calls", 1).out


def test_laws_in_every_trace_are_shared_out_and_gone_on_with(toolrt: Any, tmp_path: Path) -> None:
    """By two processes as by one; what a file has is taken up, and the file is gone at the end."""
    file = tmp_path / "laws.json"
    ended = toolrt("laws", "--strategy", "dpor", "--calls", 1, "--jobs", 2, "--checkpoint", file)
    assert ended.code == 0
    assert ended.out == toolrt("laws", "--strategy", "dpor", "--calls", 1).out
    assert not file.exists()
    file.write_text("{}")
    ended = toolrt("laws", "--strategy", "dpor", "--calls", 1, "--checkpoint", file)
    assert ended.code == 2
    assert "no file that a search of batches was kept in" in ended.err


@pytest.mark.parametrize("option", [("--jobs", 2), ("--checkpoint", "laws.json")])
def test_laws_of_a_sample_are_not_shared_out(toolrt: Any, option: tuple[Any, ...]) -> None:
    """It is said which strategy can be."""
    ended = toolrt("laws", *option)
    assert ended.code == 2
    assert "--strategy dpor" in ended.err


def test_laws_in_some_traces_are_not_shown(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With batches that were not reached the answer is neither yes nor no."""
    real = invariants.exhaust_each
    monkeypatch.setattr(invariants, "exhaust_each", lambda groups, **given: real(groups, most=1))
    ended = toolrt("laws", "--strategy", "dpor", "--calls", 1)
    assert ended.code == 3
    assert "INCONCLUSIVE" in ended.out


def test_laws_in_every_trace_exits_1_when_one_trips(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that nothing can keep."""
    real = invariants.exhaust_each
    never = invariants.law("never", "Nothing happens.")(lambda trace: ["something did"])
    monkeypatch.setattr(invariants, "exhaust_each", lambda groups, **given: real(groups, {"never": never}))
    ended = toolrt("laws", "--strategy", "dpor", "--calls", 1)
    assert ended.code == 1
    assert "never" in ended.out


def test_explore_that_shows_nothing_is_inconclusive(
    toolrt: Any, response: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 3: an execution that was stopped while the clock stood still decides nothing."""

    async def busy(self: Experiment) -> None:
        with trio.move_on_after(1):
            while True:
                await trio.lowlevel.checkpoint()

    monkeypatch.setattr(Experiment, "program", busy)
    ended = toolrt("explore", response, "--workspace", shop, "--executions", 1)
    assert ended.code == 3
    assert "INCONCLUSIVE" in ended.out
    assert "1 of 1 executions were stopped before they ended" in ended.out


def test_explore_shows_a_deadlock(
    toolrt: Any, response: Path, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure without a violation is one: who waits for what is printed, and kept."""

    async def stuck(self: Experiment) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(Experiment, "program", stuck)
    path = tmp_path / "failure.json"
    ended = toolrt("explore", response, "--workspace", shop, "--executions", 2, "--json", "--save", path)
    assert ended.code == 1
    assert "the execution ended by Deadlock" in ended.err
    assert json.loads(ended.out)["failure"]["error"].startswith("Deadlock")
    again = toolrt("replay", path)
    assert again.code == 1
    assert "Deadlock" in again.out


def test_explore_prints_the_schedule_when_the_replay_file_cannot_be_kept(
    toolrt: Any, response: Path, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unordered: object
) -> None:
    """The directory went away meanwhile; the verdict stays, and no command is promised."""
    (tmp_path / "gone").mkdir()
    check = Experiment.check

    def removing(self: Experiment, execution: Any, twice: bool = False) -> Any:
        if (tmp_path / "gone").exists():
            (tmp_path / "gone").rmdir()
        return check(self, execution, twice)

    monkeypatch.setattr(Experiment, "check", removing)
    save = tmp_path / "gone" / "failure.json"
    ended = toolrt("explore", response, "--workspace", shop, "--executions", 2, "--save", save)
    assert ended.code == 1
    assert "the replay file is not kept" in ended.out
    assert "main.0" in ended.out
    assert "toolrt replay" not in ended.out
