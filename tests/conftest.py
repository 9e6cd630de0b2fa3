"""What every test stands on."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import sys
import tempfile
from typing import Any

import pytest

# What a rule says where it does not hold is asked for, so its assertions are told as those of a test.
pytest.register_assert_rewrite("tests.properties")

# A shell that starts a job in the background has it ignore Ctrl-C, and Python then leaves it ignored, here and in
# every child.  The tests that press it want it heard.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The programs of the environment that the tests run in are found whether it was activated or not.
os.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))

# Tests ask for the full counts by the name "full"; "nightly" is the same.
if os.environ.get("HYPOTHESIS_PROFILE") == "nightly":
    os.environ["HYPOTHESIS_PROFILE"] = "full"

# How many examples a property gets: "dev" draws anew each time and is quick, "ci" (the default) draws the same each
# time, "full" draws a thousand.  No property has a deadline: a loaded machine would fail it.  Hypothesis need not be
# installed (`.ci/run`).
with contextlib.suppress(ImportError):
    from hypothesis import HealthCheck, settings

    common: dict[str, Any] = {
        "deadline": None,
        "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much],
    }
    settings.register_profile("dev", max_examples=10, **common)
    settings.register_profile("ci", max_examples=25, derandomize=True, **common)
    settings.register_profile("full", max_examples=1_000, **common)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

#: Where the workspaces of this run, and of the programs it starts, keep their histories: not in the home directory.
STATE = tempfile.mkdtemp(prefix="toolrt-state-")
os.environ["TOOLRT_STATE_DIR"] = STATE


def pytest_collection_finish(session: Any) -> None:
    """Take what the collected tests are made of out of garbage collection: tests that collect would go through it."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: Any) -> None:
    """Nothing stays behind."""
    shutil.rmtree(STATE, ignore_errors=True)
