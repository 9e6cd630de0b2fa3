"""A sandboxed command reaches the workspace and nothing else, and an answer says which restrictions held."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.services import _escapes
from tests.services._shells import Answer, calls_of
from toolrt import Outcome, Registry, Runtime, Workspace, services
from toolrt.errors import DefinitionRefused
from toolrt.processes import sandbox_lacks
from toolrt.services import _sandbox

#: What a machine may forbid by itself: its settings, not a sandbox.
ALLOWED = {"io_uring", "trace", *(() if os.geteuid() == 0 else ("setuid", "other user"))}

#: Of the tries those that need the network alone.
NETWORK = {"TCP", "UDP", "netlink"}


@pytest.fixture(autouse=True)
def _possible() -> None:
    if lacks := sandbox_lacks():
        pytest.skip(f"a sandbox needs {lacks}")


@pytest.fixture
def outside(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory beside the workspace, with a file, a program, and the directory of toolrt's key."""
    outside = root.parent / "outside"
    (outside / "secret").write_text("secret")
    (outside / "program").write_text("#!/bin/sh\n")
    (outside / "program").chmod(0o755)
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(outside / "state"))
    return outside


@pytest.fixture
def escapes(root: Path, outside: Path) -> Iterator[str]:
    """The command that tries to get out, with all that it tries to reach."""
    (outside / "state").mkdir()
    (outside / "state" / "key").write_text("key")
    abstract = f"toolrt-{os.getpid()}-{root.parent.name}"
    script = root / "escapes.py"
    script.write_text(Path(_escapes.__file__).read_text())
    with contextlib.ExitStack() as stack:
        for kind, address in (
            (socket.SOCK_STREAM, str(outside / "stream")),
            (socket.SOCK_DGRAM, str(outside / "datagrams")),
            (socket.SOCK_STREAM, f"\0{abstract}"),
        ):
            one = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            one.bind(address)
            if kind == socket.SOCK_STREAM:
                one.listen()
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        process = stack.enter_context(subprocess.Popen(["sleep", "1000"], cwd=outside))
        stack.callback(process.kill)
        given = (sys.executable, script, outside, process.pid, server.getsockname()[1], abstract)
        yield shlex.join(map(str, given))


def _went_well(answer: Answer, escapes: str, sandbox: services.Sandbox | bool) -> set[str]:
    result = answer(escapes, sandbox=sandbox)
    assert result.outcome is Outcome.OK
    *names, last = str(result.content).splitlines()
    assert last.startswith("[exit status 0"), result.content
    return set(names)


@pytest.mark.seldom
def test_nothing_gets_out_of_a_sandbox(answer: Answer, escapes: str) -> None:
    """No name, link, descriptor, process, signal or socket leads out."""
    assert _went_well(answer, escapes, True) == set()


def test_every_try_gets_out_without_a_sandbox(answer: Answer, escapes: str) -> None:
    """The twin: what the sandbox refused is what this machine allows."""
    assert _went_well(answer, escapes, False) >= set(_escapes.TRIES) - ALLOWED


@pytest.mark.seldom
def test_network_can_be_left_open(answer: Answer, escapes: str) -> None:
    """Then nothing but the network is reached."""
    assert _went_well(answer, escapes, services.Sandbox(network=True)) == NETWORK


def test_answer_names_the_restrictions(answer: Answer, root: Path) -> None:
    """Those that held, and those that did not; the workspace and the command's own directory can be written."""
    command = 'echo 1 > a.txt && test "$HOME" = "$TMPDIR" && mktemp > own && cat /proc/self/mounts > /dev/null'
    closed, opened = (answer(command, sandbox=sandbox) for sandbox in (True, services.Sandbox(network=True)))
    signals = _sandbox.restrictions(["files", "privileges", "ipc", "network", "signals"])
    assert closed.content in (f"[exit status 0; {signals}]", f"[exit status 0; {signals}; not: signals]")
    assert "not: network" in opened.content
    assert (root / "a.txt").read_text() == "1\n"
    assert not Path((root / "own").read_text().strip()).parent.exists()


def test_stated_directories_are_in_reach(answer: Answer, outside: Path, root: Path) -> None:
    """Those to be read can be read, those to be written can be written."""
    (outside / "out").mkdir()
    sandbox = services.Sandbox(readable=[str(outside / "secret")], writable=[outside / "out"])
    result = answer(f"cat {outside}/secret; echo 1 > {outside}/out/a; echo 1 > {outside}/secret", sandbox=sandbox)
    assert result.content.startswith("secret")
    assert "Permission denied" in result.content
    assert (outside / "out" / "a").read_text() == "1\n"


def test_descriptors_of_the_program_are_not_inherited(answer: Answer, outside: Path) -> None:
    """Not even one that the program has marked as inheritable."""
    with (outside / "secret").open() as file:
        os.set_inheritable(file.fileno(), True)
        result = answer("ls /proc/self/fd", sandbox=True)
    # 3 is the directory that ls lists.
    assert result.content.split("\n")[:-1] == ["0", "1", "2", "3"]


def test_directory_that_has_become_a_link_is_refused(workspace: Workspace, outside: Path, root: Path) -> None:
    """A sandbox follows no link to what it makes writable, and what it cannot put up runs nothing."""
    turning = root.parent / "turning"
    turning.mkdir()
    tool = services.shell_tool(workspace, sandbox=services.Sandbox(writable=[turning]))
    turning.rmdir()
    turning.symlink_to(outside)
    result = trio.run(Runtime(Registry([tool])).run, calls_of("echo ran > ran")).results[0]
    assert result.outcome is Outcome.ERROR
    assert "the sandbox" in str(result.error)
    assert not (root / "ran").exists()


def test_sandbox_that_cannot_be_is_refused(
    workspace: Workspace, outside: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it would show toolrt's own files, where another shell runs commands, and where the kernel has none."""
    shell = services.RecordedShell({})
    for given, word in (
        ({"sandbox": services.Sandbox(readable=[outside])}, "key or history"),
        ({"sandbox": services.Sandbox(writable=[outside / "state" / "below"])}, "key or history"),
        ({"sandbox": "yes"}, "Sandbox"),
        ({"sandbox": True, "shell": shell}, "has its own"),
    ):
        with pytest.raises(DefinitionRefused, match=word):
            services.shell_tool(workspace, **given)  # type: ignore[arg-type]
    with pytest.raises(DefinitionRefused, match="absolute"):
        services.Sandbox(readable=["src"])
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(root / "state"))
    with pytest.raises(DefinitionRefused, match="key or history"):
        services.shell_tool(Workspace(root), sandbox=True)
    monkeypatch.setattr(_sandbox, "sandbox_lacks", lambda: "Landlock ABI 3 (Linux 6.2), and this kernel has none")
    with pytest.raises(DefinitionRefused, match="this kernel has none"):
        services.shell_tool(workspace, sandbox=True)
