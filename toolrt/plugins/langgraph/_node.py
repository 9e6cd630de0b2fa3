"""A tool node that runs the calls of one message as one batch.

Rules.
    1. LangGraph's own node parses the message, injects state, store, runtime and call id, runs a tool with its wrappers
       and its error handler, and puts the answers together.  The batch decides when each tool runs.
    2. Answers come in call order.  All calls that may run come to an end before the node raises; then the error of the
       first call that failed goes out, or, where none failed, one `GraphInterrupt` with the interrupts of all calls.
    3. Where a call is interrupted, later calls that may touch what it may touch wait for the answer: they have not run
       when the graph stops, and run after it when the graph goes on.
    4. A call that came to an end is not run again for the same message (`toolrt.plugins.langgraph._kept`).
    5. With a journal the batch is named by the node's task and by how often its calls were begun.  A task that a killed
       process had begun goes on with that batch: answers come back as LangGraph's own serializer keeps them, and a
       call that raised or was held there begins once more, in the next batch.

Limits.  Where the graph sends each call to the node on its own (``Send``), each is a batch of one: claims keep them
apart, and nothing orders them.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import trio
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphInterrupt
from langgraph.prebuilt import ToolNode

from toolrt import aio
from toolrt.errors import DefinitionRefused, MisuseError
from toolrt.interop import run_sync
from toolrt.model import BatchOutcome, Claim, Tool, ToolCall, ToolOutput
from toolrt.plugins._promised import Inside, PromisedTools, conflict
from toolrt.plugins.langgraph._kept import Ledger
from toolrt.plugins.langgraph._tools import batched_tool, is_sync, message_of
from toolrt.runtime import Runtime, ToolContext
from toolrt.store._kept import KeptBatch

#: What a journal keeps of a call that is to run once more: one that waits for the answer to an interrupt of its own or
#: of an earlier call, and one that raised.
_HELD, _RAISED = "toolrt: an interrupt has no answer yet", "toolrt: the tool raised"

#: How LangGraph's checkpointers keep answers.
_SERDE = JsonPlusSerializer()


@attrs.define(eq=False)
class _Asked:
    """One call of the message."""

    call: Mapping[str, Any]
    input_type: Any
    runtime: Any
    #: Its place in the message.
    index: int = 0
    #: What LangGraph's node made of the tool's answer.
    answer: Any = None
    error: BaseException | None = None
    #: Whether it waits for the answer to an earlier call's interrupt.
    is_held: bool = False


class OrderedToolNode(ToolNode):
    """LangGraph's ``ToolNode``, with the calls of one message as one batch: see `toolrt.plugins.langgraph.tool_node`.

    Args:
        tools: as there.
        runtime: as there.
        safe: as there.
        claims: as there.
        options: as there.
    """

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]] = (),
        *,
        runtime: Runtime | None = None,
        safe: Collection[str] = (),
        claims: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self._ordered = PromisedTools(runtime, safe, claims)
        base = self._ordered.base
        own = [batched_tool(tool, base) for tool in base.registry]
        super().__init__(tools, **options)
        if both := sorted({*self.tools_by_name} & {*base.registry.names}):
            raise DefinitionRefused("tool_node(tools)", "names that no tool of the runtime has", f"{both[0]!r}")
        if own:
            super().__init__([*self.tools_by_name.values(), *own], **options)

    @property
    def is_wrapped(self) -> bool:
        """Whether a function of the user's runs each call, also those of tools that the node does not know."""
        return self._wrap_tool_call is not None or self._awrap_tool_call is not None

    # LangGraph's node makes a list of what these two give for each call, in call order: so it tells what it would run.

    def _run_one(self, call: Any, input_type: Any, tool_runtime: Any) -> Any:
        return _Asked(call, input_type, tool_runtime)

    async def _arun_one(self, call: Any, input_type: Any, tool_runtime: Any) -> Any:
        return _Asked(call, input_type, tool_runtime)

    def _combine_tool_outputs(self, outputs: list[Any], input_type: Any) -> Any:
        if outputs and isinstance(outputs[0], _Asked):
            return outputs
        return super()._combine_tool_outputs(outputs, input_type)

    def _told(self, outputs: Any) -> Any:
        """What LangGraph's node gave, if that is what it would run, or nothing.

        Raises:
            MisuseError: LangGraph's node ran the calls itself, as a version that is not known here may do.
        """
        if not _is_asked(outputs) and outputs not in ([], {self._messages_key: []}):
            raise MisuseError("this version of LangGraph runs a message's calls in a way that toolrt does not know")
        return outputs

    def _func(self, input: Any, config: RunnableConfig, runtime: Any) -> Any:
        asked = self._told(super()._func(input, config, runtime))
        if not _is_asked(asked):
            return asked
        message = _Message(self, asked, config)
        runtime = message.runtime(_blocking_function, is_awaited=False)
        while message.calls:
            message.learn(_known(message))
            message.finish(_run_blocking(message, runtime))
        return super()._combine_tool_outputs(message.answers(), asked[0].input_type)

    async def _afunc(self, input: Any, config: RunnableConfig, runtime: Any) -> Any:
        asked = self._told(await super()._afunc(input, config, runtime))
        if not _is_asked(asked):
            return asked
        message = _Message(self, asked, config)
        runtime = message.runtime(_awaited_function, is_awaited=True)
        while message.calls:
            name = message.batch_id
            message.learn(None if name is None else await aio.call(message.journal.find, name))
            message.finish(await _run_awaited(message, runtime))
        return super()._combine_tool_outputs(message.answers(), asked[0].input_type)


def _is_asked(outputs: Any) -> bool:
    return isinstance(outputs, list) and bool(outputs) and isinstance(outputs[0], _Asked)


class _Message:
    """The calls of one message, while the node runs.

    Args:
        node: the node.
        asked: the calls, in order.
        config: of the node's task.
    """

    def __init__(self, node: OrderedToolNode, asked: list[_Asked], config: RunnableConfig) -> None:
        self.node = node
        self._asked = asked
        conf = config.get("configurable") or {}
        #: Names the conversation; None: it has no name, so its batches have no owner.
        self.thread: str | None = conf.get("thread_id")
        self._ledger = Ledger(conf, [[one.call["id"], one.call["name"]] for one in asked])
        for index, one in enumerate(asked):
            one.index = index
            if index in self._ledger.kept:
                one.answer = self._ledger.kept[index]
            else:
                own = {**conf, **self._ledger.configurable(index)}
                one.runtime = dataclasses.replace(one.runtime, config={**one.runtime.config, "configurable": own})
        #: Calls that were interrupted, or wait for the answer to an interrupt.
        self._stopped: list[_Asked] = []
        #: What runs now.
        self.waiting = [one for one in asked if one.index not in self._ledger.kept]
        #: Where batches are kept; None: nowhere.
        self.journal: Any = node._ordered.base.journal

    @property
    def calls(self) -> list[ToolCall]:
        """What runs now, as the batch is given it."""
        return [ToolCall(one.call["id"] or "", one.call["name"], one.call["args"]) for one in self.waiting]

    @property
    def batch_id(self) -> str | None:
        """Names the batch in the journal; None: there is none, or the node runs outside a graph or inside a call."""
        return None if self.journal is None or Inside.current() is not None else self._ledger.batch_id

    def learn(self, kept: KeptBatch | None) -> None:
        """Take note of the calls that a killed process left open in this batch."""
        for one, known in zip(self.waiting, () if kept is None else kept.outermost, strict=False):
            if any(self.journal.codec.decode(content) == _HELD for content, *_ in known.returns):
                self._stopped.append(one)

    def runtime(self, function_of: Callable[[_Message, str], Callable[..., Any]], *, is_awaited: bool) -> Runtime:
        """The runtime of the batch, in which `function_of` makes what each tool runs."""
        names = dict.fromkeys(one.call["name"] for one in self.waiting)
        functions = {name: function_of(self, name) for name in names}
        unknown = () if self.node.is_wrapped else names.keys() - self.node.tools_by_name.keys()
        return self.node._ordered.with_functions(functions, unknown=unknown, is_awaited=is_awaited)

    def started(self, index: int, input: dict[str, Any] | None = None) -> _Asked | None:
        """The call with this index in the batch; None where it waits for the answer to an earlier one's interrupt.

        Args:
            index: its place among those that run now.
            input: what it runs with, which its approval may have rewritten; None: it is not a tool of LangChain's.
        """
        one = self.waiting[index]
        if input is not None and input != one.call["args"]:
            one.call = {**one.call, "args": input}
        before = [other for other in self._stopped if other.index < one.index]
        if any(conflict(self._claims(one), self._claims(other)) for other in before):
            one.is_held = True
            self._stopped.append(one)
            return None
        return one

    def answered(self, one: _Asked, answer: Any) -> Any:
        """Take the answer of a call; gives what a journal keeps of it."""
        kept = None if self.journal is None else list(_SERDE.dumps_typed(answer))
        one.answer = answer
        return kept

    def failed(self, one: _Asked, error: Exception) -> ToolOutput:
        """Take note that the tool of a call raised; gives what a journal keeps of that.

        Raises:
            Exception: `error`, where there is no journal.
        """
        one.error = error
        asks = isinstance(error, GraphInterrupt)
        if asks:
            self._stopped.append(one)
        if self.journal is None:
            raise error
        return ToolOutput(_HELD if asks else _RAISED, error=f"{type(error).__name__}: {error}")

    def _claims(self, one: _Asked) -> tuple[Claim, ...]:
        return self.node._ordered.claims(one.call["name"], one.call["args"])

    def finish(self, outcome: BatchOutcome) -> None:
        """Take the answers of calls that the node did not run itself; what a killed process left open runs next."""
        left, held = [], []
        for one, result in zip(self.waiting, outcome.results, strict=True):
            if one.answer is not None or one.error is not None:
                continue
            if one.is_held:
                held.append(one)
            elif self.journal is not None and result.content in (_HELD, _RAISED):
                left.append(one)
            elif self.journal is not None and result.ok and one.call["name"] not in self.node._ordered.base.registry:
                one.answer = _SERDE.loads_typed(tuple(result.content))
            else:
                one.answer = message_of(attrs.evolve(result, call_id=one.call["id"]))
        self.waiting = []
        if left:
            self.waiting = sorted([*left, *held], key=lambda one: one.index)
            self._ledger.attempt += 1
            self._stopped = [one for one in self._stopped if one not in self.waiting]
            for one in held:
                one.is_held = False

    def answers(self) -> list[Any]:
        """The answers, in call order.

        Raises:
            GraphInterrupt: calls were interrupted, and none failed.
            Exception: what the first call that failed raised.
        """
        failed = [one.error for one in self._asked if one.error is not None]
        if failed:
            asked = [one for one in self._asked if isinstance(one.error, GraphInterrupt)]
            self._ledger.kept = {one.index: one.answer for one in self._asked if one.error is None and not one.is_held}
            self._ledger.save(one.index for one in asked)
            for error in failed:
                if not isinstance(error, GraphInterrupt):
                    raise error
            raise GraphInterrupt(tuple(interrupt for error in failed for interrupt in error.args[0]))
        return [one.answer for one in self._asked]


def _blocking_function(message: _Message, name: str) -> Callable[..., Any]:
    """What a tool runs in a worker thread."""
    node = message.node
    own = node._ordered.base.registry.get(name)
    if own is not None:
        return _own_function(message, own)

    def call(ctx: ToolContext, /, **input: Any) -> Any:
        one = message.started(ctx.call_index, input)
        if one is None:
            return _HELD
        with Inside(ctx, trio.from_thread.run_sync(trio.lowlevel.current_trio_token)):
            try:
                return message.answered(one, ToolNode._run_one(node, one.call, one.input_type, one.runtime))
            except Exception as error:
                return message.failed(one, error)

    return call


def _awaited_function(message: _Message, name: str) -> Callable[..., Any]:
    """What a tool runs on the event loop; in a worker thread, where LangChain would run it in one."""
    node = message.node
    tool = node.tools_by_name.get(name)
    if name in node._ordered.base.registry or (tool is not None and is_sync(tool) and not node.is_wrapped):
        return _blocking_function(message, name)

    @aio.on_loop
    async def call(ctx: ToolContext, /, **input: Any) -> Any:
        one = message.started(ctx.call_index, input)
        if one is None:
            return _HELD
        with Inside(ctx, trio.lowlevel.current_trio_token()):
            try:
                return message.answered(one, await ToolNode._arun_one(node, one.call, one.input_type, one.runtime))
            except Exception as error:
                return message.failed(one, error)

    return call


def _own_function(message: _Message, tool: Tool) -> Callable[..., Any]:
    """What a tool of the runtime's own runs."""

    def call(ctx: ToolContext, *args: Any, **input: Any) -> Any:
        return _HELD if message.started(ctx.call_index) is None else tool.function(ctx, *args, **input)

    async def acall(ctx: ToolContext, *args: Any, **input: Any) -> Any:
        return _HELD if message.started(ctx.call_index) is None else await tool.function(ctx, *args, **input)

    return acall if tool.is_async else call


def _known(message: _Message) -> KeptBatch | None:
    """What the journal has of the message's batch."""
    name = message.batch_id
    records = None if name is None else message.journal.ask_now(lambda store: store.read(name))
    return KeptBatch.read(str(name), records) if records else None


def _named(message: _Message) -> dict[str, Any]:
    """How the batch of a message is named."""
    name = message.batch_id
    return {"owner": message.thread, "batch_id": name, "resume": name is not None}


async def _run_awaited(message: _Message, runtime: Runtime) -> BatchOutcome:
    inside = Inside.current()
    if inside is None:
        return await aio.run(runtime, message.calls, **_named(message))
    return await aio.open_batch(inside.context, registry=runtime.registry).run(message.calls)


def _run_blocking(message: _Message, runtime: Runtime) -> BatchOutcome:
    inside = Inside.current()
    run = functools.partial(run_sync, runtime, message.calls, **_named(message))
    if asyncio._get_running_loop() is not None:  # it is held up already, and could not be asked to run the batch
        with ThreadPoolExecutor(1, "toolrt tool node") as own:
            return own.submit(contextvars.copy_context().run, run).result()
    if inside is None:
        return run()
    sub_batch = functools.partial(inside.context.run, message.calls, registry=runtime.registry)
    return trio.from_thread.run(sub_batch, trio_token=inside.token)
