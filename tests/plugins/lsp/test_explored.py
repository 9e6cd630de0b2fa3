"""Language servers: the laws, and that no answer depends on timing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests._profile import FULL

pytest.importorskip("lsprotocol", reason="the lsp extra is not installed")

from tests.plugins.lsp._language_servers import (
    as_calls_complete,
    asks,
    double,
    edits,
    found,
    ran,
    told_at_lane_ends,
    writes,
)
from toolrt import MemoryDisk, Workspace, sim
from toolrt.invariants import patched, require
from toolrt.plugins.lsp import LanguageServers, _session
from toolrt.testing import schedules

FILES = {"a.py": "bad\n", "b.py": "good\n", "c.py": "bad bad\n"}

MIX = [
    asks("a.py"),
    edits("a.py", "bad", "good\nbad"),
    asks("a.py"),
    edits("b.py", "good", "bad"),
    asks("b.py"),
    writes("c.py", "bad\nbad\n"),
    edits("a.py", "good", "bad"),
    asks("c.py"),
    asks("a.py"),
]


def explored(batches: Sequence[Sequence[Any]], executions: int = 300 if FULL else 12, **options: Any) -> Any:
    """The one ending that the batches have under every schedule; all laws hold."""

    async def program() -> Any:
        server = double(**options)
        workspace = Workspace(MemoryDisk(FILES))
        answers = await ran(workspace, [server], *batches)
        return answers, workspace.snapshot(), told_at_lane_ends(server)

    def check(execution: sim.Execution) -> list[Any]:
        assert execution.error is None, execution.error
        require(execution.trace)
        return []

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=7), executions), check)
    assert report.verdict is sim.PASS, f"{report}\n{report.failures[0].explain() if report.failures else ''}"
    assert len(report.outcomes) == 1, report.outcomes
    return sim.run(program).value


def expected_answers() -> list[str]:
    files = dict(FILES)
    answers = []
    for name, input in MIX:
        path = input["path"]
        if name == "diagnostics":
            lines = [
                f"{path}:{one.line}:{one.column}: warning B1 {one.message} (test)" for one in found(path, files[path])
            ]
            answers.append("\n".join(lines) or f"{path}: nothing found by double")
        else:
            files[path] = (
                input["content"] if name == "write_file" else files[path].replace(input["old"], input["new"], 1)
            )
    return answers


@pytest.mark.drawn(2)
@pytest.mark.parametrize("answers", ["asked", "published", "unversioned"])
@pytest.mark.parametrize("reads", ["file", "workspace"])
def test_answers_do_not_depend_on_the_schedule(answers: str, reads: str) -> None:
    """Edits and questions of one batch end as one at a time, and all laws hold."""
    given, _, _ = explored([MIX], answers=answers, reads=reads, seconds=0.5)
    assert [answer for answer, (name, _) in zip(given, MIX, strict=True) if name == "diagnostics"] == expected_answers()


@pytest.mark.seldom
def test_server_that_dies_again_and_again_decides_nothing() -> None:
    """It is started anew, and the answers are what they would have been."""
    given, _, _ = explored([[asks("a.py")], [asks("b.py")], [asks("c.py")]], lost_after=4, restarts=100)
    assert [str(answer).split(":")[0] for answer in given] == ["a.py", "b.py", "c.py"]
    assert not any("not known" in answer for answer in given)


@pytest.mark.seldom
@settings(max_examples=300 if FULL else 15)
@given(
    mix=st.lists(
        st.one_of(
            st.sampled_from(["a.py", "b.py", "c.py"]).map(asks),
            st.tuples(st.sampled_from(["a.py", "b.py", "c.py"]), st.sampled_from(["bad", "ok\nbad", "ok"])).map(
                lambda pair: writes(*pair)
            ),
        ),
        max_size=8,
    ),
    answers=st.sampled_from(["asked", "published", "unversioned"]),
    seconds=st.sampled_from([0.0, 0.3]),
    lost_after=st.sampled_from([None, 6, 9]),
    schedule=schedules(max_size=120),
)
def test_any_mix_is_answered_as_one_at_a_time(
    mix: list[Any], answers: str, seconds: float, lost_after: int | None, schedule: list[int]
) -> None:
    """Whatever the schedule, and however often the server is lost on the way."""

    async def program() -> Any:
        server = double(answers=answers, seconds=seconds, lost_after=lost_after, restarts=1000, wait=1e6)
        # As many at once as such a server can answer before it is lost.
        limit = 10 if lost_after is None else 2
        return await ran(Workspace(MemoryDisk(FILES)), [server], mix, limit=limit)

    execution = sim.run(program, sim.Choices(schedule))
    assert execution.error is None, execution.error
    require(execution.trace)
    files = dict(FILES)
    for (name, input), answer in zip(mix, execution.value, strict=True):
        if name == "write_file":
            files[input["path"]] = input["content"]
        else:
            path = input["path"]
            lines = [
                f"{path}:{one.line}:{one.column}: warning B1 {one.message} (test)" for one in found(path, files[path])
            ]
            assert answer == ("\n".join(lines) or f"{path}: nothing found by double")


def test_slow_server_is_not_waited_for_longer_than_stated() -> None:
    """In the simulator's time, so exactly."""

    async def program() -> Any:
        answers = await ran(
            Workspace(MemoryDisk(FILES)), [double(seconds=9.0, wait=10.0)], [asks("a.py")], [asks("a.py")]
        )
        return answers, trio.current_time()

    (first, second), _ = sim.run(program).value
    assert first == "[not known from double: it gave no findings within 10 s]"
    assert second == "a.py:1:1: warning B1 'bad' in a.py (test)"


# Caught variants


def _that_was_told(scan: Any) -> Any:
    """A question trusts what lane ends told, and does not look at the file."""

    async def check(self: LanguageServers, path: str, content: bytes) -> Any:
        first = self.__dict__.setdefault("_first", {}).setdefault(path, content)
        return await scan(self, path, first)

    return check


def _that_comes(hear: Any) -> Any:
    """Whatever is published counts, whichever version it names."""

    def hear_all(self: Any, params: Any) -> None:
        path = self._path_of(params.get("uri"))
        document = self._documents.get(path)
        hear(self, {**params, "version": None if document is None else document.version})

    return hear_all


def told_in_call_order() -> None:
    workspace_calls = [asks("a.py"), asks("b.py"), asks("c.py")]
    changing = [writes("c.py", "1"), writes("a.py", "2"), writes("b.py", "3")]
    _, _, told = explored([workspace_calls, changing])
    assert [path for _, path, _ in told] == ["c.py", "a.py", "b.py"]


def asked_about_what_stands_there() -> None:
    given, _, _ = explored([MIX], executions=20)
    assert [answer for answer, (name, _) in zip(given, MIX, strict=True) if name == "diagnostics"] == expected_answers()


def matched_to_versions() -> None:
    """A text is told, then another before the first was answered; the answer is about the second."""

    async def program() -> Any:
        disk = MemoryDisk({"a.py": "bad one"})
        workspace = Workspace(disk)
        async with LanguageServers(workspace, [double(answers="published", seconds=1.0)]) as lsp:
            assert (await lsp.check("a.py", b"bad zero")).findings[0].message == "'bad zero' in a.py"
            lsp.notify_file_changed("a.py", "bad one")
            return (await lsp.check("a.py", b"bad two")).findings[0].message

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 60), lambda execution: [])
    assert sim.run(program).error is None
    assert len(report.outcomes) == 1, report.outcomes
    assert sim.run(program).value == "'bad two' in a.py"


RULES = [told_in_call_order, asked_about_what_stands_there, matched_to_versions]


@pytest.mark.seldom
@pytest.mark.parametrize("rule", RULES)
def test_rule_holds(rule: Callable[[], None]) -> None:
    """As it is, under every schedule."""
    rule()


Variant = Callable[[], AbstractContextManager[Any]]

#: Its name, the rule it breaks, what breaks it, and a pattern in what the rule then says.
VARIANTS: list[tuple[str, Callable[[], None], Variant, str]] = [
    ("told in completion order", told_in_call_order, as_calls_complete, "didChangeWatchedFiles"),
    (
        "a question trusts what was told",
        asked_about_what_stands_there,
        lambda: patched(LanguageServers, "check", _that_was_told),
        'diff: "a.py:1:1: .* != "a.py:2:1: ',
    ),
    (
        "any version counts",
        matched_to_versions,
        lambda: patched(_session.LanguageSession, "_hear", _that_comes),
        "'bad one' in a.py",
    ),
]


@pytest.mark.seldom
@pytest.mark.parametrize(("rule", "variant", "said"), [one[1:] for one in VARIANTS], ids=[one[0] for one in VARIANTS])
def test_variant_is_caught(rule: Callable[[], None], variant: Variant, said: str) -> None:
    """The race that a rule removes, put back; the rule says what is wrong."""
    with variant(), pytest.raises(AssertionError, match=said):
        rule()
