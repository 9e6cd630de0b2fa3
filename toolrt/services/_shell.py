"""The shell tool: one command, its output, and what it exited with.

Rules.
    1. A command that was recognised as one that only reads claims READ on all of the workspace, so it is ordered with
       those that change files and shares a lane with other readers.  Every other command runs alone: what it changes is
       not known.
    2. It starts in the state's working directory, which is inside the workspace.  A leading ``cd DIR &&``, or ``cd
       DIR`` alone, is done here, as ``change_dir`` does it: where it leads outside nothing is run, and where it does
       not, the state changes too, whatever the rest of the command comes to.  Such a command runs alone.
    3. A command that ran to its end is an answer, whatever it exited with.  At its time limit it is ended and the call
       is an ERROR that has what it wrote.
    4. What a command changes goes past the file service: it is in no history, and an edit of a file that the model saw
       before is a conflict until it is read again.
"""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Protocol

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.model import READ, WRITE, Change, Claim, DirectoryChanged, Modifier, OutputChunk, State, Tool, ToolOutput
from toolrt.services._command import Command, Ended, Shell
from toolrt.services._output import Captured
from toolrt.services._processes import RealShell
from toolrt.services._reading import only_reads
from toolrt.services._sandbox import Sandbox, restrictions
from toolrt.services._signatures import remembering, resolving
from toolrt.services._words import leading_cd
from toolrt.workspace import Entry, FileProblem, Kind, Wanted, Workspace, noted, noted_no_change, real_disks

#: Bytes of a command's output that are answered, unless the tool is made with another number.
OUTPUT_LIMIT = 32 * 1024


class _Context(Protocol):
    """What the tool uses of the runtime's context."""

    @property
    def state(self) -> State: ...

    def progress(self, message: Any) -> None: ...


@attrs.define(eq=False)
class _ShellTool(Tool):
    """A tool that declares claims for some of its inputs and runs alone for the others."""

    @property
    def declares(self) -> bool:
        """Never for all inputs: lane policies ask `is_safe`, and what is in a shared lane claims."""
        return False


def shell_tool(
    workspace: Workspace,
    *,
    shell: Shell | None = None,
    timeout: float = 120.0,
    timeout_most: float = 3600.0,
    output_limit: int = OUTPUT_LIMIT,
    environment: Mapping[str, str] | None = None,
    sandbox: Sandbox | bool = False,
) -> Tool:
    """The tool ``run_command(command, timeout=None)``: a command in the workspace's directory.

    Args:
        shell: who runs commands; None: real processes.  A double such as `RecordedShell` for a simulation, or for a
            workspace that is not on the real disk.
        timeout: seconds of its own execution, above 0, after which a command is ended whose call names none.
        timeout_most: the most seconds that a call may name.
        output_limit: how many bytes of the output are answered: its beginning and its end, half of it each.
        environment: variables of real commands beside the fixed ones; nothing else of this process's environment
            reaches them.
        sandbox: what real commands may reach (`toolrt.services.Sandbox`); True: the workspace and the system's
            programs, no network.  Each answer says which restrictions held.

    Raises:
        DefinitionRefused: a number is out of range, there can be no real shell here, or no such sandbox.

    Example::

        registry = Registry([*workspace.tools(), services.shell_tool(workspace)])
    """
    if not isinstance(workspace, Workspace):
        raise DefinitionRefused("shell_tool(workspace)", "a toolrt.Workspace", workspace)
    for name, seconds in (("timeout", timeout), ("timeout_most", timeout_most)):
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= sys.float_info.max:
            raise DefinitionRefused(f"shell_tool({name})", "seconds above 0", seconds)
    if not isinstance(output_limit, int) or isinstance(output_limit, bool) or output_limit < 2:
        raise DefinitionRefused("shell_tool(output_limit)", "a number of bytes, 2 or more", output_limit)
    if shell is None:
        if not real_disks(workspace.disk):
            expected = "a double, such as services.RecordedShell({...}), for files that are not on the real disk"
            raise DefinitionRefused("shell_tool(shell)", expected, None)
        shell = RealShell(workspace.disk, environment=environment, sandbox=sandbox)
    elif environment is not None or sandbox is not False:
        what, given = ("sandbox", sandbox) if environment is None else ("environment", "a mapping")
        raise DefinitionRefused(f"shell_tool({what})", "none where a shell is given: it has its own", given)
    elif not isinstance(shell, Shell):
        raise DefinitionRefused("shell_tool(shell)", "a RealShell or a double such as a RecordedShell", shell)
    running = _Running(workspace, shell, timeout, timeout_most, output_limit)
    return _ShellTool(
        name="run_command",
        function=running.run_command,
        safe=lambda input: only_reads(input["command"]),
        claims=running.claims,
        description=_DESCRIPTION.format(timeout=timeout, most=max(timeout, timeout_most)) + _reach(sandbox),
        schema=_SCHEMA,
        owner=workspace,
        looks_again=True,
    )


_DESCRIPTION = """\
Run a command of a POSIX shell and return what it writes, and what it exited with.

It starts in the working directory. cd DIR as its beginning (cd DIR && ...), or alone, also changes the working
directory for later calls. It has no input and no terminal. Nothing it starts outlives it: no server can be left
running. timeout is in seconds: {timeout:g} unless it is given, at most {most:g}."""


def _reach(sandbox: Sandbox | bool) -> str:
    """What the tool's description says of a sandbox."""
    if sandbox is False:
        return ""
    open_network = isinstance(sandbox, Sandbox) and sandbox.network
    return (
        "\n\nIt can write in the workspace and in $TMPDIR, an empty directory of its own, and read the system's "
        f"programs and libraries; other files are refused. It has {'the' if open_network else 'no'} network."
    )


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string"},
        "timeout": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
    },
    "required": ["command"],
    "additionalProperties": False,
}


@attrs.frozen
class _Running:
    """What the tool is made of."""

    workspace: Workspace
    shell: Shell
    timeout: float
    timeout_most: float
    output_limit: int

    def claims(self, input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
        """READ on all of the workspace's files, or WRITE; nothing of what else its claim table orders."""
        mode = READ if only_reads(input["command"]) else WRITE
        return self.workspace.claims(self.workspace.disk.root, State(), mode, wanted=Wanted.DIRECTORY, subtree=True)

    async def run_command(self, ctx: _Context, command: str, timeout: float | None = None) -> ToolOutput:  # noqa: ASYNC109  the model's word
        """Run one command."""
        seconds = self._limit(timeout)
        if not command.strip():
            raise FileProblem("command", "a command", "an empty one", "Nothing was run.")
        directory, rest, modifiers = await self._directory(ctx.state, command)
        shown = "/".join(directory) or "."
        if not rest:
            noted(ctx, DirectoryChanged, shown)
            noted_no_change(ctx)
            return ToolOutput(f"the working directory is {shown}", modifiers=modifiers)
        captured = Captured(self.output_limit, ctx.progress, functools.partial(noted, ctx, OutputChunk))
        ended = await self.shell.run(Command(rest, directory, seconds, only_reads(command)), captured.take)
        told = captured.end()
        if modifiers:
            noted(ctx, DirectoryChanged, shown)
        notes = _notes(ended, f"working directory {shown}" if modifiers else None)
        modifiers, hint = _remembered(ctx, modifiers, told, ended.status == 0, only_reads(command))
        if ended.status is None:
            error = f"the command was ended after {seconds:g} s, its time limit; effects may have landed"
            written = f"\nWhat it wrote:\n{told}" if told else "; it wrote nothing"
            return ToolOutput(modifiers=modifiers, error=("; ".join((error, *notes)) + written).rstrip())
        how = f"exit status {ended.status}" if ended.status >= 0 else f"ended by {_signal_name(-ended.status)}"
        end = "" if not told or told.endswith("\n") else "\n"
        return ToolOutput(f"{told}{end}[{'; '.join((how, *notes, *hint))}]", modifiers=modifiers)

    def _limit(self, timeout: float | None) -> float:
        if timeout is None:
            return self.timeout
        most = max(self.timeout, self.timeout_most)
        if isinstance(timeout, bool) or not 0 < timeout <= most:
            raise FileProblem("timeout", f"seconds above 0, at most {most:g}", repr(timeout), "Nothing was run.")
        return timeout

    async def _directory(self, state: State, command: str) -> tuple[Entry, str, tuple[Any, ...]]:
        """Where the command starts, what is left of it, and what becomes of the state."""
        changed = leading_cd(command)
        if changed is None:
            return await self._entered(".", state), command, ()
        directory = await self._entered(changed[0], state)
        working_dir = PurePosixPath(*directory) if directory else None
        return directory, changed[1], (Change.call(_entered, working_dir),)

    async def _entered(self, path: str, state: State) -> Entry:
        identity = self.workspace.identify(path, state, Wanted.DIRECTORY)
        if identity.problem is not None:
            raise identity.problem
        if identity.found is None:
            raise FileProblem(
                identity.path, "a directory", "nothing of that name", "Nothing was run; name a directory."
            )
        if identity.entry and (await self.workspace.disk.look(identity.entry)).kind is not Kind.DIRECTORY:
            raise FileProblem(identity.path, "a directory", "something else", "Nothing was run; name a directory.")
        return identity.entry


def _entered(state: State, working_dir: PurePosixPath | None) -> State:
    return state.replace(working_dir=working_dir)


def _remembered(
    ctx: _Context, modifiers: tuple[Modifier, ...], told: str, succeeded: bool, reads: bool
) -> tuple[tuple[Modifier, ...], tuple[str, ...]]:
    """The modifiers with the one that the output asks for, and the hint, if this call alone decides that it is due."""
    if succeeded and reads:
        return modifiers, ()
    modifier = resolving(told) if succeeded else remembering(told)
    if not getattr(ctx, "alone", False):
        # Others of its lane may have said the same, or may have failed first: that is seen when the lane is merged.
        return (*modifiers, modifier), ()
    after = modifier(ctx.state)
    if after == ctx.state:
        return modifiers, ()
    return (*modifiers, modifier), after.hints[len(ctx.state.hints) :]


def _notes(ended: Ended, directory: str | None) -> list[str]:
    notes = [] if directory is None else [directory]
    if ended.swept and ended.status is not None:
        notes.append("what it left running was ended")
    if ended.stuck:
        notes.append("some of what it started cannot be ended and may still run")
    if ended.confined:
        notes.append(restrictions(ended.confined))
    return notes


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
