"""What becomes of a batch in toolrt and in frameworks installed beside it: order, edits, state, failure, cancel.

Run it as ``python tests/benchmarks/peers.py``, in an environment that has some of openai-agents, pydantic-ai-slim,
langgraph and smolagents; what is missing is skipped, and said so.  No model and no network: each framework is driven by
a model of its own interface that answers with three calls at once.  Tools wait at gates that are opened in a chosen
order, last call first unless a column says otherwise.  ``--json`` prints the rows as JSON lines.

A peer's tools are written as its documentation writes them.  toolrt's say what they touch, because that is what they
can say there: the edit claims its file, and state is changed by modifiers.  langgraph's state has a reducer for the
same reason.  toolrt has two rows: a batch that Trio awaits, and one that asyncio awaits by `toolrt.aio`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import anyio
import anyio.from_thread

sys.path.insert(0, str(Path(__file__).parents[2]))
logging.disable(logging.CRITICAL)

CALLS = 3
#: Wall seconds within which an event loop that has something to do has done it.
PATIENCE = 0.05
#: Wall seconds after which a run that nothing holds up any more is given up.
GIVEN_UP = 3.0


class World:
    """What the tools of one run do, and what was seen of them."""

    def __init__(self, fails: int | None = None) -> None:
        self.gates = [anyio.Event() for _ in range(CALLS)]
        self.fails = fails
        self.started: list[int] = []
        self.ended: list[int] = []
        self.file = "old"
        self.shared: int | None = None
        self.over = anyio.Event()
        self.late: list[int] = []

    async def work(self, number: int) -> str:
        """Wait at the gate."""
        self.started.append(number)
        if number == self.fails:
            raise RuntimeError("on purpose")
        await self.gates[number].wait()
        self.ended.append(number)
        if self.over.is_set():
            self.late.append(number)
        return f"result {number}"

    async def edit(self, number: int) -> str:
        """Read the file, wait at the gate, write it: what an edit that is not protected does."""
        text = self.file
        await self.work(number)
        self.file = f"{text}+{number}"
        return f"result {number}"

    async def put(self, number: int) -> str:
        """Write to what the calls share, in place."""
        await self.work(number)
        self.shared = number
        return f"result {number}"


Tool = Callable[[int], Awaitable[str]]
#: Runs one batch of `CALLS` calls: the tool, the world, whether the tool writes to shared state by the framework's own
#: means; gives the numbers of the results as the model is shown them, and the shared state if the framework holds it.
Engine = Callable[[Tool, World, bool], Awaitable[tuple[list[Any], Any]]]


def _id(number: int) -> str:
    """A call's id; as text, they are in another order than as numbers."""
    return f"call_{9 + number}"


def _numbers(pairs: Sequence[tuple[str, Any]]) -> list[Any]:
    """Which call each result is of, by its id; one that is no result of it is its text."""
    found: list[Any] = []
    for call_id, text in pairs:
        number = int(call_id.removeprefix("call_")) - 9
        found.append(number if f"result {number}" in str(text) else f"{number} (error)")
    return found


async def openai_agents(tool: Tool, world: World, puts: bool) -> tuple[list[Any], Any]:
    """Runner.run with a Model."""
    from agents import Agent, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
    from agents.models.interface import Model
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)
    shown: list[tuple[str, Any]] = []

    class Fake(Model):
        asked = 0

        async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> Any:
            self.asked += 1
            if self.asked == 1:
                calls = [
                    ResponseFunctionToolCall(
                        call_id=_id(number), name="probe", arguments=f'{{"n": {number}}}', type="function_call"
                    )
                    for number in range(CALLS)
                ]
                return ModelResponse(output=[*calls], usage=Usage(), response_id=None)
            shown.extend(
                (item["call_id"], item["output"]) for item in input if item.get("type") == "function_call_output"
            )
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **options: Any) -> Any:
            raise NotImplementedError

    async def probe(n: int) -> str:
        return await tool(n)

    probe.__annotations__ = {"n": int, "return": str}
    agent = Agent(name="a", tools=[function_tool(probe)], model=Fake())
    await Runner.run(agent, "go")
    return _numbers(shown), None


async def pydantic_ai(tool: Tool, world: World, puts: bool) -> tuple[list[Any], Any]:
    """Agent.run with a FunctionModel."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    shown: list[tuple[str, Any]] = []

    def answer(messages: Any, info: Any) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(
                [ToolCallPart("probe", {"n": number}, tool_call_id=_id(number)) for number in range(CALLS)]
            )
        parts = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        shown.extend((part.tool_call_id, part.content) for part in parts)
        return ModelResponse([TextPart("done")])

    agent = Agent(FunctionModel(answer))

    @agent.tool_plain
    async def probe(n: int) -> str:
        return await tool(n)

    await agent.run("go")
    return _numbers(shown), None


async def langgraph(tool: Tool, world: World, puts: bool) -> tuple[list[Any], Any]:
    """A graph of one ToolNode."""
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.tools import InjectedToolCallId, StructuredTool
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode
    from langgraph.types import Command

    class Shared(MessagesState):
        k: Annotated[Any, lambda old, new: new]

    # Their types are read at run time, where names of this function would not be found.
    async def plain(n: int) -> str:
        return await tool(n)

    async def putting(n: int, tool_call_id: str) -> Any:
        text = await tool(n)
        return Command(update={"k": n, "messages": [ToolMessage(text, tool_call_id=tool_call_id)]})

    plain.__annotations__ = {"n": int, "return": str}
    putting.__annotations__ = {"n": int, "tool_call_id": Annotated[str, InjectedToolCallId], "return": Any}
    probe = StructuredTool.from_function(coroutine=putting if puts else plain, name="probe", description="probe")
    graph = StateGraph(Shared)
    graph.add_node("tools", ToolNode([probe]))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    calls = [{"name": "probe", "args": {"n": number}, "id": _id(number)} for number in range(CALLS)]
    left = await graph.compile().ainvoke({"messages": [AIMessage("", tool_calls=calls)], "k": None})
    shown = [(one.tool_call_id, one.content) for one in left["messages"] if isinstance(one, ToolMessage)]
    return _numbers(shown), left["k"]


async def smolagents(tool: Tool, world: World, puts: bool) -> tuple[list[Any], Any]:
    """ToolCallingAgent.run, in a thread, its tools in threads of theirs."""
    import smolagents as library
    from smolagents.models import (
        ChatMessage,
        ChatMessageToolCall,
        ChatMessageToolCallFunction,
        MessageRole,
        Model,
    )

    class Fake(Model):
        asked = 0

        def generate(self, messages: Any, **options: Any) -> Any:
            self.asked += 1
            wanted = [("probe", {"n": number}) for number in range(CALLS)]
            wanted = wanted if self.asked == 1 else [("final_answer", {"answer": "done"})]
            calls = [
                ChatMessageToolCall(
                    id=_id(number),
                    type="function",
                    function=ChatMessageToolCallFunction(name=name, arguments=arguments),
                )
                for number, (name, arguments) in enumerate(wanted)
            ]
            return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)

    async with anyio.from_thread.BlockingPortal() as portal:

        class Probe(library.Tool):
            name = "probe"
            description = "probe"
            inputs = {"n": {"type": "integer", "description": "n"}}  # noqa: RUF012  the library's own form
            output_type = "string"

            def forward(self, n: int) -> str:
                return portal.call(tool, n)

        agent = library.ToolCallingAgent(tools=[Probe()], model=Fake(), verbosity_level=library.LogLevel.OFF)
        await anyio.to_thread.run_sync(lambda: agent.run("go", max_steps=2), abandon_on_cancel=True)
        step = next(step for step in agent.memory.steps if getattr(step, "tool_calls", None))
        lines = [line for line in str(step.observations or "").splitlines() if line.startswith("result ")]
        return [int(line.removeprefix("result ")) for line in lines], None


async def toolrt(tool: Tool, world: World, puts: bool) -> tuple[list[Any], Any]:
    """Runtime.run, awaited in Trio."""
    import toolrt as library

    runtime, calls = _of_toolrt(tool, puts, library.tool)
    return _answers(await runtime.run(calls, library.State({"k": None})))


async def toolrt_aio(tool: Tool, world: World, puts: bool) -> tuple[list[Any], Any]:
    """The same runtime, awaited in asyncio, with tools that await asyncio."""
    import toolrt as library
    from toolrt import aio

    runtime, calls = _of_toolrt(tool, puts, aio.tool)
    return _answers(await aio.run(runtime, calls, library.State({"k": None})))


def _of_toolrt(tool: Tool, puts: bool, decorator: Any) -> tuple[Any, list[Any]]:
    """A runtime with one tool, and the calls of it."""
    import toolrt as library

    edits = getattr(tool, "__name__", "") == "edit"
    options: dict[str, Any] = {"safe": True}
    if edits:
        options = {"claims": lambda input, state: [library.Claim(("file", "f"), library.WRITE)]}

    @decorator(schema=None, **options)
    async def probe(ctx: Any, n: int) -> Any:
        text = await tool(n)
        return library.ToolOutput(text, modifiers=[lambda state: state.set("k", n)]) if puts else text

    calls = [library.ToolCall(_id(number), "probe", {"n": number}) for number in range(CALLS)]
    return library.Runtime(library.Registry([probe])), calls


def _answers(done: Any) -> tuple[list[Any], Any]:
    return _numbers([(result.call_id, result.content) for result in done.results]), done.state["k"]


#: Each engine, with the package that it needs and the loop that it runs on.
ENGINES: dict[str, tuple[Engine, str | None, str]] = {
    "toolrt": (toolrt, None, "trio"),
    "toolrt in asyncio": (toolrt_aio, None, "asyncio"),
    "langgraph ToolNode": (langgraph, "langgraph", "asyncio"),
    "openai-agents": (openai_agents, "openai-agents", "asyncio"),
    "pydantic-ai": (pydantic_ai, "pydantic-ai-slim", "asyncio"),
    "smolagents": (smolagents, "smolagents", "asyncio"),
}


async def _settled(world: World) -> None:
    """Wait until no further tool has started for a while."""
    seen = -1
    while seen < len(world.started):
        seen = len(world.started)
        await anyio.sleep(PATIENCE)


async def _run(
    engine: Engine, name: str, opened: Sequence[int], fails: int | None = None, cancels: bool = False
) -> tuple[World, Any]:
    """One batch; the gates are opened one after the other, and what came of it is a pair, an error, or None."""
    world = World(fails)
    answer: Any = None

    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        async def drive() -> None:
            nonlocal answer
            with scope:
                try:
                    puts = name == "put" and engine in (toolrt, toolrt_aio, langgraph)
                    answer = await engine(getattr(world, name), world, puts)
                except Exception as error:
                    answer = error
            world.over.set()

        group.start_soon(drive)
        await _settled(world)
        if cancels:
            world.gates[0].set()
            await _settled(world)
            scope.cancel()
            await anyio.sleep(PATIENCE)
        for number in opened:
            world.gates[number].set()
            await _settled(world)
        with anyio.move_on_after(GIVEN_UP):
            await world.over.wait()
        group.cancel_scope.cancel()
    return world, answer


def _order(answer: Any) -> str:
    return ",".join(map(str, answer[0])) or "nothing" if isinstance(answer, tuple) else type(answer).__name__


async def measured(engine: Engine) -> dict[str, str]:
    """One row."""
    backwards = list(range(CALLS))[::-1]
    row: dict[str, str] = {}
    _, answer = await _run(engine, "work", backwards)
    row["results"] = _order(answer)
    world, _ = await _run(engine, "edit", backwards)
    kept = [number for number in range(CALLS) if f"+{number}" in world.file]
    row["edits"] = "all kept" if len(kept) == CALLS else f"{CALLS - len(kept)} of {CALLS} lost"
    if len(kept) == CALLS and world.file != "old+0+1+2":
        row["edits"] += ", out of order"
    states = []
    for opened in (backwards[::-1], backwards):
        world, answer = await _run(engine, "put", opened)
        states.append(answer[1] if isinstance(answer, tuple) and answer[1] is not None else world.shared)
    row["state"] = f"{states[0]} and {states[1]}"
    world, answer = await _run(engine, "work", backwards, fails=0)
    delivered = f"delivered {_order(answer)}" if isinstance(answer, tuple) else f"raises {type(answer).__name__}"
    row["failure"] = delivered + (f", {sorted(world.late)} run on" if world.late else "")
    if engine is smolagents:
        row["cancel"] = "has no async run"
    else:
        world, _ = await _run(engine, "work", backwards, cancels=True)
        row["cancel"] = f"{sorted(world.late)} run on" if world.late else "nothing runs on"
    return row


def rows(wanted: str = "") -> Iterator[dict[str, str]]:
    """One row for each engine whose name has `wanted` in it: what was seen, or why it was not looked at."""
    for name, (engine, package, backend) in ENGINES.items():
        if wanted not in name:
            continue
        try:
            version = importlib.metadata.version(package) if package else "checkout"
        except importlib.metadata.PackageNotFoundError:
            yield {"engine": name, "skipped": f"{package} is not installed"}
            continue
        yield {"engine": name, "version": version, **anyio.run(measured, engine, backend=backend)}


HEAD = {
    "engine": "engine",
    "version": "version",
    "results": "results, calls ending 2, 1, 0",
    "edits": "three edits of one file",
    "state": "last writer, calls ending 0, 1, 2 and 2, 1, 0",
    "failure": "call 0 raises",
    "cancel": "cancelled from outside",
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="toolrt beside other frameworks")
    parser.add_argument("--json", action="store_true", help="JSON lines")
    parser.add_argument("name", nargs="?", default="", help="only engines with this in their names")
    arguments = parser.parse_args()
    as_json = arguments.json
    found = []
    if not as_json:
        print("| " + " | ".join(HEAD.values()) + " |")
        print("|" + "---|" * len(HEAD))
    for row in rows(arguments.name):
        found.append(row)
        if as_json:
            print(json.dumps(row))
        elif "skipped" in row:
            print(f"| {row['engine']} | skipped: {row['skipped']} |" + " |" * (len(HEAD) - 2))
        else:
            print("| " + " | ".join(row[key] for key in HEAD) + " |")
    if not arguments.name and all("skipped" in row for row in found[2:]):
        print("no other framework is installed here", file=sys.stderr)


if __name__ == "__main__":
    main()
