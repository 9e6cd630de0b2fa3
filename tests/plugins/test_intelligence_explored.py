"""The laws with everything on at once: files, an index of code, and language servers that hear what lanes change."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import attrs
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests._profile import FULL

pytest.importorskip("lsprotocol", reason="the lsp extra is not installed")
pytest.importorskip("tree_sitter", reason="the code extra is not installed")

import toolrt
from tests.plugins._mixes import POLICIES, ends, require_laws
from tests.plugins.lsp._language_servers import (
    anything,
    as_calls_complete,
    asks,
    calls_of,
    edits,
    found,
    told_at_lane_ends,
    writes,
)
from toolrt import (
    READ,
    Diagnostic,
    MemoryDisk,
    Registry,
    Runtime,
    Services,
    State,
    ToolContext,
    Workspace,
    partition,
    plugins,
    sim,
)
from toolrt.invariants import patched
from toolrt.invariants.oracle import run_one_by_one
from toolrt.model import Tool
from toolrt.plugins.code import CodeIndex, _index
from toolrt.plugins.lsp import LanguageServer, LanguageServers, RecordedServer
from toolrt.testing import schedules
from toolrt.workspace import Wanted

SETTINGS = settings(max_examples=300 if FULL else 8, suppress_health_check=list(HealthCheck), derandomize=not FULL)

FILES = {
    "app.py": "from lib.util import helper\n\n\ndef main():\n    return helper(1)  # bad\n",
    "lib/__init__.py": "",
    "lib/util.py": "class Base:\n    def go(self):\n        return 1\n\n\ndef helper(n):\n    return Base().go()\n",
    "long.py": "".join(f"def number_{number}():\n    return {number:0>400}\n\n\n" for number in range(40)),
}

#: How many schedules of one mix are tried.
EXECUTIONS = 300 if FULL else 12

TEXTS = [
    "from lib.util import helper\n\n\ndef main():\n    helper(2)\n    return helper(1)\n",
    "def helper(n):\n    return n  # bad\n\n\ndef other():\n    return helper(2)\n",
    "import app\n\n\ndef again():\n    app.main()  # bad\n",
]

CHANGES = [
    *(writes(path, text) for path in ("app.py", "lib/util.py", "new.py") for text in TEXTS),
    edits("app.py", "helper(1)", "helper(3)"),
    edits("lib/util.py", "Base().go()", "helper(n)  # bad"),
    ("move_path", {"source": "lib/util.py", "target": "lib/tools.py"}),
    ("delete_path", {"path": "app.py"}),
    ("anything", {}),
]

QUESTIONS = [
    *(asks(path) for path in ("app.py", "lib/util.py", "new.py")),
    ("find_callers", {"symbol": "helper"}),
    ("blast_radius", {"path": "lib/util.py"}),
    ("search_code", {"query": "helper"}),
    ("find_references", {"name": "helper"}),
    ("list_symbols", {"path": "app.py"}),
    ("read_file", {"path": "long.py"}),
    ("look_around", {"path": "app.py"}),
]


def look_around(workspace: Workspace) -> Tool:
    """A tool of its own that asks all three services through its context."""

    def claims(input: Any, state: State) -> Sequence[toolrt.Claim]:
        whole = workspace.claims(workspace.disk.root, State(), READ, wanted=Wanted.DIRECTORY, subtree=True)
        return tuple(dict.fromkeys((*whole, *workspace.claims(input["path"], state, READ))))

    @toolrt.tool(name="look_around", safe=True, claims=claims, owner=workspace)
    async def look(ctx: ToolContext, path: str) -> Any:
        checked = await ctx.lsp.diagnostics(path, ctx.state)

        def known(connection: Any, graph: Any) -> Any:
            return {name: len(graph.tree.facts(name).calls) for name in sorted(graph.tree.files)}

        return [[finding.message for finding in checked.findings], await ctx.graph.ask(known), ctx.search is ctx.graph]

    return look


@attrs.frozen
class World:
    """A workspace, and everything that a tool may be given."""

    workspace: Workspace
    code: CodeIndex
    #: One looks at a file, the other, where it is there, at all of them.
    servers: tuple[LanguageServer, ...]

    @classmethod
    def made(cls, reads: str, answers: str) -> World:
        workspace = Workspace(MemoryDisk(FILES), skeleton=plugins.code.skeleton)

        def of_all(path: str, text: str) -> list[Diagnostic]:
            bad = sum(content.count(b"bad") for content in workspace.snapshot().values() if isinstance(content, bytes))
            return [Diagnostic(1, 1, f"{bad} times in all files")]

        options: dict[str, Any] = {"answers": answers, "seconds": 0.3}
        one = LanguageServer("one", suffixes=[".py"], reads="file", server=RecordedServer(found, **options))
        all_ = LanguageServer("all", suffixes=[".py"], server=RecordedServer(of_all, **options))
        return cls(workspace, CodeIndex(workspace), (one, all_) if reads == "workspace" else (one,))

    def given(self, lsp: LanguageServers) -> Services:
        """What its tools are given."""
        hooks = [self.code.after_lane, lsp.after_lane]
        return Services(graph=self.code, search=self.code, lsp=lsp, after_lane=hooks)

    def registry(self, lsp: LanguageServers) -> Registry:
        """All tools there are."""
        own = [anything, look_around(self.workspace)]
        return Registry([*self.workspace.tools(), *self.code.tools(), *lsp.tools(), *own])


@attrs.frozen
class Mix:
    """One batch of edits and questions."""

    calls: list[tuple[str, dict[str, Any]]]
    policy: str = "by_claims"
    limit: int = 10
    reads: str = "file"
    answers: str = "asked"
    #: Whether the index is built in the background meanwhile.
    background: bool = False

    @property
    def state(self) -> State:
        return State(context_budget=2_000)

    def oracle(self) -> dict[str, Any]:
        """What one call at a time gives; nobody hears of lanes there, so its servers are asked each time."""

        async def run() -> dict[str, Any]:
            world = World.made(self.reads, "asked")
            async with LanguageServers(world.workspace, world.servers) as lsp:
                done = await run_one_by_one(
                    calls_of(*self.calls),
                    world.registry(lsp),
                    self.state,
                    lanes=POLICIES[self.policy],
                    services=world.given(lsp),
                )
            return ends(done, world.workspace)

        execution = sim.run(run)
        assert execution.error is None, execution.error
        oracle: dict[str, Any] = execution.value
        return oracle

    def program(self, kept: list[World], cancel_at: int | None = None) -> Callable[[], Any]:
        """The batch; what it was run in is in `kept`."""

        async def run() -> Any:
            world = World.made(self.reads, self.answers)
            kept[:] = [world]
            async with LanguageServers(world.workspace, world.servers) as lsp:
                runtime = Runtime(world.registry(lsp), POLICIES[self.policy], self.limit, services=world.given(lsp))
                calls = calls_of(*self.calls)
                batch = runtime.open_batch(self.state, "mix", runtime.registry.reads_in(calls))
                async with trio.open_nursery() as nursery, batch:
                    if self.background:
                        nursery.start_soon(world.code.build)
                    if cancel_at is not None:
                        nursery.start_soon(_cancel, batch, cancel_at)
                    for call in calls:
                        batch.submit(call)
                    batch.seal()
                if cancel_at is not None:
                    await _as_from_nothing(world, lsp, runtime)
            return [result.to_json() for result in batch.outcome.results], _told(world)

        return run


async def _cancel(batch: Any, after: int) -> None:
    for _ in range(after):
        await trio.lowlevel.checkpoint()
    batch.cancel("the mix says so")


async def _as_from_nothing(world: World, lsp: LanguageServers, runtime: Runtime) -> None:
    """What index and servers now say is what new ones say of the files as they are."""
    asked = calls_of(*QUESTIONS)
    after = [result.to_json() for result in (await runtime.run(asked, State())).results]
    fresh = attrs.evolve(world, code=CodeIndex(world.workspace))
    async with LanguageServers(fresh.workspace, fresh.servers) as new:
        again = await Runtime(fresh.registry(new), services=fresh.given(new)).run(asked, State())
    assert after == [result.to_json() for result in again.results]


def _told(world: World) -> list[list[tuple[str, str | None]]]:
    return [[(path, what) for _, path, what in told_at_lane_ends(server)] for server in world.servers]


def judge(mix: Mix, choices: list[int]) -> None:
    """One execution on the twin, held against every law."""
    kept: list[World] = []
    execution = sim.run(mix.program(kept), sim.Choices(choices))
    require_laws(execution, kept[0].workspace, mix.oracle(), f"{mix!r} {choices}")


MIXES = st.builds(
    Mix,
    st.lists(st.one_of(st.sampled_from(CHANGES), st.sampled_from(QUESTIONS)), min_size=1, max_size=7),
    st.sampled_from(list(POLICIES)),
    st.sampled_from([10, 1, 2]),
    st.sampled_from(["file", "workspace"]),
    st.sampled_from(["asked", "published", "unversioned"]),
    st.booleans(),
)


@pytest.mark.seldom
@SETTINGS
@given(mix=MIXES, schedule=schedules(max_size=80))
def test_laws_hold_with_everything_on(mix: Mix, schedule: list[int]) -> None:
    """Any mix ends as the oracle, whatever the schedule, in every lane policy."""
    judge(mix, schedule)


@pytest.mark.seldom
@SETTINGS
@given(mix=MIXES, schedule=schedules(max_size=80), cancel_at=st.integers(0, 60))
def test_a_cancel_leaves_services_that_answer_as_new_ones(mix: Mix, schedule: list[int], cancel_at: int) -> None:
    """Whatever step it comes at: no ticket is left, and index and servers know the files as they are."""
    kept: list[World] = []
    execution = sim.run(mix.program(kept, cancel_at), sim.Choices(schedule))
    assert execution.error is None, (mix, execution.error)
    assert not kept[0].workspace.claim_table.busy


#: Questions that have the servers started, a lane of edits that end in another order, questions again.
MIXED = Mix(
    [
        asks("app.py"),
        ("change_dir", {"path": "."}),
        ("find_callers", {"symbol": "helper"}),
        writes("new.py", TEXTS[2]),
        edits("lib/util.py", "Base().go()", "helper(n)"),
        edits("app.py", "# bad", "# good"),
        asks("app.py"),
        ("look_around", {"path": "new.py"}),
        ("read_file", {"path": "long.py"}),
        ("move_path", {"source": "new.py", "target": "old.py"}),
        ("search_code", {"query": "helper"}),
        asks("old.py"),
    ]
)


def same_in_all(mix: Mix, variant: Callable[[], AbstractContextManager[Any]] = nullcontext) -> sim.Report:
    """Every schedule tried gives the oracle's results, and tells servers of each lane in call order."""
    check = functools.partial(held_against, mix.oracle()["results"], told_in_call_order(mix))
    with variant():
        return sim.explore(mix.program([]), strategy=sim.Random(sim.RandomWalk(seed=5), EXECUTIONS), check=check)


def told_in_call_order(mix: Mix) -> list[tuple[str, str]]:
    """What servers that run from the first lane on are told: of each lane each file once, by who changed it first."""
    world = World.made(mix.reads, mix.answers)
    kinds = {"write_file": "created", "edit_file": "modified", "move_path": "deleted"}
    told: list[tuple[str, str]] = []
    lsp = LanguageServers(world.workspace, world.servers)
    for lane in partition(calls_of(*mix.calls), world.registry(lsp), State()):
        of_lane: dict[str, str] = {}
        for call in lane.calls:
            if call.name in kinds:
                path = call.input.get("path") or call.input["source"]
                of_lane[path] = kinds[call.name]
                if "target" in call.input:
                    of_lane[call.input["target"]] = "created"
        told.extend(of_lane.items())
    return told


def held_against(expected: list[Any], told: list[tuple[str, str]], execution: sim.Execution) -> None:
    assert execution.error is None, execution.error
    results, heard = execution.value
    assert [(one["outcome"], one["content"], one["error"]) for one in results] == [
        (one["outcome"], one["content"], one["error"]) for one in expected
    ]
    assert heard == [told] * len(heard)


@pytest.mark.seldom
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("answers", ["asked", "published"])
@pytest.mark.parametrize("reads", ["file", "workspace"])
def test_answers_and_what_is_told_are_the_same_in_every_schedule(reads: str, answers: str, background: bool) -> None:
    """Results as one call at a time, and each server told of each lane in call order."""
    mix = attrs.evolve(MIXED, reads=reads, answers=answers, background=background)
    report = same_in_all(mix)
    assert report.verdict is not sim.FAIL, report.failures[0].explain()
    assert report.executions == EXECUTIONS


def _that_looks_once(check: Any) -> Any:
    """A question about a file trusts what was read of it the first time, and what lanes told."""

    async def checked(self: LanguageServers, path: str, content: bytes) -> Any:
        return await check(self, path, self.__dict__.setdefault("_first", {}).setdefault(path, content))

    return checked


def _that_trusts_its_builds(refresh: Any) -> Any:
    """The index does not look at the files again once it has."""

    async def refreshed(self: Any, told: Any = None) -> int:
        return 0 if self.age else int(await refresh(self, told))

    return refreshed


VARIANTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "services are refreshed in the order of completion": as_calls_complete,
    "a question trusts what was told": lambda: patched(LanguageServers, "check", _that_looks_once),
    "an answer from what a build happens to know": lambda: patched(
        _index.FactIndex, "refresh", _that_trusts_its_builds
    ),
}


@pytest.mark.seldom
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_variant_is_caught(variant: Callable[[], AbstractContextManager[Any]]) -> None:
    """The race that a rule removes, put back: some schedule shows it."""
    report = same_in_all(attrs.evolve(MIXED, background=True), variant)
    assert report.verdict is sim.FAIL, report
