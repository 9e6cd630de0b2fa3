"""A pytest plugin: a test that passed in an earlier step of `.ci/run` is not run again.

``PYTHONPATH=.ci PASSED_BEFORE=FILE python -m pytest -p passed_before``

FILE has the names of the tests that passed, a line each; a run leaves those out and adds its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

_FILE = Path(os.environ["PASSED_BEFORE"])
_before = frozenset(_FILE.read_text(encoding="utf-8").splitlines()) if _FILE.exists() else frozenset()
_passed: list[str] = []


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out what passed; last, since the others draw from all cases of a test."""
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in _before])
    items[:] = [item for item in items if item.nodeid not in _before]


def pytest_runtest_logreport(report: Any) -> None:
    """Remember what passed."""
    if report.when == "call" and report.passed:
        _passed.append(report.nodeid)


def pytest_sessionfinish(session: Any) -> None:
    """Add it to the file; the process that started the workers has the reports of all."""
    if not hasattr(session.config, "workerinput"):
        with _FILE.open("a", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in _passed)
