"""What every test stands on."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# What a rule says where it does not hold is asked for, so its assertions are told as those of a test.
pytest.register_assert_rewrite("tests.properties")

# A shell that starts a job in the background has it ignore Ctrl-C, `nohup` that its terminal is closed, and Python
# then leaves both ignored, here and in every child.  The tests that send them want them heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The programs of the environment that the tests run in are found whether it was activated or not.
os.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))

# Tests ask for the full counts by the name "full"; "nightly" is the same, with more examples of each property.
EXAMPLES = 1_000
if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
    os.environ["HYPOTHESIS_PROFILE"], EXAMPLES = "full", 5_000

# How many examples a property gets; all profiles draw anew each time (`.ci/run`: with each commit), and the seed in the
# header of the run repeats it.
# No property has a deadline: a loaded machine would fail it.  Hypothesis need not be installed (`.ci/run`).
with contextlib.suppress(ImportError):
    from hypothesis import HealthCheck, settings

    common: dict[str, Any] = {
        "deadline": None,
        # With the variable CI set, Hypothesis would draw the same for ever.
        "derandomize": False,
        "print_blob": True,
        "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much],
    }
    settings.register_profile("dev", max_examples=10, **common)
    settings.register_profile("ci", max_examples=25, **common)
    settings.register_profile("full", max_examples=EXAMPLES, **common)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

#: Where the workspaces of this run, and of the programs it starts, keep their histories: not in the home directory.
STATE = tempfile.mkdtemp(prefix="toolrt-state-")
os.environ["TOOLRT_STATE_DIR"] = STATE

#: Where this run keeps compiled code that may not stand beside its source: workers have the directory of the run that
#: began them.
COMPILED = os.environ.setdefault("TOOLRT_TESTS_COMPILED", os.path.join(STATE, "compiled"))

#: What Chromium is called on the systems that have it; TOOLRT_BROWSER names another.  The shell without windows comes
#: first: a page in it takes a quarter of the processor time.
_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


#: So many tests marked `seldom` all run: a person has named them, or what holds them.
_FEW = 40


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: Any) -> None:
    """Draw the seed of this run, unless one is given; the workers of xdist take that of the run."""
    if getattr(config.option, "hypothesis_seed", "not there") is None:
        drawn = str(random.SystemRandom().randrange(2**32))
        config.option.hypothesis_seed = getattr(config, "workerinput", {}).get("hypothesis_seed", drawn)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give a worker of xdist the seed: it gets no options but those of the command line."""
    node.workerinput["hypothesis_seed"] = getattr(node.config.option, "hypothesis_seed", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: Any) -> Iterator[None]:
    """Collect without a garbage collector, which would go through what all stays.

    A worker of xdist imports a share of the tests first, and the other workers find those compiled: all workers collect
    all tests, at one time and in one order, so each of them would rewrite and compile every file.
    """
    _share_compiled_code()
    gc.disable()
    try:
        if worker := getattr(session.config, "workerinput", None):
            _import_share(session.config, int(worker["workerid"].removeprefix("gw")), worker["workercount"])
        return (yield)
    finally:
        gc.enable()


def _share_compiled_code() -> None:
    """Let this run and the programs that it starts share what they compile, where none may write it beside its source.

    Containers set PYTHONDONTWRITEBYTECODE.  Each worker would compile all tests there, and each of some hundred
    programs toolrt, which takes longer than most of them run.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", COMPILED)
        sys.dont_write_bytecode = False


def _import_share(config: Any, number: int, count: int) -> None:
    """Import each `count`-th of the test files that this run collects."""
    root = config.rootpath
    files = sorted({file for path in config.args for file in Path(root, path).glob("**/test_*.py")})
    for file in files[number::count]:
        # Why a file cannot be imported, or is skipped, its collection says.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Of a test that is marked `drawn`, keep so many cases; of those marked `seldom`, a fifth.

    The seed of the run draws.  Those that a person names are few already, and all run.
    """
    if os.environ.get("HYPOTHESIS_PROFILE") == "full":
        return
    seed = getattr(config.option, "hypothesis_seed", None)
    cases: dict[str, list[Any]] = {}
    for item in items:
        if item.get_closest_marker("drawn"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[Any] = set()
    for name, found in cases.items():
        (number,) = found[0].get_closest_marker("drawn").args
        left_out |= {*random.Random(f"{seed} {name}").sample(found, max(0, len(found) - number))}
    seldom = [item for item in items if item.get_closest_marker("seldom") and item not in left_out]
    if len(seldom) > _FEW:
        left_out |= {*random.Random(f"{seed} seldom").sample(seldom, len(seldom) * 4 // 5)}
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=sorted(left_out, key=lambda item: item.nodeid))


def pytest_report_header(config: Any) -> str | None:
    """How the run is repeated."""
    seed = getattr(config.option, "hypothesis_seed", None)
    profile = os.environ.get("HYPOTHESIS_PROFILE", "ci")
    return f"to draw the same: HYPOTHESIS_PROFILE={profile} pytest --hypothesis-seed={seed}" if seed else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The same once more behind what failed."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(pytest_report_header(terminalreporter.config) or "")


@pytest.fixture(scope="module", autouse=True)
def _frozen() -> None:
    """Take what is there out of garbage collection, from module to module: tests that collect would go through it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium, for the tests of one module: a process can start only one at a time.

    A test is skipped where there is none.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    found = os.environ.get("TOOLRT_BROWSER") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        pytest.skip("there is no Chromium: apt-get install chromium, or name one in TOOLRT_BROWSER")
    # Chromium's own sandbox does not work for root; the pages come from this repository alone.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=arguments, timeout=120_000)
        yield started
        started.close()


def pytest_unconfigure(config: Any) -> None:
    """Nothing stays behind."""
    shutil.rmtree(STATE, ignore_errors=True)
