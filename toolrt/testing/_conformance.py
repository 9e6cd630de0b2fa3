"""Does a tool keep its promises?  The laws hold for tools that do.

Rules.
    1. Each input is tried by itself, in a simulation, twice, each time in a fresh workspace where one is given.
    2. What is reported was seen to happen; nothing is inferred from the source.
    3. A tool may fail as it likes: an error is an answer, and is compared like one.

Limits.  Only what goes through the workspace's disk, `toolrt.sim.Cell` and the probe is seen.  A tool that
reads the real clock, the network or a global is caught only where its two answers differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import trio

from toolrt import sim
from toolrt.errors import DefinitionRefused
from toolrt.invariants.oracle import OracleContext
from toolrt.model import EVERYTHING, READ, WRITE, Claim, Mode, State, Tool, ToolOutput, covers
from toolrt.trace import plain
from toolrt.workspace import MemoryDisk, Planted, Workspace

__all__ = ["BrokenPromise", "check_tool"]


@attrs.frozen
class BrokenPromise:
    """One promise a tool does not keep."""

    #: "input", "safe", "claims", "modifiers", "state", "deterministic".
    promise: str
    #: What was expected and what was seen.
    detail: str
    #: The tool's name.
    tool: str
    #: The input it was seen with.
    input: Any

    def __str__(self) -> str:
        return f"{self.tool} breaks its promise ({self.promise}): {self.detail} (input {self.input!r})"


@attrs.define
class _Seen:
    """What one run of the tool did."""

    workspace: Workspace | None
    #: What it answered or raised, as JSON.
    answer: Any = None
    modifiers: tuple[Any, ...] = ()
    before: Mapping[str, Any] = attrs.field(factory=dict)
    after: Mapping[str, Any] = attrs.field(factory=dict)
    #: Files it read through the disk, by path.
    reads: list[str] = attrs.field(factory=list)
    #: Cells it wrote.
    cells: list[str] = attrs.field(factory=list)
    claims: tuple[Claim, ...] = ()

    @property
    def changed(self) -> list[str]:
        """Files that are not as they were."""
        names = dict.fromkeys([*self.before, *self.after])
        return [name for name in names if self.before.get(name) != self.after.get(name)]


def check_tool(
    tool: Tool | Callable[[Workspace], Tool],
    inputs: Iterable[Any],
    state: State | None = None,
    workspace: Workspace | Mapping[str, Planted] | None = None,
) -> list[BrokenPromise]:
    """Every promise that `tool` was seen to break for one of `inputs`; an empty list when it keeps them all.

    What it looks for: a safe tool changes nothing; the claims cover every file it reads or changes, are the same
    when asked twice and do not raise; modifiers are pure functions to a `State`; the call's own state is left as
    it was; the same input gives the same answer, the same files and the same state.

    Args:
        tool: a tool, or a function that makes it for a workspace.
        inputs: inputs as a model would give them; one that does not fit is reported too.
        state: what `ctx.state` is; the empty one by default.
        workspace: the first content of a disk in memory, made anew for every run (then `tool` is a function of the
            workspace); or a workspace the tool is bound to, which keeps what the tool does to it; or None.

    Raises:
        DefinitionRefused: `tool` is neither, or a function of a workspace without content for one.

    Checkpoint: never (it is not async); call it outside Trio.

    Example::

        assert check_tool(lambda workspace: my_tool(workspace), [{"path": "a.txt"}], workspace={"a.txt": "one"}) == []
    """
    if not callable(tool) or (not isinstance(tool, Tool) and not isinstance(workspace, Mapping)):
        raise DefinitionRefused("check_tool(tool)", "a tool, or a function of a workspace and its content", tool)
    state = State() if state is None else state
    found: list[BrokenPromise] = []
    for input in inputs:
        found += _check_input(tool, input, state, workspace)
    return found


def _check_input(
    maker: Tool | Callable[[Workspace], Tool],
    input: Any,
    state: State,
    content: Workspace | Mapping[str, Planted] | None,
) -> list[BrokenPromise]:
    tool, seen = _made(maker, content)
    promise = _promises(tool, input)
    arguments = tool.decode(input)
    if isinstance(arguments, list):
        return [promise("input", f"the input does not fit: {'; '.join(map(str, arguments))}")]
    found = _about_claims(tool, input, state, seen, promise)
    if found:
        return found
    before = plain(state.to_json())
    _run(tool, arguments, state, seen)
    if plain(state.to_json()) != before:
        return [promise("state", f"expected the call's state to stay {before!r}, it became {state.to_json()!r}")]
    found += _about_files(tool, state, seen, promise)
    found += _about_modifiers(state, seen, promise)
    if isinstance(content, Workspace) and seen.changed:
        return found  # the second run would start from what the first one left
    again_tool, again = _made(maker, content)
    again_arguments = again_tool.decode(input)
    assert not isinstance(again_arguments, list)
    again.claims = seen.claims
    _run(again_tool, again_arguments, state, again)
    if again.answer != seen.answer:
        found.append(promise("deterministic", f"answered {seen.answer!r}, and {again.answer!r} the second time"))
    elif again.after != seen.after:
        found.append(promise("deterministic", "left other files the second time"))
    return found


def _promises(tool: Tool, input: Any) -> Callable[[str, str], BrokenPromise]:
    return lambda promise, detail: BrokenPromise(promise, detail, tool.name, input)


def _made(
    maker: Tool | Callable[[Workspace], Tool], content: Workspace | Mapping[str, Planted] | None
) -> tuple[Tool, _Seen]:
    if not isinstance(content, Mapping):
        assert isinstance(maker, Tool)
        return maker, _Seen(content)
    seen = _Seen(None)

    def spy(effect: str, path: str) -> None:
        if effect == "read":
            seen.reads.append(path)

    seen.workspace = Workspace(MemoryDisk(content, fault=spy))
    tool = maker if isinstance(maker, Tool) else maker(seen.workspace)
    if not isinstance(tool, Tool):
        raise DefinitionRefused("check_tool(tool)", "a function that makes a tool", tool)
    return tool, seen


def _about_claims(
    tool: Tool, input: Any, state: State, seen: _Seen, promise: Callable[[str, str], BrokenPromise]
) -> list[BrokenPromise]:
    if tool.claims is None:
        seen.claims = () if tool.is_safe(input) else (EVERYTHING,)
        return []
    asked = []
    for _ in range(2):
        try:
            asked.append(tuple(tool.claims(tool.complete(input), state)) if callable(tool.claims) else tool.claims)
        except Exception as error:
            return [promise("claims", f"expected claims, they raised {type(error).__name__}: {error}")]
    if asked[0] != asked[1]:
        return [promise("claims", f"claimed {_listed(asked[0])}, and {_listed(asked[1])} the second time")]
    seen.claims = asked[0]
    return []


def _run(tool: Tool, arguments: Any, state: State, seen: _Seen) -> None:
    """Run the tool once in a simulation, and write down what it did."""
    positional, named = arguments

    async def program() -> Any:
        await trio.lowlevel.checkpoint()
        context = OracleContext("checked", "check", 0, state, seen.claims)
        value = tool.function(context, *positional, **named)
        return await value if tool.is_async else value

    seen.before = {} if seen.workspace is None else seen.workspace.snapshot()
    execution = sim.run(program)
    seen.after = {} if seen.workspace is None else seen.workspace.snapshot()
    value = execution.value
    if execution.error is not None:
        seen.answer = [type(execution.error).__name__, str(execution.error)]
    elif isinstance(value, ToolOutput):
        seen.answer, seen.modifiers = [plain(value.content), value.error], value.modifiers
    else:
        seen.answer = plain(value)
    for step in execution.trace.steps:
        for access in step.accesses:
            if access.write and access.resource[:1] == ("cell",):
                seen.cells.append(" ".join(map(str, access.resource)))


def _about_files(
    tool: Tool, state: State, seen: _Seen, promise: Callable[[str, str], BrokenPromise]
) -> list[BrokenPromise]:
    found = []
    changed = seen.changed
    if tool.claims is None and not seen.claims:
        # Safe, and nothing claimed: it may touch nothing that others touch.
        found += [promise("safe", f"expected no effect, it changed {name}") for name in changed]
        found += [promise("safe", f"expected no effect, it wrote {cell}") for cell in dict.fromkeys(seen.cells)]
    if seen.workspace is None or (tool.claims is None and not seen.claims):
        return found
    for name in changed:
        if not _covered(seen.workspace, name, WRITE, seen.claims):
            found.append(promise("claims", f"changed {name}, holding {_listed(seen.claims)}"))
    for name in dict.fromkeys(seen.reads):
        if name not in changed and not _covered(seen.workspace, name, READ, seen.claims):
            found.append(promise("claims", f"read {name}, holding {_listed(seen.claims)}"))
    return found


def _covered(workspace: Workspace, name: str, mode: Mode, held: tuple[Claim, ...]) -> bool:
    # The file's own claim is the first; the others protect the way to it.
    return covers(held, workspace.claims(f"{workspace.disk.root}/{name.rstrip('/')}", State(), mode)[0])


def _listed(claims: Iterable[Claim]) -> str:
    return ", ".join(map(str, claims)) or "nothing"


def _about_modifiers(state: State, seen: _Seen, promise: Callable[[str, str], BrokenPromise]) -> list[BrokenPromise]:
    found = []
    for position, modifier in enumerate(seen.modifiers):
        answers = []
        for _ in range(2):
            before = plain(state.to_json())
            try:
                after = modifier(state)
            except Exception as error:
                answers.append(f"{type(error).__name__}: {error}")
                continue
            if not isinstance(after, State):
                found.append(promise("modifiers", f"modifier {position} gave {type(after).__name__}, expected a State"))
                break
            if plain(state.to_json()) != before:
                found.append(promise("modifiers", f"modifier {position} changed the state it was given"))
                break
            answers.append(repr(after.to_json()))
        if len(set(answers)) > 1:
            text = f"modifier {position} gave {answers[0]}, and {answers[1]} for an equal state"
            found.append(promise("modifiers", text))
    return found
