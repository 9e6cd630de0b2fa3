"""``pytest --explore``: a suite that was not edited is explored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
import trio

from tests.testing.conftest import Inner, ended
from toolrt import sim
from toolrt.testing._fixtures import Recipe
from toolrt.testing._on_plain_trio import passes_on_plain_trio

_SUITE = """
import socket
import pytest, trio

async def lose(tasks):
    count = 0

    async def bump():
        nonlocal count
        seen = count
        await trio.lowlevel.checkpoint()
        count = seen + 1

    async with trio.open_nursery() as nursery:
        for _ in range(tasks):
            nursery.start_soon(bump)
    return count

async def test_one():
    assert await lose(1) == 1

async def test_first_comes_first():
    order = []

    async def note(name):
        await trio.lowlevel.checkpoint()
        order.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(note, "a")
        nursery.start_soon(note, "b")
    assert order == ["a", "b"]

async def test_socket():
    socket.getaddrinfo("python.org", 80)

async def test_beside():
    async def nothing():
        await trio.lowlevel.checkpoint()

    trio.lowlevel.spawn_system_task(nothing)
    await trio.sleep(1)

@pytest.mark.skip(reason="not today")
async def test_later():
    pass

async def test_skips_itself():
    pytest.skip("not here")

def test_sync():
    pass
"""


def table(output: str) -> dict[str, int]:
    """Give the counts of the summary."""
    return {name: int(count) for name, count in re.findall(r"^(async tests|\w+) +(\d+)$", output, re.M)}


def test_unedited_suite_is_explored_and_counted(inner: Inner) -> None:
    """Every async test is run under many schedules; the summary counts what came of each."""
    code, output = inner(_SUITE, "--explore")
    assert code == 1
    counts = table(output)
    del counts["executions"], counts["distinct"]
    assert counts == {
        "async tests": 6, "explored": 2, "failed": 1, "undecided": 0, "refused": 1, "skipped": 2,
    }  # fmt: skip
    assert re.search(r"^FAILED test_it.py::test_first_comes_first", output, re.M)
    assert re.search(r"^     1  look up a host \(python\.org\)$", output, re.M), "a refusal is counted by its cause"
    assert re.search(r"SKIPPED .*not explored: a simulated program cannot look up a host", output)
    again = re.search(r"pytest (test_it\.py::test_first_comes_first) --explore --explore-replay '(.*)'", output)
    assert again, "a failure says how to run it again"
    code, output = inner(None, again[1], "--explore", "--explore-replay", again[2])
    assert code == 1
    assert table(output)["executions"] == 0, "what is replayed is not explored"
    _, output = inner(None, again[1], "--explore", "--explore-replay", "main main.0*99")
    assert re.search(r"^     1  the schedule given by --explore-replay is none of this test$", output, re.M), output


def test_unedited_failure_of_what_executions_leave_behind_is_undecided(inner: Inner) -> None:
    """A plain run passes, and no schedule fails it: pytest and the summary count no failure."""
    text = """
import trio

left = []

async def test_grows():
    left.append(1)
    await trio.sleep(0)
    assert len(left) < 3
"""
    code, output = inner(text, "--explore")
    assert code == 0
    assert table(output)["failed"] == 0
    assert table(output)["undecided"] == 1
    assert "what executions leave behind" in output
    assert "1 skipped" in output


def test_unedited_suite_without_the_option_is_what_it_was(inner: Inner) -> None:
    """The option alone explores; nothing is written without it."""
    code, output = inner(_SUITE, "-k", "one or beside")
    assert code == 0
    assert "explored schedules" not in output


@pytest.mark.parametrize(
    ("arguments", "executions"),
    [(["--explore", "test_it.py"], 100), (["--explore=7"], 7), (["test_it.py", "--explore=7"], 7)],
)
def test_unedited_number_is_taken_behind_the_equals_sign_alone(
    inner: Inner, arguments: list[str], executions: int
) -> None:
    """A path behind the option is a path."""
    text = _SUITE.replace('assert order == ["a", "b"]', "")
    code, output = inner(text, *arguments, "-k", "test_first")
    assert code == 0
    assert table(output)["executions"] == executions


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5"])
def test_unedited_refuses_what_is_no_number(inner: Inner, number: str) -> None:
    """The message says what came and what was expected."""
    code, output = inner(_SUITE, f"--explore={number}")
    assert code == 4
    assert f"--explore={number}: expected a number of executions, 1 or more" in output


def test_unedited_marker_keeps_its_word(inner: Inner) -> None:
    """A marked test keeps its options, and fails where an unmarked one is skipped."""
    text = """
import socket
import pytest

@pytest.mark.explore(strategy="dpor")
async def test_marked():
    socket.getaddrinfo("python.org", 80)
"""
    code, output = inner(text, "--explore")
    assert code == 1
    assert "FAILED test_it.py::test_marked" in output
    assert table(output)["refused"] == 1


_ANYIO = """
import anyio, pytest, sniffio

pytestmark = pytest.mark.anyio

@pytest.fixture
async def made():
    await anyio.sleep(1)
    yield [sniffio.current_async_library()]
    await anyio.sleep(1)

async def test_both(made, anyio_backend_name):
    await anyio.sleep(0)
    assert made == [anyio_backend_name]
    made.append("once")
"""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(("--explore",), True), (("--explore", "--explore-order", "any"), False), (("--explore-order", "trio"), False)],
)
def test_summary_says_which_orders_were_explored_unasked(inner: Inner, arguments: tuple[str, ...], says: bool) -> None:
    """Trio's orders show fewer bugs than the marker's: a suite that passes in them says so, and how to have all."""
    text = "import pytest, trio\n\nasync def test_it():\n    await trio.sleep(1)\n"
    if "--explore" not in arguments:
        text = text.replace("async def", "@pytest.mark.explore\nasync def")
    _, output = inner(text, *arguments)
    assert ("orders: those that Trio's scheduler makes; --explore-order any explores all" in output) is says


def test_unedited_anyio_variants_of_trio_alone_are_explored(inner: Inner) -> None:
    """The variant of asyncio runs on asyncio, once, and is counted."""
    output = ended(inner(_ANYIO, "--explore=5", "-p", "anyio.pytest_plugin", trio_mode=False), 0)
    assert table(output) | {"executions": 0, "distinct": 0} == {
        "async tests": 1, "explored": 1, "failed": 0, "undecided": 0, "refused": 0, "skipped": 0,
        "executions": 0, "distinct": 0,
    }  # fmt: skip
    assert re.search(r"^left to asyncio:\n     1  anyio's backend asyncio$", output, re.M)


def test_unedited_anyio_variant_of_asyncio_is_not_run_on_trio_where_it_is_marked(inner: Inner) -> None:
    """The marker explores the variant of Trio, and leaves the other to anyio."""
    text = _ANYIO.replace("pytest.mark.anyio", "[pytest.mark.anyio, pytest.mark.explore]")
    output = ended(inner(text, "-p", "anyio.pytest_plugin", trio_mode=False), 0)
    assert len(re.findall(r"PASS: ", output)) == 1


def test_unedited_wide_async_fixture_is_named(inner: Inner) -> None:
    """An async fixture of a wider scope lives in no execution: the test is skipped, and the cause counted."""
    text = """
import pytest

pytestmark = pytest.mark.anyio

@pytest.fixture(scope="module")
async def wide(anyio_backend):
    yield 1

@pytest.mark.parametrize("anyio_backend", ["trio"], scope="module")
async def test_wide(wide):
    pass
"""
    output = ended(inner(text, "--explore", "-p", "anyio.pytest_plugin", trio_mode=False), 0)
    assert re.search(r"^     1  an async fixture of scope module$", output, re.M)


@pytest.mark.seldom
@pytest.mark.process
def test_unedited_summary_counts_all_processes(inner: Inner) -> None:
    """The processes of pytest-xdist send what they found to the one that writes the table."""
    code, output = inner(_SUITE, "--explore=5", "-n", "2", "-p", "xdist", fresh=True)
    assert code == 1
    assert table(output)["async tests"] == 6
    assert table(output)["refused"] == 1


def test_unedited_seconds_end_it_early(inner: Inner) -> None:
    """A budget of wall seconds that is over at once leaves the test undecided, which is no pass."""
    code, output = inner(_SUITE, "--explore", "--explore-seconds=1e-9", "-k", "test_first")
    assert code == 0
    assert table(output)["undecided"] == 1


@pytest.mark.parametrize(("arguments", "order"), [([], "order=trio, "), (["--explore-order=any"], "")])
def test_unedited_order_is_trios_unless_named(inner: Inner, arguments: list[str], order: str) -> None:
    """A suite is explored in the orders that Trio makes; the option has the others explored."""
    _, output = inner(_SUITE, "--explore", "--explore-strategy=exhaustive", "-k", "test_one", *arguments)
    assert re.search(rf"^PASS: exhaustive\(\w+=\d+\) with {order}track=test_it$", output, re.M)


_FAILS_TOMORROW = """
import trio

async def test_first_comes_first():
    ended = []

    async def takes(steps, name):
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        ended.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(takes, 3, "long")
        nursery.start_soon(takes, 1, "short")
    assert ended[0] == "short"

async def test_other():
    await trio.sleep(1)
"""


@pytest.mark.parametrize(
    ("arguments", "ini", "code", "advised"),
    [
        ([], "", 0, True),
        (["--explore-order=trio"], "", 0, False),
        ([], "explore_order = trio", 0, False),
        ([], "explore_order = any", 1, False),
        (["--explore-order=trio"], "explore_order = any", 0, False),
    ],
    ids=["unasked", "by option", "by ini", "any by ini", "option before ini"],
)
def test_unedited_what_fails_in_other_orders_is_advice(
    inner: Inner, arguments: list[str], ini: str, code: int, advised: bool
) -> None:
    """A few orders that Trio documents are drawn as well where nothing names an order, and the test passes."""
    output = ended(inner(_FAILS_TOMORROW, "--explore", *arguments, ini=ini), code)
    assert ("advice: 1 test passed in these orders, and failed in one of 20" in output) == advised
    assert ("        test_it.py::test_first_comes_first" in output) == advised


def test_unedited_marked_test_keeps_the_orders_of_its_marker(inner: Inner) -> None:
    """A marker without an order means all: what fails by the marker alone does not pass beside ``--explore``."""
    ended(
        inner(
            "import pytest\n"
            + _FAILS_TOMORROW.replace("async def test_first", "@pytest.mark.explore\nasync def test_first"),
            "--explore",
        ),
        1,
    )


def test_unedited_order_of_the_ini_file_is_checked(inner: Inner) -> None:
    """Another word is refused, and says what fits."""
    ended(inner(_FAILS_TOMORROW, "--explore", ini="explore_order = both"), 1, "any or trio")


def test_unedited_strategy_by_name(inner: Inner) -> None:
    """The option names the strategy; a search that is over has run every class."""
    code, output = inner(_SUITE, "--explore", "--explore-strategy=dpor", "-k", "test_one")
    assert code == 0
    assert table(output)["explored"] == 1
    assert "PASS: " in output


_PYTESTS_OWN = """
import logging, os, sys, warnings
import pytest, trio

class Settings:
    colour = "red"

@pytest.mark.explore(executions=20)
async def test_own(caplog, capsys, monkeypatch, recwarn, tmp_path):
    caplog.set_level(logging.INFO)
    assert not caplog.records and not list(recwarn) and not list(tmp_path.iterdir())
    assert Settings.colour == "red" and "TOOLRT_COLOUR" not in os.environ
    monkeypatch.setattr(Settings, "colour", "blue")
    monkeypatch.setenv("TOOLRT_COLOUR", "blue")

    async def speak(name):
        await trio.lowlevel.checkpoint()
        logging.info(name)
        print(name)
        warnings.warn(name)
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(speak, "a")
        nursery.start_soon(speak, "b")
    assert sorted(caplog.messages) == ["a", "b"]
    assert sorted(capsys.readouterr().out.split()) == ["a", "b"]
    assert len(recwarn) == 2

async def test_next():
    assert Settings.colour == "red" and "TOOLRT_COLOUR" not in os.environ
"""


def test_unedited_fixtures_of_pytest_are_made_anew(inner: Inner) -> None:
    """No execution sees what an earlier one logged, printed, replaced, warned of or wrote."""
    output = ended(inner(_PYTESTS_OWN), 0)
    assert len(re.findall(r"PASS: ", output)) == 1


def test_unedited_fixtures_that_are_shared_are_named(inner: Inner) -> None:
    """A fixture of a wider scope is made once; the summary says so."""
    text = """
import pytest

@pytest.fixture(scope="module")
def database():
    return {}

async def test_uses_it(database):
    pass
"""
    code, output = inner(text, "--explore=2")
    assert code == 0
    assert "fixtures that the executions of a test shared (tests): database (1)" in output


@pytest.mark.process
def test_unedited_leaves_real_what_it_would_refuse(inner: Inner) -> None:
    """A process that nothing declares is run, and the summary says so; with a marker the test is refused."""
    text = """
import pytest, trio

async def test_process():
    assert (await trio.run_process(["true"])).returncode == 0
"""
    ended(inner(text, "--explore=2"), 0, "explored          1", "left real (tests): processes (1)")
    code, output = inner(text.replace("async def", "@pytest.mark.explore\nasync def"), "--explore=2")
    assert code == 1
    assert "cannot start a subprocess" in output, output


@pytest.mark.seldom
@pytest.mark.process
def test_unedited_fixture_of_pytest_ends_with_a_cancelled_test(inner: Inner) -> None:
    """An execution that is stopped cancels the test; the next one has the fixture for itself."""
    text = """
import trio

async def test_stopped(capsys):
    try:
        await trio.sleep_forever()
    finally:
        capsys.readouterr()
"""
    code, output = inner(text, "--explore=3")
    assert code == 1
    assert "cannot use capsys" not in output, output


@pytest.mark.process
def test_unedited_talks_to_a_real_process_where_it_has_to(inner: Inner) -> None:
    """A process that is run to its end answers nothing before that; then its pipes are left real, too."""
    text = """
import functools, subprocess, trio

async def test_echo():
    cat = functools.partial(trio.run_process, ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    async with trio.open_nursery() as nursery:
        process = await nursery.start(cat)
        await process.stdin.send_all(b"x")
        assert await process.stdout.receive_some() == b"x"
        await process.stdin.aclose()
"""
    ended(inner(text, "--explore=2"), 0, "left real (tests): processes (1), files (1)")


def test_unedited_failure_without_real_pipes_is_no_verdict(inner: Inner) -> None:
    """Run to its end, the process answers nothing: a deadlock. With real pipes its answer decides the steps."""
    text = """
import functools, subprocess, trio

async def test_clock():
    clock = functools.partial(
        trio.run_process, ["sh", "-c", "read x; date +%N; cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    async with trio.open_nursery() as nursery:
        process = await nursery.start(clock)
        await process.stdin.send_all(b"x\\n")
        answer = await process.stdout.receive_some()
        for _ in range(int(answer) % 97):
            await trio.lowlevel.checkpoint()
        await process.stdin.aclose()
"""
    ended(inner(text, "--explore=5"), 0, "undecided         1", "failed            0")


def test_unedited_counts_a_failure_after_the_test_as_pytest_does(inner: Inner) -> None:
    """A test whose executions pass and whose teardown fails is failed in the summary, too."""
    text = """
import pytest

@pytest.fixture(scope="module")
def closing():
    yield
    raise ValueError("not closed")

async def test_passes(closing):
    pass
"""
    code, output = inner(text, "-p", "no:cacheprovider", "--explore")
    assert code == 1
    assert (table(output)["explored"], table(output)["failed"]) == (0, 1)


_OF_NO_ORDER = """
import threading
import pytest, trio, trio.testing
pytestmark = pytest.mark.trio

async def two_threads():
    return [await trio.to_thread.run_sync(threading.current_thread) for _ in range(2)]

async def test_expects_a_thread_to_be_used_again():
    first, second = await two_threads()
    assert first is second

async def test_expects_it_on_its_own_clock(mock_clock):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 3600)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(3600)
    first, second = await two_threads()
    assert first is second

@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", [("trio", {"clock": trio.testing.MockClock(autojump_threshold=0)})])
async def test_expects_it_on_the_clock_of_its_backend(anyio_backend):
    await trio.sleep(3600)
    first, second = await two_threads()
    assert first is second
"""


def test_unedited_failure_of_no_order_that_plain_trio_does_not_have_is_no_verdict(inner: Inner) -> None:
    """What is simulated fails it, whatever the order: it is undecided, and its schedule shows how."""
    code, output = inner(_OF_NO_ORDER, "--explore", "-rs")
    assert code == 0, output
    assert table(output)["undecided"] == 3
    assert re.search(r"^ +3  it fails in the simulation whatever the order, and passes on plain Trio$", output, re.M)
    schedule = re.search(r"Error: .*; pytest \S+used_again --explore --explore-replay '(.*?)' shows it", output)
    assert schedule is not None, output
    code, output = inner(_OF_NO_ORDER, "--explore", "--explore-replay", schedule[1], "-k", "used_again")
    assert code == 1
    assert "assert first is second" in output


_OF_A_CLOCK = """
import time
import trio

async def test_expects_it_to_be_another_than_trios(autojump_clock):
    began = time.perf_counter()
    await trio.sleep(3600)
    assert time.perf_counter() - began < 3600
"""


def test_unedited_clocks_are_real_where_a_test_fails_for_them_alone(inner: Inner) -> None:
    """A test whose own clock is not the machine's fails in every order where both are virtual."""
    output = ended(inner(_OF_A_CLOCK, "--explore=3"), 0, "left real (tests): clocks (1)")
    assert table(output)["explored"] == 1, output


def test_failure_of_an_order_stands_where_plain_trio_was_not_seen_to_make_it() -> None:
    """That other orders pass, in the simulation or on plain Trio, says nothing of this one."""

    async def middle_is_never_first() -> None:
        order: list[str] = []

        async def note(name: str) -> None:
            await trio.lowlevel.checkpoint()
            order.append(name)

        async with trio.open_nursery() as nursery:
            for name in "abc":
                nursery.start_soon(note, name)
        assert order != ["b", "a", "c"]

    async def passes(made: Mapping[Recipe, Any]) -> None:
        """Stand for the runs of plain Trio that did not make the order."""

    failure = sim.explore(middle_is_never_first, order="trio").failures[0]
    assert not passes_on_plain_trio(passes, [], {}, failure, middle_is_never_first, {"order": "trio"})


_OF_THE_TEST = """
import pytest, trio
from toolrt.testing import _on_plain_trio
_on_plain_trio._SECONDS = _on_plain_trio._PATIENCE = 0.2

async def test_is_wrong():
    await trio.lowlevel.checkpoint()
    assert 1 + 1 == 3

async def test_exits():
    raise SystemExit

async def test_waits_for_ever_and_swallows_the_end_of_that():
    while True:
        try:
            with trio.CancelScope(shield=True):
                await trio.sleep_forever()
        except BaseException:
            pass
"""


def test_unedited_failure_that_plain_trio_has_too_stands(inner: Inner) -> None:
    """A test that fails in every order fails, also one that nothing but the end of its process would end there."""
    code, output = inner(_OF_THE_TEST, "--explore", "--explore-seconds", "5")
    assert code == 1
    assert table(output)["failed"] == 3, output


_LEAVES_GARBAGE = """
import warnings
import trio

class Complains:
    def __init__(self):
        self.me = self

    def __del__(self):
        warnings.warn("not closed", ResourceWarning)

async def test_leaves_it_to_the_collector():
    Complains()
    await trio.sleep(1)

def test_next():
    pass
"""


def test_unedited_garbage_of_executions_is_no_failure(inner: Inner) -> None:
    """A plain run of the test never meets it, unless the collector comes by chance: it stands in a circle."""
    output = ended(inner(_LEAVES_GARBAGE, "--explore=20", "-W", "error"), 0, "2 passed")
    assert table(output)["explored"] == 1, output


def test_unedited_failure_beside_a_real_process_is_replayed(inner: Inner) -> None:
    """The schedule is tried with what was left real when it was found; no pipes are left real besides."""
    text = """
import sys

import trio

async def test_process_fails(plain=None):
    done = await trio.run_process([sys.executable, "-c", "print(1)"], capture_stdout=True)
    assert done.stdout == b"2\\n"
"""
    code, output = inner(text, "--explore=3")
    assert code == 1
    again = re.search(r"pytest (\S+) --explore --explore-replay '?([^'\n]*)'?", output)
    assert again, output
    code, output = inner(None, again[1], "--explore", "--explore-replay", again[2])
    assert code == 1
    assert "assert b'1\\n' == b'2\\n'" in output
