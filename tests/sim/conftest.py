"""What the tests of the simulator share; their folder is a place to import from."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parent))


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
