"""The fourteen fields of a tool's context, with all extras, and with each one missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

#: The packages that an extra installs; not "search", whose program stands in no module.
EXTRAS = {
    "schema": ["msgspec", "jsonschema_rs"],
    "otel": ["opentelemetry", "mcp"],  # the SDK of MCP cannot do without it
    "code": ["tree_sitter"],
    "lsp": ["lsprotocol"],
    "mcp": ["mcp", "mcp_types"],
    "cli": ["cyclopts", "rich"],
    "testing": ["hypothesis", "pytest", "pytest_trio"],
}

#: What is refused where an extra is missing: each with the extra that its message names.
REFUSED = {
    "schema": {"schema": "schema"},
    "otel": {"spans": "otel", "metrics": "otel", "program": "mcp"},
    "code": {"index": "code"},
    "lsp": {"servers": "lsp"},
    "mcp": {"program": "mcp"},
}

#: The fields that are None then.
NONE = {"code": ("semantic", "graph"), "lsp": ("lsp",)}

PROGRAM = """
import json, os, sys
import trio
from contextlib import AsyncExitStack
import toolrt
from toolrt import FileChanged, MemoryDisk, Registry, Runtime, Services, State, ToolCall, Workspace, plugins
from toolrt.errors import MissingExtra

refused, fields = {}, {}

def tried(feature, make):
    try:
        return make()
    except MissingExtra as error:
        refused[feature] = str(error)

@toolrt.tool(schema=None)
async def look(ctx):
    ctx.telemetry.event("looked")
    ctx.emit(FileChanged("a.py"))
    fields.update(
        working_dir=ctx.state.working_dir,
        semantic=ctx.search,
        file_history=len(await ctx.history.versions("a.py")),
        graph=ctx.graph,
        ctx_budget_hint=ctx.state.context_budget,
        read_budget_tokens=ctx.read_budget,
        read_cache=str((await ctx.files.read(ctx, workspace.identify("a.py", ctx.state))).content),
        first_error_signatures=ctx.state.error_signatures,
        telemetry=ctx.telemetry is not None,
        lsp=ctx.lsp,
        event_tx=callable(ctx.emit),
        current_call_id=ctx.call_id,
        tool_registry=sorted(tool.name for tool in ctx.registry),
        file_store=ctx.files is workspace.files,
    )

def derived(ctx, key: str) -> str:
    "Its schema has to be derived."

workspace = Workspace(MemoryDisk({"a.py": "def f(): pass\\n"}), skeleton=plugins.code.skeleton)

async def main():
    counts = plugins.otel.Counts()
    spans = tried("spans", plugins.otel.OtelSpans)
    tried("metrics", plugins.otel.OtelMetrics)
    tried("schema", lambda: Registry([toolrt.tool(derived)]))
    index = tried("index", lambda: plugins.code.CodeIndex(workspace))
    double = plugins.lsp.LanguageServer("double", suffixes=[".py"], server=plugins.lsp.RecordedServer({}))
    servers = tried("servers", lambda: plugins.lsp.LanguageServers(workspace, [double]))
    offered = plugins.mcp.Offered("add", {"type": "object"})
    recorded = plugins.mcp.McpServer("sums", server=plugins.mcp.RecordedMcpServer([offered], {"add": [({}, "3")]}))
    async with AsyncExitStack() as stack:
        try:
            async with plugins.mcp.connect([plugins.mcp.McpServer("gone", ["no-such-program"])]):
                pass
        except MissingExtra as error:
            refused["program"] = str(error)
        except toolrt.errors.InputRefused:
            pass  # it was looked for
        remote = await stack.enter_async_context(plugins.mcp.connect([recorded]))
        if servers is not None:
            await stack.enter_async_context(servers)
        given = Services(search=index, graph=index, lsp=servers)
        telemetry = plugins.otel.Telemetry(*filter(None, (counts, spans)))
        runtime = Runtime(Registry([*workspace.tools(), *remote, look]), services=given, telemetry=telemetry)
        edit = {"path": "a.py", "old": "f()", "new": "g()"}
        calls = [ToolCall("1", "edit_file", edit), ToolCall("2", "look", {}), ToolCall("3", "sums__add", {})]
        done = await runtime.run(calls, State(context_budget=50_000))
    assert [(one.outcome.value, one.error) for one in done.results] == [("ok", None)] * 3, done
    fields["telemetry"] = fields["telemetry"] and counts.count("toolrt.calls")

for missing in json.loads(sys.argv[1]):  # one line for each, from a process of its own
    assert not set(missing) & sys.modules.keys()
    if os.fork() == 0:
        sys.modules.update(dict.fromkeys(missing))
        trio.run(main)
        fields.update({name: type(fields[name]).__name__ for name in ("semantic", "graph", "lsp")})
        print(json.dumps({"fields": fields, "refused": refused}, default=list), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, missing
"""


@pytest.mark.seldom
def test_fields_are_there_with_every_extra_and_a_missing_one_takes_only_what_needs_it() -> None:
    """With all extras nothing is refused, and each of the fourteen fields has its value.

    Without one the other fields are as they were; what is refused names the extra and the command that installs it.
    """
    command = [sys.executable, "-W", "error", "-c", PROGRAM, json.dumps([[], *EXTRAS.values()])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0, done.stderr
    whole, *lacking = map(json.loads, done.stdout.splitlines())
    fields = whole["fields"]
    assert whole["refused"] == {}
    assert len(fields) == 14
    assert {name for name, value in fields.items() if value == "NoneType"} == set()
    assert fields["semantic"] == fields["graph"] == "CodeIndex"
    assert fields["lsp"] == "LanguageServers"
    assert fields["file_history"] == 1
    assert fields["telemetry"] == 3
    assert fields["current_call_id"] == "2"
    assert "sums__add" in fields["tool_registry"]
    for extra, found in zip(EXTRAS, lacking, strict=True):
        assert found["fields"] == {**fields, **dict.fromkeys(NONE.get(extra, ()), "NoneType")}, extra
        assert found["refused"].keys() == REFUSED.get(extra, {}).keys(), extra
        for feature, named in REFUSED.get(extra, {}).items():
            assert found["refused"][feature].endswith(f'needs the "{named}" extra: pip install "toolrt[{named}]"')
