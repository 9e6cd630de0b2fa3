"""The laws with code intelligence on: mixes of edits and questions on the twin, under any schedule."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import Any

import attrs
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests._profile import FULL
from tests.plugins._mixes import POLICIES, ends, require_laws
from toolrt import Registry, Runtime, State, ToolCall, plugins, sim
from toolrt.invariants.oracle import run_one_by_one
from toolrt.model import Services, Tool
from toolrt.plugins.code import _index
from toolrt.testing import schedules
from toolrt.workspace import MemoryDisk, Workspace

SETTINGS = settings(max_examples=500 if FULL else 15, suppress_health_check=list(HealthCheck), derandomize=not FULL)

FILES = {
    "app.py": "from lib.util import helper\n\n\ndef main():\n    return helper(1)\n",
    "lib/__init__.py": "",
    "lib/util.py": "class Base:\n    def go(self):\n        return 1\n\n\ndef helper(n):\n    return Base().go()\n",
    "note.md": "# Helper\n\nWhat helper does.\n",
}

TEXTS = [
    "from lib.util import helper\n\n\ndef main():\n    helper(2)\n    return helper(1)\n",
    "def helper(n):\n    return n\n\n\ndef other():\n    return helper(2)\n",
    "import app\n\n\ndef again():\n    app.main()\n",
    "from lib.util import Base\n\n\nclass Heir(Base):\n    def go(self):\n        return super().go()\n",
    "def helper(:\n",
]

CHANGES: list[tuple[str, dict[str, Any]]] = [
    *(
        ("write_file", {"path": path, "content": text})
        for path in ("app.py", "lib/util.py", "new.py", "lib/late.py")
        for text in TEXTS
    ),
    ("edit_file", {"path": "app.py", "old": "helper(1)", "new": "helper(3)"}),
    ("edit_file", {"path": "lib/util.py", "old": "Base().go()", "new": "helper(n)"}),
    ("move_path", {"source": "lib/util.py", "target": "lib/tools.py"}),
    ("delete_path", {"path": "app.py"}),
    ("write_file", {"path": ".gitignore", "content": "lib/\n"}),
]

QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("find_callers", {"symbol": "helper"}),
    ("find_callees", {"symbol": "main"}),
    ("find_call_path", {"source": "main", "target": "Base.go"}),
    ("file_dependencies", {"path": "lib/util.py"}),
    ("blast_radius", {"symbol": "Base"}),
    ("blast_radius", {"path": "lib/util.py", "depth": 2}),
    ("search_code", {"query": "helper"}),
    ("find_references", {"name": "helper"}),
    ("list_symbols", {"path": "app.py"}),
    ("read_symbol", {"symbol": "helper"}),
]


@attrs.frozen
class CodeMix:
    """One batch of edits and questions."""

    calls: list[tuple[str, dict[str, Any]]]
    policy: str = "by_claims"
    limit: int = 10
    #: Whether a build runs in the background, and whether the index is refreshed after each lane.
    background: bool = False
    after_lane: bool = False

    def batch(self) -> list[ToolCall]:
        return [ToolCall(f"id{index}", name, input) for index, (name, input) in enumerate(self.calls)]

    def oracle(self) -> dict[str, Any]:
        """What one call at a time gives."""

        async def run() -> dict[str, Any]:
            workspace, code = world()
            tools = Registry([*workspace.tools(), *code.tools()])
            done = await run_one_by_one(self.batch(), tools, State(), lanes=POLICIES[self.policy])
            return ends(done, workspace)

        execution = sim.run(run)
        assert execution.error is None, execution.error
        return execution.value

    def program(self, keep: list[Any], make: Any = None) -> Any:
        async def run() -> Any:
            workspace, code = world()
            tools = code.tools() if make is None else make(code)
            after = (code.after_lane,) if self.after_lane else ()
            runtime = Runtime(
                Registry([*workspace.tools(), *tools]),
                POLICIES[self.policy],
                self.limit,
                services=Services(after_lane=after),
            )
            keep[:] = [workspace]
            async with trio.open_nursery() as nursery:
                if self.background:
                    nursery.start_soon(code.build)
                done = await runtime.run(self.batch(), State())
            return [result.to_json() for result in done.results]

        return run


def world() -> tuple[Workspace, plugins.code.CodeIndex]:
    workspace = Workspace(MemoryDisk(FILES))
    return workspace, plugins.code.CodeIndex(workspace)


def judge(mix: CodeMix, choices: list[int]) -> None:
    """One execution on the twin, held against every law."""
    kept: list[Any] = []
    execution = sim.run(mix.program(kept), sim.Choices(choices))
    require_laws(execution, kept[0], mix.oracle(), f"{mix!r} {choices}")


MIXES = st.builds(
    CodeMix,
    st.lists(st.one_of(st.sampled_from(CHANGES), st.sampled_from(QUESTIONS)), min_size=1, max_size=6),
    st.sampled_from(list(POLICIES)),
    st.sampled_from([10, 1, 2]),
    st.booleans(),
    st.booleans(),
)


@pytest.mark.seldom
@SETTINGS
@given(mix=MIXES, schedule=schedules(max_size=60))
def test_laws_hold_for_edits_and_questions(mix: CodeMix, schedule: list[int]) -> None:
    """Any mix ends as the oracle: no answer depends on timing, nor on a build in the background."""
    judge(mix, schedule)


@pytest.mark.seldom
@SETTINGS
@given(mix=MIXES, schedule=schedules(max_size=60), cancel_at=st.integers(0, 40))
def test_a_cancel_leaves_an_index_that_answers(mix: CodeMix, schedule: list[int], cancel_at: int) -> None:
    """Whatever step it comes at: no ticket is left, and what is known is what a fresh build knows."""
    kept: list[Any] = []

    async def program() -> None:
        workspace, code = world()
        kept[:] = [workspace, code]
        runtime = Runtime(Registry([*workspace.tools(), *code.tools()]), POLICIES[mix.policy], mix.limit)
        batch = runtime.open_batch(State(), batch_id="mix")

        async def cancel() -> None:
            for _ in range(cancel_at):
                await trio.lowlevel.checkpoint()
            batch.cancel("the mix says so")

        async with trio.open_nursery() as nursery, batch:
            nursery.start_soon(cancel)
            for call in mix.batch():
                batch.submit(call)
            batch.seal()
            async for _ in batch:
                pass
            nursery.cancel_scope.cancel()

    execution = sim.run(program, sim.Choices(schedule))
    assert execution.error is None, (mix, execution.error)
    workspace, code = kept
    assert not workspace.claim_table.busy
    fresh = plugins.code.CodeIndex(workspace)
    assert run_of(QUESTIONS, workspace, code) == run_of(QUESTIONS, workspace, fresh)


MIXED = CodeMix(
    [
        ("find_callers", {"symbol": "helper"}),
        ("write_file", {"path": "new.py", "content": TEXTS[1]}),
        ("edit_file", {"path": "app.py", "old": "helper(1)", "new": "helper(3)"}),
        ("find_references", {"name": "helper"}),
        ("search_code", {"query": "helper"}),
        ("write_file", {"path": "lib/util.py", "content": TEXTS[1]}),
        ("find_callers", {"symbol": "helper", "path": "lib/util.py"}),
    ],
)


#: How many schedules of one mix are tried.
EXECUTIONS = 150 if FULL else 50


def same_in_all(mix: CodeMix, make: Any = None, executions: int = EXECUTIONS) -> sim.Report:
    strategy = sim.Random(sim.RandomWalk(seed=5), executions)
    return sim.explore(mix.program([], make), strategy=strategy, check=functools.partial(held_against, mix.oracle()))


def held_against(oracle: dict[str, Any], execution: sim.Execution) -> None:
    assert execution.error is None, execution.error
    told, expected = execution.value, oracle["results"]
    assert [(one["outcome"], one["content"], one["error"]) for one in told] == [
        (one["outcome"], one["content"], one["error"]) for one in expected
    ]


@pytest.mark.seldom
@pytest.mark.parametrize("background", [False, True])
def test_answers_between_edits_are_those_of_the_oracle(background):
    """Each question sees exactly the edits before it, in every schedule tried."""
    report = same_in_all(attrs.evolve(MIXED, background=background))
    assert report.verdict is not sim.FAIL, report.failures[0].explain()
    assert report.executions == EXECUTIONS


def test_questions_alone_have_one_outcome_in_every_schedule():
    """All traces of two questions and an edit, by DPOR."""
    mix = CodeMix([MIXED.calls[0], ("write_file", {"path": "app.py", "content": TEXTS[0]}), MIXED.calls[0]])
    report = sim.explore(mix.program([]), strategy=sim.DPOR(), check=functools.partial(held_against, mix.oracle()))
    assert report.verdict is sim.PASS, report


def without_claims(code: plugins.code.CodeIndex) -> list[Tool]:
    """The mutant: a question is ordered with nothing, and answers as the index is just then."""
    return [attrs.evolve(one, claims=(), schema=one.schema) for one in code.tools()]


def require_another_answer(report: sim.Report) -> None:
    """It fails because an answer is another one, not because a call no longer works."""
    assert report.verdict is sim.FAIL
    answers = report.failures[0].execution.value
    assert {one["error"].partition(":")[0] for one in answers if one["outcome"] != "ok"} <= {"FileProblem"}


@pytest.mark.seldom
def test_mutant_a_question_without_claims_is_caught():
    """Law 7: it sees edits in the order in which they complete."""
    require_another_answer(same_in_all(MIXED, without_claims))


@pytest.mark.seldom
def test_mutant_an_answer_from_what_a_build_happens_to_know_is_caught(monkeypatch):
    """Law 7: a question that does not look at the files again, and a build in the background that claims nothing."""

    async def from_what_is_known(self: Any, told: Any = None) -> int:
        return 0 if self.age else await refresh(self, told)

    refresh = _index.FactIndex.refresh
    monkeypatch.setattr(_index.FactIndex, "refresh", from_what_is_known)
    require_another_answer(same_in_all(attrs.evolve(MIXED, background=True)))


def run_of(calls: list[tuple[str, dict[str, Any]]], workspace: Workspace, code: plugins.code.CodeIndex) -> list[Any]:
    runtime = Runtime(Registry([*workspace.tools(), *code.tools()]))
    batch = [ToolCall(f"id{index}", name, input) for index, (name, input) in enumerate(calls)]

    async def run() -> Any:
        return await runtime.run(batch, State())

    execution = sim.run(run)
    assert execution.error is None, execution.error
    return [(result.outcome, result.content, result.error) for result in execution.value.results]


@pytest.mark.seldom
@SETTINGS
@given(changes=st.lists(st.sampled_from(CHANGES), max_size=8), asked=st.lists(st.integers(0, 7), max_size=3))
def test_answers_equal_those_of_a_fresh_build(changes: list[tuple[str, dict[str, Any]]], asked: list[int]) -> None:
    """After any edits, with questions in between, an index answers as one that is built then."""
    workspace, code = world()
    for number, change in enumerate(changes):
        run_of([change], workspace, code)
        if number in asked:
            run_of(QUESTIONS[:3], workspace, code)
    fresh = plugins.code.CodeIndex(workspace)
    assert run_of(QUESTIONS, workspace, code) == run_of(QUESTIONS, workspace, fresh)


TRACED = """
import sys, json
sys.path.insert(0, {path!r})
from tests.plugins.code.test_laws import MIXED
from toolrt import sim
execution = sim.run(MIXED.program([]), policy=sim.RandomWalk(seed=5))
assert execution.error is None, execution.error
print(json.dumps([execution.trace.to_json(), execution.schedule.to_json(), execution.value]))
"""


@pytest.mark.seldom
@pytest.mark.process
def test_same_schedule_same_trace_in_two_processes():
    """Byte for byte, with two hash seeds."""
    path = __file__.rsplit("/tests/", 1)[0]
    told = [
        subprocess.run(
            [sys.executable, "-c", TRACED.format(path=path)],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert len(json.loads(told[0])[2]) == len(MIXED.calls)
