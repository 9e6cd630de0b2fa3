"""``@pytest.mark.explore``, in a pytest of its own: with pytest-trio's trio_mode and without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_LOST_UPDATE = """
import pytest, trio
from toolrt import sim

async def bump(cell):
    seen = cell.get()
    await trio.lowlevel.checkpoint()
    cell.set(seen + 1)

@pytest.mark.explore({options})
async def test_counter():
    cell = sim.Cell(0, name="counter")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bump, cell)
        {second}
    assert cell.get() == {expected}
"""


def _pytest(directory: Path, text: str, *arguments: str, trio_mode: bool = True) -> tuple[int, str]:
    (directory / "test_it.py").write_text(text)
    (directory / "pytest.ini").write_text(f"[pytest]\ntrio_mode = {str(trio_mode).lower()}\n")
    plugins = ["pytest_trio.plugin", "_hypothesis_pytestplugin", "toolrt._pytest_plugin", "no:cacheprovider"]
    named = [part for plugin in plugins for part in ("-p", plugin)]
    # By name, so that it does not matter whether and how toolrt is installed here.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", *named, *arguments]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("trio_mode", [True, False])
def test_explored_test_passes(tmp_path: Path, trio_mode: bool) -> None:
    """A test that no schedule breaks passes, in one line."""
    text = _LOST_UPDATE.format(options="", second="", expected=1)
    code, output = _pytest(tmp_path, text, "--strict-markers", trio_mode=trio_mode)
    assert code == 0, output
    assert "1 passed" in output


@pytest.mark.parametrize("trio_mode", [True, False])
def test_explored_test_fails_with_its_minimal_schedule(tmp_path: Path, trio_mode: bool) -> None:
    """A lost update is found, and the failure says by which schedule."""
    text = _LOST_UPDATE.format(options="executions=50", second="nursery.start_soon(bump, cell)", expected=2)
    code, output = _pytest(tmp_path, text, trio_mode=trio_mode)
    assert code == 1, output
    assert "FAIL: sampled" in output
    assert "AssertionError" in output


def test_explored_test_takes_a_strategy_and_a_check(tmp_path: Path) -> None:
    """The marker's arguments are those of `sim.explore`."""
    text = """
import pytest
from toolrt import sim

@pytest.mark.explore(strategy=sim.Random(sim.Fifo(), 3), check=lambda execution: execution.value == 1)
async def test_value():
    return 2
"""
    code, output = _pytest(tmp_path, text)
    assert code == 1, output
    assert "FAIL: sampled(n=1" in output
    assert "the check returned False" in output


def test_explored_test_takes_a_clock_a_scope_and_processes(tmp_path: Path) -> None:
    """What else can happen, and who runs it, are arguments of the marker; what is found is replayed."""
    text = """
import pytest, trio
from toolrt import sim

@pytest.fixture
async def ready():
    await trio.lowlevel.checkpoint()
    yield True

@pytest.mark.explore(strategy="dpor", clock="explored", clock_moves=1, cancel_at="work", jobs=2)
async def test_it(ready):
    with trio.move_on_after(1) as late, sim.scope("work") as work:
        await trio.lowlevel.checkpoint()
    assert not late.cancelled_caught or work.cancelled_caught
"""
    code, output = _pytest(tmp_path, text)
    assert code == 1, output
    assert "with cancel_at=work, clock_moves<=1" in output
    assert "clock" in output.partition("--explore-replay")[2]
    for option in ("clock='now'", "clock_moves=0", "jobs=0", "cancel_at=3"):
        text = f"import pytest\n@pytest.mark.explore({option})\nasync def test_it(): pass\n"
        code, output = _pytest(tmp_path, text)
        assert code == 1, output
        assert option.partition("=")[0] in output
        assert "expected" in output


def test_explored_test_of_a_class_with_fixtures_and_parameters(tmp_path: Path) -> None:
    """Methods, sync fixtures and parameters work as they do elsewhere."""
    text = """
import pytest, trio

@pytest.fixture
def base():
    return 40

@pytest.mark.explore(executions=5)
class TestIt:
    @pytest.mark.parametrize("more", [1, 2])
    async def test_sum(self, base, more):
        await trio.sleep(1000)
        assert trio.current_time() == 1000
        assert base + more in (41, 42)
"""
    code, output = _pytest(tmp_path, text)
    assert code == 0, output
    assert "2 passed" in output


def test_explored_test_with_hypothesis(tmp_path: Path) -> None:
    """Hypothesis draws the input, the explorer the schedules."""
    text = """
import pytest, trio
from hypothesis import given, settings, strategies as st

seen = set()

@pytest.mark.explore(executions=3)
@settings(max_examples=10, deadline=None)
@given(number=st.integers(0, 100))
async def test_number(number):
    await trio.lowlevel.checkpoint()
    assert number < 50
"""
    code, output = _pytest(tmp_path, text)
    assert code == 1, output
    assert "number=50" in output


def test_sync_test_is_refused(tmp_path: Path) -> None:
    """There is nothing to explore in a sync test."""
    code, output = _pytest(tmp_path, "import pytest\n@pytest.mark.explore\ndef test_it(): pass\n")
    assert code == 1, output
    assert "needs an async test" in output


def test_sync_tests_of_a_marked_module_are_left_alone(tmp_path: Path) -> None:
    """The mark means those that can be explored."""
    text = "import pytest\npytestmark = pytest.mark.explore\ndef test_it(): pass\nasync def test_async(): pass\n"
    code, output = _pytest(tmp_path, text)
    assert code == 0, output
    assert "2 passed" in output


def test_unknown_option_is_refused(tmp_path: Path) -> None:
    """A typing error in the marker is no silent default."""
    code, output = _pytest(tmp_path, "import pytest\n@pytest.mark.explore(executoins=3)\nasync def test_it(): pass\n")
    assert code == 1, output
    assert "executoins" in output


def test_skipping_inside_skips(tmp_path: Path) -> None:
    """`pytest.skip` in an execution skips the test."""
    code, output = _pytest(tmp_path, "import pytest\n@pytest.mark.explore\nasync def test_it(): pytest.skip('no')\n")
    assert code == 0, output
    assert "1 skipped" in output


def test_unmarked_tests_are_left_alone(tmp_path: Path) -> None:
    """Without a marked test the plugin proper is not even loaded."""
    text = """
import sys, trio
async def test_it():
    assert "toolrt.testing" not in sys.modules
"""
    code, output = _pytest(tmp_path, text)
    assert code == 0, output


@pytest.mark.parametrize("missing", ["hypothesis", "pytest"])
def test_missing_extra_is_named(missing: str) -> None:
    """Without the extra's packages the import says what to install."""
    program = f"""
import sys
sys.modules[{missing!r}] = None
from toolrt.errors import MissingExtra
try:
    import toolrt.testing
except MissingExtra as error:
    assert error.extra == "testing", error.extra
    assert 'pip install "toolrt[testing]"' in str(error)
else:
    raise SystemExit("imported all the same")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
