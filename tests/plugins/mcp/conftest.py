"""What the tests of MCP servers stand on."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def nothing_left() -> Iterator[None]:
    """Nothing of any server is left after the test: no process, no open file, no thread."""
    if not sys.platform.startswith("linux"):
        pytest.skip("processes and open files are counted in /proc")
    from tests.plugins.mcp._mcp import descriptors, processes, threads

    gc.collect()  # what earlier tests left to be collected must not go while this one runs
    before = (processes(), descriptors(), threads())
    yield
    assert (processes(), descriptors(), threads()) == before
