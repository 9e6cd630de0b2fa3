"""The core alone: toolrt as it is installed with nothing but trio and attrs.

Run it, from outside the checkout, with the Python of an environment into which ``pip install toolrt`` went.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import trio

import toolrt
from toolrt import invariants, sim
from toolrt.errors import MissingExtra
from toolrt.interop import record
from toolrt.plugins import mcp
from toolrt.plugins import otel as telemetry
from toolrt.teaching import lab

#: What toolrt asks for, what that asks for in turn, and what an empty environment has.
EXPECTED = {"toolrt", "trio", "attrs", "idna", "outcome", "sniffio", "sortedcontainers", "pip", "setuptools"}
#: The same on Windows.
EXPECTED |= {"cffi", "pycparser"}
EXTRAS = ["cyclopts", "hypothesis", "jsonschema_rs", "mcp", "msgspec", "opentelemetry", "pytest", "rich"]
ROOMS = ["errors", "events", "interop", "invariants", "model", "order", "plugins", "probe", "processes", "runtime"]
ROOMS += ["playground", "services", "sim", "store", "teaching", "trace", "view", "workspace"]

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


@toolrt.tool(safe=True, schema=SCHEMA)
async def greet(ctx: toolrt.ToolContext, name: str) -> str:
    """Its schema is its own."""
    return f"hello {name}"


@toolrt.tool(schema=None)
async def count(ctx: toolrt.ToolContext, by: int = 1) -> toolrt.ToolOutput:
    """Only the names of its input are checked."""
    return toolrt.ToolOutput("ok", modifiers=[lambda state: state.set("total", state["total"] + by)])


@toolrt.tool(schema=None)
def in_a_thread(ctx: toolrt.ToolContext) -> int:
    """A sync tool."""
    return ctx.state["total"]  # type: ignore[no-any-return]


@toolrt.tool
async def derived(ctx: toolrt.ToolContext, name: str) -> str:
    """Its schema has to be derived."""
    return name


CALLS = [
    toolrt.ToolCall("a", "greet", {"name": "you"}),
    toolrt.ToolCall("b", "count", {"by": 2}),
    toolrt.ToolCall("c", "in_a_thread"),
    toolrt.ToolCall("d", "greet", {"nam": "you"}),
    toolrt.ToolCall("e", "greed", {}),
]
#: A tool of a workspace needs no extra either, and its input is checked all the same.
FILE_CALLS = [
    toolrt.ToolCall("a", "multi_edit", {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}),
    toolrt.ToolCall("b", "search", {"pattern": "tw[o]"}),
    toolrt.ToolCall("c", "multi_edit", {"path": "a.txt", "edits": [{"old": "one"}]}),
    toolrt.ToolCall("d", "read_file", {"path": 1}),
]
FILE_ANSWERS = ["ok", "ok", "invalid", "invalid"]
ANSWERS = ["ok", "ok", "ok", "invalid", "invalid"]


def refused(feature: str, extra: str, action: object) -> None:
    """`action` raises a MissingExtra that says what to install."""
    assert callable(action)
    said = ""
    try:
        action()
    except MissingExtra as error:
        said = str(error)
    assert said.endswith(f'pip install "toolrt[{extra}]"'), said or f"{feature} was not refused"
    assert feature in said, said


def main() -> None:
    """Check everything; an assertion fails where something is wrong."""
    installed = {str(each.metadata["Name"]).lower() for each in importlib.metadata.distributions()}
    assert installed <= EXPECTED, f"more than the core is installed: {sorted(installed - EXPECTED)}"
    assert not [name for name in EXTRAS if importlib.util.find_spec(name)]
    package = Path(toolrt.__file__).parent
    assert "site-packages" in package.parts, f"this is not what was installed: {package}"
    assert (package / "py.typed").exists()
    for room in ROOMS:
        importlib.import_module(f"toolrt.{room}")

    counts = telemetry.Counts()
    runtime = toolrt.Runtime(toolrt.Registry([greet, count, in_a_thread]), telemetry=telemetry.Telemetry(counts))
    state = toolrt.State({"total": 1})
    with record() as recorder:
        done = trio.run(runtime.run, CALLS, state)
    assert [result.outcome.value for result in done.results] == ANSWERS, done
    assert done.results[2].content == done.state["total"] == 3
    assert counts.count("toolrt.calls", outcome="ok") == 3
    assert invariants.check(recorder.trace()) == []

    workspace = toolrt.Workspace(toolrt.MemoryDisk({"a.txt": "one"}))
    edited = trio.run(toolrt.Runtime(toolrt.Registry(workspace.tools())).run, FILE_CALLS, state)
    assert [result.outcome.value for result in edited.results] == FILE_ANSWERS, edited
    assert edited.results[1].content == "a.txt:1: two", edited

    async def program() -> int:
        batch = await toolrt.Runtime(toolrt.Registry([greet, count])).run(CALLS[:2], state)
        total: int = batch.state["total"]
        return total

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 200), invariants_hold)
    assert report.verdict is sim.PASS, report
    assert list(report.outcomes) == [3]

    recorded = mcp.RecordedMcpServer([mcp.Offered("add", SCHEMA)], {"add": [({"name": "you"}, "hello you")]})
    assert trio.run(greeted, mcp.McpServer("x", server=recorded)) == "hello you"
    refused("MCP server 'x'", "mcp", lambda: trio.run(greeted, mcp.McpServer("x", ["x"])))
    refused("OpenTelemetry spans", "otel", telemetry.OtelSpans)
    refused("tool 'derived'", "schema", lambda: toolrt.Registry([derived]))
    refused("toolrt.testing", "testing", lambda: importlib.import_module("toolrt.testing"))
    refused("toolrt.testing", "testing", lambda: lab.SHEET["pure_counter"].grade(count))
    command = subprocess.run([sys.executable, "-m", "toolrt", "explore"], capture_output=True, text=True)
    assert command.returncode == 2, command
    assert command.stderr == 'toolrt: the command line needs the "cli" extra: pip install "toolrt[cli]"\n', command
    print(f"core alone: {len(installed - {'pip', 'setuptools'})} distributions, all as it should be")


async def greeted(server: mcp.McpServer) -> str:
    """What the tool of a server answers."""
    async with mcp.connect([server]) as tools:
        done = await toolrt.Runtime(toolrt.Registry(tools)).run([toolrt.ToolCall("a", "x__add", {"name": "you"})])
    return str(done.results[0].content)


def invariants_hold(execution: sim.Execution) -> list[invariants.Violation] | None:
    """No law is broken; nothing to say otherwise."""
    return invariants.check(execution.trace) or None


if __name__ == "__main__":
    main()
