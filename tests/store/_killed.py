"""The child of the kill test: it runs a batch of real tools with a journal, or resumes it, until it is killed.

Its tools edit files, run commands, open a sub-batch, run in a thread, and await asyncio.  Each effect is a line that is
appended to one file in one write.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import trio

import toolrt
import toolrt.aio
from toolrt import WRITE, Change, Claim, Registry, Runtime, ToolCall, ToolContext, ToolOutput, Workspace
from toolrt.services import shell_tool
from toolrt.store._sqlite import SqliteRecords

BATCH = "turn"


def calls(shell: bool) -> list[ToolCall]:
    """The batch; with `shell` a command is in it, which takes as long as all the rest."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("edit_file", {"path": "a.txt", "old": "one", "new": "one one"}),
        ("note", {"what": "first"}),
        ("edit_file", {"path": "a.txt", "old": "one one", "new": "one one one"}),
        ("several", {"what": "xyz"}),
        ("in_thread", {"what": "thread"}),
        ("in_asyncio", {"what": "asyncio"}),
        ("write_file", {"path": "d/new.txt", "content": "new\n"}),
        ("keep", {"what": "kept"}),
        ("note", {"what": "second"}),
    ]
    if shell:
        asked.insert(5, ("run_command", {"command": "echo command >> effects"}))
    return [ToolCall(str(index), name, input) for index, (name, input) in enumerate(asked)]


def effects(directory: Path) -> Path:
    """The file that each effect appends a line to."""
    return directory / "files" / "effects"


def runtime_in(directory: Path) -> Runtime:
    """The runtime of a process, on the files and the journal of the `directory`."""
    workspace = Workspace(directory / "files", state_dir=directory / "state")

    def did(what: str) -> None:
        descriptor = os.open(effects(directory), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{what}\n".encode())
        os.close(descriptor)

    @toolrt.tool(claims=[Claim("notes", WRITE)], schema=None)
    async def note(ctx: ToolContext, what: str) -> ToolOutput:
        did(what)
        await trio.sleep(0.001)
        return ToolOutput(f"noted {what}", modifiers=[Change.append("notes", what)])

    @toolrt.tool(claims=[Claim("parts", WRITE)], schema=None)
    async def part(ctx: ToolContext, what: str) -> str:
        did(what)
        return f"did {what}"

    @toolrt.tool(idempotent=True, claims=[Claim("parts", WRITE)], schema=None)
    async def several(ctx: ToolContext, what: str) -> list[str]:
        outcome = await ctx.run([ToolCall(one, "part", {"what": one}) for one in what])
        return [result.outcome.value for result in outcome.results]

    @toolrt.tool(claims=[], schema=None)
    def in_thread(ctx: ToolContext, what: str) -> str:
        did(what)
        return what

    @toolrt.aio.tool(claims=[], schema=None)
    async def in_asyncio(ctx: ToolContext, what: str) -> str:
        await asyncio.sleep(0.001)
        did(what)
        return what

    @toolrt.tool(idempotent=True, claims=[], schema=None)
    async def keep(ctx: ToolContext, what: str) -> str:
        (directory / "kept").write_text(what)
        return what

    own = [note, part, several, in_thread, in_asyncio, keep]
    registry = Registry([*workspace.tools(), shell_tool(workspace), *own])
    return Runtime(registry, journal=toolrt.Journal(directory / "journal.db"))


def process(directory: str, shell: bool, kill_at: int | None, told: Connection[str, str]) -> None:
    """Run the batch, or resume it where it was begun, and send the outcome.

    Args:
        directory: where all is that outlives a process.
        shell: as of `calls`.
        kill_at: the moment at which the process kills itself: an even one is before a commit, the next behind it.
        told: is sent ``"ready"`` before anything is run, and then the outcome as JSON.
    """
    if kill_at is not None:
        die_at(kill_at)
    told.send("ready")
    outcome = asyncio.run(_run(Path(directory), shell))
    results = [result.to_json() for result in outcome.results]
    told.send(json.dumps({"results": results, "state": outcome.state.to_json()["values"]}))


async def _run(directory: Path, shell: bool) -> toolrt.BatchOutcome:
    runtime = runtime_in(directory)
    try:
        return await toolrt.aio.run(runtime, calls(shell), batch_id=BATCH)
    except toolrt.errors.JournalRefused as refused:
        if "resume" not in str(refused):
            raise
        return await toolrt.aio.resume(runtime, BATCH)


def die_at(moment: int) -> None:
    """Let this process kill itself before or behind a commit: an even moment is before one, the next behind it."""
    moments = iter(range(10_000))

    def dying(commit: Any) -> Any:
        def committed(*args: Any) -> Any:
            if next(moments) == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            found = commit(*args)
            if next(moments) == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return committed

    for name in ("begin", "commit", "over"):
        setattr(SqliteRecords, name, dying(getattr(SqliteRecords, name)))
