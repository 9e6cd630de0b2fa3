"""A pytest plugin for the suites of others: runs the tests that a file names, and writes how each one ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

_ENDS: dict[str, str] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--wild-only", type=Path)
    parser.addoption("--wild-outcomes", type=Path)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that are not named."""
    file = config.getoption("--wild-only")
    if file is not None:
        names = set(json.loads(file.read_text(encoding="utf-8")))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in names])
        items[:] = [item for item in items if item.nodeid in names]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the worst of a test's three phases."""
    if _ENDS.setdefault(report.nodeid, report.outcome) == "passed":
        _ENDS[report.nodeid] = report.outcome


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write them."""
    file = session.config.getoption("--wild-outcomes")
    if file is not None:
        file.write_text(json.dumps(_ENDS), encoding="utf-8")
