"""Permissions: rules speak of files, not of names; a grant never depends on timing; what was approved is what runs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

import toolrt
from toolrt import READ, WRITE, Deny, MemoryDisk, Rewrite, State, ToolCall, ToolContext, Workspace, sim
from toolrt.errors import DefinitionRefused
from toolrt.workspace import Directory, Folding, Grant, HardLink, Permissions, Permit, Question, Rule, Symlink, Wanted

TREE = {
    "src/a.py": "a",
    "src/deep/b.py": "b",
    "docs/c.md": "c",
    ".env": "key",
    "src/.env": "key",
    "ok": Symlink(".env"),
    "way": Symlink("src/deep"),
    "empty": Directory(),
}

Answers = Callable[[Question], Any]


class Session:
    """A workspace with some tools, its permissions, and a note of what was asked."""

    def __init__(self, rules: Any = (), answers: Answers | None = None, tree: Any = None, **options: Any) -> None:
        runtime = {key: options.pop(key) for key in ("lanes", "limit") if key in options}
        self.workspace = Workspace(MemoryDisk(TREE if tree is None else tree, **options.pop("disk", {})))
        self.asked: list[str] = []
        self.permissions = Permissions(
            self.workspace, [Rule(*rule) for rule in rules], None if answers is None else self.ask(answers), **options
        )
        self.runtime = toolrt.Runtime(
            toolrt.Registry([*self.workspace.tools(), *self.own_tools()]), approve=self.permissions, **runtime
        )

    def ask(self, answers: Answers) -> Answers:
        def ask(question: Question) -> Any:
            self.asked.append(f"{question.name} {' '.join(question.paths)}".strip())
            return answers(question)

        return ask

    def own_tools(self) -> list[toolrt.Tool]:
        workspace = self.workspace

        @toolrt.tool(
            claims=lambda input, state: (
                *workspace.claims(input["source"], state, WRITE, wanted=Wanted.ENTRY, subtree=True),
                *workspace.claims(input["target"], state, WRITE, wanted=Wanted.ENTRY, subtree=True),
            ),
            owner=workspace,
        )
        async def rename(ctx: ToolContext, source: str, target: str) -> str:
            return "renamed"

        @toolrt.tool(
            safe=True,
            claims=lambda input, state: workspace.claims(input["path"], state, READ, subtree=True),
            owner=workspace,
        )
        async def find(ctx: ToolContext, path: str) -> str:
            return "found"

        @toolrt.tool
        async def shell(ctx: ToolContext, command: str) -> str:
            return "ran"

        @toolrt.tool(owner=workspace)
        async def anything(ctx: ToolContext) -> str:
            return "did"

        return [rename, find, shell, anything]

    async def run(self, *calls: Any, state: State | None = None) -> list[str]:
        """The outcome of each call of one batch, as a word."""
        done = await self.runtime.run([_call(*call) for call in calls], state)
        self.errors = [result.error for result in done.results]
        return [result.outcome.value for result in done.results]


def _call(name: str, *arguments: str) -> ToolCall:
    fields = {
        "read_file": ["path"],
        "edit_file": ["path", "old", "new"],
        "write_file": ["path", "content"],
        "rename": ["source", "target"],
        "find": ["path"],
        "shell": ["command"],
        "anything": [],
    }
    return ToolCall("id", name, dict(zip(fields[name], arguments, strict=True)))


# Rules


@pytest.mark.parametrize(
    ("rules", "call", "outcome"),
    [
        # No rule speaks: the default, which is to ask, and there is nobody.
        ([], ("read_file", "src/a.py"), "denied"),
        # The first that matches wins.
        ([("*", None, "allow")], ("read_file", "src/a.py"), "ok"),
        ([("*", None, "allow"), ("*", None, "deny")], ("read_file", "src/a.py"), "ok"),
        ([("*", None, "deny"), ("*", None, "allow")], ("read_file", "src/a.py"), "denied"),
        ([("edit_file", None, "deny"), ("*", None, "allow")], ("read_file", "src/a.py"), "ok"),
        ([("*_file", None, "deny"), ("*", None, "allow")], ("read_file", "src/a.py"), "denied"),
        # Patterns start at the root.
        ([("*", "src/**", "allow")], ("read_file", "src/a.py"), "ok"),
        ([("*", "src/**", "allow")], ("read_file", "src/deep/b.py"), "ok"),
        ([("*", "src/*", "allow")], ("read_file", "src/deep/b.py"), "denied"),
        ([("*", "a.py", "allow")], ("read_file", "src/a.py"), "denied"),
        ([("*", "**/a.py", "allow")], ("read_file", "src/a.py"), "ok"),
        ([("*", "**", "allow")], ("read_file", "src/a.py"), "ok"),
        ([("*", "{docs,src}/*.py", "allow")], ("read_file", "src/a.py"), "ok"),
        ([("*", "SRC/**", "allow")], ("read_file", "src/a.py"), "denied"),
        # The file decides, not the name; and what is only on the way needs no leave.
        ([("*", "**/.env", "deny"), ("*", None, "allow")], ("read_file", "ok"), "denied"),
        ([("*", ".env", "deny"), ("*", None, "allow")], ("read_file", "docs/../ok"), "denied"),
        ([("*", "ok", "deny"), ("*", None, "allow")], ("read_file", "ok"), "ok"),
        ([("*", "src/deep/*", "allow")], ("read_file", "way/b.py"), "ok"),
        ([("*", "way/*", "allow")], ("read_file", "way/b.py"), "denied"),
        ([("*", "new/deep/*", "allow")], ("write_file", "new/deep/x", ""), "ok"),
        ([("*", "new/*", "allow")], ("write_file", "new/deep/x", ""), "denied"),
        # Several paths: all of them.
        ([("*", "src/**", "allow")], ("rename", "src/a.py", "src/b.py"), "ok"),
        ([("*", "src/**", "allow")], ("rename", "src/a.py", "docs/b.py"), "denied"),
        ([("*", "src/**", "allow")], ("rename", "docs/c.md", "src/c.md"), "denied"),
        ([("*", "docs/**", "deny"), ("*", None, "allow")], ("rename", "src/a.py", "docs/b.py"), "denied"),
        # A subtree is allowed as a whole, and denied for any part.
        ([("*", "src/**", "allow")], ("find", "src"), "ok"),
        ([("*", "src/**", "allow")], ("find", "src/deep"), "ok"),
        ([("*", "**", "allow")], ("find", "."), "ok"),
        ([("*", "src/deep/**", "allow")], ("find", "src"), "denied"),
        ([("*", "src/**/*.py", "allow")], ("find", "src"), "denied"),
        ([("*", "src/*", "allow")], ("find", "src/deep"), "denied"),
        ([("*", "**/*", "allow")], ("find", "src"), "denied"),
        ([("*", "src/.env", "deny"), ("*", None, "allow")], ("find", "src"), "denied"),
        ([("*", "src/.env", "deny"), ("*", None, "allow")], ("find", "src/deep"), "ok"),
        ([("*", "**/.env", "deny"), ("*", None, "allow")], ("find", "src/deep"), "denied"),
        ([("find", "**", "allow"), ("*", "**/.env", "deny")], ("find", "src"), "ok"),
        # What is moved is a file, or a directory with all there is in it, and so is what it becomes.
        ([("*", "**/.env", "deny"), ("*", None, "allow")], ("rename", "src/a.py", "src/b.py"), "ok"),
        ([("*", "**/.env", "deny"), ("*", None, "allow")], ("rename", "src", "lib"), "denied"),
        ([("*", "lib/.env", "deny"), ("*", None, "allow")], ("rename", "src", "lib"), "denied"),
        ([("*", "lib/.env", "deny"), ("*", None, "allow")], ("rename", "src/a.py", "lib"), "ok"),
        ([("*", "{src,lib}", "allow")], ("rename", "src", "lib"), "denied"),
        ([("*", "{src,lib}/**", "allow")], ("rename", "src", "lib"), "ok"),
        ([("*", "src/*.py", "allow")], ("rename", "src/a.py", "src/b.py"), "ok"),
        ([("*", "{way,x}", "allow")], ("rename", "way", "x"), "ok"),
        # What has no paths is spoken of by rules without one.
        ([("*", "**", "allow")], ("shell", "ls"), "denied"),
        ([("*", "**", "deny"), ("*", None, "allow")], ("shell", "ls"), "ok"),
        ([("shell", None, "allow")], ("shell", "ls"), "ok"),
        ([("*", "**", "deny"), ("*", None, "allow")], ("anything",), "ok"),
        ([("*", "**", "allow")], ("read_file", "../outside"), "denied"),
        ([("*", None, "allow")], ("read_file", "../outside"), "error"),
    ],
)
@pytest.mark.parametrize("lanes", [toolrt.by_claims, toolrt.serial])
async def test_rule_decides(rules: Any, call: Any, outcome: str, lanes: Any) -> None:
    """What each rule speaks of, for calls that hold their files and for calls that hold everything."""
    assert await Session(rules, lanes=lanes).run(call) == [outcome]


async def test_rule_sees_a_name_as_the_directory_folds_it() -> None:
    """Where two spellings are one name, a pattern in any spelling speaks of it."""
    tree = {"Docs": Directory(fold=Folding(case=True)), "Docs/Café.md": "x"}
    session = Session([("*", "Docs/CAFÉ.*", "deny"), ("*", None, "allow")], tree=tree)
    assert await session.run(("read_file", "Docs/café.MD")) == ["denied"]
    session = Session([("*", "docs/**", "deny"), ("*", None, "allow")], tree=tree)
    assert await session.run(("read_file", "Docs/café.MD")) == ["ok"]
    session = Session([("*", "NEW/sub/*", "deny"), ("*", None, "allow")], disk={"fold": Folding(case=True)})
    assert await session.run(("write_file", "new/SUB/x", "")) == ["denied"]


@pytest.mark.parametrize(
    ("rules", "default", "asked"),
    [
        ([("*", "**/.env", "deny"), ("*", "free", "allow")], "deny", True),
        ([("*", "**/.env", "deny"), ("*", "**", "allow")], "deny", True),
        ([("*", "**/.env", "deny")], "allow", True),
        ([("*", "**/.env", "ask")], "allow", True),
        ([("*", "free", "allow")], "deny", True),
        ([("*", "**", "allow")], "deny", False),
        ([("*", None, "allow"), ("*", "**/.env", "deny")], "deny", False),
        ([("other", "**/.env", "deny")], "allow", False),
        ([], "allow", False),
    ],
)
async def test_file_with_several_names_is_asked_about(rules: Any, default: Any, asked: bool) -> None:
    """Another name might be one that a rule denies: then a rule's yes, or one for all paths, is not enough."""
    session = Session(rules, lambda _: Permit.SESSION, {".env": "key", "free": HardLink(".env")}, default=default)
    for _ in range(2):
        assert await session.run(("read_file", "free")) == ["ok"]
    assert session.asked == ["read_file free"] * 2 * asked
    session.permissions.grant("read_file", "free")
    session.asked.clear()
    assert await session.run(("read_file", "free")) == ["ok"]
    assert session.asked == []


async def test_denial_says_what_and_why_from_the_root() -> None:
    """The model is told the file, what it may not do and the rule's own reason; never where the workspace is."""
    session = Session([("*", "**/.env", "deny", "it has keys"), ("read_file", "**", "deny")])
    await session.run(("edit_file", "ok", "key", "x"), ("read_file", "/workspace/src/a.py"), ("find", "src"))
    assert session.errors == [
        "denied: edit_file may not change .env: it has keys",
        "denied: read_file may not read src/a.py: a rule says deny",
        "denied: find may not read src/**: it has keys",
    ]
    await session.run(("rename", "src/deep", "x"), ("shell", "ls"))
    assert session.errors == [
        "denied: rename may not change src/deep/**: it has keys",
        "denied: it has to be asked for and nobody can be asked (no rule speaks of it)",
    ]


@pytest.mark.parametrize(
    ("what", "text"),
    [
        (lambda workspace: Rule(""), "Rule(tool)"),
        (lambda workspace: Rule("*", "/etc/*"), "Rule(path)"),
        (lambda workspace: Rule("*", "src/"), "Rule(path)"),
        (lambda workspace: Rule("*", "../x"), "Rule(path)"),
        (lambda workspace: Rule("*", "a//b"), "Rule(path)"),
        (lambda workspace: Rule("*", ""), "Rule(path)"),
        (lambda workspace: Rule("*", "{a,b}" * 10), "Rule(path)"),
        (lambda workspace: Rule("*", None, "maybe"), "Rule(answer)"),
        (lambda workspace: Rule("*", None, "ask", 1), "Rule(reason)"),
        (lambda workspace: Permissions("src"), "Permissions(workspace)"),
        (lambda workspace: Permissions(workspace, ["*"]), "Permissions(rules)"),
        (lambda workspace: Permissions(workspace, ask="me"), "Permissions(ask)"),
        (lambda workspace: Permissions(workspace, default="maybe"), "Permissions(default)"),
        (lambda workspace: Permissions(workspace, grants=0), "Permissions(grants)"),
        (lambda workspace: Permissions(workspace).grant(1), "a grant"),
    ],
)
def test_permissions_that_cannot_be_meant_are_refused(what: Any, text: str) -> None:
    """A mistake is found when the rule is made, not when a file is at stake."""
    with pytest.raises(DefinitionRefused) as caught:
        what(Workspace(MemoryDisk()))
    assert str(caught.value).startswith(text)


# Questions


@pytest.mark.parametrize(
    ("answer", "outcome", "again"),
    [
        (True, "ok", True),
        (toolrt.Allow(), "ok", True),
        (Permit.ONCE, "ok", True),
        (Permit.PATH, "ok", False),
        (Permit.SESSION, "ok", False),
        (False, "denied", True),
        ("not now", "denied", True),
        (Deny("not now"), "denied", True),
        (None, "denied", True),
        ("once", "denied", True),
        ({"path": "src/a.py", "content": "rewritten"}, "ok", True),
    ],
)
@pytest.mark.parametrize("later", [False, True])
async def test_answer_means(answer: Any, outcome: str, again: bool, later: bool) -> None:
    """What each answer does to the call, and whether the next batch is asked again; given at once or later."""

    async def later_on() -> Any:
        await trio.lowlevel.checkpoint()
        return answer

    session = Session([], lambda _: later_on() if later else answer)
    assert await session.run(("write_file", "src/a.py", "new")) == [outcome]
    assert await session.run(("write_file", "way/../a.py", "new")) == [outcome]
    assert session.asked == ["write_file src/a.py"] * (1 + again)


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


async def test_grant_for_the_path_of_a_call_without_one_is_for_that_call() -> None:
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


async def test_question_shows_the_call_and_why() -> None:
    """Who is asked sees the tool, its input, the files from the root, and the rule's reason."""
    seen: list[Question] = []
    session = Session([("edit_file", "src/**", "ask", "it is code")], lambda question: seen.append(question) or True)
    await session.run(("edit_file", "way/b.py", "b", "B"), ("shell", "ls"))
    first, second = seen
    assert (first.name, first.input["path"], first.paths, first.why) == (
        "edit_file",
        "way/b.py",
        ("src/deep/b.py",),
        "it is code",
    )
    assert (second.name, second.paths, second.why) == ("shell", (), "no rule speaks of it")


async def test_question_that_fails_denies_and_shows_no_path_of_the_machine() -> None:
    """An ask that raises is a no; what it raised is told as a tool's exception is."""

    def ask(question: Question) -> Any:
        raise FileNotFoundError(2, "No such file", "/home/me/socket")

    async def ask_later(question: Question) -> Any:
        raise RuntimeError("no terminal at /dev/pts/7")

    for answers, error in (
        (ask, "FileNotFoundError: No such file: the path"),
        (ask_later, "RuntimeError: no terminal at the path"),
    ):
        session = Session([], answers)
        assert await session.run(("read_file", "src/a.py")) == ["denied"]
        assert session.errors == [f"denied: the approval check raised {error}"]


# Rewrites


async def test_rewrite_runs_what_was_answered_and_nothing_else() -> None:
    """The new input is what runs; it is not asked about again."""
    session = Session([], lambda _: Rewrite({"path": "src/a.py", "content": "theirs"}))
    assert await session.run(("write_file", "src/a.py", "mine")) == ["ok"]
    assert session.workspace.snapshot()["src/a.py"] == b"theirs"
    assert len(session.asked) == 1


@pytest.mark.parametrize("lanes", [toolrt.by_claims, toolrt.serial])
@pytest.mark.parametrize(
    ("input", "error"),
    [
        ({"path": "ok", "content": ""}, "denied: in the rewritten input, write_file may not change .env: it has keys"),
        ({"path": "src/a.py"}, "denied: the rewritten input does not fit: input.content: "),
    ],
)
async def test_rewrite_does_not_get_around_a_rule(lanes: Any, input: Mapping[str, Any], error: str) -> None:
    """What is denied stays denied, whoever writes it."""
    session = Session([("*", "**/.env", "deny", "it has keys")], lambda _: input, lanes=lanes)
    assert await session.run(("write_file", "src/a.py", "x")) == ["denied"]
    assert session.errors[0].startswith(error)
    assert session.workspace.snapshot()[".env"] == b"key"


async def test_rewrite_to_another_file_is_denied_and_names_it() -> None:
    """Its tickets were taken for another file (RULE 19); and whoever answered was asked about another one."""
    answer = {"path": "docs/c.md", "content": "x"}
    for lanes, rules, outcome, error in (
        (toolrt.by_claims, [], "denied", "the rewritten input is about docs/c.md, which was not asked about"),
        (toolrt.serial, [], "denied", "the rewritten input is about docs/c.md, which was not asked about"),
        (toolrt.by_claims, [("*", "docs/**", "allow")], "denied", "claims write file/docs/c.md, the call holds write"),
        (toolrt.serial, [("*", "docs/**", "allow")], "ok", "None"),
    ):
        session = Session(rules, lambda _: answer, lanes=lanes)
        assert await session.run(("write_file", "src/a.py", "x")) == [outcome]
        assert error in str(session.errors[0])
        assert session.workspace.snapshot()["src/a.py"] == b"a"
    session = Session([], lambda _: answer, lanes=toolrt.serial)
    session.permissions.grant("write_file")
    assert await session.run(("write_file", "src/a.py", "x")) == ["ok"]
    assert session.asked == []


# Exactly what was approved


@pytest.mark.parametrize("lanes", [toolrt.by_claims, toolrt.serial])
@pytest.mark.parametrize("rewritten", [False, True])
@pytest.mark.parametrize("ruled", [False, True])
async def test_name_that_means_another_file_after_the_answer_touches_nothing(
    lanes: Any, rewritten: bool, ruled: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """The answer was about a file.  A link that is turned elsewhere meanwhile does not carry the answer along."""
    input = {"path": "link", "content": "x"}

    async def ask(question: Question) -> Any:
        assert question.paths == ("src/a.py",)
        await trio.sleep(1)
        session.workspace.disk.put("link", Symlink(".env"))  # type: ignore[attr-defined]
        return input if rewritten else Permit.ONCE

    def at_once(question: Question) -> Any:
        raise AssertionError("a rule allows it")

    session = Session(
        [("*", "src/**", "allow")] if ruled else [],
        at_once if ruled else ask,
        {**TREE, "link": Symlink("src/a.py")},
        lanes=lanes,
    )
    if ruled:
        # Another batch holds the table while the link is turned, so the call is judged long before it runs.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_hold, session)
            await trio.sleep(1)
            nursery.start_soon(_turn, session)
            outcomes = await session.run(("write_file", "link", "x"))
    else:
        outcomes = await session.run(("write_file", "link", "x"))
    if rewritten and not ruled:
        assert outcomes == ["denied"]  # it was said too late to be about the file of the question
        assert ".env, which was not asked about" in session.errors[0]
    else:
        assert outcomes == ["error"]
        assert "another one by now" in session.errors[0]
    assert session.workspace.snapshot()[".env"] == b"key"
    assert session.workspace.snapshot()["src/a.py"] == b"a"


async def _hold(session: Session) -> None:
    @toolrt.tool(owner=session.workspace)
    async def hold(ctx: ToolContext) -> None:
        await trio.sleep(3)

    await toolrt.Runtime(toolrt.Registry([hold])).run([ToolCall("id", "hold", {})])


async def _turn(session: Session) -> None:
    await trio.sleep(1)
    session.workspace.disk.put("link", Symlink(".env"))  # type: ignore[attr-defined]


# Timing


async def test_grant_counts_from_the_next_lane(autojump_clock: trio.testing.MockClock) -> None:
    """A sibling is asked all the same, also one that joins long after the answer; the next lane is not."""

    async def ask(question: Question) -> Any:
        await trio.sleep(1)
        return Permit.SESSION

    session = Session([("anything", None, "allow")], ask)
    async with session.runtime.open_batch() as batch:
        batch.submit(_call("read_file", "src/a.py"))
        batch.submit(_call("read_file", "src/a.py"))
        await trio.sleep(5)
        assert [call.status.value for call in batch.calls] == ["completed"] * 2
        batch.submit(_call("read_file", "docs/c.md"))
        await trio.sleep(5)
        assert len(session.asked) == 3
        batch.submit(_call("anything"))
        batch.submit(_call("read_file", "src/a.py"))
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
            batch.submit(_call(*call))
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


@settings(deadline=None)
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
        done = await runtime.run([_call("read_file", "src/a.py")])
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
