"""``toolrt explore`` and ``toolrt replay``: what is shown, what is kept, what is never touched."""

import inspect
import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests._profile import FULL
from toolrt import Outcome, invariants, sim
from toolrt.cli.commands._draw import timeline
from toolrt.cli.commands._explore import explore
from toolrt.cli.commands._litmus import litmus
from toolrt.cli.commands._run import run
from toolrt.cli.experiment._experiment import Experiment
from toolrt.cli.experiment._failure import FailureFile
from toolrt.cli.experiment._input import load_response
from toolrt.cli.experiment._roots import Roots
from toolrt.cli.experiment._variation import Variation
from toolrt.workspace import MemoryDisk
from toolrt.workspace.names._identity import Identity


@pytest.fixture
def unordered(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """File tools that claim nothing, so that nothing orders them."""
    with monkeypatch.context() as patched:
        patched.setattr(Identity, "claims", lambda self, mode, subtree=False: ())
        yield patched


@pytest.fixture
def failure(explored: Any, tmp_path: Path, unordered: pytest.MonkeyPatch) -> Iterator[Path]:
    """A replay file, found while nothing orders the file tools."""
    path = tmp_path / "failure.json"
    assert explored("--executions", 3, "--save", path).code == 1
    return path


@pytest.mark.seldom
@pytest.mark.process
def test_explore_passes_on_the_example(toolrt: Any, response: Path, shop: Path) -> None:
    """All laws hold on a hundred schedules, and all end alike."""
    ended = toolrt.spawned("explore", response, "--workspace", shop, "--executions", 100)
    assert ended.code == 0
    assert "PASS: sampled(n=100, distinct=100)" in ended.out
    assert "100 x 12 ok, 1 error, 1 invalid" in ended.out


@pytest.mark.seldom
@pytest.mark.parametrize("lanes", ["by_safety", "parallel", "serial"])
def test_explore_passes_under_every_lane_policy(explored: Any, lanes: str) -> None:
    """By claims is the test above."""
    assert explored("--executions", 20, "--lanes", lanes).code == 0


@pytest.mark.seldom
def test_explore_never_writes_to_the_workspace(
    explored: Any, shop: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """The directory is byte for byte what it was."""
    before = tree(shop)
    explored("--executions", 5)
    assert tree(shop) == before


@pytest.mark.seldom
def test_explore_json_says_what_was_shown(explored: Any) -> None:
    """One JSON value on standard output; people read standard error."""
    ended = explored("--executions", 12, "--json")
    shown = json.loads(ended.out)
    assert (shown["verdict"], shown["executions"], shown["failure"]) == ("pass", 12, None)
    assert shown["laws"] == [law for law in invariants.LAWS if law not in shown["not_checked"]]
    assert [outcome["count"] for outcome in shown["outcomes"]] == [12]
    assert "PASS" in ended.err


@pytest.mark.seldom
def test_explore_same_seed_shows_the_same(explored: Any) -> None:
    """Apart from how long it took."""

    def shown(seed: int) -> dict[str, Any]:
        options = ("--executions", 4, "--seed", seed, "--json", "--limit", 3)
        found: dict[str, Any] = json.loads(explored(*options).out)
        del found["seconds"], found["executions_per_second"]
        return found

    assert shown(7) == shown(7)


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_explore_with_jobs_shows_the_same(explored: Any, tmp_path: Path, unordered: pytest.MonkeyPatch) -> None:
    """Endings, verdict, and the failure that is kept; and it says how many were run twice."""

    def shown(jobs: int) -> dict[str, Any]:
        path = tmp_path / "failure.json"
        options = ("--executions", 30, "--jobs", jobs, "--json", "--limit", 3, "--save", path)
        found: dict[str, Any] = json.loads(explored(*options).out)
        del found["seconds"], found["executions_per_second"]
        return {**found, "kept": path.read_text()}

    one = shown(1)
    assert (one["verdict"], one["run_twice"]) == ("fail", 10)
    assert shown(2) == one


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_explore_with_jobs_counts_what_was_run_twice(explored: Any) -> None:
    """Whichever process did it, and where nothing fails that would be run again here."""
    ended = explored("--executions", 14, "--jobs", 2, "--json")
    found = json.loads(ended.out)
    assert (found["verdict"], found["run_twice"]) == ("pass", 10)


def test_explore_stops_when_the_time_is_up(explored: Any) -> None:
    """At least one execution is run, and the verdict says how many were; before that, what all would have taken."""
    ended = explored("--executions", 1_000_000, "--seconds", 0.0001, "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["claim"] == "sampled(n=1, distinct=1)"
    assert "1,000,000 would take about" in ended.err


@pytest.mark.seldom
def test_explore_finds_the_violation(explored: Any, tmp_path: Path, unordered: pytest.MonkeyPatch) -> None:
    """With the order taken away the law of files is broken; the sentence, the schedule and the command are printed."""
    path = tmp_path / "failure.json"
    ended = explored("--executions", 3, "--save", path)
    assert ended.code == 1
    assert "FAIL: sampled(n=3" in ended.out
    assert invariants.LAWS["same_file_in_call_order"].sentence in ended.out
    assert f"toolrt replay {path}" in ended.out


@pytest.mark.seldom
def test_explore_prints_the_command_that_repeats_it(
    explored: Any,
    toolrt: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unordered: pytest.MonkeyPatch,
) -> None:
    """Without --save the file lies in the current directory, whatever its name, and the command works as it is."""
    here = tmp_path / "with space"
    here.mkdir()
    monkeypatch.chdir(here)
    ended = explored("--executions", 3)
    command = next(line.strip() for line in ended.out.splitlines() if line.strip().startswith("toolrt replay"))
    assert [path.name for path in here.iterdir()] == shlex.split(command)[2:]
    assert toolrt(*shlex.split(command)[1:]).code == 1


@pytest.mark.seldom
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


@pytest.mark.seldom
def test_explore_names_the_same_failure_alike(
    explored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unordered: object
) -> None:
    """Exploring again does not pile up files."""
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        explored("--executions", 3)
    assert len(list(tmp_path.glob("toolrt-failure-*.json"))) == 1


def test_explore_writes_no_replay_file_when_all_is_well(explored: Any, tmp_path: Path) -> None:
    """There is nothing to repeat."""
    explored("--executions", 3, "--save", tmp_path / "failure.json")
    assert not (tmp_path / "failure.json").exists()


@pytest.mark.seldom
def test_replay_repeats_the_violation(toolrt: Any, failure: Path) -> None:
    """The same sentence, with the events that show it marked."""
    ended = toolrt("replay", failure)
    assert ended.code == 1
    assert json.loads(failure.read_text())["violations"][0].splitlines()[0] in ended.out
    assert any(line.startswith(">") for line in ended.out.splitlines())


@pytest.mark.seldom
def test_replay_never_writes_to_the_workspace(
    toolrt: Any, failure: Path, shop: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """It works on a copy, as explore does."""
    before = tree(shop)
    toolrt("replay", failure)
    assert tree(shop) == before


@pytest.mark.seldom
def test_replay_takes_a_workspace_that_was_moved(toolrt: Any, failure: Path, shop: Path, tmp_path: Path) -> None:
    """What counts is what is in it."""
    shutil.move(shop, tmp_path / "moved")
    assert toolrt("replay", failure).code == 2
    assert toolrt("replay", failure, "--workspace", tmp_path / "moved").code == 1


@pytest.mark.seldom
def test_replay_says_that_the_workspace_has_changed(toolrt: Any, failure: Path, shop: Path) -> None:
    """A file that no call touches changes nothing else."""
    (shop / "unrelated.txt").write_text("new")
    ended = toolrt("replay", failure)
    assert ended.code == 1
    assert "not as it was" in ended.out


@pytest.mark.seldom
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


@pytest.mark.seldom
@pytest.mark.slow
def test_laws_catches_every_mutant(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 0; the table as JSON has a row for each mutant: of all laws in the full run, else of one.

    `tests/invariants/test_mutants.py` tries all laws in every run, and `.ci/run` calls the command.
    """
    real = invariants.table
    laws = invariants.LAWS if FULL else ("exclusive_alone",)
    chosen = [mutant for mutant in invariants.MUTANTS.values() if mutant.law in laws]
    monkeypatch.setattr(invariants, "table", lambda n, seed, *rest: real(n, seed, chosen))
    ended = toolrt("laws", "--executions", 8, "--json")
    table = json.loads(ended.out)
    assert (ended.code, table["survivors"], table["false_alarms"]) == (0, [], [])
    assert [row["name"] for row in table["mutants"]] == [mutant.name for mutant in chosen]


def test_laws_exits_1_when_a_mutant_survives(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that sees nothing."""
    laws = {name: (lambda trace: []) if name == "answered_once" else law for name, law in invariants.LAWS.items()}
    real = invariants.table
    chosen = [mutant for mutant in invariants.MUTANTS.values() if mutant.law == "answered_once"]
    monkeypatch.setattr(invariants, "table", lambda n, seed, *rest: real(n, seed, chosen, laws, []))
    ended = toolrt("laws", "--executions", 1)
    assert ended.code == 1
    assert "SURVIVED" in ended.out
    assert "answered_once does not catch answers twice" in ended.out


@pytest.mark.seldom
def test_laws_in_every_trace(toolrt: Any) -> None:
    """Exit 0; every batch of one call, each of its traces once."""
    ended = toolrt("laws", "--strategy", "dpor", "--calls", 1, "--json")
    (found,) = json.loads(ended.out).values()
    assert (ended.code, found["batches"], found["alarms"]) == (0, len(invariants.KINDS), [])
    assert "PASS: all laws hold" in toolrt("laws", "--strategy", "dpor", "--calls", 1).out


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
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


def test_laws_in_some_traces_are_not_shown(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With batches that were not reached the answer is neither yes nor no."""
    real = invariants.exhaust_each
    monkeypatch.setattr(invariants, "exhaust_each", lambda groups, *rest, **given: real(groups, most=1))
    ended = toolrt("laws", "--strategy", "dpor", "--calls", 1)
    assert ended.code == 3
    assert "INCONCLUSIVE" in ended.out


@pytest.mark.seldom
def test_laws_in_every_trace_exits_1_when_one_trips(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that nothing can keep."""
    real = invariants.exhaust_each
    never = invariants.law("never", "Nothing happens.")(lambda trace: ["something did"])
    monkeypatch.setattr(invariants, "exhaust_each", lambda groups, *rest, **given: real(groups, {"never": never}))
    ended = toolrt("laws", "--strategy", "dpor", "--calls", 1)
    assert ended.code == 1
    assert "never" in ended.out


def test_explore_that_shows_nothing_is_inconclusive(explored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 3: an execution that was stopped while the clock stood still decides nothing."""

    async def busy(self: Experiment) -> None:
        rounds = sim.Cell(0, name="rounds")
        with trio.move_on_after(1):
            while True:
                rounds.set(rounds.get() + 1)
                await trio.lowlevel.checkpoint()

    monkeypatch.setattr(Experiment, "program", busy)
    ended = explored("--executions", 1)
    assert ended.code == 3
    assert "INCONCLUSIVE" in ended.out
    assert "stopped before the end: 1 of 1 execution" in ended.out


def test_explore_shows_a_deadlock(explored: Any, toolrt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure without a violation is one: who waits for what is printed, and kept."""

    async def stuck(self: Experiment) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(Experiment, "program", stuck)
    path = tmp_path / "failure.json"
    ended = explored("--executions", 2, "--json", "--save", path)
    assert ended.code == 1
    assert "the execution ended by Deadlock" in ended.err
    assert json.loads(ended.out)["failure"]["error"].startswith("Deadlock")
    again = toolrt("replay", path)
    assert again.code == 1
    assert "Deadlock" in again.out


@pytest.mark.seldom
def test_explore_prints_the_schedule_when_the_replay_file_cannot_be_kept(
    explored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unordered: object
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
    ended = explored("--executions", 2, "--save", save)
    assert ended.code == 1
    assert "the replay file is not kept" in ended.out
    assert "main.0" in ended.out
    assert "toolrt replay" not in ended.out


@pytest.mark.seldom
@pytest.mark.parametrize(
    "calls",
    [
        [("write_file", {"path": "new", "content": "x"})],
        [("write_file", {"path": "new/b", "content": "x"}), ("move_path", {"path": "new", "to": "old"})],
        [("make_dir", {"path": "new"})],
    ],
)
def test_cancel_may_come_before_the_last_call_makes_a_file(
    toolrt: Any, shop: Path, written: Callable[..., Path], calls: list[tuple[str, dict[str, Any]]]
) -> None:
    """What the oracle makes with its last call only is not there before."""
    ended = toolrt("explore", written(*calls), "--workspace", shop, "--strategy", "dpor", "--cancel-at", "any")
    assert ended.code == 0, ended.out
    assert "PASS: exhaustive" in ended.out
    assert "not_started" in ended.out


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("options", "claim", "ends"),
    [
        (("--cancel-at", "any"), "with cancel_at=batch", "not_started"),
        (("--faults", "ENOSPC", "--faults", "EIO", "--faults-at-most", 2), "sampled(n=", "2 error"),
        (("--timeout", 1, "--clock", "explored", "--clock-moves", 1), "with clock_moves<=1", "timed_out"),
        (("--timeout", 1), "sampled(n=", "12 ok, 1 error, 1 invalid"),
        (("--cancel-at", "any", "--order", "trio"), "with cancel_at=batch, order=trio", "not_started"),
    ],
)
def test_explore_lets_more_happen(explored: Any, options: tuple[Any, ...], claim: str, ends: str) -> None:
    """A cancel, faults of the disk, time: choices like any other, said in the claim, and all laws that apply hold."""
    ended = explored("--executions", 60, "--json", *options)
    shown = json.loads(ended.out)
    assert (ended.code, shown["verdict"]) == (0, "pass")
    assert claim in shown["claim"]
    assert any(ends in outcome["ending"] for outcome in shown["outcomes"])
    assert ("same_as_oracle" in shown["laws"]) == ("--cancel-at" in options)
    assert shown["also"]


def test_explore_with_a_cancel_still_asks_the_oracle(response: Path, shop: Path) -> None:
    """A file that no number of calls would have left is a violation, also in a batch that was cancelled."""
    calls = load_response(str(response)).calls
    experiment = Experiment.on(Roots(shop), calls, "by_claims", 10, Variation(cancel=True))
    wrong = Experiment.on(Roots(shop), calls, "by_claims", 10, Variation(cancel=True))
    wrong.oracle["versions"]["README.md"] = ["another"]
    wrong.oracle["files"]["README.md"] = "another"
    cancelled = 0
    for seed in range(20):
        walk = sim.RandomWalk(seed=seed)
        execution = sim.run(experiment.program, walk, **experiment.variation.actors)
        if execution.value.outcome.results[-1].outcome is not Outcome.OK:
            cancelled += 1
            assert experiment.check(execution) == []
            (found,) = wrong.check(execution)
            assert "README.md: expected one of the oracle's 1 version" in str(found)
    assert cancelled


@pytest.mark.seldom
def test_explore_with_a_cancel_is_replayed(
    explored: Any, toolrt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replay file says what else could happen; the same execution comes of it, in text and as a page."""
    check = Experiment.check

    def complaining(self: Any, execution: Any, twice: bool = False) -> Any:
        found = check(self, execution, twice)
        if any(event.kind == "batch.cancelled" for event in execution.trace.events):
            found.append(invariants.Violation("mine", "Nobody cancels.", "somebody did"))
        return found

    monkeypatch.setattr(Experiment, "check", complaining)
    path = tmp_path / "failure.json"
    options = ("--executions", 20, "--cancel-at", "any", "--faults", "EIO", "--save", path)
    assert explored(*options).code == 1
    assert json.loads(path.read_text())["options"] == {
        "lanes": "by_claims",
        "limit": 10,
        "cancel": True,
        "faults": ["EIO"],
    }
    ended = toolrt("replay", path)
    assert ended.code == 1
    assert "Nobody cancels." in ended.out
    assert toolrt("timeline", path, "--html", tmp_path / "page.html").code == 0


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("cancel", 1, "options.cancel: expected true or false"),
        ("timeout", -1, "options.timeout: expected seconds above 0"),
        ("clock_moves", 0, "options.clock_moves: expected a whole number"),
        ("faults", ["EWHAT"], "options.faults: expected some of EIO"),
        ("order", "fifo", 'options.order: expected "any" or "trio"'),
        ("faults_at_most", "2", "options.faults_at_most: expected a whole number"),
    ],
)
def test_replay_refuses_what_cannot_happen(
    toolrt: Any, response: Path, shop: Path, tmp_path: Path, field: str, value: object, said: str
) -> None:
    """The place is named."""
    options = {"lanes": "serial", "limit": 1, field: value}
    document = {"toolrt_replay": 1, "options": options}
    path = tmp_path / "failure.json"
    path.write_text(json.dumps(document))
    ended = toolrt("replay", path)
    assert (ended.code, said in ended.err.replace("\n", " ")) == (2, True), ended.err


@pytest.fixture
def two_calls(tmp_path: Path) -> Path:
    """Two edits of one file: few enough for every trace."""
    edits = [{"old": "# shop", "new": "# Shop"}, {"old": "small", "new": "large"}]
    path = tmp_path / "two.json"
    path.write_text(json.dumps([{"name": "edit_file", "input": {"path": "README.md", **edit}} for edit in edits]))
    return path


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("options", "claim"),
    [
        (("--strategy", "dpor"), "exhaustive(traces="),
        (("--strategy", "exhaustive"), "exhaustive(schedules="),
        (("--strategy", "bounded", "--preemptions", 0), "preemptions<=0"),
    ],
)
def test_explore_runs_all_that_a_strategy_wants(
    toolrt: Any, two_calls: Path, shop: Path, options: tuple[Any, ...], claim: str
) -> None:
    """The verdict is PASS, and it is complete."""
    shown = json.loads(toolrt("explore", two_calls, "--workspace", shop, "--json", *options).out)
    assert (shown["verdict"], shown["complete"], shown["unfinished"]) == ("pass", True, None)
    assert claim in shown["claim"]


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("jobs", [1, 2])
def test_explore_that_did_not_run_all_is_inconclusive(explored: Any, jobs: int) -> None:
    """Exit 3, and what was left; a budget that ran out is no PASS."""
    ended = explored("--strategy", "dpor", "--executions", 3, "--jobs", jobs)
    assert ended.code == 3
    assert "INCONCLUSIVE" in ended.out
    assert "not all was run: " in ended.out


def test_explore_stops_an_execution_at_the_step_limit(explored: Any) -> None:
    """It says so: what was stopped decides nothing."""
    ended = explored("--executions", 1, "--step-limit", 20)
    assert ended.code == 3
    assert "stopped before the end: 1 of 1 execution" in ended.out


def test_explore_offers_all_that_sim_explore_takes() -> None:
    """Every parameter has its option, or is what the command is for."""
    taken = {"program", "check"}  # the response, and the laws
    renamed: dict[str, str | None] = {"max_executions": "executions", "progress": "seconds", "made_from": None}
    # The runtime says what a batch touches, and the laws say what may come out of it.
    renamed |= {"track": None, "outcomes": None, "given": None}
    # A crash needs a program that goes on afterwards, and the response is one batch.
    renamed |= {"crash_at": None}
    offered = set(inspect.signature(explore).parameters)
    for name in inspect.signature(sim.explore).parameters:
        option = renamed.get(name, name)
        assert name in taken or option is None or option in offered, name


def test_documented_options_are_those_there_are() -> None:
    """``docs/reference/cli.md`` has a row for each option of each command, and for no other."""
    page = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text(encoding="utf-8")
    sections = {part.split("\n", 1)[0]: part for part in page.split("\n## ")}
    for command, function in (("explore", explore), ("run", run), ("timeline", timeline), ("litmus", litmus)):
        section = sections[f"toolrt {command}"]
        rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `--")]
        named = {option for row in rows for option in re.findall(r"--([a-z-]+)", row)}
        there = {
            name.replace("_", "-")
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }
        assert named == there, command
