"""What every test stands on."""

from __future__ import annotations

import contextlib
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

# No property test has a deadline: a loaded machine would fail it.  Hypothesis need not be installed (`.ci/run`).
with contextlib.suppress(ImportError):
    from hypothesis import settings

    settings.register_profile("tests", deadline=None)
    settings.load_profile("tests")

#: Where the workspaces of this run, and of the programs it starts, keep their histories: not in the home directory.
STATE = tempfile.mkdtemp(prefix="toolrt-state-")
os.environ["TOOLRT_STATE_DIR"] = STATE


def pytest_unconfigure(config: Any) -> None:
    """Nothing stays behind."""
    shutil.rmtree(STATE, ignore_errors=True)
