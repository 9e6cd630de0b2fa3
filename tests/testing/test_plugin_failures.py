"""What a failing explored test says, what is replayed and kept, and what skips, exits and options do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.testing._losing import LOSING
from tests.testing.conftest import Inner, ended

COUNTER = (
    LOSING
    + """
@pytest.mark.explore{options}
async def test_counter(cell):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bump, cell)
        nursery.start_soon(bump, cell)
    assert cell.get() == {expected}
"""
)

FAILING = COUNTER.format(options="", expected=2)


def command_in(output: str) -> str:
    """Give the schedule in the command that a failure prints."""
    found = re.search(r"pytest test_it.py::\S+ --explore-replay '([^']*)'", output)
    assert found, output
    return found[1]


@pytest.mark.process
def test_failure_says_verdict_schedule_assertion_and_command(inner: Inner) -> None:
    """All a person needs to see it again."""
    code, output = inner(FAILING)
    assert code == 1
    assert "assert cell.get() == 2" in output
    assert "assert 1 == 2" in output
    assert re.search(r"FAIL: sampled\(n=\d+", output)
    assert "6 steps, 1 preemption" in output
    assert re.search(r"main\.0 +main\.1", output)
    assert "writes" in output
    assert command_in(output) == "main main.0 main.1*2 main.0 main"
    assert "toolrt/sim" not in output, "a frame of the machinery is shown"


@pytest.mark.process
def test_command_that_was_printed_replays_the_failure(inner: Inner) -> None:
    """One execution, and the same failure."""
    _, output = inner(FAILING)
    schedule = command_in(output)
    code, again = inner(None, "test_it.py::test_counter", "--explore-replay", schedule, "-p", "no:randomly")
    assert code == 1
    assert "FAIL: sampled(n=1, distinct=1)" in again
    assert "assert 1 == 2" in again


@pytest.mark.process
def test_replay_of_a_schedule_that_passes_passes(inner: Inner) -> None:
    """One after the other nothing is lost."""
    ended(inner(FAILING, "--explore-replay", "main main.0*2 main.1*2 main"), 0)


@pytest.mark.process
@pytest.mark.parametrize(
    ("schedule", "says"), [("main main.7", "is none of this test"), ("*", "ScheduleRefused"), ("", "empty")]
)
def test_replay_of_what_is_no_schedule_of_the_test_fails(inner: Inner, schedule: str, says: str) -> None:
    """It is never guessed what was meant."""
    ended(inner(FAILING, "--explore-replay", schedule), 1, says)


@pytest.mark.process
def test_deadlock_is_told_with_who_waits_for_whom(inner: Inner) -> None:
    """No assertion of the test is needed."""
    text = """
import pytest, trio

@pytest.mark.explore(strategy="dpor")
async def test_it():
    a, b = trio.Lock(), trio.Lock()

    async def both(first, second):
        async with first, second:
            await trio.sleep(0)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(both, a, b)
        nursery.start_soon(both, b, a)
"""
    code, output = inner(text)
    assert code == 1
    assert "waits for a Lock held by main.1" in output
    assert "--explore-replay" in output


@pytest.mark.process
@pytest.mark.parametrize("strategy", ["portfolio", "random", "pct", "pos", "urw", "exhaustive", "dpor", "bounded"])
def test_strategy_can_be_named(inner: Inner, strategy: str) -> None:
    """Every strategy finds this one."""
    code, output = inner(COUNTER.format(options=f"(strategy={strategy!r}, seed=1)", expected=2))
    assert code == 1, output
    assert "assert 1 == 2" in output


@pytest.mark.process
def test_whole_space_is_a_pass(inner: Inner) -> None:
    """Named or as an object, a search that ends without a failure passes."""
    objects = "(strategy=sim.Exhaustive())", "(strategy=sim.DPOR(), executions=50)", "(strategy=sim.Portfolio(9))"
    for options in objects:
        code, output = inner(COUNTER.format(options=options, expected="cell.get()"))
        assert code == 0, output
        # And says what was shown.
        assert re.search(r"PASS: (exhaustive|sampled)\(", output), output


@pytest.mark.process
def test_budget_that_ran_out_is_no_pass(inner: Inner) -> None:
    """INCONCLUSIVE fails, and says what decides it."""
    code, output = inner(COUNTER.format(options='(strategy="exhaustive", executions=2)', expected="cell.get()"))
    assert code == 1, output
    assert "INCONCLUSIVE" in output
    assert "--explore-executions" in output


@pytest.mark.process
def test_options_outrank_the_marker(inner: Inner) -> None:
    """From the command line more executions are asked for, and another seed."""
    text = """
import pytest
from toolrt import sim

runs = 0

@pytest.mark.explore(strategy="random", executions=3)
async def test_it():
    global runs
    runs += 1

def test_runs():
    print("runs:", runs)
"""
    _, output = inner(text, "--explore-executions", "17", "--explore-seed", "5")
    # Six more are the repetitions that tell whether the test is controlled: the first, and number 1, 2, 4, 8 and 16.
    # Four of these are run without tracking, too.
    assert "runs: 27" in output, output
    code, output = inner(None, "--explore-executions", "0")
    assert code == 1
    assert "1 or more" in output


@pytest.mark.process
@pytest.mark.parametrize("options", ["strategy='magic'", "strategy=sim.DPOR", "executions='many'", "seed='x'"])
def test_option_that_is_wrong_is_refused(inner: Inner, options: str) -> None:
    """The message says what is expected."""
    code, output = inner(COUNTER.format(options=f"({options})", expected=2))
    assert code == 1, output
    assert "expected" in output
    assert "toolrt/testing" not in output, "a frame of the machinery is shown"


@pytest.mark.process
def test_subprocess_is_refused_with_what_to_do_instead(inner: Inner) -> None:
    """No schedule brought it about, so none is shown or kept."""
    text = """
import pytest, trio

@pytest.mark.explore
async def test_it():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.run_process, ["true"])
"""
    output = ended(inner(text, "--explore-database", "kept"), 1, "NotSimulated", "sim.Process")
    assert "--explore-replay" not in output


@pytest.mark.process
def test_skip_xfail_and_exit_inside_mean_what_they_always_mean(inner: Inner) -> None:
    """Also from a child task, and under one schedule only."""
    text = """
import pytest, trio

pytestmark = pytest.mark.explore(executions=20)

async def test_skip():
    pytest.skip("not here")

async def test_skip_in_a_child():
    async with trio.open_nursery() as nursery:
        async def child():
            pytest.skip("child")
        nursery.start_soon(child)

async def test_xfail():
    pytest.xfail("known")

@pytest.mark.xfail(raises=KeyError, strict=True)
async def test_xfail_marker():
    raise KeyError("x")

@pytest.mark.skip(reason="marker")
async def test_skip_marker():
    raise KeyError("x")

async def test_fail():
    pytest.fail("said so")

async def test_system_exit():
    raise SystemExit(3)

async def test_stop():
    pytest.exit("enough", returncode=7)

async def test_never():
    pass
"""
    ended(inner(text), 7, "2 failed, 3 skipped, 2 xfailed", "enough")


@pytest.mark.slow
@pytest.mark.process
def test_failure_is_kept_and_tried_first(inner: Inner, tmp_path: Path) -> None:
    """With one execution, which finds nothing by itself, the kept schedule fails all the same."""
    options = '(strategy="exhaustive", executions=1)'
    passing = COUNTER.format(options='(strategy="random", executions=1, seed=SEED)', expected=2)
    # A seed whose first execution loses nothing.
    seed = next(seed for seed in range(20) if inner(passing.replace("SEED", str(seed)))[0] == 0)
    quiet = passing.replace("SEED", str(seed))
    del options
    for place in (["--explore-database", "kept"], []):
        assert inner(FAILING, *place)[0] == 1
        ended(inner(quiet, *place), 1, "FAIL: sampled(n=1, distinct=1)")
    assert (tmp_path / ".hypothesis").is_dir()
    files = list((tmp_path / "kept").rglob("*.schedule"))
    assert [file.read_text().splitlines() for file in files] == [
        ["# test_it.py::test_counter", "main main.0 main.1*2 main.0 main"]
    ]


@pytest.mark.slow
@pytest.mark.process
def test_kept_failure_survives_edits_and_is_dropped_when_it_no_longer_fits(inner: Inner, tmp_path: Path) -> None:
    """What moves no scheduling point keeps it; what does drops it without a word."""
    ini = "explore_database = kept"
    assert inner(FAILING, ini=ini)[0] == 1
    edited = FAILING.replace("seen = cell.get()", "value = 1; seen = cell.get() + value - 1").replace(
        "async def bump", "\n\nasync def bump"
    )
    ended(inner(edited, "--explore-executions", "1", ini=ini), 1)
    fixed = COUNTER.format(options="", expected="cell.get()")
    assert inner(fixed, ini=ini)[0] == 0
    assert list((tmp_path / "kept").rglob("*.schedule")), "it still fits, and the bug may come back"
    moved = FAILING.replace("    await trio.lowlevel.checkpoint()\n", "")
    output = ended(inner(moved, ini=ini), 0)
    assert "iverge" not in output
    assert not list((tmp_path / "kept").rglob("*.schedule"))


@pytest.mark.process
def test_parameters_keep_failures_of_their_own(inner: Inner, tmp_path: Path) -> None:
    """A schedule belongs to one test with one set of parameters."""
    text = COUNTER.format(options="", expected="number").replace(
        "async def test_counter(cell)",
        '@pytest.mark.parametrize("number", [2, 3])\nasync def test_counter(cell, number)',
    )
    assert inner(text, "--explore-database", "kept")[0] == 1
    assert len(list((tmp_path / "kept").iterdir())) == 2


@pytest.mark.process
def test_command_names_parametrized_and_class_tests_as_a_shell_needs_it(inner: Inner) -> None:
    """Brackets are quoted."""
    text = """
import pytest

@pytest.mark.explore(executions=2)
class TestIt:
    @pytest.mark.parametrize("name", ["a b"])
    async def test_it(self, name):
        assert name == "c"
"""
    _, output = inner(text)
    assert "pytest 'test_it.py::TestIt::test_it[a b]' --explore-replay main" in output


@pytest.mark.seldom
@pytest.mark.process
def test_xdist_runs_explored_tests(inner: Inner) -> None:
    """Options and kept failures reach the workers."""
    output = ended(inner(FAILING, "-p", "xdist", "-n", "1", "--explore-executions", "50", fresh=True), 1)
    assert command_in(output) == "main main.0 main.1*2 main.0 main"


def test_failure_keeps_its_cause(inner: Inner) -> None:
    """What the test raised from something else is told with that."""
    text = """
import pytest, trio

@pytest.mark.explore
async def test_it():
    try:
        await trio.lowlevel.checkpoint()
        {}["absent"]
    except KeyError as error:
        raise ValueError("told") from error
"""
    ended(inner(text), 1, "KeyError: 'absent'", "The above exception was the direct cause", "ValueError: told")


_PARSES = (
    """
import ast, gc, pytest, trio

class Parses:
    def __init__(self):
        self.me = self

    def __del__(self):
        self.parse(20)
        Parses()

    def parse(self, deeper):
        self.parse(deeper - 1) if deeper else ast.parse("a + 1")

@pytest.mark.explore
async def test_it():
    Parses()
    gc.set_threshold(10)
    await trio.lowlevel.checkpoint()
    assert False

def test_next():
    gc.set_threshold(0)

"""
    + "_ = [[1, 2], [3, 4]]\n" * 500
)


@pytest.mark.process
def test_finaliser_that_parses_as_a_failure_is_told_is_no_internal_error(inner: Inner) -> None:
    """Python 3.11.7 counts the levels of all syntax trees together; pytest makes one to tell a failure."""
    ended(inner(_PARSES), 1, "FAILED test_it.py::test_it - assert False", "PASSED test_it.py::test_next")
