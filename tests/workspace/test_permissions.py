"""Permissions: rules speak of files, not of names; what was approved is what runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio
import trio.testing

import toolrt
from tests.workspace._session import TREE, Session
from toolrt import Deny, MemoryDisk, Rewrite, ToolCall, ToolContext, Workspace
from toolrt.errors import DefinitionRefused
from toolrt.workspace import Directory, Folding, HardLink, Permissions, Permit, Question, Rule, Symlink
from toolrt.workspace.rules import _permissions

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


_SHARED = {"p/d/free": HardLink("s/key"), "s/key": "key", "q/a": "a"}
_DENIED = [("*", "s/**", "deny"), ("*", "**", "allow")]


@pytest.mark.parametrize(
    ("name", "input", "rules", "outcome"),
    [
        # A search leaves that file out, and says so.
        ("search", {"pattern": "key", "path": "p"}, _DENIED, "ok"),
        ("delete_path", {"path": "p", "recursive": True}, _DENIED, "denied"),
        ("move_path", {"source": "p", "target": "new"}, _DENIED, "denied"),
        ("search", {"pattern": "a", "path": "q"}, _DENIED, "ok"),
        # What tells no more than names, and what no rule could decide otherwise about.
        ("glob", {"pattern": "**", "path": "p"}, _DENIED, "ok"),
        ("list_dir", {"path": "p"}, _DENIED, "ok"),
        ("search", {"pattern": "key", "path": "p"}, [("*", "**", "allow")], "ok"),
    ],
)
async def test_directory_with_a_file_of_several_names_is_asked_about(
    name: str, input: Any, rules: Any, outcome: str
) -> None:
    """As the file itself is: its other name may be one that a rule denies."""
    session = Session(rules, tree=_SHARED)
    done = await session.runtime.run([ToolCall("id", name, input)])
    assert done.results[0].outcome.value == outcome
    if (name, rules) == ("search", _DENIED) and input["path"] == "p":
        assert done.results[0].content.startswith("no line matches\n(1 entry is left out")
    asked = Session(rules, lambda _: Permit.PATH, tree=_SHARED)
    for _ in range(2):
        assert (await asked.runtime.run([ToolCall("id", "search", {"pattern": "key", "path": "p"})])).results[0].ok
    assert len(asked.asked) == (rules is _DENIED)


async def test_directory_that_is_too_large_to_be_looked_through_is_asked_about(monkeypatch: Any) -> None:
    """It may have such a file."""
    session = Session(_DENIED, lambda question: question.why, tree=_SHARED)
    search = ToolCall("id", "search", {"pattern": "a", "path": "q"})
    monkeypatch.setattr(_permissions, "_LOOKED_AT_MOST", 1)
    assert (await session.runtime.run([search])).results[0].error is None
    monkeypatch.setattr(_permissions, "_LOOKED_AT_MOST", 0)
    denied = (await session.runtime.run([search])).results[0]
    assert "q/** has files with other names too" in str(denied.error)


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
        "denied: it needs a person's permission, which this program does not ask for (no rule speaks of it)",
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


_PATCH = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-a\n+A\n--- /dev/null\n+++ b/src/new\n@@ -0,0 +1 @@\n+n\n"


@pytest.mark.parametrize(
    ("name", "input", "paths"),
    [
        ("read_file", {"path": "way/b.py"}, "src/deep/b.py"),
        ("write_file", {"path": "src/n/x", "content": ""}, "src/n/x"),
        ("edit_file", {"path": "src/a.py", "old": "a", "new": "b"}, "src/a.py"),
        ("multi_edit", {"path": "src/a.py", "edits": [{"old": "a", "new": "b"}]}, "src/a.py"),
        ("apply_patch", {"patch": _PATCH}, "src/a.py src/new"),
        ("list_dir", {"path": "src"}, "src/**"),
        ("list_dir", {"path": "."}, "**"),
        ("glob", {"pattern": "*", "path": "src"}, ".gitignore src/**"),
        ("search", {"pattern": "a", "path": "way"}, ".gitignore src/.gitignore src/deep/**"),
        ("search", {"pattern": "a", "path": "src/a.py"}, ".gitignore src/.gitignore src/a.py"),
        ("make_dir", {"path": "src/d/e"}, "src/d/e"),
        ("move_path", {"source": "src/a.py", "target": "src/z.py"}, "src/a.py src/z.py"),
        ("move_path", {"source": "src/deep", "target": "lib"}, "lib/** src/deep/**"),
        ("move_path", {"source": "way", "target": "w"}, "w way"),
        ("delete_path", {"path": "src/a.py"}, "src/a.py"),
        ("delete_path", {"path": "src/deep", "recursive": True}, "src/deep/**"),
        ("change_dir", {"path": "src"}, ""),
    ],
)
@pytest.mark.parametrize("lanes", [toolrt.by_claims, toolrt.serial])
async def test_question_about_each_tool_names_what_it_touches(name: str, input: Any, paths: str, lanes: Any) -> None:
    """All the files, and nothing that is only on the way to them; and the tool is content with what it was left."""
    session = Session([], lambda _: True, lanes=lanes)
    done = await session.runtime.run([ToolCall("id", name, input)])
    assert session.asked == [f"{name} {paths}".strip()]
    assert done.results[0].error is None


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
