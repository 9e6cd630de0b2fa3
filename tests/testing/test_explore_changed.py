"""``--explore-changed``: what has not changed since it was explored is passed over, and nothing is paid for twice."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.testing.conftest import Inner

pytestmark = pytest.mark.process

TESTS = """
import trio
import shared

async def test_two_tasks():
    await shared.twice(shared.step)

async def test_one_task():
    await trio.sleep(1)
"""

SHARED = """
import trio
import deeper

async def step():
    await trio.sleep(deeper.SECONDS)

async def twice(function):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(function)
        nursery.start_soon(function)
"""

# pytest's cache is off for the other tests.
CACHED = ("-p", "cacheprovider")


def explored(inner: Inner, tmp_path: Path, *arguments: str, fresh: bool = False) -> dict[str, tuple[str, int]]:
    """Run the suite; give of each test what it was found to be, and its executions."""
    file = tmp_path / "found.json"
    code, output = inner(None, *CACHED, f"--explore-json={file}", *arguments, fresh=fresh)
    assert code == 0, output
    tests = json.loads(file.read_text())["tests"]
    return {name.partition("::")[2]: (test["kind"], test["executions"]) for name, test in tests.items()}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of two tests; one of its modules imports another."""
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "shared.py").write_text(SHARED)
    (tmp_path / "deeper.py").write_text("SECONDS = 1\n")
    return tmp_path


@pytest.mark.seldom
def test_changed_code_alone_is_explored_again(inner: Inner, suite: Path) -> None:
    """A test is passed over until a module changes that its own module imports, however far away."""
    assert explored(inner, suite, "--explore-changed", "--explore=4") == {
        "test_two_tasks": ("explored", 4),
        "test_one_task": ("explored", 4),
    }
    unchanged = {"test_two_tasks": ("unchanged", 0), "test_one_task": ("unchanged", 0)}
    assert explored(inner, suite, "--explore-changed", "--explore=4") == unchanged
    (suite / "deeper.py").write_text("SECONDS = 2\n")
    assert explored(inner, suite, "--explore-changed", "--explore=4")["test_two_tasks"] == ("explored", 4)
    assert explored(inner, suite, "--explore-changed", "--explore=4") == unchanged


@pytest.mark.seldom
def test_changed_asks_for_the_executions_that_are_missing(inner: Inner, suite: Path) -> None:
    """More executions are added to those that were paid for; a test with one class of schedules needs no more."""
    explored(inner, suite, "--explore-changed", "--explore=4")
    assert explored(inner, suite, "--explore-changed", "--explore=6") == {
        "test_two_tasks": ("explored", 2),
        "test_one_task": ("unchanged", 0),
    }
    assert explored(inner, suite, "--explore-changed", "--explore=6")["test_two_tasks"] == ("unchanged", 0)


@pytest.mark.seldom
def test_changed_failure_is_tried_again(inner: Inner, suite: Path) -> None:
    """A test that failed is not taken for explored."""
    (suite / "deeper.py").write_text("SECONDS = None\n")
    for _ in range(2):
        code, output = inner(None, *CACHED, "--explore-changed", "--explore=4")
        assert code == 1, output
        assert "test_two_tasks" in output
    assert "unchanged" in output


@pytest.mark.seldom
def test_changed_is_whole_over_processes(inner: Inner, suite: Path) -> None:
    """Workers of pytest-xdist explore, and the process that starts them remembers."""
    asked = ("--explore-changed", "--explore=4", "-p", "xdist", "-n", "2")
    assert explored(inner, suite, *asked, fresh=True)["test_two_tasks"] == ("explored", 4)
    assert explored(inner, suite, "--explore-changed", "--explore=4")["test_two_tasks"] == ("unchanged", 0)


def test_changed_since_a_commit_asks_git(inner: Inner, suite: Path) -> None:
    """Nothing need be remembered: files that differ from the commit, or are new, decide."""

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *arguments], cwd=suite, check=True, capture_output=True)

    git("init", "-q")
    git("add", "test_it.py", "shared.py", "deeper.py")
    git("commit", "-q", "-m", "first")
    since = "--explore-changed=HEAD"
    assert explored(inner, suite, since, "--explore=4")["test_two_tasks"] == ("unchanged", 0)
    (suite / "deeper.py").write_text("SECONDS = 2\n")
    assert explored(inner, suite, since, "--explore=4")["test_two_tasks"] == ("explored", 4)


def test_changed_refuses_what_git_does_not_know(inner: Inner, suite: Path) -> None:
    """The message is git's."""
    code, output = inner(None, *CACHED, "--explore-changed=no-such-commit")
    assert code == 4, output
    assert "--explore-changed=no-such-commit: git" in output
