"""Several files edited at once, each by a part of its own: the tool `parallel_edit_files`.

Rules.
    1. The call claims all its files, each to be changed; its parts run as one sub-batch, each inside the claim on its
       own file.  So no part touches another's file, by whatever name, and nothing that another call of the batch holds.
    2. Two parts that mean one file are refused, whatever names they use, before any part runs; such a call claims its
       files to be read only.
    3. A part that fails, or takes longer than its time, is reported and leaves the others alone.  Answers are in the
       order of the parts.
    4. Parts are isolated: a change of one part's state (its working directory, say) is invisible to others.

Theory.  What a part may do is decided by claims, as for any call, and not by the part's good will: a sub-agent that is
given `ctx.run` gets INVALID for what lies outside its file.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from toolrt.errors import DefinitionRefused
from toolrt.model import READ, WRITE, Claim, Event, Mode, Outcome, Progress, Registry, State, Tool, ToolCall, ToolOutput
from toolrt.workspace import FileProblem, Workspace

#: Edits one file: is given the part's context, its file's name as the model gave it, and what is to be done.
EditPart = Callable[[Any, str, str], Awaitable[ToolOutput | str | None]]

#: How many files one call may name.
_LEAST, _MOST = 2, 12

#: Seconds that one part may take, unless the tool is made with another number.
PART_TIMEOUT = 300.0

_DESCRIPTION = """Edit 2 to 12 files at once, each by a part of its own.

{part} Each file may be named once. Parts run at the same time and see nothing of each other. The answer has one entry
for each part, in the order given: what it did, or why it failed; a part that fails leaves the others as they are."""

_INSTRUCTED = """parts names each file (path) and says what is to be done in it (instructions); all parts get the
contract: what they must agree on."""

_SCRIPTED = """parts names each file (path) and its edits, made in the order given: all of them, or none. An edit
replaces old, which must be there at exactly one place, by new; with all it replaces every place."""


def parallel_edit_tool(
    workspace: Workspace,
    edit: EditPart | None = None,
    *,
    name: str = "parallel_edit_files",
    part_timeout: float | None = PART_TIMEOUT,
) -> Tool:
    """The tool that edits 2 to 12 files of `workspace` at once.

    Args:
        edit: ``async def edit(ctx, path, instructions) -> ToolOutput``: what a part does, such as asking a model.  Its
            `ctx` is isolated and may run tools of the runtime (``await ctx.run(calls)``), as far as they touch `path`
            alone.  Modifiers that it returns are dropped.  None: the input itself says what is edited, as for
            ``multi_edit``.
        name: what the model calls it by.
        part_timeout: seconds of its own execution that a part may take, above 0; None is no limit.

    Raises:
        DefinitionRefused: `workspace` is none, or `edit` is no async function of three arguments.

    Example::

        async def edit(ctx: ToolContext, path: str, instructions: str) -> str:
            text = (await ctx.run([ToolCall("read", "read_file", {"path": path})])).results[0].content
            new = await ask_a_model(instructions, text)
            await ctx.run([ToolCall("write", "write_file", {"path": path, "content": new})])
            return "done"

        registry = Registry([*workspace.tools(), parallel_edit_tool(workspace, edit)])
    """
    if not isinstance(workspace, Workspace):
        raise DefinitionRefused("parallel_edit_tool(workspace)", "a toolrt.Workspace", workspace)
    if edit is not None and not (
        inspect.iscoroutinefunction(edit) or inspect.iscoroutinefunction(getattr(type(edit), "__call__", None))  # noqa: B004
    ):
        raise DefinitionRefused("parallel_edit_tool(edit)", "an async function (ctx, path, instructions)", edit)
    if part_timeout is not None and (
        isinstance(part_timeout, bool)
        or not isinstance(part_timeout, int | float)
        or not 0 < part_timeout <= sys.float_info.max
    ):
        raise DefinitionRefused("parallel_edit_tool(part_timeout)", "seconds above 0, or None", part_timeout)
    part = _scripted_part(workspace, part_timeout) if edit is None else _part_of(workspace, edit, name, part_timeout)
    work = _ParallelEdit(workspace, part, edit is not None)
    return Tool(
        name=name,
        function=work.run_instructed if edit is not None else work.run_scripted,
        claims=work.claims,
        description=_DESCRIPTION.format(part=_SCRIPTED if edit is None else _INSTRUCTED),
        schema=_schema(edit is not None),
        owner=workspace,
        idempotent=True,  # all that it does, its parts do, and each of them is looked at by itself
    )


def _scripted_part(workspace: Workspace, timeout: float | None) -> Tool:
    """The workspace's own ``multi_edit``, with a time limit."""
    known = next(tool for tool in workspace.tools() if tool.name == "multi_edit")
    tool = known.rebound(known.function, claims=known.claims, owner=known.owner)  # type: ignore[arg-type]
    tool.timeout = timeout
    return tool


def _part_of(workspace: Workspace, edit: EditPart, name: str, timeout: float | None) -> Tool:
    """What runs `edit` for one file, isolated."""

    async def edit_part(ctx: Any, path: str, instructions: str, budget: int | None) -> Any:
        return await edit(ctx.isolate(context_budget=budget), path, instructions)

    return Tool(
        name=f"{name}.part",
        function=edit_part,
        claims=lambda input, state: workspace.claims(input["path"], state, WRITE),
        timeout=timeout,
        description="One part of " + name,
        schema=None,
        owner=workspace,
    )


class _ParallelEdit:
    """The function of one such tool, and its claims."""

    def __init__(self, workspace: Workspace, part: Tool, instructed: bool) -> None:
        self._workspace = workspace
        self._part = part
        self._instructed = instructed

    def claims(self, input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
        """All files, to be changed; to be read only where two parts mean one."""
        paths = [str(part["path"]) for part in input["parts"]]
        mode: Mode = WRITE if self._twice(paths, state) is None else READ
        return tuple(dict.fromkeys(claim for path in paths for claim in self._workspace.claims(path, state, mode)))

    def _twice(self, paths: Sequence[str], state: State) -> FileProblem | None:
        """Why these paths are no different files, or None."""
        seen: dict[str, str] = {}
        for path in paths:
            identity = self._workspace.identify(path, state)
            if identity.key is None:
                continue  # no file: its part says so
            same = identity.event_name
            if same in seen:
                return FileProblem(
                    identity.path,
                    "a different file in each part",
                    f"two parts that mean this one, as {seen[same]!r} and as {path!r}",
                    "Nothing was changed. Join their instructions in one part."
                    if self._instructed
                    else "Nothing was changed. Join their edits in one part.",
                )
            seen[same] = path
        return None

    async def run_instructed(self, ctx: Any, parts: list[dict[str, Any]], contract: str = "") -> dict[str, Any]:
        """Run one part for each file, on its instructions."""
        budget = ctx.state.context_budget
        share = None if budget is None else budget // max(1, len(parts))
        told = f"{contract}\n\n" if contract else ""
        inputs = [
            {"path": part["path"], "instructions": told + part["instructions"], "budget": share} for part in parts
        ]
        return await self._run(ctx, inputs)

    async def run_scripted(self, ctx: Any, parts: list[dict[str, Any]]) -> dict[str, Any]:
        """Run one part for each file, which makes its edits."""
        return await self._run(ctx, [{"path": part["path"], "edits": part["edits"]} for part in parts])

    async def _run(self, ctx: Any, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        paths = [input["path"] for input in inputs]
        if not _LEAST <= len(paths) <= _MOST:
            wanted = f"{_LEAST} to {_MOST} parts"
            raise FileProblem("parts", wanted, str(len(paths)), "Nothing was changed. Make more calls, or fewer parts.")
        problem = self._twice(paths, ctx.state)
        if problem is not None:
            raise problem
        known = () if ctx.registry is None else ctx.registry
        registry = Registry([self._part, *(tool for tool in known if tool.name != self._part.name)])
        async with ctx.open_batch(registry=registry, events=getattr(ctx, "hands_events", False)) as batch:
            for number, input in enumerate(inputs):
                batch.submit(ToolCall(f"{ctx.call_id}.{number}", self._part.name, input))
            batch.seal()
            async for update in batch:
                if isinstance(update, Progress):
                    said = update.message
                    # An event names its call by itself, the part's.
                    ctx.progress(
                        said if isinstance(said, Event) else {"path": paths[update.call_index], "message": said}
                    )
        return _report(paths, batch.outcome.results)


def _report(paths: Sequence[str], results: Sequence[Any]) -> dict[str, Any]:
    """What the parts came to, in their order."""
    parts = []
    for path, result in zip(paths, results, strict=True):
        part = {"path": path, "outcome": result.outcome.value}
        if result.content is not None:
            part["answer"] = result.content
        if result.error is not None:
            part["error"] = result.error
        parts.append(part)
    done = sum(1 for result in results if result.outcome is Outcome.OK)
    return {"done": done, "failed": len(parts) - done, "parts": parts}


def _schema(instructed: bool) -> dict[str, Any]:
    edit = {
        "type": "object",
        "properties": {
            "old": {"type": "string"},
            "new": {"type": "string"},
            "all": {"type": "boolean", "default": False},
        },
        "required": ["old", "new"],
        "additionalProperties": False,
    }
    what: dict[str, Any] = (
        {"instructions": {"type": "string"}}
        if instructed
        else {"edits": {"type": "array", "items": edit, "minItems": 1, "maxItems": 1000}}
    )
    part = {
        "type": "object",
        "properties": {"path": {"type": "string"}, **what},
        "required": ["path", *what],
        "additionalProperties": False,
    }
    properties: dict[str, Any] = {"parts": {"type": "array", "items": part, "minItems": _LEAST, "maxItems": _MOST}}
    if instructed:
        properties["contract"] = {"type": "string", "default": ""}
    return {"type": "object", "properties": properties, "required": ["parts"], "additionalProperties": False}
