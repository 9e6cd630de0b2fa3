"""Grants: an answer that outlives its question, and never depends on timing."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from tests.workspace._session import Session, as_call
from toolrt import State, sim
from toolrt.workspace import Directory, Grant, Permissions, Permit, Question


async def test_grant_for_a_path_is_for_that_tool_and_file() -> None:
    """Every name of the file has it; another file, another tool or all of its directory does not."""
    session = Session([], lambda _: Permit.PATH)
    await session.run(("read_file", "src/deep/b.py"))
    await session.run(("read_file", "way/b.py"), ("read_file", "/workspace/src/deep/b.py"))
    assert session.asked == ["read_file src/deep/b.py"]
    await session.run(("read_file", "src/a.py"), ("write_file", "way/b.py", "x"), ("find", "way"))
    assert session.asked[1:] == ["read_file src/a.py", "write_file src/deep/b.py", "find src/deep/**"]
    assert session.permissions.grants == (
        Grant("read_file", "src/deep/b.py"),
        Grant("read_file", "src/a.py"),
        Grant("write_file", "src/deep/b.py"),
        Grant("find", "src/deep/**"),
    )


async def test_grant_for_a_session_is_for_every_path_that_no_rule_denies() -> None:
    """A grant turns "ask" into "allow", never "deny"."""
    session = Session([("*", ".env", "deny")], lambda _: Permit.SESSION)
    assert await session.run(("read_file", "src/a.py")) == ["ok"]
    assert await session.run(("read_file", "docs/c.md"), ("read_file", "ok"), ("find", "docs")) == [
        "ok",
        "denied",
        "ok",
    ]
    assert session.asked == ["read_file src/a.py", "find docs/**"]


async def test_grant_for_several_paths_needs_each() -> None:
    """A call that moves between two files is asked for unless both are granted or allowed."""
    session = Session([("*", "docs/**", "allow")], lambda _: Permit.PATH)
    await session.run(("rename", "src/a.py", "docs/x"))
    assert session.permissions.grants == (Grant("rename", "src/a.py"),)
    await session.run(("rename", "src/a.py", "docs/y"), ("rename", "src/a.py", "src/y"))
    assert session.asked == ["rename docs/x src/a.py", "rename src/a.py src/y"]


async def test_grant_for_the_path_of_a_call_without_one_is_for_thatas_call() -> None:
    """There is nothing the next call could be held against."""
    session = Session([], lambda _: Permit.PATH)
    for _ in range(2):
        assert await session.run(("shell", "ls")) == ["ok"]
    assert session.asked == ["shell"] * 2
    assert session.permissions.grants == ()


async def test_grant_for_a_file_is_not_taken_for_one_of_a_directory() -> None:
    """A file may be called ``**``: who may touch it may not touch all that is beside it."""
    session = Session([], lambda _: Permit.PATH)
    for path in ("src/**", r"src/\**"):
        await session.run(("read_file", path))
    assert session.asked == [r"read_file src/\**", r"read_file src/\\**"]
    session = Session([], lambda _: Permit.PATH, {"src": Directory()})
    session.permissions.grant("rename", "src/**")
    await session.run(("rename", "src", "src"))
    assert session.asked == []


async def test_grants_are_given_taken_back_and_bounded() -> None:
    """What is granted can be seen, granted by the host, and taken back; the oldest goes when there are too many."""
    session = Session([], lambda _: Permit.PATH, grants=2)
    given = session.permissions.grant("read_file", "src/a.py")
    assert await session.run(("read_file", "src/a.py")) == ["ok"]
    assert session.asked == []
    await session.run(("read_file", "docs/c.md"))
    await session.run(("read_file", "src/deep/b.py"))
    assert session.permissions.grants == (Grant("read_file", "docs/c.md"), Grant("read_file", "src/deep/b.py"))
    session.permissions.revoke(given)
    session.permissions.revoke(session.permissions.grants[0])
    assert session.permissions.grants == (Grant("read_file", "src/deep/b.py"),)
    session.permissions.revoke()
    assert session.permissions.grants == ()


# Timing


async def test_grant_counts_from_the_next_lane(autojump_clock: trio.testing.MockClock) -> None:
    """A sibling is asked all the same, also one that joins long after the answer; the next lane is not."""

    async def ask(question: Question) -> Any:
        await trio.sleep(1)
        return Permit.SESSION

    session = Session([("anything", None, "allow")], ask)
    async with session.runtime.open_batch() as batch:
        batch.submit(as_call("read_file", "src/a.py"))
        batch.submit(as_call("read_file", "src/a.py"))
        await trio.sleep(5)
        assert [call.status.value for call in batch.calls] == ["completed"] * 2
        batch.submit(as_call("read_file", "docs/c.md"))
        await trio.sleep(5)
        assert len(session.asked) == 3
        batch.submit(as_call("anything"))
        batch.submit(as_call("read_file", "src/a.py"))
    assert len(session.asked) == 3
    assert all(result.ok for result in batch.outcome.results)


async def test_questions_of_a_lane_come_together_and_nobody_waits_for_anothers_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One that is never answered holds its own file and no other; a slot it does not hold."""

    async def ask(question: Question) -> Any:
        if question.paths == ("src/a.py",):
            await trio.sleep_forever()
        await trio.sleep(len(session.asked))
        return True

    session = Session([], ask, limit=1)
    calls = [("edit_file", "src/a.py", "a", "A"), ("edit_file", "docs/c.md", "c", "C"), ("read_file", ".env")]
    async with session.runtime.open_batch() as batch:
        for call in [*calls, ("read_file", "src/../src/a.py")]:
            batch.submit(as_call(*call))
        batch.seal()
        await trio.sleep(0.5)
        assert len(session.asked) == 4
        await trio.sleep(100)
        assert [call.status.value for call in batch.calls] == ["queued", "completed", "completed", "queued"]
        assert [call.waits_for for call in batch.calls] == [["approval"], [], [], [0, "approval"]]
        batch.cancel("nobody answers")
    assert [result.outcome.value for result in batch.outcome.results] == ["not_started", "ok", "ok", "not_started"]
    assert session.workspace.claim_table.statistics()["groups"] == 0


_ANSWERS: list[Any] = [Permit.ONCE, Permit.PATH, Permit.SESSION, False, "no", {"path": "src/a.py", "content": "r"}]


@pytest.mark.seldom
@given(
    answers=st.lists(st.sampled_from(_ANSWERS), min_size=12, max_size=12),
    paths=st.lists(st.sampled_from(["src/a.py", "way/../a.py", "docs/c.md", "ok"]), min_size=2, max_size=4),
    seed=st.integers(0, 1_000),
    most=st.integers(1, 3),
)
def test_order_of_answers_decides_nothing(answers: list[Any], paths: list[str], seed: int, most: int) -> None:
    """Whatever the schedule, and whoever answers first: the same is asked, runs, is granted and is kept."""

    async def program() -> Any:
        number = itertools.count()

        def ask(question: Question) -> Any:
            # What is answered depends on the call alone.
            place = round_ * 4 + question.request.call_index

            async def answer() -> Any:
                for _ in range(next(number) % 3):
                    await trio.lowlevel.checkpoint()
                return answers[place]

            return answer()

        session = Session([("read_file", "docs/**", "allow")], ask, grants=most)
        told = []
        for round_ in range(3):
            name = "read_file" if round_ == 1 else "write_file"
            arguments = () if round_ == 1 else (f"round {round_}",)
            told.append(await session.run(*[(name, path, *arguments) for path in paths]))
        assert session.workspace.claim_table.statistics()["groups"] == 0
        return told, session.asked, session.permissions.grants, sorted(session.workspace.snapshot().items())

    endings = [sim.run(program, sim.RandomWalk(seed=seed + step)) for step in range(4)]
    assert not [ending.error for ending in endings if ending.error]
    assert all(ending.value == endings[0].value for ending in endings)


async def test_grants_that_are_kept_do_not_depend_on_which_answer_came_first(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With more grants than there is room for, those of the latest calls stay, in whatever order they were made."""
    kept = set()
    for order in itertools.permutations(range(4)):

        async def ask(question: Question, order: tuple[int, ...] = order) -> Any:
            await trio.sleep(order[question.request.call_index])
            return Permit.PATH

        session = Session([], ask, grants=2)
        await session.run(*[("write_file", f"{name}", "") for name in "abca"])
        kept.add(session.permissions.grants)
    assert kept == {(Grant("write_file", "c"), Grant("write_file", "a"))}


def test_permissions_decide_the_same_in_any_order_of_sessions() -> None:
    """Two sessions on one workspace know nothing of each other's grants."""

    async def both() -> None:
        session = Session([], lambda _: Permit.SESSION)
        other = Permissions(session.workspace, ask=lambda _: False)
        runtime = toolrt.Runtime(toolrt.Registry(session.workspace.tools()), approve=other)
        assert await session.run(("read_file", "src/a.py")) == ["ok"]
        done = await runtime.run([as_call("read_file", "src/a.py")])
        assert done.results[0].outcome is toolrt.Outcome.DENIED
        assert other.grants == ()

    trio.run(both)


def test_judging_many_claims_is_no_matter_of_their_order() -> None:
    """The answer about a call is the same however its claims are ordered (law 14)."""
    session = Session([("*", "src/**", "allow"), ("*", "docs/**", "ask", "docs")])
    tool = next(tool for tool in session.own_tools() if tool.name == "rename")
    claims = tool.claims_for({"source": "src/a.py", "target": "docs/x"}, State())
    found = set()
    for seed in range(20):
        shuffled = random.Random(seed).sample(claims, len(claims))
        targets = session.permissions._targets(tuple(shuffled))
        found.add(tuple(sorted(target.path for target in targets)))
    assert found == {("docs/x", "src/a.py")}
