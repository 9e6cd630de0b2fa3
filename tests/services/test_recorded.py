"""The double answers as the real shell does, and a simulation takes no other."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.services._shells import calls_of
from toolrt import MemoryDisk, Outcome, Progress, Registry, Runtime, State, ToolCall, Workspace, services, sim
from toolrt.errors import DefinitionRefused
from toolrt.services import Recorded, RecordedShell

FILES = {"a.txt": "one\ntwo\n", "src/app.py": "import os\n"}

#: What the double says that real commands do; the contract is that they do.
RECORD: dict[str | tuple[str, str], Recorded | str | bytes] = {
    "echo hi": "hi\n",
    "cat a.txt; exit 3": Recorded("one\ntwo\n", status=3),
    "kill -9 $$": Recorded(status=-9),
    ("src", "ls"): "app.py\n",
    (".", "ls"): "a.txt\nsrc\n",
    "printf '\\377'": Recorded(b"\xff"),
    "sleep 1000 & echo left": Recorded("left\n", swept=True),
    "echo begun; sleep 1000": Recorded(["begun\n"], seconds=2000.0),
    "head -c 100000 a.txt; head -c 70000 /dev/zero | tr '\\0' x": "one\ntwo\n" + 70_000 * "x",
    "false": Recorded(status=1),
}

CALLS: list[Any] = [
    "echo hi",
    "cat a.txt; exit 3",
    "kill -9 $$",
    "ls",
    "cd src && ls",
    "ls",
    "cd ..",
    "cd nothing && ls",
    "cd / && ls",
    "printf '\\377'",
    "sleep 1000 & echo left",
    {"command": "echo begun; sleep 1000", "timeout": 3},
    {"command": "echo hi", "timeout": -1},
    "",
    "head -c 100000 a.txt; head -c 70000 /dev/zero | tr '\\0' x",
    "cd src && false",
]


def _double() -> Workspace:
    return Workspace(MemoryDisk(FILES))


def _run(workspace: Workspace, **options: Any) -> Any:
    tool = services.shell_tool(workspace, **options)
    return trio.run(Runtime(Registry([*workspace.tools(), tool])).run, calls_of(*CALLS))


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to run")
def test_double_answers_as_the_real_shell(tmp_path: Path) -> None:
    """Same calls, same results and same state: on real processes, and from the record."""
    (tmp_path / "src").mkdir()
    for path, text in FILES.items():
        (tmp_path / path).write_text(text)
    real = _run(Workspace(tmp_path))
    workspace = _double()
    tool = services.shell_tool(workspace, shell=RecordedShell(RECORD))
    runtime = Runtime(Registry([*workspace.tools(), tool]))
    recorded = sim.run(lambda: runtime.run(calls_of(*CALLS))).value
    assert recorded.results == real.results
    assert recorded.state == real.state == State(working_dir="src")


def test_simulation_refuses_a_real_command_and_says_what_to_do(tmp_path: Path) -> None:
    """No process is started; the text names the double."""
    workspace = Workspace(tmp_path)
    tool = services.shell_tool(workspace)
    runtime = Runtime(Registry([tool]))
    result = sim.run(lambda: runtime.run(calls_of("touch made"))).value.results[0]
    assert result.outcome is Outcome.ERROR
    assert "services.RecordedShell({...})" in result.error
    assert os.listdir(tmp_path) == []


def test_command_without_a_record_is_told() -> None:
    """The double never guesses."""
    tool = services.shell_tool(_double(), shell=RecordedShell({"ls": "", ("src", "make"): ""}))
    result = trio.run(Runtime(Registry([tool])).run, calls_of("make"))
    error = str(result.results[0].error)
    assert result.results[0].outcome is Outcome.ERROR
    assert "run_command('make') in .: expected a recorded command, recorded are: " in error
    assert "'ls'" in error
    assert "('src', 'make')" in error


def test_record_that_cannot_be_is_refused() -> None:
    """Output is text or bytes, and took some time, or none."""
    with pytest.raises(DefinitionRefused):
        Recorded([1])
    for seconds in (-1, math.nan, math.inf, True, "1"):
        with pytest.raises(DefinitionRefused, match=r"Recorded\(seconds\).* seconds, 0 or more"):
            Recorded(seconds=seconds)  # type: ignore[arg-type]


def test_recorded_output_takes_its_time() -> None:
    """Virtual seconds, spread over the output, that is streamed with offsets."""
    shell = RecordedShell({"make": Recorded(["one\n", "two\n"], seconds=3.0)})
    runtime = Runtime(Registry([services.shell_tool(_double(), shell=shell)]))

    async def program() -> list[Any]:
        seen: list[Any] = []
        async with runtime.open_batch() as batch:
            batch.submit(calls_of("make")[0])
            batch.seal()
            async for update in batch:
                if isinstance(update, Progress):
                    seen.append((trio.current_time(), update.message["offset"], update.message["output"]))
        seen.append(trio.current_time())
        return seen

    assert sim.run(program).value == [(0.0, 0, "one\n"), (1.5, 4, "two\n"), 3.0]


@pytest.mark.seldom
def test_batch_with_commands_ends_alike_under_every_schedule() -> None:
    """Reads, commands that read, a change, a cd and a command that runs alone: timing decides nothing."""
    record: dict[str | tuple[str, str], Recorded | str | bytes] = {
        "cat a.txt": Recorded("?\n", seconds=1.0),
        ("src", "make"): Recorded("made\n", status=2, seconds=1.0),
    }

    async def program() -> Any:
        workspace = _double()
        tool = services.shell_tool(workspace, shell=RecordedShell(record))
        calls = [
            ToolCall("r", "read_file", {"path": "a.txt"}),
            *calls_of("cat a.txt"),
            ToolCall("w", "write_file", {"path": "a.txt", "content": "new"}),
            *calls_of("cat a.txt", "cd src && make"),
            ToolCall("l", "list_dir", {}),
        ]
        done = await Runtime(Registry([*workspace.tools(), tool])).run(calls)
        return tuple(str(result) for result in done.results), str(done.state), str(workspace.snapshot())

    report = sim.explore(program, strategy=sim.Random(sim.RandomWalk(seed=3), 60))
    assert not report.failures
    assert len(report.outcomes) == 1
