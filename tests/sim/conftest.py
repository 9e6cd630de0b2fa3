"""What the tests of the simulator share."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def programs() -> ModuleType:
    """The programs that explorers are compared by; the benchmarks run them too."""
    path = Path(__file__).parents[1] / "benchmarks" / "programs.py"
    spec = importlib.util.spec_from_file_location("benchmark_programs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
