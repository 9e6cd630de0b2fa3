"""A rule that denies some files leaves the rest of a directory usable, and what it denies untouched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toolrt
from toolrt import MemoryDisk, Outcome, State, ToolCall, Workspace
from toolrt.workspace import Folding, HardLink, Permissions, Permit, RealDisk, Rule

DENY = Rule("*", "**/.env", "deny")
TREE = {"a.txt": "needle", "src/b.txt": "needle", "src/deep/c.txt": "needle", "docs/d.txt": "needle"}
SECRETS = {".env": "needle key", "src/.env": "needle key", "src/deep/.env": "needle key"}
WALKS = (
    ("search", {"pattern": "needle"}),
    ("search", {"pattern": "needle", "literal": True}),
    ("glob", {"pattern": "**"}),
    ("glob", {"pattern": "**", "ignored": True}),
    ("list_dir", {}),
)


class Tree:
    """A workspace under rules, on either disk."""

    def __init__(self, base: Path | None, content: dict[str, Any], rules: Any, **options: Any) -> None:
        fold = options.pop("fold", None)
        if base is None:
            self.workspace = Workspace(MemoryDisk(content, **({} if fold is None else {"fold": fold})))
        else:
            for name, what in content.items():
                path = base / name
                path.parent.mkdir(parents=True, exist_ok=True)
                if isinstance(what, HardLink):
                    path.hardlink_to(base / what.target)
                else:
                    path.write_text(what)
            self.workspace = Workspace(RealDisk(base))
        options.setdefault("default", "allow")
        permissions = Permissions(self.workspace, rules, **options)
        self.runtime = toolrt.Runtime(toolrt.Registry(self.workspace.tools()), approve=permissions)

    async def call(self, name: str, **input: Any) -> toolrt.ToolResult:
        return (await self.batch((name, input)))[0]

    async def batch(self, *calls: tuple[str, Any], state: State | None = None) -> tuple[toolrt.ToolResult, ...]:
        done = await self.runtime.run([ToolCall("id", name, input) for name, input in calls], state)
        return tuple(done.results)


@pytest.fixture(params=["real", "twin"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    def made(content: dict[str, Any], rules: Any = (DENY,), **options: Any) -> Tree:
        base = None
        if request.param == "real":
            base = tmp_path / "work"
            base.mkdir()
        return Tree(base, content, rules, **options)

    return made


@pytest.mark.parametrize(("name", "input"), WALKS)
@pytest.mark.parametrize("path", [".", "src"])
async def test_a_walk_where_nothing_is_denied_answers_as_without_rules(
    tree: Any, name: str, input: Any, path: str
) -> None:
    """The rule speaks of no file that is there, so the answer says nothing of it."""
    free = await Tree(None, TREE, ()).call(name, path=path, **input)
    ruled = await tree(TREE).call(name, path=path, **input)
    assert (ruled.outcome, ruled.content) == (Outcome.OK, free.content)


@pytest.mark.parametrize(("name", "input"), WALKS)
async def test_a_walk_leaves_denied_entries_out_and_says_how_many(tree: Any, name: str, input: Any) -> None:
    """All else is in the answer, and no word of what is denied."""
    done = await tree({**TREE, **SECRETS}).call(name, **input)
    assert done.outcome is Outcome.OK, done.error
    *lines, note = done.content.splitlines()
    free = (await Tree(None, TREE, ()).call(name, **input)).content
    assert lines == free.splitlines()
    count = 1 if name == "list_dir" else 3
    verb = "entry is" if count == 1 else "entries are"
    assert note == f"({count} {verb} left out: a rule keeps this tool from them)"


@pytest.mark.parametrize(("name", "input"), WALKS)
async def test_a_denied_directory_is_not_entered(tree: Any, name: str, input: Any) -> None:
    """It counts once, whatever it has."""
    done = await tree({**TREE, "secrets/x": "needle", "secrets/y": "needle"}, [Rule("*", "secrets/**", "deny")]).call(
        name, **input
    )
    assert "secrets" not in done.content
    assert "(1 entry is left out" in done.content


@pytest.mark.parametrize(("name", "input"), WALKS)
@pytest.mark.parametrize("rule", ["**", "src/**"])
async def test_a_directory_that_is_denied_as_a_whole_is_denied(tree: Any, name: str, input: Any, rule: str) -> None:
    """There is nothing that could be left."""
    done = await tree(TREE, [Rule("*", rule, "deny", "it is private")]).call(name, path="src", **input)
    assert done.outcome is Outcome.DENIED
    assert "src/**: it is private" in done.error


async def test_a_single_file_that_is_denied_is_not_searched(tree: Any) -> None:
    """It was asked for by its name."""
    done = await tree({**TREE, **SECRETS}).call("search", pattern="needle", path="src/.env")
    assert done.outcome is Outcome.DENIED


async def test_the_first_rule_that_speaks_of_an_entry_decides_in_a_walk(tree: Any) -> None:
    """An exception before the rule is in the answer, as it is for a read."""
    rules = [Rule("*", "src/.env", "allow"), DENY]
    done = await tree({**TREE, **SECRETS}, rules).call("glob", pattern="**/.env")
    assert done.content == "src/.env\n(2 entries are left out: a rule keeps this tool from them)"


async def test_a_rule_for_another_tool_leaves_nothing_out(tree: Any) -> None:
    """Each tool has its own rules."""
    done = await tree({**TREE, **SECRETS}, [Rule("read_file", "**/.env", "deny")]).call("glob", pattern="**/.env")
    assert done.content == ".env\nsrc/.env\nsrc/deep/.env"


async def test_a_pattern_counts_only_what_it_asks_for(tree: Any) -> None:
    """The note is about this answer."""
    made = tree({**TREE, **SECRETS})
    assert (await made.call("glob", pattern="**/b.txt")).content == "src/b.txt"
    assert (await made.call("search", pattern="needle", glob="b.txt")).content == "src/b.txt:1: needle"


async def test_what_cannot_be_asked_for_is_left_out_too(tree: Any) -> None:
    """A rule that asks about some files does not stop a walk in a workspace without an `ask`."""
    done = await tree({**TREE, **SECRETS}, [Rule("*", "**/.env", "ask")]).call("search", pattern="key")
    assert done.content == "no line matches\n(3 entries are left out: a rule keeps this tool from them)"


async def test_denied_entries_stay_out_of_a_walk_that_was_asked_for(tree: Any) -> None:
    """A yes to a walk is no yes to what is denied in it."""
    made = tree({**TREE, **SECRETS}, ask=lambda question: Permit.SESSION, default="ask")
    for _ in range(2):
        done = await made.call("search", pattern="key")
        assert done.content == "no line matches\n(3 entries are left out: a rule keeps this tool from them)"


async def test_a_rewrite_leaves_denied_entries_out(tree: Any) -> None:
    """The new input is judged as the first."""
    made = tree({**TREE, **SECRETS}, ask=lambda question: {"pattern": "key"}, default="ask")
    assert "(3 entries are left out" in (await made.call("search", pattern="needle")).content


async def test_another_name_of_a_denied_file_is_not_searched(tree: Any) -> None:
    """It may be the denied file, so without a person to ask it is left out."""
    done = await tree({**TREE, ".env": "needle key", "also": HardLink(".env")}).call("search", pattern="key")
    assert done.content == "no line matches\n(2 entries are left out: a rule keeps this tool from them)"


async def test_denied_entries_are_left_out_as_directories_fold_names() -> None:
    """On a disk that takes .ENV and .env for one name the rule does too."""
    made = Tree(None, {"Src/.ENV": "needle"}, [DENY], fold=Folding(case=True))
    assert "(1 entry is left out" in (await made.call("search", pattern="needle")).content


@pytest.mark.parametrize("rule", ["**/.*", "**/.gitignore"])
async def test_a_denied_ignore_file_stops_no_walk(tree: Any, rule: str) -> None:
    """It is not shown, and still says what a walk leaves out."""
    made = tree({**TREE, ".gitignore": "deep/\n"}, [Rule("*", rule, "deny")])
    assert (await made.call("glob", pattern="**", path="src")).content == "src/b.txt"
    assert (await made.call("search", pattern="needle", path="src")).content == "src/b.txt:1: needle"


# Changes of whole directories


MOVE = ("move_path", {"source": "src", "target": "lib"})
DELETE = ("delete_path", {"path": "src", "recursive": True})


@pytest.mark.parametrize(("name", "input"), [MOVE, DELETE])
async def test_a_directory_without_denied_entries_can_be_moved_and_deleted(tree: Any, name: str, input: Any) -> None:
    """Denied entries elsewhere are none of its business."""
    made = tree({**TREE, ".env": "key", "docs/.env": "key"})
    assert (await made.call(name, **input)).outcome is Outcome.OK
    left = made.workspace.snapshot()
    assert not any(path.startswith("src/") for path in left)
    assert left[".env"] == b"key"


@pytest.mark.parametrize(("name", "input"), [MOVE, DELETE])
async def test_a_directory_with_a_denied_entry_is_neither_moved_nor_deleted(tree: Any, name: str, input: Any) -> None:
    """The refusal names the entry, and all is as it was."""
    made = tree({**TREE, "src/deep/.env": "key"})
    before = made.workspace.snapshot()
    done = await made.call(name, **input)
    assert done.outcome is Outcome.DENIED
    assert "src/deep/.env" in done.error
    assert made.workspace.snapshot() == before


@pytest.mark.parametrize(("name", "input"), [MOVE, DELETE])
async def test_a_denied_entry_that_an_earlier_call_makes_is_seen(tree: Any, name: str, input: Any) -> None:
    """The call was judged before the entry was there; it looks again before it changes anything."""
    made = tree(TREE, [Rule(name, "**/.env", "deny")])
    wrote, done = await made.batch(("write_file", {"path": "src/.env", "content": "key"}), (name, input))
    assert (wrote.outcome, done.outcome) == (Outcome.OK, Outcome.ERROR)
    assert "src/.env" in done.error
    assert {"src/.env", "src/b.txt"} <= made.workspace.snapshot().keys()


@pytest.mark.parametrize("rule", ["lib/.env", "lib/deep/**", "lib/deep/c.txt"])
async def test_a_move_puts_nothing_at_a_denied_name(tree: Any, rule: str) -> None:
    """What may not be written may not be moved there either, with a directory around it."""
    made = tree({**TREE, "src/.env": "key"}, [Rule("*", rule, "deny")])
    before = made.workspace.snapshot()
    done = await made.call(*MOVE[:1], **MOVE[1])
    assert done.outcome in (Outcome.ERROR, Outcome.DENIED)
    assert made.workspace.snapshot() == before
    assert (await made.call("move_path", source="src", target="other")).outcome is Outcome.OK


@pytest.mark.parametrize(("name", "input"), [MOVE, DELETE])
async def test_a_directory_that_is_too_large_to_judge_is_looked_through_as_it_runs(
    tree: Any, name: str, input: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How large a directory is makes no difference to what is touched."""
    monkeypatch.setattr("toolrt.workspace.rules._permissions._LOOKED_AT_MOST", 1)
    made = tree({"src/a": "", "src/b": "", "src/z/.env": "key"})
    before = made.workspace.snapshot()
    done = await made.call(name, **input)
    assert done.outcome is not Outcome.OK
    assert "src/z/.env" in done.error
    assert made.workspace.snapshot() == before


async def test_a_tool_that_leaves_nothing_out_is_denied_as_before() -> None:
    """A user's own tool that claims a directory is not trusted to pass over what is denied in it."""
    workspace = Workspace(MemoryDisk(TREE))

    @toolrt.tool(
        claims=lambda input, state: workspace.claims(".", state, toolrt.READ, subtree=True), owner=workspace, safe=True
    )
    async def count_words(ctx: toolrt.ToolContext) -> str:
        return "many"

    runtime = toolrt.Runtime(toolrt.Registry([count_words]), approve=Permissions(workspace, [DENY], default="allow"))
    [result] = (await runtime.run([ToolCall("id", "count_words", {})])).results
    assert result.outcome is Outcome.DENIED
