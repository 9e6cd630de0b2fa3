"""A batch that uses all that a tool is given at once: on a copy of this checkout, and the same explored on the twin."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

import toolrt
from tests._profile import FULL
from toolrt import (
    READ,
    LaneChanges,
    MemoryDisk,
    OutputChunk,
    Registry,
    Runtime,
    Services,
    State,
    Tool,
    ToolCall,
    ToolContext,
    ToolOutput,
    Workspace,
    plugins,
    services,
    sim,
)
from toolrt.invariants import require
from toolrt.plugins import mcp
from toolrt.plugins.otel import Telemetry
from toolrt.services import Recorded, RecordedShell
from toolrt.trace import Trace

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]

#: What is copied of the checkout: a page, and a package with its neighbours.
COPIED = ("pyproject.toml", "docs/explanation", "toolrt/model")


class Index:
    """Stands for search and graph: the words of each file that a lane has changed, and when it heard."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.words: dict[str, int] = {}
        self.heard: list[Any] = []

    async def refresh(self, changes: LaneChanges) -> None:
        self.heard.append((changes.lane, changes.paths, changes.unknown))
        await trio.lowlevel.checkpoint()
        for path in changes.paths:
            content = self._workspace.snapshot().get(path)
            self.words[path] = len(content.split()) if isinstance(content, bytes) else 0


def survey_of(workspace: Workspace) -> Tool:
    """A tool that uses every field of its context."""

    @toolrt.tool(safe=True, claims=lambda input, state: workspace.claims(input["path"], state, READ), owner=workspace)
    async def survey(ctx: ToolContext, path: str) -> Any:
        ctx.progress("looking")
        with ctx.telemetry.span("survey", {"calls": ctx.call_index}):
            found = await ctx.files.read(ctx, workspace.identify(path, ctx.state))
            ctx.telemetry.event("read", {"size": len(found.content)})
        ctx.emit(OutputChunk(0, "read"))
        versions = await ctx.history.versions(path, ctx.state)
        apart = copy.copy(ctx).isolate(working_dir="docs", context_budget=20_000)
        seen = {
            "identity": [ctx.batch_id, ctx.call_index, ctx.call_id, list(ctx.origin)],
            "size": len(found.content),
            "versions": [version.call_index for version in versions],
            "claims": len(ctx.claims),
            "alone": ctx.alone,
            "working_dir": str(ctx.state.working_dir),
            "budgets": [ctx.read_budget, apart.read_budget],
            "errors": len(ctx.state.error_signatures),
            "hints": len(ctx.state.hints),
            "tools": "survey" in ctx.registry,
            "search": sorted(ctx.search.words.items()),
            "graph": len(ctx.graph.heard),
            "lsp": ctx.lsp,
        }
        return ToolOutput(seen, modifiers=[lambda state: state.set("surveyed", state.get("surveyed", 0) + 1)])

    return survey


PARTS = [
    {"path": "toolrt/model/_update.py", "edits": [{"old": "A call says what it is doing.", "new": "A call tells."}]},
    {"path": "toolrt/model/_services.py", "edits": [{"old": "The telemetry that does nothing.", "new": "Silence."}]},
    {"path": "toolrt/model/_claim.py", "edits": [{"old": "no such text is there", "new": "x"}]},
]

#: All kinds of calls that there are, twice a survey of the same file.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "toolrt/model/_tool.py"}),
    ("survey", {"path": "toolrt/model/_call.py"}),
    ("edit_file", {"path": "toolrt/model/_call.py", "old": "ToolCall", "new": "Call", "all": True}),
    ("sums__add", {"a": 2, "b": 3}),
    ("parallel_edit_files", {"parts": PARTS}),
    ("run_command", {"command": "cat docs/missing.md"}),
    ("run_command", {"command": "cat docs/gone.md"}),
    ("run_command", {"command": "cd docs/explanation && wc -l < rules-copy.md; echo counted as they are"}),
    ("write_file", {"path": "new/page.md", "content": "# New\n"}),
    ("survey", {"path": "/toolrt/model/_call.py"}),
    ("change_dir", {"path": "new"}),
    ("read_file", {"path": "page.md"}),
    ("survey", {"path": "page.md"}),
]

#: What the commands write, as a shell does it; the test on the real checkout holds this against one.
RECORD = {
    "cat docs/missing.md": Recorded("cat: docs/missing.md: No such file or directory\n", status=1, seconds=0.3),
    "cat docs/gone.md": Recorded("cat: docs/gone.md: No such file or directory\n", status=1, seconds=0.1),
    "wc -l < rules-copy.md; echo counted as they are": Recorded("3\ncounted as they are\n", seconds=0.1),
}


@attrs.frozen
class Ending:
    """What came of it."""

    results: tuple[Any, ...]
    state: State
    files: dict[str, Any]
    heard: tuple[Any, ...]
    #: What a copy of the workspace's own undo left, compared with what there was before.
    undone: bool


async def run(workspace: Workspace, shell: Tool, servers: Sequence[Any], telemetry: Any, kept: list[Any]) -> Ending:
    """The batch, with every service that there is, read while it runs."""
    index = Index(workspace)
    before = workspace.snapshot()
    given = Services(search=index, graph=index, after_lane=[index.refresh])
    async with mcp.connect(servers, owner=workspace) as tools:
        own = [survey_of(workspace), services.parallel_edit_tool(workspace), shell]
        runtime = Runtime(Registry([*workspace.tools(), *own, *tools]), services=given, telemetry=telemetry)
        calls = [ToolCall(f"id{number}", name, _rooted(input, workspace)) for number, (name, input) in enumerate(CALLS)]
        state = State(context_budget=10_000)
        async with runtime.open_batch(state, "all", runtime.registry.reads_in(calls), events=True) as batch:
            for call in calls:
                batch.submit(call)
            batch.seal()
            kept.extend([update async for update in batch])
    files = workspace.snapshot()
    await workspace.history.undo("all")
    results = tuple((one.name, one.outcome.value, one.content, one.error) for one in batch.outcome.results)
    undone = workspace.snapshot() == before
    return Ending(results, batch.outcome.state, files, tuple(index.heard), undone)


def _rooted(input: dict[str, Any], workspace: Workspace) -> dict[str, Any]:
    """A path that begins with a slash is below the workspace's root."""
    return {
        name: f"{workspace.disk.root.rstrip('/')}{value}" if isinstance(value, str) and value[:1] == "/" else value
        for name, value in input.items()
    }


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a part of this checkout."""
    copied = tmp_path_factory.mktemp("checkout").resolve() / "work"
    copied.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copied / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copied / name)
    (copied / "docs/explanation/rules-copy.md").write_text("one\ntwo\nthree\n")
    return copied


def twin_program(checkout: Path) -> Callable[[], Any]:
    """The same on a copy in memory, with the doubles that stand for processes."""
    disk = MemoryDisk.copy_of(checkout)
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    }

    async def program() -> Ending:
        workspace = Workspace(disk.copy(), skeleton=plugins.code.skeleton)
        shell = services.shell_tool(workspace, shell=RecordedShell(RECORD))
        offered = mcp.Offered("add", schema, "The sum.", mcp.Hints(read_only=True))
        record = mcp.RecordedMcpServer([offered], {"add": lambda given: str(given["a"] + given["b"])})
        server = mcp.McpServer("sums", server=record, trusted=True)
        return await run(workspace, shell, [server], Telemetry(), [])

    return program


@pytest.mark.seldom
def test_every_field_at_once_ends_the_same_under_every_schedule(checkout: Path) -> None:
    """One ending, all laws, nothing left; and it is the one that the fields' rules say."""
    program = twin_program(checkout)
    wanted = sim.run(program)
    assert wanted.error is None, wanted.error

    def check(execution: sim.Execution) -> list[Any]:
        assert execution.error is None, execution.error
        assert execution.value == wanted.value
        require(execution.trace)
        return []

    report = sim.explore(program, sim.Portfolio(30 if FULL else 12), check)
    assert report.verdict is sim.PASS, report
    _expected(wanted.value)


def _expected(ending: Ending) -> None:
    """What the rules say of the batch."""
    names = [name for name, *_ in ending.results]
    outcomes = [outcome for _, outcome, *_ in ending.results]
    contents = [content for _, _, content, _ in ending.results]
    assert outcomes == ["ok"] * len(CALLS), list(zip(names, ending.results, strict=True))
    assert "this read may answer 2000" in contents[0]
    first, second, third = (contents[place] for place in (1, 9, 12))
    assert first["identity"] == ["all", 1, "id1", ["all", 1, "id1"]]
    assert first["budgets"] == [2000, 4000]
    assert (first["versions"], second["versions"], third["versions"]) == ([], [2], [8])
    assert (first["errors"], second["errors"], second["hints"]) == (0, 1, 1)
    assert (first["working_dir"], second["working_dir"], third["working_dir"]) == (
        "None",
        "docs/explanation",
        "docs/explanation/new",
    )
    assert "3\ncounted as they are\n[exit status 0; working directory docs/explanation; " in contents[7]
    assert contents[11] == "# New\n"
    assert [part["outcome"] for part in contents[4]["parts"]] == ["ok", "ok", "error"]
    assert ending.state["surveyed"] == 3
    assert ending.state.error_signatures == ("cat: docs/missing.md: No such file or directory",)
    assert dict(third["search"]).keys() >= {"toolrt/model/_call.py", "toolrt/model/_update.py"}
    assert ending.heard[0][1][0] == "toolrt/model/_call.py"
    assert ending.undone


@pytest.mark.seldom
@pytest.mark.skipif(shutil.which("bash") is None or os.name != "posix", reason="there is no bash to run")
def test_every_field_at_once_on_the_real_checkout(checkout: Path, tmp_path: Path) -> None:
    """Real files, real commands and a real MCP server give what the twin gave; telemetry and trace are whole."""
    pytest.importorskip("mcp", reason="the mcp extra is not installed")
    root = tmp_path.resolve() / "work"
    shutil.copytree(checkout, root)
    server = mcp.McpServer(
        "sums",
        [sys.executable, str(ROOT / "tests/plugins/mcp/servers/proper.py")],
        only=["add"],
        trusted=True,
    )
    workspace = Workspace(root, skeleton=plugins.code.skeleton)
    updates: list[Any] = []
    with toolrt.record() as recorder:
        ending = trio.run(run, workspace, services.shell_tool(workspace), [server], Telemetry(), updates)
    require(recorder.trace())
    _expected(ending)
    twin = sim.run(twin_program(checkout)).value
    assert ending.results == twin.results
    assert (ending.files, ending.state, ending.heard) == (twin.files, twin.state, twin.heard)


@pytest.mark.seldom
@pytest.mark.skipif(shutil.which("bash") is None or os.name != "posix", reason="there is no bash to run")
def test_every_option_of_toolrt_run_at_once(checkout: Path, tmp_path: Path) -> None:
    """The command line gives the same answers for the calls whose tools it has, and writes trace and telemetry.

    Code tools and a language server look at what the calls before them have left.
    """
    pytest.importorskip("mcp", reason="the mcp extra is not installed")
    pytest.importorskip("tree_sitter", reason="the code extra is not installed")
    pytest.importorskip("lsprotocol", reason="the lsp extra is not installed")
    root = tmp_path.resolve() / "work"
    shutil.copytree(checkout, root)
    looking = [
        ("list_symbols", {"path": f"{root}/toolrt/model/_call.py"}),
        ("find_references", {"name": "Call", "path": f"{root}/toolrt/model/_call.py"}),
        ("diagnostics", {"path": f"{root}/toolrt/model/_call.py"}),
    ]
    known = [call for call in CALLS if call[0] != "survey"] + looking
    response = tmp_path / "calls.json"
    response.write_text(json.dumps([{"name": name, "input": input} for name, input in known]))
    server = f"sums={sys.executable} {ROOT / 'tests/plugins/mcp/servers/proper.py'}"
    options = ["--shell", "--context-budget", "10000", "--mcp", server, "--mcp-trust", "sums", "--format", "json"]
    options += ["--code", "--lsp", "ruff"]
    files = ["--trace", str(tmp_path / "trace.json"), "--telemetry", str(tmp_path / "told.jsonl")]
    command = [sys.executable, "-m", "toolrt", "run", str(response), "--workspace", str(root), *options, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    twin = sim.run(twin_program(checkout)).value
    wanted = [one for one in twin.results if one[0] != "survey"]
    answers = json.loads(done.stdout)
    found = [(one["name"], one["outcome"], one["content"], one["error"]) for one in answers]
    assert found[: len(wanted)] == wanted
    assert [(name, outcome) for name, outcome, *_ in found[len(wanted) :]] == [(name, "ok") for name, _ in looking]
    symbols, references, findings = (content for _, _, content, _ in found[len(wanted) :])
    assert "class Call" in symbols
    assert "class ToolCall" not in symbols
    assert "class Call" in references
    assert "toolrt/model/_call.py" in findings
    require(Trace.from_json((tmp_path / "trace.json").read_text()))
    assert (tmp_path / "told.jsonl").read_text().count("call.settled") >= 1
