"""How the text of a test begins that an inner pytest explores."""

from __future__ import annotations

#: A cell for each execution, and a task that loses an update if somebody comes between.
LOSING = """
import pytest, trio
from toolrt import sim

@pytest.fixture
def cell():
    return sim.Cell(0, name="counter")

async def bump(cell):
    seen = cell.get()
    await trio.lowlevel.checkpoint()
    cell.set(seen + 1)
"""
