"""The figures on docs/explanation/network.md are those that a command has counted."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

_TABLE = """
===== explored schedules =====
async tests      30
explored         20
failed            1
undecided         2
refused           5
skipped           2
executions     1864
refused, by cause:
     3  use an SSLSocket
     2  start a thread
slowest:
    1.50 s      10 executions  ::test_one
"""


@pytest.fixture
def measure(root: Path) -> Any:
    spec = importlib.util.spec_from_file_location("measure_network", root / ".ci" / "measure_network.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_has_the_counts(measure: Any) -> None:
    """What stands between the marks is the sentence of the counts in the file; no test of Trio's fails."""
    counts = json.loads(measure.COUNTS.read_text(encoding="utf-8"))
    assert measure.figures_on(measure.PAGE.read_text(encoding="utf-8")) == measure.sentence(counts)
    assert counts["failed"] == counts["undecided"] == 0
    assert counts["async tests"] == sum(counts[each] for each in ("explored", "refused", "skipped"))
    assert sum(counts["causes"].values()) == counts["refused"]


def test_table_is_read(measure: Any) -> None:
    """Each count of the table that `pytest --explore` prints."""
    counts = measure.read(_TABLE)
    assert counts["causes"] == {"use an SSLSocket": 3, "start a thread": 2}
    assert [counts[each] for each in ("async tests", "explored", "failed", "undecided")] == [30, 20, 1, 2]
