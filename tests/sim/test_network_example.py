"""The example of docs/examples/network: httpx and h11, which know nothing of the simulator."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import trio

from toolrt import sim

pytest.importorskip("httpx")
pytest.importorskip("h11")


@pytest.fixture
def example() -> ModuleType:
    """Give the module of the example."""
    path = Path(__file__).parents[2] / "docs" / "examples" / "network" / "lost_count.py"
    spec = importlib.util.spec_from_file_location("lost_count", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lost_update_between_two_requests_is_found(example: ModuleType) -> None:
    """Through a client and a server that are as they were released; with a lock it is not there."""
    report = example.explored(example.careless, 15)
    assert report.verdict is sim.FAIL
    assert "['1', '1']" in report.outcomes
    assert example.explored(example.careful, 3).verdict is sim.PASS


def test_example_runs_on_plain_trio(example: ModuleType) -> None:
    """The same program has real sockets there."""
    assert trio.run(example.careful) == ["1", "2"]
