"""``import toolrt.sim`` loads no room; each name brings its own at its first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from toolrt import sim


def _told(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_import_loads_no_room() -> None:
    """Neither Trio nor a part of the simulator."""
    loaded = "print([name for name in sys.modules if name.startswith(('trio', 'toolrt.sim.', 'toolrt.trace'))])"
    assert _told(f"import sys, toolrt.sim; {loaded}") == "[]"


@pytest.mark.parametrize("name", ["Schedule", "Cell", "PCT"])
def test_value_brings_neither_network_nor_tracking(name: str) -> None:
    """What a program never asks for is never loaded."""
    rooms = ("toolrt.sim.programs.network.", "toolrt.sim.programs.tracking.", "toolrt.sim.programs.processes.")
    loaded = f"print([name for name in sys.modules if name.startswith({rooms!r})])"
    assert _told(f"import sys; from toolrt.sim import {name}; {loaded}") == "[]"


def test_every_name_is_there() -> None:
    """Also in `dir`; no other is."""
    assert all(getattr(sim, name) is not None for name in sim.__all__)
    assert set(sim.__all__) <= set(dir(sim))
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        sim.nothing_of_this_name  # noqa: B018
