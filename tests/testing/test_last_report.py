"""A pytest that C code keeps for ever is ended, and what it had found is reported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from toolrt.testing._last_report import _HeardOf

_CONFTEST = """
from toolrt.sim.engine import _watchdog
from toolrt.sim.exploring import _progress

_watchdog._GRACE_OF_PROCESS = 0.1
_progress._LEAST_GRACE = 0.1
"""

_SUITE = """
import itertools, pytest
pytestmark = pytest.mark.trio

async def test_fails():
    assert False

async def test_passes():
    pass

async def test_does_not_end():
    sum(itertools.repeat(0))
"""


@pytest.mark.seldom
@pytest.mark.process
def test_test_that_never_ends_in_c_is_named(tmp_path: Path) -> None:
    """The report says which test it was, at which line, and what came of those before it; it is not a success."""
    (tmp_path / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
    (tmp_path / "test_it.py").write_text(_SUITE, encoding="utf-8")
    options = [
        "-q",
        "-c",
        "/dev/null",
        "--rootdir",
        ".",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:timeout",
        "-p",
        "no:asyncio",
    ]
    command = [sys.executable, "-m", "pytest", *options, "--explore=1", "--explore-seconds", "0.2", "test_it.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode not in (0, 1)
    report = ended.stdout[ended.stdout.index("= explored schedules =") :]
    assert (
        "test_it.py::test_does_not_end did not end, and stood at test_it.py:12 (test_does_not_end) in C code" in report
    )
    assert "Tests before it: 1 failed, 1 passed." in report
    assert "FAILED test_it.py::test_fails\nFAILED test_it.py::test_does_not_end\n" in report


def test_process_that_ends_without_stacks_was_ended_by_its_test() -> None:
    """The report names the test that ran, and a session that ended by itself has none."""
    session = _HeardOf()
    for said in ({"begins": "a"}, {"test": "a", "outcome": "passed"}, {"begins": "b"}):
        session.hear(json.dumps(said) + "\n")
    assert "b ended the process." in session.summary()
    assert "Tests before it: 1 passed." in session.summary()
    session.hear("Timeout (0:00:08)!\n")
    assert session.stacks
    session.hear('{"ends": true}\n')
    assert session.is_over
    assert not session.stacks
