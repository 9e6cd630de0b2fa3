"""``import toolrt.sim`` loads no room; each name brings its own at its first use."""

from __future__ import annotations

import socket
import subprocess
import sys
from unittest import mock

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


_USES = {
    "await trio.sleep(1)": [],
    "socket.getaddrinfo('localhost', 80)": ["network"],
    "await trio.to_thread.run_sync(str)": ["threads"],
    "sim.Process('git').__enter__()": ["network", "processes"],
    "sim.leave_real('files')": ["network", "processes", "real"],
}


@pytest.mark.parametrize("use", list(_USES))
def test_program_brings_the_stand_ins_that_it_needs(use: str) -> None:
    """A room whose names no step uses is never loaded."""
    program = f"""
import socket, sys, trio
from toolrt import sim
async def program():
    {use}
assert sim.run(program).error is None
print(sorted({{name.split(".")[3] for name in sys.modules if name.endswith(("._installed", "._hooks"))}}))
"""
    assert _told(program) == str(_USES[use])


def test_stand_in_stands_below_what_the_program_has_put_there() -> None:
    """A mock over a function stays over it when another function brings the stand-in, and a kept one leads to it."""

    async def program() -> list[object]:
        kept = socket.gethostbyname
        with mock.patch.object(socket, "gethostbyname", return_value="a mock"):
            socket.socket().close()
            mocked = socket.gethostbyname("localhost")
        return [mocked, kept("localhost"), socket.gethostbyname("localhost"), kept is socket.gethostbyname]

    real = socket.gethostbyname
    assert sim.run(program).value == ["a mock", "127.0.0.1", "127.0.0.1", True]
    assert socket.gethostbyname is real


def test_trio_without_a_name_that_reports_is_refused() -> None:
    """The rooms are loaded all the same: what is missing is in the refusal."""
    program = """
import trio
del trio._core._run._TaskStatus, trio._threads._send_message_to_trio
from toolrt import sim
from toolrt.errors import UnsupportedTrio
try:
    sim.run(trio.lowlevel.checkpoint)
except UnsupportedTrio as refused:
    print(refused.differences)
"""
    told = _told(program)
    assert "trio._core._run._TaskStatus is gone" in told
    assert "trio._threads._send_message_to_trio is gone" in told


def test_every_name_is_there() -> None:
    """Also in `dir`; no other is."""
    assert all(getattr(sim, name) is not None for name in sim.__all__)
    assert set(sim.__all__) <= set(dir(sim))
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        sim.nothing_of_this_name  # noqa: B018
