"""``toolrt serve``: a directory's tools for an MCP host, as a program."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.mcp._host import HELLO, call, edits, lines, notification, request, text

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name != "posix", reason="commands are run on POSIX systems"),
]

#: No language server is on this path: importing their protocol takes longer than all else.
ENVIRONMENT = {**os.environ, "PATH": "/usr/bin:/bin"}


def command(workspace: Path, *options: str) -> list[str]:
    """What a host starts."""
    return [sys.executable, "-m", "toolrt", "serve", "--mcp", "--workspace", str(workspace), *options]


def start(workspace: Path, *options: str, path: str = ENVIRONMENT["PATH"]) -> subprocess.Popen[bytes]:
    """A server that was started by a host, with programs on this path."""
    return subprocess.Popen(
        command(workspace, *options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, "PATH": path, "TOOLRT_STATE_DIR": str(workspace.parent / "state")},
    )


def told(server: subprocess.Popen[bytes], *messages: Any) -> None:
    """Send these messages in one piece."""
    assert server.stdin is not None
    server.stdin.write(lines(messages))
    server.stdin.flush()


def heard(server: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The next message of the server."""
    assert server.stdout is not None
    found: dict[str, Any] = json.loads(server.stdout.readline())
    return found


@pytest.mark.seldom
def test_ten_raw_lines_edit_one_file_in_their_order(tmp_path: Path) -> None:
    """In one piece, with the end of input right behind them; all are answered, and nothing else is written."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("<0>")
    server = start(work)
    rest = [call("x", "run_command", command="cat a.txt; echo told >&2"), call("y", "read_file", path="../state")]
    out, err = server.communicate(lines([HELLO, *edits("a.txt", 10), *rest, request("z", "tools/list")]), timeout=60)
    answers = {one["id"]: one for one in map(json.loads, out.splitlines())}
    assert (server.returncode, err.decode()) == (0, "")
    assert (work / "a.txt").read_text() == "<10>"
    assert not any(answers[n]["result"]["isError"] for n in range(1, 11))
    assert text(answers["x"]).startswith("<10>")
    assert answers["y"]["result"]["isError"]
    hints = {one["name"]: one["annotations"] for one in answers["z"]["result"]["tools"]}
    assert {"search_code", "run_command", "parallel_edit_files"} <= hints.keys()
    assert hints["search"] == {"readOnlyHint": True, "openWorldHint": False}
    assert hints["make_dir"]["destructiveHint"] is False
    assert hints["run_command"]["openWorldHint"] is True


@pytest.mark.seldom
@pytest.mark.slow
def test_an_interrupt_ends_what_runs_and_the_server(tmp_path: Path) -> None:
    """SIGTERM as well, with its own exit code; the command that ran is gone."""
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        server = start(tmp_path, "--deny", "*.lock")
        pid = pipe_at(tmp_path / "pid")
        told(server, HELLO, call(1, "run_command", command="echo $$ > pid; sleep 300"))
        heard(server)
        running = int(pid.read_text())
        os.kill(server.pid, number)
        _, err = server.communicate(timeout=60)
        assert (server.returncode, err.decode()) == (code, "toolrt: interrupted\n")
        with pytest.raises(ProcessLookupError):
            os.kill(running, 0)
        pid.unlink()


@pytest.mark.seldom
@pytest.mark.slow
def test_a_host_that_dies_ends_what_runs(tmp_path: Path) -> None:
    """Both ends closed, and nothing to be sent."""
    server = start(tmp_path)
    told(server, HELLO, call(1, "run_command", command="sleep 300"))
    heard(server)
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.close()
    server.stdout.close()
    assert server.wait(timeout=20) == 0
    assert server.stderr is not None
    server.stderr.close()


#: A server that offers one tool more, which holds a thread for longer than any test waits.
WITH_A_THREAD = """
import pathlib, sys, threading
from toolrt import tool
from toolrt.cli import main
from toolrt.cli.experiment import _offer

@tool(safe=True)
def hold(ctx, path: str) -> None:
    pathlib.Path(path).write_text("begun")
    threading.Event().wait(1000)

file_tools = _offer.file_tools
_offer.file_tools = lambda files: [*file_tools(files), hold]
sys.exit(main(sys.argv[1:]))
"""


def ended(server: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """What the server still says after the end of its input, long before any of the calls above would end."""
    try:
        return server.communicate(timeout=15)
    except subprocess.TimeoutExpired:
        server.kill()
        server.communicate()
        raise


def pipe_at(path: Path) -> Path:
    """Make a named pipe: reading it returns once something has been written to it."""
    os.mkfifo(path)
    return path


def gone(pid: int) -> None:
    """Return when that process has ended."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([watched], [], [], 60)[0]
    os.close(watched)


@pytest.mark.seldom
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked up as Linux has them")
@pytest.mark.parametrize("command", ["sleep 1000", "trap '' TERM; sleep 1000; sleep 1000"], ids=["obeys", "is killed"])
def test_the_end_of_input_ends_what_runs_and_the_server(tmp_path: Path, command: str) -> None:
    """Though the host still reads; the call is answered, and nothing of the command is left."""
    server = start(tmp_path)
    written = pipe_at(tmp_path / "pids")
    told(server, HELLO, call(1, "run_command", command=f"sleep 1000 & echo $! $$ > pids; {command}"))
    heard(server)
    pids = [int(pid) for pid in written.read_text().split()]
    out, err = ended(server)
    assert (server.returncode, err.decode()) == (0, "")
    assert text(json.loads(out)).startswith("[interrupted]")
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.seldom
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked up as Linux has them")
def test_the_end_of_input_ends_the_server_while_a_thread_goes_on(tmp_path: Path) -> None:
    """A thread cannot be ended, so the process is; a command that ran beside it ends as well."""
    (tmp_path / "a.txt").write_text("one")
    program = [sys.executable, "-c", WITH_A_THREAD, *command(tmp_path)[3:]]
    server = subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    held = pipe_at(tmp_path / "held")
    told(server, HELLO, call(1, "hold", path=str(held)))
    told(server, call(2, "run_command", {"progressToken": 1}, command="tail -f a.txt"))
    heard(server)
    assert heard(server)["params"]["message"] == "one"
    assert held.read_text() == "begun"
    [pid] = {
        path.parent.name for path in Path("/proc").glob("[0-9]*/cmdline") if ran(path, b"tail\0-f\0a.txt", tmp_path)
    }
    out, err = ended(server)
    assert (server.returncode, err.decode()) == (0, "")
    assert {text(json.loads(line)).split()[0] for line in out.splitlines()} == {"[interrupted]"}
    gone(int(pid))


def ran(path: Path, command: bytes, directory: Path) -> bool:
    """Whether that is a process of this command in this directory."""
    try:
        return command in path.read_bytes() and os.readlink(path.with_name("cwd")) == str(directory)
    except OSError:
        return False


@pytest.mark.seldom
@pytest.mark.slow
def test_only_what_reads_is_offered_where_asked(tmp_path: Path) -> None:
    """And no command without a shell; standard input may be a file, too."""
    (tmp_path / "asked").write_bytes(
        lines([HELLO, notification("notifications/initialized"), request(1, "tools/list")])
    )

    def offered(*options: str) -> set[str]:
        with (tmp_path / "asked").open("rb") as asked:
            done = subprocess.run(
                command(tmp_path, *options), stdin=asked, capture_output=True, env=ENVIRONMENT, check=True, timeout=60
            )
        found = [json.loads(line) for line in done.stdout.splitlines()][-1]["result"]["tools"]
        if "--read-only" in options:
            assert all(one["annotations"]["readOnlyHint"] for one in found)
        return {one["name"] for one in found}

    reads, silent = offered("--read-only"), offered("--no-shell", "--tools", "edit,shell,code,make_dir")
    assert {"read_file", "search"} <= reads
    assert "write_file" in silent
    assert "run_command" not in reads | silent
    assert "make_dir" in silent
    assert not {"read_file", "move_path"} & silent
    assert not {"write_file", "edit_file", "change_dir", "parallel_edit_files"} & reads


@pytest.mark.seldom
def test_several_directories_are_served_without_language_servers(tmp_path: Path) -> None:
    """One is installed, and knows one directory alone: it is left out, and all else is there."""
    pytest.importorskip("lsprotocol")
    for name in ("work", "docs", "bin"):
        (tmp_path / name).mkdir()
    (tmp_path / "docs" / "a.txt").write_text("<0>")
    (tmp_path / "bin" / "ruff").touch(0o755)
    path = f"{tmp_path / 'bin'}:{ENVIRONMENT['PATH']}"
    server = start(tmp_path / "work", "--mount", f"docs={tmp_path / 'docs'}", path=path)
    asked = [HELLO, *edits("docs/a.txt", 1), request("tools", "tools/list")]
    out, err = server.communicate(lines(asked), timeout=60)
    answers = {one["id"]: one for one in map(json.loads, out.splitlines())}
    assert (server.returncode, err.decode(), (tmp_path / "docs" / "a.txt").read_text()) == (0, "", "<1>")
    names = {one["name"] for one in answers["tools"]["result"]["tools"]}
    assert ("diagnostics" in names, "find_callers" in names) == (False, True)


def test_tools_that_there_are_not_are_refused(toolrt: Any, tmp_path: Path) -> None:
    """The refusal names those that there are."""
    ended = toolrt("serve", "--mcp", "--workspace", tmp_path, "--no-shell", "--tools", "read,write")
    assert ended.code == 2
    assert "'write'" in ended.err
    assert "edit_file" in ended.err


def test_serve_is_refused_without_a_protocol_or_a_directory(toolrt: Any, tmp_path: Path) -> None:
    """In one line."""
    assert "--mcp" in toolrt("serve", "--workspace", tmp_path).err
    assert "--workspace" in toolrt("serve", "--mcp").err
    assert toolrt("serve", "--mcp", "--workspace", tmp_path / "gone").code == 2
