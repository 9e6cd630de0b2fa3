"""Tools of pydantic-ai as tools of the runtime, and the reverse.

Rules.
    1. Outside an agent there is no run: a tool is given a ``RunContext`` with `deps` and the call's id, and without
       model, messages and retries.  One that needs an approval is refused, because nothing would ask for it.
    2. ``ModelRetry`` and ``ToolFailed`` are results with an error; retries are the model's.
    3. A tool of the runtime in an agent answers bad input with ``ModelRetry``, a denial with ``ToolDenied``, and every
       other failure with ``ToolFailed``.
    4. A run of an agent has no state of the runtime's: each call starts from the empty one, and the answer says so
       where the call changed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_ai import ModelRetry, RunContext
from pydantic_ai import Tool as AgentTool
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.messages import BinaryContent, ToolReturn
from pydantic_ai.tools import ToolDefinition, ToolDenied
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_ai.usage import RunUsage
from pydantic_core import SchemaValidator, core_schema

from toolrt import aio
from toolrt.errors import DefinitionRefused
from toolrt.model import EVERYTHING, Claim, File, Image, Outcome, Registry, State, Tool, ToolCall, ToolOutput
from toolrt.model import tool as runtime_tool
from toolrt.model._content import parts_of
from toolrt.plugins._promised import Inside
from toolrt.runtime import Runtime, ToolContext


def tool_from_pydantic_ai(tool: AgentTool[Any], deps: Any = None, **promises: Any) -> Tool:
    """See `toolrt.Tool.from_pydantic_ai`."""
    if not isinstance(tool, AgentTool):
        raise DefinitionRefused("Tool.from_pydantic_ai(tool)", "a pydantic_ai.Tool", tool)
    if tool.requires_approval:
        raise DefinitionRefused(
            f"tool {tool.name!r}",
            "a tool that asks for no approval; ask for it by Runtime(approve=...)",
            "a tool with requires_approval=True",
        )
    schema = tool.function_schema

    def arguments(ctx: ToolContext, input: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        run: RunContext[Any] = RunContext(
            deps=deps,
            model=None,
            usage=RunUsage(),
            tool_call_id=ctx.call_id,
            tool_name=tool.name,
            max_retries=tool.max_retries or 0,
        )
        valid = schema.validator.validate_python(input, context=None)
        found: tuple[list[Any], dict[str, Any]] = schema._call_args(valid, run)
        return found

    def call(ctx: ToolContext, /, **input: Any) -> ToolOutput:
        try:
            args, named = arguments(ctx, input)
            return _output(tool.function(*args, **named))
        except _ANSWERS as error:
            return _refusal(error)

    async def acall(ctx: ToolContext, /, **input: Any) -> ToolOutput:
        try:
            args, named = arguments(ctx, input)
            return _output(await tool.function(*args, **named))
        except _ANSWERS as error:
            return _refusal(error)

    told = {
        "name": tool.name,
        "description": tool.description or "",
        "schema": schema.json_schema,
        "timeout": tool.timeout,
    }
    if tool.sequential and "safe" in promises:
        raise DefinitionRefused(f"tool {tool.name!r}", "no safe= for a tool with sequential=True", promises["safe"])
    made: Tool = runtime_tool(**{**told, **promises})(aio.on_loop(acall) if schema.is_async else call)
    return made


_ANSWERS = (ModelRetry, ToolFailed, CallDeferred, ApprovalRequired, ValidationError)


def _refusal(error: Exception) -> ToolOutput:
    if isinstance(error, CallDeferred | ApprovalRequired):
        return ToolOutput(error=f"it asks for {type(error).__name__}, which only an agent can carry out")
    return ToolOutput(error=str(error))


def _output(answer: Any) -> ToolOutput:
    if not isinstance(answer, ToolReturn):
        return ToolOutput(_parted(answer))
    value, beside = _parted(answer.return_value), answer.content
    if not beside:
        return ToolOutput(value)
    shown = [_parted(one) for one in ([beside] if isinstance(beside, str) else beside)]
    return ToolOutput([*(value if isinstance(value, list) else [value]), *shown])


def _parted(answer: Any) -> Any:
    """An answer of an agent's tool, whose binary content becomes parts."""
    if isinstance(answer, BinaryContent):
        return (Image if answer.is_image else File)(answer.data, answer.media_type)
    return [_parted(one) for one in answer] if isinstance(answer, list | tuple) else answer


def _unparted(content: Any) -> Any:
    """The reverse: what an agent takes for the content of a result."""
    parts = parts_of(content)
    if parts is None:
        return content
    told = [
        BinaryContent(part.data, media_type=part.media_type) if isinstance(part, Image | File) else part.in_words()
        for part in parts
    ]
    return told[0] if len(told) == 1 else told


def claims_of(tool: Tool) -> Callable[[Mapping[str, Any], State], Iterable[Claim]]:
    """What a call of `tool` touches, as one function of input and state."""

    def claims(input: Mapping[str, Any], state: State) -> Iterable[Claim]:
        if tool.alone:
            return (EVERYTHING,)
        if tool.declares:
            return tool.claims_for(input, state)
        return () if tool.is_safe(input) else (EVERYTHING,)

    return claims


class RuntimeToolset(AbstractToolset[Any]):
    """The tools of a registry, for an agent.

    Args:
        registry: the tools.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._alone = Runtime(registry)

    @property
    def id(self) -> str | None:
        """None: it has no name of its own."""
        return None

    async def get_tools(self, ctx: Any) -> dict[str, ToolsetTool[Any]]:
        """Each tool, with its own schema; the runtime checks the input."""
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema)
                ),
                max_retries=1,
                args_validator=_ANY,
            )
            for tool in self.registry
        }

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        """Run the tool inside the call whose place it has, or alone."""
        calls = [ToolCall(ctx.tool_call_id or "", tool.tool_def.name, tool_args)]
        inside = Inside.current()
        if inside is None:
            done = await aio.run(self._alone, calls, owner=ctx.run_id)
        else:
            done = await aio.open_batch(inside.context, registry=self.registry).run(calls)
        result = done.results[0]
        if result.ok:
            content = _unparted(result.content)
            if done.state == State():
                return content
            return f"{content}\n{_NOT_KEPT}" if content is result.content else [content, _NOT_KEPT]
        if result.outcome is Outcome.INVALID:
            raise ModelRetry(result.error or "the call is invalid")
        if result.outcome is Outcome.DENIED:
            return ToolDenied(result.error or "denied")
        told = "" if result.content is None else f"\n{result.content}"
        raise ToolFailed(f"[{result.outcome.value}] {result.error or ''}{told}")


_NOT_KEPT = "[not kept: what it changed of the state, such as the working directory; every call starts anew]"

_ANY = SchemaValidator(schema=core_schema.dict_schema())
