"""What run_command answers, claims, changes and refuses."""

from __future__ import annotations

import os
import shutil
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.services._shells import Answer, Run, calls_of
from toolrt import (
    WRITE,
    Allow,
    ApprovalRequest,
    Claim,
    Deny,
    MemoryDisk,
    Outcome,
    Progress,
    Registry,
    Rewrite,
    Runtime,
    State,
    ToolCall,
    ToolContext,
    ToolResult,
    Workspace,
    partition,
    services,
    tool,
)
from toolrt.errors import DefinitionRefused
from toolrt.services._output import Captured
from toolrt.workspace import FileProblem

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to run")


@pytest.mark.process
def test_exit_status_is_an_answer(run: Run) -> None:
    """A command that fails has been answered; what it wrote on either output is there, in order."""
    results = run("echo out; echo err >&2; exit 7", "nosuchcommand", "kill -9 $$", "printf x").results
    assert [result.outcome for result in results] == [Outcome.OK] * 4
    assert results[0].content == "out\nerr\n[exit status 7]"
    assert results[1].content.endswith("nosuchcommand: command not found\n[exit status 127]")
    assert results[2].content == "[ended by signal 9 (SIGKILL)]"
    assert results[3].content == "x\n[exit status 0]"


@pytest.mark.process
def test_leading_cd_changes_the_working_directory(run: Run) -> None:
    """As change_dir does it: for what comes later in the same response too, whatever the rest comes to."""
    done = run("cd src && cat app.py && false", "cat app.py", "cd ..", "cat a.txt", "cd src")
    assert [result.content for result in done.results] == [
        "import os\n[exit status 1; working directory src]",
        "import os\n[exit status 0]",
        "the working directory is .",
        "one\ntwo\n[exit status 0]",
        "the working directory is src",
    ]
    assert done.state == State(working_dir=PurePosixPath("src"))


@pytest.mark.process
def test_cd_elsewhere_in_a_command_changes_nothing(run: Run) -> None:
    """The shell that did it is gone."""
    assert run("(cd src && ls)", "true; cd src").state == State()


@pytest.mark.process
@pytest.mark.parametrize("target", ["../outside", "/", "nothing", "a.txt", "away"])
def test_cd_to_no_directory_of_the_workspace_runs_nothing(run: Run, root: Path, target: str) -> None:
    """The state stays as it is, and the text shows nothing of the machine."""
    (root / "away").symlink_to("../outside")
    done = run(f"cd {target} && touch made")
    assert done.results[0].outcome is Outcome.ERROR
    assert str(root.parent) not in str(done.results[0].error)
    assert done.state == State()
    assert not list(root.parent.rglob("made"))


@pytest.mark.process
@pytest.mark.parametrize("working_dir", ["gone", "../outside", "a.txt"])
def test_command_is_not_run_where_the_working_directory_is_none(run: Run, root: Path, working_dir: str) -> None:
    """It starts inside the workspace, or not at all."""
    done = run("touch made", state=State(working_dir=working_dir))
    assert done.results[0].outcome is Outcome.ERROR
    assert str(root.parent) not in str(done.results[0].error)
    assert not list(root.parent.rglob("made"))


def test_command_that_only_reads_shares_a_lane_and_others_do_not(workspace: Workspace) -> None:
    """Exclusive unless read-only; a cd is exclusive too."""
    registry = Registry([*workspace.tools(), services.shell_tool(workspace)])
    read = ToolCall("r", "read_file", {"path": "a.txt"})
    calls = [read, *calls_of("ls", "cat a.txt | wc -l"), read, *calls_of("make", "cd src && ls", "ls")]
    lanes = partition(calls, registry, State())
    assert [(lane.safe, len(lane.calls)) for lane in lanes] == [(True, 4), (False, 1), (False, 1), (True, 1)]


def test_claims_of_commands(workspace: Workspace) -> None:
    """READ or WRITE on all files of the workspace, wherever it starts; nothing else that its table orders."""
    command = services.shell_tool(workspace)
    read = command.claims_for({"command": "ls"}, State(working_dir="src"))
    assert {str(claim) for claim in read} == {"read file/**", "read links/**"}
    writes = command.claims_for({"command": "make"}, State())
    assert {str(claim) for claim in writes} == {"write file/**", "write links/**"}


async def test_command_holds_up_other_batches_only_in_files(workspace: Workspace) -> None:
    """A tool of the workspace's that claims something else runs beside it; an edit of another batch waits."""
    go_on, order = trio.Event(), list[str]()

    @tool(schema=None, claims=[Claim("notes", WRITE)], owner=workspace)
    async def note(ctx: ToolContext) -> None:
        order.append("note")
        go_on.set()

    class Slow(services.RecordedShell):
        async def run(self, *args: Any, **options: Any) -> Any:
            order.append("command")
            await go_on.wait()
            order.append("command ends")
            return await super().run(*args, **options)

    shell = services.shell_tool(workspace, shell=Slow({"make": services.Recorded()}))
    runtime = Runtime(Registry([*workspace.tools(), note, shell]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runtime.run, calls_of("make"))
        while "command" not in order:  # noqa: ASYNC110  no event tells of it
            await trio.lowlevel.checkpoint()
        nursery.start_soon(runtime.run, [ToolCall("n", "note")])
        await runtime.run([ToolCall("w", "write_file", {"path": "a.txt", "content": "1"})])
        order.append("written")
    assert order == ["command", "note", "command ends", "written"]


async def test_command_that_waits_for_a_person_holds_up_no_other_batch(workspace: Workspace) -> None:
    """It takes its tickets when it is allowed to run; later calls of its own batch wait for it."""
    answered, order = trio.Event(), list[str]()

    async def approve(request: ApprovalRequest) -> bool:
        if request.name == "run_command":
            order.append("asked")
            await answered.wait()
        return True

    shell = services.shell_tool(workspace, shell=services.RecordedShell({"make": services.Recorded()}))
    runtime = Runtime(Registry([*workspace.tools(), shell]), approve=approve)
    edit = ToolCall("w", "write_file", {"path": "a.txt", "content": "1"})

    async def waits() -> None:
        done = await runtime.run([*calls_of("make"), edit])
        order.extend(result.outcome.value for result in done.results)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waits)
        while not order:  # noqa: ASYNC110  no event tells of it
            await trio.lowlevel.checkpoint()
        done = await runtime.run([ToolCall("w", "write_file", {"path": "b.txt", "content": "1"})])
        order.append(f"other {done.results[0].outcome.value}")
        answered.set()
    assert order == ["asked", "other ok", "ok", "ok"]


@pytest.mark.process
def test_reading_command_sees_the_writes_before_it_and_none_after(workspace: Workspace, run: Run) -> None:
    """It is ordered with file tools of its lane."""

    def write(text: str) -> ToolCall:
        return ToolCall("w", "write_file", {"path": "a.txt", "content": text})

    calls = [write("1"), *calls_of("cat a.txt"), write("2"), *calls_of("cat a.txt"), write("3")]
    runtime = Runtime(Registry([*workspace.tools(), services.shell_tool(workspace)]))
    results = trio.run(runtime.run, calls).results
    assert [results[1].content, results[3].content] == ["1\n[exit status 0]", "2\n[exit status 0]"]


@pytest.mark.process
def test_environment_is_stated(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this process's reaches a command but what is listed, and what the caller gives."""
    monkeypatch.setenv("SOME_API_KEY", "secret-1")
    monkeypatch.setenv("LD_PRELOAD_X", "secret-2")
    monkeypatch.setenv("BASH_ENV", "/nowhere/secret-3")
    monkeypatch.setenv("PATH", f"relative::{os.environ['PATH']}")
    content = run("env; cat /proc/$PPID/environ", environment={"GIVEN": "1"}).results[0].content
    assert "secret" not in content
    assert "relative" not in content
    shell = {"_", "PWD", "SHLVL", "OLDPWD", "TOOLRT_COMMAND", "GIVEN"}
    names = {line.partition("=")[0] for line in content.split("[exit")[0].split("\0")[0].splitlines()}
    known = {*services.INHERITED, *services.FIXED, *shell}
    assert {name for name in names if name.isidentifier()} <= known
    assert "GIVEN=1\n" in content


@pytest.mark.process
def test_program_of_the_workspace_is_no_reading_command(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH that leads inside does not make what stands there `cat`, unless the command runs alone."""
    (root / "cat").write_text("#!/bin/sh\necho evil\n")
    (root / "cat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}:{os.environ['PATH']}")
    results = run("cat a.txt", "cat a.txt; exit 0").results
    assert [result.content for result in results] == ["one\ntwo\n[exit status 0]", "evil\n[exit status 0]"]


def test_output_is_streamed_with_offsets(workspace: Workspace) -> None:
    """Each chunk says how many bytes were before it; together they are all of it."""
    text = "grün\n" * 20_000

    async def main() -> tuple[list[Any], ToolResult]:
        (Path(workspace.disk.root) / "long").write_text(text)
        runtime = Runtime(Registry([services.shell_tool(workspace)]))
        async with runtime.open_batch() as batch:
            batch.submit(calls_of("cat long; cat long >&2; exit 1")[0])
            batch.seal()
            seen = [update.message async for update in batch if isinstance(update, Progress)]
        return seen, batch.outcome.results[0]

    seen, result = trio.run(main)
    offset = 0
    for chunk in seen:
        assert chunk["offset"] == offset
        offset += len(chunk["output"].encode())
    assert "".join(chunk["output"] for chunk in seen) == 2 * text
    assert f"[... {2 * len(text.encode()) - 32 * 1024} bytes left out ...]" in result.content


@pytest.mark.process
def test_output_that_is_no_text_is_answered(run: Run) -> None:
    """What is no UTF-8 is replaced, and nothing raises."""
    assert run("printf 'a\\377b\\0c\\303'").results[0].content == "a�b\0c�\n[exit status 0]"


@pytest.mark.seldom
@pytest.mark.process
def test_time_limit_keeps_what_was_written(answer: Answer) -> None:
    """A command that takes too long is an ERROR that has its output."""
    result = answer({"command": "echo begun; cd src; sleep 1000", "timeout": 4})
    assert result.outcome is Outcome.ERROR
    assert result.error == (
        "the command was ended after 4 s, its time limit; effects may have landed\nWhat it wrote:\nbegun"
    )


@pytest.mark.process
@pytest.mark.parametrize(
    "input",
    [
        "",
        "  \n",
        "echo \0",
        "echo \ud800",
        "x" * 100_001,
        {"command": "ls", "timeout": 0},
        {"command": "ls", "timeout": -1},
        {"command": "ls", "timeout": 3601},
        {"command": "ls", "timeout": float("nan")},
    ],
    ids=range(9),
)
def test_what_cannot_be_run_is_refused(answer: Answer, input: object) -> None:
    """Before anything is started, in words that say what to do."""
    result = answer(input)
    assert result.outcome in (Outcome.ERROR, Outcome.INVALID)
    assert result.error


@pytest.mark.process
@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": True},
        {"timeout": float("nan")},
        {"timeout_most": "1"},
        {"output_limit": 1},
        {"shell": object()},
        {"shell": services.RecordedShell({}), "environment": {}},
    ],
    ids=range(7),
)
def test_tool_that_cannot_work_is_not_made(workspace: Workspace, options: Any) -> None:
    """The mistake is told where it is made."""
    with pytest.raises(DefinitionRefused):
        services.shell_tool(workspace, **options)


def test_real_shell_needs_a_real_disk() -> None:
    """Files in memory are none that a process could see; the text names the double."""
    with pytest.raises(DefinitionRefused, match="RecordedShell"):
        services.shell_tool(Workspace(MemoryDisk({})))


@pytest.mark.process
def test_own_shell_runs_the_command(workspace: Workspace, root: Path) -> None:
    """Another program than bash, with arguments."""
    shell = services.RealShell(workspace.disk, shell=["/bin/sh", "-e", "-c"])  # type: ignore[arg-type]
    runtime = Runtime(Registry([services.shell_tool(workspace, shell=shell)]))
    assert trio.run(runtime.run, calls_of("false; echo on")).results[0].content == "[exit status 1]"
    for wrong in ([], ["sh"], ["/nowhere/sh"], [str(root)]):
        with pytest.raises(DefinitionRefused):
            services.RealShell(workspace.disk, shell=wrong)  # type: ignore[arg-type]


_CHUNKS = st.lists(st.one_of(st.binary(max_size=12), st.text(max_size=6).map(str.encode)), max_size=12)


@given(_CHUNKS, st.integers(2, 40))
def test_captured_output_is_its_beginning_and_its_end(chunks: list[bytes], limit: int) -> None:
    """However it comes in pieces: all of it if it fits, else both ends and the number of bytes between them."""
    whole = b"".join(chunks)
    told: list[dict[str, Any]] = []
    captured = Captured(limit, told.append)
    for chunk in chunks:
        captured.take(chunk)
    text = captured.end()
    assert "".join(chunk["output"] for chunk in told) == whole.decode("utf-8", "replace")
    for one in told:
        before = whole[: one["offset"]].decode("utf-8", "replace")
        assert whole.decode("utf-8", "replace").startswith(before + one["output"])
    if len(whole) <= limit:
        assert text == whole.decode("utf-8", "replace")
        return
    head, between, tail = text.partition("\n[... ")
    number, _, tail = tail.partition(" bytes left out ...]\n")
    assert between
    kept = len(whole) - int(number)
    assert limit - 6 <= kept <= limit
    try:
        whole.decode()
    except UnicodeDecodeError:
        return
    assert whole.decode().startswith(head)
    assert whole.decode().endswith(tail)
    assert len(head.encode()) + len(tail.encode()) == kept


@pytest.mark.process
@pytest.mark.parametrize("name", ["away", "gone", "a.txt"])
def test_directory_that_is_swapped_meanwhile_is_not_entered(workspace: Workspace, root: Path, name: str) -> None:
    """What the tool saw is looked at again by the process that enters it."""
    (root / "away").symlink_to("../outside")
    shell = services.RealShell(workspace.disk)  # type: ignore[arg-type]
    command = services.Command("touch made", (name,), 60.0)
    with pytest.raises(FileProblem, match="the working directory: expected a directory"):
        trio.run(shell.run, command, lambda chunk: None)
    assert not list(root.parent.rglob("made"))


def test_workspace_that_is_named_by_a_link_has_a_shell(root: Path) -> None:
    """Its root is the directory itself, whatever led there."""
    (root.parent / "link").symlink_to(root)
    workspace = Workspace(root.parent / "link")
    runtime = Runtime(Registry([services.shell_tool(workspace)]))
    assert trio.run(runtime.run, calls_of("cat a.txt")).results[0].content == "one\ntwo\n[exit status 0]"


def test_command_is_asked_about_as_any_tool_is(workspace: Workspace, root: Path) -> None:
    """An approval sees the whole command, and what it denies is not run."""
    asked = []

    def approve(request: ApprovalRequest) -> Allow | Deny:
        asked.append(request.input["command"])
        return Deny("no") if "touch" in request.input["command"] else Allow()

    runtime = Runtime(Registry([services.shell_tool(workspace)]), approve=approve)
    results = trio.run(runtime.run, calls_of("ls", "cd src && touch made")).results
    assert [result.outcome for result in results] == [Outcome.OK, Outcome.DENIED]
    assert asked == ["ls", "cd src && touch made"]
    assert not list(root.rglob("made"))


def test_rewrite_of_a_reading_command_may_not_write(workspace: Workspace, root: Path) -> None:
    """It holds READ alone."""
    runtime = Runtime(
        Registry([services.shell_tool(workspace)]), approve=lambda request: Rewrite({"command": "touch made"})
    )
    assert trio.run(runtime.run, calls_of("ls")).results[0].outcome is Outcome.DENIED
    assert not (root / "made").exists()
