"""Fixtures of explored tests: made anew for each execution, or refused."""

from __future__ import annotations

import re

import pytest

from tests.testing.conftest import Inner, ended


def outcomes(output: str) -> dict[str, str]:
    """Give how each test ended, by its name."""
    return {
        name: how for how, name in re.findall(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS) test_it\.py::(\S+)", output, re.M)
    }


_KINDS = """
import pytest, trio

made = []

@pytest.fixture
def things():
    made.append("things")
    return []

@pytest.fixture
def closed():
    yield []
    made.append("closed")

@pytest.fixture
async def awaited(things):
    await trio.sleep(1)
    things.append("awaited")
    return things

@pytest.fixture
async def server(nursery):
    send, receive = trio.open_memory_channel(0)

    async def serve():
        async for answers in receive:
            answers.append("pong")

    nursery.start_soon(serve)
    yield send
    await trio.sleep(1)
    made.append("down")

@pytest.fixture
def finalized(request):
    request.addfinalizer(lambda: made.append(request.node.name))
    return request.getfixturevalue("tmp_path")

@pytest.fixture(autouse=True)
def before_each():
    made.append("before")

@pytest.fixture(scope="module")
def once():
    return []

@pytest.fixture(params=[1, 2])
def number(request):
    return [request.param]

pytestmark = pytest.mark.explore(strategy="random", executions=3)

async def test_fresh(things, closed, awaited):
    assert things is awaited
    assert (things, closed) == (["awaited"], [])
    closed.append(1)
    assert made.count("closed") == made.count("things") - 1

async def test_nursery(server, nursery):
    nursery.start_soon(trio.sleep_forever)
    answers = []
    await server.send(answers)
    await trio.sleep(1)
    assert answers == ["pong"]

def test_all_were_torn_down():
    pass
test_all_were_torn_down.pytestmark = []

async def test_finalizer(finalized):
    print("before:", made.count("test_finalizer"))
    assert finalized.is_dir()

ended = []

async def test_finalizer_of_its_own(request, closed):
    request.addfinalizer(lambda: ended.append(made.count("closed")))
    await trio.sleep(1)
    print("ended:", ended[1:] == [count + 1 for count in ended[:-1]], len(ended))

async def test_wider_scope_is_made_once(once):
    once.append(1)
    print("once:", len(once))

async def test_parameters(number):
    assert number.pop() in (1, 2)
    assert not number

@pytest.mark.parametrize("names", [["a", "b"]])
async def test_parameters_of_the_test(names):
    assert names.pop() == "b"

class TestOfClass:
    def setup_method(self):
        self.left = ["a"]

    @pytest.fixture
    def mine(self):
        self.seen = len(self.left)

    async def test_instance(self, mine):
        assert (self.left.pop(), self.seen) == ("a", 1)
        assert not hasattr(self, "extra")
        self.extra = 1

async def test_autouse():
    assert made[-1] == "before"

async def test_autojump_clock(autojump_clock):
    await trio.sleep(1000)
    assert trio.current_time() == 1000
"""


@pytest.mark.process
def test_fixtures_are_made_anew_for_each_execution(inner: Inner) -> None:
    """Sync, async, generators, nurseries, finalizers, parameters, classes: nothing leaks into the next execution."""
    text = _KINDS.replace("def test_all_were_torn_down():\n    pass\ntest_all_were_torn_down.pytestmark = []\n", "")
    output = ended(inner(text), 0)
    assert len(outcomes(output)) == 11, output
    assert re.findall(r"^ended: (.*)", output, re.M) == [f"True {count}" for count in range(24)]
    assert re.findall(r"^before: (\d)", output, re.M) == [*map(str, range(8))]
    assert re.findall(r"^once: (\d)", output, re.M) == [*map(str, range(1, 9))]


@pytest.mark.process
def test_what_executions_share_is_not_taken_for_a_pass(inner: Inner) -> None:
    """A test that changes a fixture of a wider scope is told what makes it uncontrolled."""
    text = """
import pytest, trio

@pytest.fixture(scope="module")
def once():
    return []

@pytest.mark.explore(strategy="random", executions=3)
async def test_it(once):
    once.append(1)
    if len(once) > 3:
        await trio.lowlevel.checkpoint()
"""
    ended(inner(text), 1, "uncontrolled", "module-scoped")


@pytest.mark.process
@pytest.mark.parametrize("trio_mode", [True, False])
def test_async_fixtures_need_no_trio_mode(inner: Inner, trio_mode: bool) -> None:
    """The explorer makes them itself."""
    text = """
import pytest, trio

@pytest.fixture
async def opened():
    await trio.sleep(1)
    yield []

@pytest.mark.explore(executions=3)
async def test_it(opened):
    assert trio.current_time() == 1
    opened.append(1)
    assert opened == [1]
"""
    ended(inner(text, trio_mode=trio_mode), 0)


@pytest.mark.process
def test_fixture_that_crashes_in_the_background_fails_the_test(inner: Inner) -> None:
    """Its nursery cancels the test, and its error is the test's, with the schedule."""
    text = """
import pytest, trio

@pytest.fixture
async def crashing():
    async def boom():
        await trio.sleep(5)
        raise ValueError("boom")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(boom)
        yield
        print("not told")

@pytest.fixture
def cleaned():
    try:
        yield
    finally:
        print("cleaned up")

@pytest.mark.explore(executions=3)
async def test_it(cleaned, crashing):
    await trio.sleep(100)
    print("went on")
"""
    output = ended(inner(text), 1, "ValueError('boom')", "cleaned up")
    assert "went on" not in output
    assert "not told" not in output
    assert "--explore-replay" in output


@pytest.mark.process
def test_error_in_teardown_and_in_the_test_are_both_told(inner: Inner) -> None:
    """Neither hides the other."""
    text = """
import pytest, trio

@pytest.fixture
async def closing():
    yield
    raise ValueError("teardown")

@pytest.fixture
async def closing_twice():
    yield
    yield

@pytest.mark.explore(executions=3)
async def test_both(closing):
    assert False, "body"

@pytest.mark.explore(executions=3)
async def test_twice(closing_twice):
    pass
"""
    ended(inner(text), 1, "ValueError: teardown", "AssertionError: body", "closing_twice yielded twice")


@pytest.mark.process
def test_failing_test_in_a_nursery_of_a_fixture_is_not_wrapped(inner: Inner) -> None:
    """As with pytest-trio, the nursery fixture adds no group around the test's error."""
    text = """
import pytest

@pytest.mark.xfail(raises=KeyError)
@pytest.mark.explore(executions=3)
async def test_it(nursery):
    raise KeyError("x")
"""
    ended(inner(text), 0, "1 xfailed")


@pytest.mark.process
def test_mock_clock_tells_and_moves_virtual_time(inner: Inner) -> None:
    """A clock that neither runs nor jumps has time stand still until the test moves it, in every execution."""
    text = """
import pytest
import trio

@pytest.mark.explore(executions=3)
async def test_it(mock_clock):
    assert trio.lowlevel.current_clock() is mock_clock
    assert mock_clock.current_time() == trio.current_time() == 0
    ends = []
    async def sleeper():
        await trio.sleep(5)
        ends.append(mock_clock.current_time())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleeper)
        await trio.testing.wait_all_tasks_blocked(1)
        mock_clock.jump(2)
        await trio.testing.wait_all_tasks_blocked()
        assert (trio.current_time(), ends) == (2, [])
        mock_clock.jump(4)
    assert ends == [6]

@pytest.mark.explore(executions=3)
async def test_other(autojump_clock):
    await trio.sleep(7)
    assert autojump_clock.current_time() == 7

@pytest.mark.explore(executions=3)
async def test_waits_for_ever(mock_clock):
    await trio.sleep(7)
"""
    ended(inner(text), 1, "1 failed, 2 passed", "Deadlock")


@pytest.mark.process
def test_interrupt_that_the_program_raises_is_the_programs(inner: Inner) -> None:
    """A protected task's interrupt reaches the program's first task, and no other test."""
    text = """
import signal
import pytest
import trio

@pytest.mark.explore(executions=3)
async def test_it():
    @trio.lowlevel.enable_ki_protection
    async def raiser():
        signal.raise_signal(signal.SIGINT)
    name = trio.lowlevel.current_task().name
    assert name.endswith("test_it")
    with pytest.raises(BaseExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(raiser)
    assert isinstance(caught.value.exceptions[0], KeyboardInterrupt)

@pytest.mark.explore(executions=3)
async def test_after():
    await trio.sleep(1)
"""
    ended(inner(text), 0)


@pytest.mark.process
@pytest.mark.parametrize(
    ("fixture", "says"),
    [
        ("wide", "give it function scope"),
        ("late", "name the fixture things as an argument"),
        ("request", "name the fixture things as an argument"),
    ],
)
def test_fixture_that_cannot_be_made_anew_is_refused(inner: Inner, fixture: str, says: str) -> None:
    """The message says why, and what to do instead."""
    text = f"""
import pytest

@pytest.fixture(scope="module")
async def wide():
    return 1

@pytest.fixture
def things():
    return []

@pytest.fixture
def late(request):
    return request.getfixturevalue("things")

@pytest.mark.explore(executions=3)
async def test_it({fixture}):
    if "{fixture}" == "request":
        request.getfixturevalue("things")
"""
    ended(inner(text), 1, says)
