"""``@pytest.mark.explore``, in a pytest of its own: with pytest-trio's trio_mode and without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from tests.testing._losing import LOSING
from tests.testing.conftest import Inner, ended
from toolrt.testing._explored import ExplorationPlan

pytestmark = pytest.mark.process


_LOST_UPDATE = (
    LOSING
    + """
@pytest.mark.explore({options})
async def test_counter(cell):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bump, cell)
        {second}
    assert cell.get() == {expected}
"""
)


@pytest.mark.parametrize("trio_mode", [True, False])
def test_explored_test_passes(inner: Inner, trio_mode: bool) -> None:
    """A test that no schedule breaks passes, in one line."""
    text = _LOST_UPDATE.format(options="", second="", expected=1)
    ended(inner(text, "--strict-markers", trio_mode=trio_mode), 0, "1 passed")


@pytest.mark.parametrize("trio_mode", [True, False])
def test_explored_test_fails_with_its_minimal_schedule(inner: Inner, trio_mode: bool) -> None:
    """A lost update is found, and the failure says by which schedule."""
    text = _LOST_UPDATE.format(options="executions=50", second="nursery.start_soon(bump, cell)", expected=2)
    ended(
        inner(text, trio_mode=trio_mode),
        1,
        "FAIL: sampled",
        "assert 1 == 2",
        "--explore-replay 'main main.0 main.1*2 main.0 main'",
    )


def test_explored_test_takes_a_strategy_and_a_check(inner: Inner) -> None:
    """The marker's arguments are those of `sim.explore`."""
    text = """
import pytest
from toolrt import sim

@pytest.mark.explore(strategy=sim.Random(sim.Fifo(), 3), check=lambda execution: execution.value == 1)
async def test_value():
    return 2

@pytest.mark.explore(strategy="dpor", outcomes={2})
async def test_outcome():
    return 2
"""
    ended(inner(text), 1, "1 failed, 1 passed", "FAIL: sampled(n=1", "the check returned False")


@pytest.mark.slow
def test_explored_test_takes_a_clock_a_scope_and_processes(inner: Inner) -> None:
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
    output = ended(inner(text), 1, "with cancel_at=work, clock_moves<=1")
    assert "clock" in output.partition("--explore-replay")[2]
    for option in ("clock='now'", "clock_moves=0", "jobs=0", "cancel_at=3"):
        text = f"import pytest\n@pytest.mark.explore({option})\nasync def test_it(): pass\n"
        output = ended(inner(text), 1)
        assert option.partition("=")[0] in output
        assert "expected" in output


def test_marker_is_listed_with_all_its_options(inner: Inner) -> None:
    """What ``pytest --markers`` says the marker takes is what it takes, with what each is when it is not given."""
    output = ended(inner("", "--markers"), 0)
    given = ("disowns", "replay", "tracks_unasked", "verbose")  # what the marker itself cannot say
    options = [field for field in attrs.fields(ExplorationPlan) if field.name not in given]
    taken = ", ".join(f"{option.name}={option.default!r}" for option in options)
    assert f"@pytest.mark.explore({taken}): run this async test" in output


def test_sync_test_is_refused(inner: Inner) -> None:
    """There is nothing to explore in a sync test."""
    ended(inner("import pytest\n@pytest.mark.explore\ndef test_it(): pass\n"), 1, "needs an async test")


def test_sync_tests_of_a_marked_module_are_left_alone(inner: Inner) -> None:
    """The mark means those that can be explored."""
    text = "import pytest\npytestmark = pytest.mark.explore\ndef test_it(): pass\nasync def test_async(): pass\n"
    ended(inner(text), 0, "2 passed")


def test_unknown_option_is_refused(inner: Inner) -> None:
    """A typing error in the marker is no silent default."""
    ended(inner("import pytest\n@pytest.mark.explore(executoins=3)\nasync def test_it(): pass\n"), 1, "executoins")


def test_skipping_inside_skips(inner: Inner) -> None:
    """`pytest.skip` in an execution skips the test."""
    ended(inner("import pytest\n@pytest.mark.explore\nasync def test_it(): pytest.skip('no')\n"), 0, "1 skipped")


@pytest.mark.seldom
def test_unmarked_tests_are_left_alone(inner: Inner) -> None:
    """Without a marked test the plugin proper is not even loaded."""
    text = """
import sys, trio
async def test_it():
    assert "toolrt.testing" not in sys.modules
"""
    ended(inner(text, fresh=True), 0)


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


_ORDERED = """
import pytest, trio

@pytest.mark.explore(strategy="exhaustive", order="trio")
async def test_it():
    loaded = []

    async def load():
        await trio.lowlevel.checkpoint()
        loaded.append("loaded")

    async def use():
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert loaded

    async with trio.open_nursery() as nursery:
        nursery.start_soon(load)
        nursery.start_soon(use)
"""


def test_order_is_taken(inner: Inner) -> None:
    """By the marker and by an option, which outranks it; a schedule of the other order is run in its own."""
    options = ("--explore-database", "kept")
    ended(inner(_ORDERED, *options), 0)
    output = ended(inner(None, *options, "--explore-order", "any"), 1)
    schedule = output.partition("--explore-replay '")[2].partition("'")[0]
    assert schedule.startswith("main ")
    ended(inner(None, *options, "--explore-replay", schedule), 1)
    # What failed under the other order is no schedule of this one.
    ended(inner(None, *options), 0)


@pytest.mark.seldom
def test_pages_of_failures_are_kept(inner: Inner, tmp_path: Path) -> None:
    """One for each test that fails, from the marker and from a drawn batch alike; the report names it."""
    code, output = inner(
        LOSING
        + """
import toolrt
from hypothesis import given, settings
from toolrt import testing

@pytest.mark.explore(executions=20)
async def test_marked(cell):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bump, cell)
        nursery.start_soon(bump, cell)
    assert cell.get() == 2

@toolrt.tool(safe=True)
async def idle(ctx):
    await trio.lowlevel.checkpoint()

@settings(max_examples=1, phases=["generate"], deadline=None)
@given(batch=testing.batches([idle], check=lambda execution: ["never"]))
def test_batch(batch):
    batch.check()

@pytest.mark.explore(executions=2)
async def test_right(cell):
    await bump(cell)
""".replace('"generate"', "__import__('hypothesis').Phase.generate"),
        "--explore-html",
        str(tmp_path / "pages"),
    )
    assert code == 1, output
    pages = sorted((tmp_path / "pages").iterdir())
    assert [page.name.rpartition("-")[0] for page in pages] == ["test_it.py-test_batch", "test_it.py-test_marked"]
    for page in pages:
        assert str(page) in output
        assert "FAIL" in page.read_text(encoding="utf-8")
    marked = pages[1].read_text(encoding="utf-8")
    assert "<title>test_marked: lost update of" in marked
    assert "<dd>test_it.py::test_marked</dd>" in marked
    assert "pytest test_it.py::test_marked --explore-replay" in marked, "the page has the line that the report has"
