"""Several roots in one workspace: one tree, one order, one history; and nothing outside of any of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

import toolrt
from tests.workspace import _crash
from tests.workspace._everywhere import plant
from toolrt import READ, WRITE, Claim, State, ToolCall, sim
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.invariants import require
from toolrt.services import shell_tool
from toolrt.workspace import (
    FileProblem,
    Folding,
    HardLink,
    MemoryDisk,
    MountedDisk,
    Permissions,
    RealDisk,
    Rule,
    Symlink,
    Workspace,
    state_directory,
)

REPO: Mapping[str, Any] = {
    "a.txt": "one\n",
    "src/app.py": "one\n",
    "to_doc": Symlink("{docs}/x.md"),
    "to_docs": Symlink("../srv/docs"),
    "out": Symlink("../srv/other/secret"),
    ".gitignore": "*.log\n",
}
DOCS: Mapping[str, Any] = {
    "x.md": "one\n",
    "sub/y.md": "one\n",
    "twin.md": HardLink("x.md"),
    "back": Symlink("{repo}/a.txt"),
    "noise.log": "one\n",
}


#: A text of more than 10 MiB, which history does not hold and a read gives in part alone.
LARGE = "".join(f"line {number}\n" for number in range(1, 900_001))


@attrs.frozen
class World:
    """A directory, another that is mounted in it as ``docs``, and a third that is not."""

    workspace: Workspace
    repo: str
    docs: str
    #: Writes a file at an absolute path, as somebody else does.
    write: Callable[[str, str], Any]

    def run(self, *calls: tuple[str, Mapping[str, Any]], **options: Any) -> list[Any]:
        runtime = toolrt.Runtime(toolrt.Registry(self.workspace.tools()), **options)
        called = [ToolCall(f"id{number}", *call) for number, call in enumerate(calls)]
        with toolrt.record() as recorder:
            results = toolrt.run_sync(runtime, called).results
        require(recorder.trace())
        return [result.content if result.ok else result.error for result in results]


def filled(content: Mapping[str, Any], **roots: str) -> dict[str, Any]:
    return {
        path: Symlink(what.target.format(**roots)) if isinstance(what, Symlink) else what
        for path, what in content.items()
    }


def twins(**options: Any) -> MountedDisk:
    roots = {"repo": "/home/me/repo", "docs": "/home/me/srv/docs"}
    base = MemoryDisk(filled(REPO, **roots), root=roots["repo"], home="/home/me", **options)
    base.put("/home/me/srv/other/secret", "secret\n")
    return MountedDisk(base, {"docs": MemoryDisk(filled(DOCS, **roots), root=roots["docs"])})


@pytest.fixture(params=["real", "twin"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    if request.param == "twin":
        disk = twins()
        docs = disk.disks[1]
        assert isinstance(docs, MemoryDisk)
        return World(Workspace(disk), disk.root, docs.root, docs.put)
    base = tmp_path.resolve()
    roots = {"repo": str(base / "repo"), "docs": str(base / "srv/docs")}
    plant(base / "repo", filled(REPO, **roots))
    plant(base / "srv/docs", filled(DOCS, **roots))
    plant(base / "srv/other", {"secret": "secret\n"})
    workspace = Workspace(roots["repo"], mounts={"docs": roots["docs"]})
    return World(workspace, roots["repo"], roots["docs"], lambda path, text: Path(path).write_text(text))


@pytest.mark.parametrize(
    "spelled", ["docs/x.md", "{docs}/x.md", "to_doc", "to_docs/x.md", "docs/sub/../x.md", "docs/../docs/x.md"]
)
def test_every_name_of_a_mounted_file_has_one_key(world: World, spelled: str) -> None:
    """By the mount's name, by its own path, and through links of another root."""
    found = world.workspace.identify(spelled.format(docs=world.docs))
    assert found.key == found.entry == ("docs", "x.md")
    assert found.problem is None
    assert ("docs",) in found.through


def test_names_lead_from_one_root_to_another(world: World) -> None:
    """Back through a link, up from the mount's name to the top, and from a working directory."""
    assert world.workspace.identify("docs/back").key == ("a.txt",)
    assert world.workspace.identify("docs/../a.txt").key == ("a.txt",)
    state = State(working_dir=Path("docs/sub"))
    assert world.workspace.identify("y.md", state).key == ("docs", "sub", "y.md")
    assert world.workspace.identify("../../a.txt", state).key == ("a.txt",)
    assert world.workspace.identify("docs/new/file").key == ("docs", "new", "file")


@pytest.mark.parametrize(
    "spelled", ["{docs}/../other/secret", "{docs}/..", "out", "{repo}/../srv/other/secret", "docs/../../srv/docs2"]
)
def test_what_is_in_no_root_is_refused(world: World, spelled: str) -> None:
    """Beside a mounted directory is outside, though the system would say what stands there."""
    path = spelled.format(docs=world.docs, repo=world.repo)
    problem = world.workspace.identify(path).problem
    assert "got one that leads outside" in str(problem)
    assert "srv" not in str(problem)
    [told] = world.run(("read_file", {"path": path}))
    assert "secret" not in told.replace("{docs}", "")


def test_tools_work_on_all_of_it(world: World) -> None:
    """As on one tree: found, listed, searched, read, changed, and the names that answers give work again."""
    told = world.run(
        ("list_dir", {}),
        ("glob", {"pattern": "**/*.md"}),
        ("search", {"pattern": "one", "path": "docs"}),
        ("edit_file", {"path": f"{world.docs}/x.md", "old": "one", "new": "two"}),
        ("read_file", {"path": "to_docs/twin.md"}),
        ("write_file", {"path": "docs/new/z.md", "content": "z\n"}),
        ("move_path", {"source": "docs/sub", "target": "docs/moved"}),
        ("list_dir", {"path": "docs"}),
    )
    assert "docs/" in told[0].splitlines()
    assert told[1].splitlines() == ["docs/sub/y.md", "docs/twin.md", "docs/x.md"]
    assert told[2].splitlines() == ["docs/sub/y.md:1: one", "docs/twin.md:1: one", "docs/x.md:1: one"]
    assert told[3:7] == [
        "replaced 1 place in docs/x.md (line 1)",
        "two\n",
        "created docs/new/z.md (2 bytes)",
        "moved docs/sub to docs/moved",
    ]
    assert {"moved/", "new/"} <= set(told[7].splitlines())
    assert world.workspace.snapshot()["docs/x.md"] == b"two\n"


def test_search_of_many_files_sees_what_is_mounted(tmp_path: Path) -> None:
    """The base's own tree is not all there is, where another program is asked which files may match."""
    plant(tmp_path / "repo", {f"{number:03}.txt": "nothing\n" for number in range(300)})
    plant(tmp_path / "docs", {f"{number:03}.txt": "nothing\n" for number in range(300)})
    plant(tmp_path / "docs", {"zzz/last.txt": "the word\n"})
    workspace = Workspace(tmp_path / "repo", mounts={"docs": tmp_path / "docs"})
    searches = [
        ToolCall("0", "search", {"pattern": "the word", "literal": True}),
        ToolCall("1", "search", {"pattern": "the word", "literal": True, "path": "docs"}),
    ]
    results = toolrt.run_sync(toolrt.Runtime(toolrt.Registry(workspace.tools())), searches).results
    assert [result.content for result in results] == ["docs/zzz/last.txt:1: the word"] * 2


def test_rules_above_reach_into_a_mount(world: World) -> None:
    """A mounted directory stands where its name says, so the base's .gitignore speaks of it too."""
    [without, with_ignored] = world.run(
        ("glob", {"pattern": "**/*.log"}), ("glob", {"pattern": "**/*.log", "ignored": True})
    )
    assert (without, with_ignored) == ("no file matches", "docs/noise.log")


def test_a_mount_point_stays(world: World) -> None:
    """It is neither moved nor deleted nor replaced by a file; nothing moves from root to root."""
    before = world.workspace.snapshot()
    told = world.run(
        ("delete_path", {"path": "docs", "recursive": True}),
        ("move_path", {"source": "docs", "target": "elsewhere"}),
        ("move_path", {"source": "src", "target": "docs"}),
        ("write_file", {"path": "docs", "content": "1"}),
        ("move_path", {"source": "docs/x.md", "target": "x.md"}),
        ("move_path", {"source": "a.txt", "target": "docs/a.txt"}),
        ("make_dir", {"path": "docs"}),
    )
    assert all("expected an entry of the workspace, got a directory that is mounted there" in text for text in told[:3])
    assert "expected a file, got a directory" in told[3]
    for text in told[4:6]:
        assert "expected a target on the same disk, got one on another. Write it there and delete it here." in text
    assert told[6] == "docs is there already"
    assert world.workspace.snapshot() == before


def test_history_and_undo_cover_every_root(world: World) -> None:
    """One batch changed files of both: an undo puts all of it back, or nothing."""
    before = world.workspace.snapshot()
    world.run(
        ("edit_file", {"path": "a.txt", "old": "one", "new": "two"}),
        ("edit_file", {"path": "docs/sub/y.md", "old": "one", "new": "two"}),
        ("write_file", {"path": "docs/more/deep.md", "content": "1"}),
    )
    changed = world.workspace.snapshot()
    history = world.workspace.history

    async def undone() -> Any:
        [version] = await history.versions("docs/sub/y.md")
        return await history.undo(version.batch_id)

    world.write(f"{world.docs}/sub/y.md", "somebody else\n")
    with pytest.raises(FileProblem, match=r"docs/sub/y\.md"):
        trio.run(undone)
    world.write(f"{world.docs}/sub/y.md", "two\n")
    assert world.workspace.snapshot() == changed
    assert sorted(trio.run(undone).paths) == ["a.txt", "docs/more", "docs/more/deep.md", "docs/sub/y.md"]
    assert world.workspace.snapshot() == before


def test_what_is_too_large_for_history_is_kept_on_its_own_root(world: World) -> None:
    """A directory and a file come back from there, also after an undo of the undo; no listing shows what is kept."""
    for name in ("large/log", "single"):
        world.write(f"{world.docs}/sub/{name.replace('/', '-')}", LARGE)
    world.run(("move_path", {"source": "docs/sub/large-log", "target": "docs/large/log"}))
    before = world.workspace.snapshot()
    gone = [("delete_path", {"path": "docs/large", "recursive": True}), ("delete_path", {"path": "docs/sub/single"})]
    world.run(*gone, ("edit_file", {"path": "a.txt", "old": "one", "new": "two"}))
    after = world.workspace.snapshot()
    assert set(before) - set(after) == {"docs/large/log", "docs/sub/single"}
    listed = world.run(("list_dir", {"path": "."}), ("list_dir", {"path": "docs", "depth": 3}))
    assert not any(".toolrt-" in one for one in listed)
    history = world.workspace.history

    async def there_and_back() -> None:
        version = (await history.versions("docs/sub/single"))[-1]
        undone = await history.undo(version.batch_id)
        assert world.workspace.snapshot() == before
        again = await history.undo(undone.batch_id)
        assert world.workspace.snapshot() == after
        await history.undo(again.batch_id)

    trio.run(there_and_back)
    assert world.workspace.snapshot() == before


def test_parts_of_a_large_mounted_file_are_read(world: World) -> None:
    """From its beginning, its middle and its end."""
    world.write(f"{world.docs}/log", LARGE)
    count = LARGE.count("\n")
    asked = [{"limit": 1}, {"offset": count // 2, "limit": 1, "line_numbers": True}, {"tail": 1}]
    assert world.run(*(("read_file", {"path": "docs/log", **one}) for one in asked)) == [
        "line 1\n",
        f"{count // 2}\tline {count // 2}\n",
        f"line {count}\n",
    ]


def test_a_call_restores_a_mounted_file_within_its_claims(world: World) -> None:
    """One that does not claim it is refused, and the file stays as it was."""
    world.run(("edit_file", {"path": "docs/x.md", "old": "one", "new": "two"}))
    history = world.workspace.history

    def restoring(claimed: str) -> toolrt.Tool:
        @toolrt.tool(claims=lambda input, state: world.workspace.claims(claimed, state, WRITE), owner=world.workspace)
        async def restore(ctx: toolrt.ToolContext) -> str:
            undone = await history.restore("docs/x.md", 0, ctx.state, ctx=ctx)
            return f"{undone.batch_id == ctx.batch_id} {undone.paths}"

        return restore

    for claimed, expected in (("a.txt", "the file this name meant before"), ("docs/x.md", "True ('docs/x.md',)")):
        done = toolrt.run_sync(toolrt.Runtime(toolrt.Registry([restoring(claimed)])), [ToolCall("id", "restore", {})])
        assert expected in (done.results[0].content or done.results[0].error)
        assert world.workspace.snapshot()["docs/x.md"] == (b"two\n" if claimed == "a.txt" else b"one\n")


def test_history_of_the_same_roots_outlives_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another workspace on the same directories knows it; one on other mounts has a history of its own."""
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))
    for name in ("repo", "docs"):
        plant(tmp_path / name, {"a.txt": "one\n"})
    first = Workspace(tmp_path / "repo", mounts={"docs": tmp_path / "docs"})
    call = ToolCall("id", "edit_file", {"path": "docs/a.txt", "old": "one", "new": "two"})
    assert toolrt.run_sync(toolrt.Runtime(toolrt.Registry(first.tools())), [call]).results[0].ok
    again = Workspace(tmp_path / "repo", mounts={"docs": tmp_path / "docs"})
    assert again.history.persistent
    [version] = trio.run(again.history.versions, "docs/a.txt")
    assert trio.run(again.history.undo, version.batch_id).paths == ("docs/a.txt",)
    assert (tmp_path / "docs/a.txt").read_text() == "one\n"
    disks = [Workspace(tmp_path / "repo").disk, again.disk]
    disks.append(Workspace(tmp_path / "repo", mounts={"other": tmp_path / "docs"}).disk)
    assert len({state_directory(disk, None) for disk in disks}) == 3


def test_history_is_not_kept_in_a_mounted_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is not in the workspace's own root, unless it is asked for."""
    monkeypatch.delenv("TOOLRT_STATE_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "docs/state"))
    for name in ("repo", "docs"):
        plant(tmp_path / name, {"a.txt": "one\n"})
    workspace = Workspace(tmp_path / "repo", mounts={"docs": tmp_path / "docs"})
    assert state_directory(workspace.disk, None) is None
    assert not workspace.history.persistent


def test_recovery_reaches_every_root(tmp_path: Path) -> None:
    """What a dead writer left in a mounted directory is mended at the next start."""
    alien = ".toolrt-0123456789abcdef.tmp"
    left = {}
    for name in ("repo", "docs"):
        plant(tmp_path / name, {"a.txt": "one\n", f"sub/{alien}": "half", "sub/b": "1"})
        left[name] = _crash.left_by(str(tmp_path / name), ("sub", "half"))
    disk = MountedDisk(RealDisk(tmp_path / "repo"), {"docs": RealDisk(tmp_path / "docs")})
    mended = disk.recover([("docs", "sub"), ("docs",)])
    assert mended == [f"docs/sub/{left['docs']}"]
    assert (tmp_path / "repo/sub" / left["repo"]).exists()
    assert disk.recover() == [f"sub/{left['repo']}"]
    assert disk.strangers() == [f"docs/sub/{alien}", f"sub/{alien}"]
    assert disk.strangers([("docs", "sub")]) == [f"docs/sub/{alien}"]


def test_an_error_says_the_name_that_the_entry_has(world: World) -> None:
    """As of any disk: by errno, and with the path below the workspace's root."""

    async def wrong() -> list[tuple[int | None, str]]:
        told = []
        disk = world.workspace.disk
        for work in (
            lambda: disk.read(("docs", "none"), 10),
            lambda: disk.names(("docs", "x.md")),
            lambda: disk.remove(("docs",)),
            lambda: disk.remove_tree(("docs",)),
            lambda: disk.set_mode(("docs",), 0o700),
            lambda: disk.make_link(("docs",), "x"),
            lambda: disk.move(("docs",), ("docs2",)),
            lambda: disk.move(("a.txt",), ("docs", "a")),
            lambda: disk.move(("none",), ("docs", "a")),
        ):
            with pytest.raises(OSError) as caught:
                await work()
            told.append((caught.value.errno, str(caught.value.filename)))
        return told

    assert trio.run(wrong) == [
        (errno.ENOENT, "docs/none"),
        (errno.ENOTDIR, "docs/x.md"),
        (errno.EBUSY, "docs"),
        (errno.EBUSY, "docs"),
        (errno.EBUSY, "docs"),
        (errno.EEXIST, "docs"),
        (errno.EBUSY, "docs"),
        (errno.EXDEV, "a.txt"),
        (errno.ENOENT, "none"),
    ]


@pytest.mark.seldom
def test_calls_of_one_file_are_ordered_by_every_name() -> None:
    """Each of them sees what those before it did, in every trace; a file of another root waits for nobody."""
    calls = [
        ("edit_file", {"path": "docs/x.md", "old": "one", "new": "two"}),
        ("edit_file", {"path": "/home/me/srv/docs/x.md", "old": "two", "new": "three"}),
        ("edit_file", {"path": "a.txt", "old": "one", "new": "two"}),
        ("edit_file", {"path": "to_docs/x.md", "old": "three", "new": "four"}),
        ("read_file", {"path": "to_doc"}),
        ("edit_file", {"path": "docs/back", "old": "two", "new": "three"}),
    ]

    async def program() -> Any:
        workspace = Workspace(twins())
        runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
        done = await runtime.run([ToolCall(f"id{number}", *call) for number, call in enumerate(calls)])
        files = workspace.snapshot()
        return [result.outcome.value for result in done.results], done.results[4].content, files["a.txt"]

    report = sim.explore(program, strategy=sim.DPOR(), max_executions=2_000)
    assert report.complete
    [ending] = report.outcomes
    assert str(ending) == str((["ok"] * 6, "four\n", b"three\n"))
    sampled = sim.explore(program, strategy=sim.Random(sim.RandomWalk(seed=1), 60))
    assert set(sampled.outcomes) == {ending}


def test_files_of_two_disks_with_one_number_are_two() -> None:
    """The numbers that each disk counts its files by meet; hard links of one say nothing of the other's."""
    workspace = Workspace(
        MemoryDisk({"a": "one", "b": HardLink("a")}, root="/near/one"),
        mounts={"other": MemoryDisk({"a": "two", "b": HardLink("a")}, root="/far/two")},
    )
    mine, theirs = workspace.identify("a"), workspace.identify("/far/two/a")
    assert theirs == workspace.identify("other/a")
    assert mine.event_name != theirs.event_name
    assert mine.found is not None
    assert theirs.found is not None
    assert mine.found.inode == theirs.found.inode
    edits = [
        ToolCall("0", "edit_file", {"path": "a", "old": "one", "new": "1"}),
        ToolCall("1", "edit_file", {"path": "other/b", "old": "two", "new": "2"}),
        ToolCall("2", "edit_file", {"path": "b", "old": "1", "new": "3"}),
    ]
    results = toolrt.run_sync(toolrt.Runtime(toolrt.Registry(workspace.tools())), edits).results
    assert [result.error for result in results] == [None] * 3


def test_a_mount_is_named_as_its_directory_folds() -> None:
    """Where the base takes two spellings for one name, so it does for the mount's."""
    base = MemoryDisk({"a.txt": "one"}, root="/base", fold=Folding(case=True))
    workspace = Workspace(base, mounts={"Docs": MemoryDisk({"X.md": "one"}, root="/docs")})
    assert workspace.identify("dOCS/X.md").key == ("docs", "X.md")
    assert workspace.identify("docs/X.md").entry == ("Docs", "X.md")
    assert workspace.identify("docs/x.md").found is None
    base.put("DOCS", "hidden")
    assert sorted(workspace.snapshot()) == ["Docs/X.md", "a.txt"]
    with pytest.raises(DefinitionRefused, match="free at the workspace's root"):
        MountedDisk(base, {"docs": MemoryDisk(root="/other")})


def test_permissions_speak_of_mounted_files(world: World) -> None:
    """A pattern is one of paths from the workspace's root."""
    permissions = Permissions(world.workspace, [Rule("*", "docs/**", "deny"), Rule("*", "**", "allow")])
    told = world.run(
        ("edit_file", {"path": f"{world.docs}/x.md", "old": "one", "new": "two"}),
        ("edit_file", {"path": "a.txt", "old": "one", "new": "two"}),
        approve=permissions,
    )
    assert "docs/x.md" in told[0]
    assert "rule says deny" in told[0]
    assert told[1] == "replaced 1 place in a.txt (line 1)"


def test_somebody_elses_change_is_a_conflict(world: World) -> None:
    """Freshness knows a mounted file by its key."""
    world.run(("read_file", {"path": "docs/sub/y.md"}))
    world.write(f"{world.docs}/sub/y.md", "somebody else\n")
    [told] = world.run(("write_file", {"path": "to_docs/sub/y.md", "content": "mine\n"}))
    assert "another writer changed it since" in told
    assert world.workspace.snapshot()["docs/sub/y.md"] == b"somebody else\n"


def test_a_tools_own_error_shows_no_root(world: World) -> None:
    """The paths of all roots are private; what is below them has its name in the workspace."""
    shown = world.workspace.describe_error(ValueError(f"no {world.docs}/x.md and no {world.repo}/a.txt"))
    assert shown == "ValueError: no docs/x.md and no a.txt"
    shown = world.workspace.describe_error(FileNotFoundError(errno.ENOENT, "gone", f"{world.docs}/x.md"))
    assert shown == "FileNotFoundError: gone: docs/x.md"
    shown = world.workspace.describe_error(ValueError(f"at{world.docs}/x.md, {world.docs}/../x"))
    assert shown == "ValueError: atdocs/x.md, the path"


def test_claims_of_a_mounted_file(world: World) -> None:
    """Its key, and READ on what its name goes through."""
    assert world.workspace.claims("docs/sub/y.md", State(), WRITE) == (
        Claim(("file", "docs", "sub", "y.md"), WRITE),
        Claim(("file", "docs"), READ),
        Claim(("file", "docs", "sub"), READ),
    )


def test_commands_run_in_mounted_directories(tmp_path: Path) -> None:
    """A shell is told the directory's own path; what they change is seen."""
    for name in ("repo", "docs"):
        plant(tmp_path / name, {"sub/a.txt": name})
    workspace = Workspace(tmp_path / "repo", mounts={"docs": tmp_path / "docs"})
    registry = toolrt.Registry([*workspace.tools(), shell_tool(workspace)])
    calls = [
        ToolCall("0", "run_command", {"command": "cd docs/sub && cat a.txt && echo new > b.txt"}),
        ToolCall("1", "read_file", {"path": "b.txt"}),
    ]
    results = toolrt.run_sync(toolrt.Runtime(registry), calls).results
    assert str(results[0].content) == "docs\n[exit status 0; working directory docs/sub]"
    assert results[1].content == "new\n"
    assert os.path.exists(tmp_path / "docs/sub/b.txt")


@pytest.mark.parametrize(
    ("mounts", "wanted"),
    [
        ({"a/b": "two"}, "a name without a slash"),
        ({"..": "two"}, "a name without a slash"),
        ({"": "two"}, "a name without a slash"),
        ({"src": "two"}, "a name that is free at the workspace's root"),
        ({"in": "repo/src"}, "a directory apart from the workspace's root"),
        ({"up": "."}, "a directory apart from the workspace's root"),
        ({"x": "two", "y": "two/in"}, "a directory apart from mount 'x'"),
        ({"x": 3}, "a directory's path or a disk"),
    ],
)
def test_mounts_that_cannot_be_are_refused(tmp_path: Path, mounts: dict[str, Any], wanted: str) -> None:
    """What was refused, and what was wanted."""
    plant(tmp_path, {"repo/src/a": "1", "two/in/a": "1"})
    given = {name: tmp_path / where if isinstance(where, str) else where for name, where in mounts.items()}
    with pytest.raises(DefinitionRefused, match="mount") as caught:
        Workspace(tmp_path / "repo", mounts=given)
    assert caught.value.expected.startswith(wanted)


def test_a_directory_that_is_missing_is_refused(tmp_path: Path) -> None:
    """As for the workspace's own root."""
    with pytest.raises(InputRefused, match="expected a directory, got none"):
        Workspace(tmp_path, mounts={"docs": tmp_path / "none"})
    with pytest.raises(DefinitionRefused, match="directories by name"):
        Workspace(tmp_path, mounts=["docs"])  # type: ignore[arg-type]
    inner = MountedDisk(MemoryDisk(root="/a"), {"b": MemoryDisk(root="/b")})
    with pytest.raises(DefinitionRefused, match="no mounts of its own"):
        MountedDisk(MemoryDisk(root="/c"), {"d": inner})
    with pytest.raises(DefinitionRefused, match="no mounts of its own"):
        Workspace(inner, mounts={"d": MemoryDisk(root="/d")})
    with pytest.raises(DefinitionRefused, match="a name without a slash"):
        MountedDisk(MemoryDisk(root="/c"), {"d" * 300: MemoryDisk(root="/d")})


def test_a_rule_reaches_below_a_mount_by_its_folded_name() -> None:
    """What is below a mount is found by key as well as by the name that was given."""
    base = MemoryDisk({"f": "1"}, root="/srv/repo", fold=Folding(case=True))
    docs = MemoryDisk({"sub/secret": "the secret\n", "sub/other": "1\n"}, root="/srv/docs")
    workspace = Workspace(base, mounts={"Docs": docs})
    permissions = Permissions(workspace, [Rule("*", "Docs/sub/secret", "deny"), Rule("*", "**", "allow")])
    calls = [
        ToolCall("0", "search", {"pattern": "secret", "path": "Docs/sub"}),
        ToolCall("1", "list_dir", {"path": "docs/sub"}),
        ToolCall("2", "delete_path", {"path": "DOCS/sub", "recursive": True}),
        ToolCall("3", "move_path", {"source": "docs/sub", "target": "docs/public"}),
    ]
    runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()), approve=permissions)
    results = toolrt.run_sync(runtime, calls).results
    assert [result.outcome.value for result in results] == ["ok", "ok", "denied", "denied"]
    left_out = "(1 entry is left out: a rule keeps this tool from them)"
    assert [result.content for result in results[:2]] == [
        f"no line matches\n{left_out}",
        f"other (2 bytes)\n{left_out}",
    ]


def test_relative_links_lead_where_the_system_says() -> None:
    """What climbs in a link's text climbs from the directory that the link is in, by whatever name that was reached."""
    base = MemoryDisk({"f": "1"}, root="/srv/repo")
    docs = MemoryDisk({"back": Symlink("../repo/f"), "self": Symlink("../docs/x"), "x": "1"}, root="/srv/docs")
    workspace = Workspace(base, mounts={"docs": docs})
    assert workspace.identify("docs/back").key == workspace.identify("/srv/docs/back").key == ("f",)
    assert workspace.identify("docs/self").key == workspace.identify("/srv/docs/self").key == ("docs", "x")
    assert workspace.identify("docs/../f").key == ("f",)


def test_a_mount_that_disappears_takes_nothing_else_along(tmp_path: Path) -> None:
    """The rest is listed and found; nothing pretends to make it again."""
    for name in ("repo", "docs"):
        plant(tmp_path / name, {"a.txt": "one\n"})
    workspace = Workspace(tmp_path / "repo", mounts={"docs": tmp_path / "docs"})
    (tmp_path / "docs/a.txt").unlink()
    (tmp_path / "docs").rmdir()
    calls = [
        ToolCall("0", "list_dir", {}),
        ToolCall("1", "glob", {"pattern": "**/*"}),
        ToolCall("2", "make_dir", {"path": "docs"}),
        ToolCall("3", "write_file", {"path": "docs/b.txt", "content": "1"}),
    ]
    results = toolrt.run_sync(toolrt.Runtime(toolrt.Registry(workspace.tools())), calls).results
    assert [result.content for result in results] == ["a.txt (4 bytes)", "a.txt", None, None]
    assert all("nothing of that name" in str(result.error) for result in results[2:])
    assert workspace.snapshot() == {"a.txt": b"one\n"}
    assert trio.run(workspace.history.versions, "docs") == []
