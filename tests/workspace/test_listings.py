"""Directories that are remembered: an answer from them is the one that a new workspace gives."""

from __future__ import annotations

import errno
import itertools
import os
import random
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.workspace._later import LaterDisk
from toolrt import Registry, Runtime, ToolCall, Workspace
from toolrt.workspace import RealDisk
from toolrt.workspace.disk import _real
from toolrt.workspace.finding import _finding, _ripgrep
from toolrt.workspace.finding._factor import Factor
from toolrt.workspace.rules._ignore import Ignored, IgnoreFile
from toolrt.workspace.tools import _reading

NAMES = ["a", "b.py", "c", "d.txt", "build", "e.py"]
CALLS = [
    ("glob", {"pattern": "**"}),
    ("glob", {"pattern": "**/*.py"}),
    ("glob", {"pattern": "a/**/[bc]*", "ignored": True}),
    ("search", {"pattern": "x", "literal": True}),
    ("search", {"pattern": "[a-z]\\d", "path": "."}),
]


class ChangingTree:
    """A tree that changes at random; each directory that changed has times that it never had before."""

    def __init__(self, root: Path, outside: Path, seed: int) -> None:
        self.root, self.outside = root, outside
        self.random = random.Random(seed)
        self._times = itertools.count(10**18, 10**9)

    def directories(self) -> list[Path]:
        return [Path(directory) for directory, _, _ in os.walk(self.root)]

    def change(self) -> str:
        above = self.random.choice(self.directories())
        path = above / self.random.choice(NAMES)
        kind = self.random.choice(["file", "directory", "link", "ignore", "remove", "move", "hard link", "swap"])
        other = self.random.choice(self.directories())
        self._change(kind, path, above, other)
        for directory in (above, other, path):
            if directory.is_dir() and not directory.is_symlink():
                time = next(self._times)
                os.utime(directory, ns=(time, time))
        return f"{kind} {path.relative_to(self.root)}"

    def _change(self, kind: str, path: Path, above: Path, other: Path) -> None:
        if kind == "ignore":
            # Written in place: its directory keeps its times.
            lines = self.random.sample(["build/", "*.py", "!b.py", "/a", "c/**", "**/d.txt"], 2)
            (above / ".gitignore").write_text("\n".join(lines))
            return
        if kind == "move":
            target = other / self.random.choice(NAMES)
            if (
                not target.exists()
                and not target.is_symlink()
                and path.exists()
                and path not in (other, *other.parents)
            ):
                os.rename(path, target)
            return
        if kind == "hard link":
            files = [one for one in above.iterdir() if one.is_file() and not one.is_symlink()]
            if files and not path.exists() and not path.is_symlink():
                os.link(self.random.choice(files), path)
            return
        if path.is_dir() and not path.is_symlink():
            if path in (other, *other.parents) and kind != "swap":
                return
            shutil.rmtree(path)
        elif path.exists() or path.is_symlink():
            path.unlink()
        if kind == "file":
            path.write_text(self.random.choice(["x1", "one\ntwo x\n", "", "é7"]))
        elif kind == "directory":
            path.mkdir()
        elif kind in ("link", "swap"):
            path.symlink_to(self.random.choice([self.outside, other, "nowhere"]))


async def answers(workspace: Workspace) -> list[Any]:
    calls = [ToolCall(str(number), name, input) for number, (name, input) in enumerate(CALLS)]
    done = await Runtime(Registry(workspace.tools())).run(calls)
    return [result.content if result.ok else str(result.error) for result in done.results]


@pytest.mark.parametrize("seed", range(6))
async def test_remembered_directories_answer_as_a_new_workspace(tmp_path: Path, seed: int) -> None:
    """After every change, with links and ignore files among them; nothing outside is ever told."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for directory in (root, outside):
        directory.mkdir()
    (outside / "secret.py").write_text("x1 secret")
    tree = ChangingTree(root, outside, seed)
    kept = Workspace(LaterDisk(root))
    changes: list[str] = []
    for _ in range(40):
        changes += [tree.change() for _ in range(tree.random.randrange(1, 5))]
        found = await answers(kept)
        assert found == await answers(Workspace(LaterDisk(root))), changes
        assert "secret" not in str(found)


async def test_a_directory_that_changed_just_now_is_listed_again(tmp_path: Path) -> None:
    """The next change may leave its times as they are."""
    (tmp_path / "a.py").touch()
    workspace = Workspace(tmp_path)
    disk = workspace.disk
    assert isinstance(disk, RealDisk)
    assert [*disk.listing(()).others] == ["a.py"]
    assert disk.listing(()) is not disk.listing(())
    (tmp_path / "b.py").touch()
    assert (await answers(workspace))[1] == "a.py\nb.py"


def test_a_directory_that_rests_is_listed_once(tmp_path: Path) -> None:
    """Until it changes."""
    (tmp_path / "a.py").touch()
    disk = LaterDisk(tmp_path)
    first = disk.listing(())
    assert disk.listing(()) is first
    os.utime(tmp_path, ns=(1, 1))
    assert disk.listing(()) is not first


@pytest.mark.seldom
def test_a_large_directory_is_sorted(tmp_path: Path) -> None:
    """In parts, and then together."""
    names = [f"{number * 7919 % 10_007:05}" for number in range(9_000)]
    for name in names:
        (tmp_path / name).touch()
    assert [*RealDisk(tmp_path).listing(()).others] == sorted(names)


@pytest.mark.parametrize(("name", "input"), [("glob", {"pattern": "**"}), ("search", {"pattern": "x"})])
async def test_a_cancel_ends_a_walk_before_its_next_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, input: dict[str, Any]
) -> None:
    """Though it is in a thread, and hundreds of directories are left."""
    for number in range(300):
        (tmp_path / f"{number:03}").mkdir()
    listed: list[Any] = []
    listing, token = RealDisk.listing, trio.lowlevel.current_trio_token()

    def noted(disk: RealDisk, entry: Any) -> Any:
        listed.append(entry)
        if len(listed) == 2:
            trio.from_thread.run_sync(scope.cancel, trio_token=token)
            trio.from_thread.run(trio.testing.wait_all_tasks_blocked, trio_token=token)  # the call hears of it
        return listing(disk, entry)

    monkeypatch.setattr(RealDisk, "listing", noted)
    runtime = Runtime(Registry(Workspace(tmp_path).tools()))
    with trio.CancelScope() as scope:
        await runtime.run([ToolCall("1", name, input)])
    assert scope.cancelled_caught
    assert len(listed) == 2


PARTS = st.sampled_from(["a", "b", "ab", "a*", "*b", "?b", "a?", "*", "**", "[ab]b", "a**", "b[", "\\a", "*a*", ".b"])
LINES = st.lists(
    st.builds(
        lambda sign, parts, end: sign + "/".join(parts) + end,
        st.sampled_from(["", "", "!", "/", "#"]),
        st.lists(PARTS, min_size=1, max_size=3),
        st.sampled_from(["", "", "/", " ", "//"]),
    ),
    max_size=3,
)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "abb", ".b", "a b", "[b"]), min_size=1, max_size=3)


@pytest.mark.seldom
@settings(max_examples=400)
@given(lines=LINES, names=PATHS, is_directory=st.booleans())
@example(lines=["a**//"], names=["a"], is_directory=True)
def test_every_name_that_is_left_out_is_asked_about(lines: list[str], names: list[str], is_directory: bool) -> None:
    """The screen passes more than the patterns match, never less."""
    ignored = Ignored().including(IgnoreFile.of("\n".join(lines).encode()))
    for name in names[:-1]:
        ignored = ignored.enter(name)
    if ignored.leaves_out(names[-1], is_directory):
        assert names[-1] in ignored.may_leave_out([names[-1]])


# What ripgrep takes for text


def _byte_strings() -> list[bytes]:
    """Texts, and texts with a byte changed, cut or put in."""
    chance = random.Random(3)
    made = [b"", b"\n", b"\0", b"a\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbfx"]
    for _ in range(600):
        text = "".join(chance.choices(["a", "é", "日", "\U0001f600", "\n", "\r", "\u0800", "\uffff"], k=6)).encode()
        at = chance.randrange(len(text) + 1)
        changed = [text, text[:at], text[at:], text[:at] + chance.randbytes(1) + text[at + chance.randrange(2) :]]
        made.append(chance.choice(changed))
    return made


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


async def test_ripgrep_names_exactly_what_is_no_text(tmp_path: Path) -> None:
    """In the pass that looks for the text sought."""
    if _ripgrep.program() is None:
        pytest.skip("ripgrep is not installed")
    contents = _byte_strings()
    for number, content in enumerate(contents):
        (tmp_path / f"{number:04}").write_bytes(content)
    named = await _ripgrep.candidates(str(tmp_path), Factor.of("not in any of them"))
    assert named is not None
    assert {int(name) for (name,) in named} == {n for n, content in enumerate(contents) if not _is_text(content)}


PATTERNS = ["needle", "(needle|pin)s?", "(?i)NEEDLE", "n[e]+dle", "[a-z]{6}", "\\w+ needle", "x.y", "é", "^pin$", "\\d"]


@pytest.mark.parametrize("pattern", PATTERNS)
async def test_answers_are_the_same_with_ripgrep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    """On the first call of a workspace and on the next, after a change between them."""
    if _ripgrep.program() is None:
        pytest.skip("ripgrep is not installed")
    texts = ["needle\n", "pins\rx\ry\n", "NeEdLe é", "ﬁne neeeedle", "é needle 7", "", "\ufeffpin\n", "x\u2028y"]
    for number, text in enumerate(texts * 3):
        path = tmp_path / f"{number % 5}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode(["utf-8", "utf-16", "utf-8"][number % 3]) + b"\xff" * (number % 7 == 6))
    (tmp_path / ".gitignore").write_text("3/\n*7.txt\n")
    (tmp_path / "0" / "link").symlink_to(tmp_path / "1")
    monkeypatch.setattr(_finding, "_RIPGREP_FROM", 1)
    asked: list[object] = []
    with_it, without = Workspace(LaterDisk(tmp_path)), Workspace(LaterDisk(tmp_path))
    program = _ripgrep.program
    for _ in range(2):
        found = []
        for workspace, rg in ((with_it, program), (without, lambda: None)):
            monkeypatch.setattr(_ripgrep, "program", lambda rg=rg: asked.append(rg) or rg())
            [result] = (
                await Runtime(Registry(workspace.tools())).run([ToolCall("1", "search", {"pattern": pattern})])
            ).results
            found.append(result.content)
        assert found[0] == found[1]
        (tmp_path / "1" / "1.txt").write_text("a needle 8\npin")
        shutil.rmtree(tmp_path / "2", ignore_errors=True)
    assert asked


async def test_files_that_were_text_are_read_again_once_they_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ripgrep is asked for what is no text the first time; later what changed since is read, and so is what is new."""
    if _ripgrep.program() is None:
        pytest.skip("ripgrep is not installed")
    for number in range(30):
        (tmp_path / f"{number:02}").write_bytes(b"pin\xff" if number == 29 else b"pin %d" % number)
    (tmp_path / "large").write_bytes(b"a needle in a large file")
    monkeypatch.setattr(_ripgrep, "SIZE_LIMIT", 20)
    monkeypatch.setattr(_finding, "_RIPGREP_FROM", 1)
    candidates, alone = _finding.candidates, []

    async def noted(directory: str, factor: Factor, *, texts_alone: bool) -> Any:
        alone.append(texts_alone)
        return await candidates(directory, factor, texts_alone=texts_alone)

    monkeypatch.setattr(_finding, "candidates", noted)
    disk = LaterDisk(tmp_path)
    runtime = Runtime(Registry(Workspace(disk).tools()))

    async def found() -> Any:
        [result] = (await runtime.run([ToolCall("1", "search", {"pattern": "needle"})])).results
        return result.content

    no_text = "not searched, not UTF-8 (name the encoding with encoding=)"
    first = f"large:1: a needle in a large file\n(1 file was {no_text}: 29)"
    assert [await found(), await found()] == [first, first]
    (tmp_path / "05").write_bytes(b"pin\xff\xff")
    (tmp_path / "06").write_bytes(b"a needle now")
    (tmp_path / "07").unlink()
    (tmp_path / "08").rename(tmp_path / "8")
    (tmp_path / "99").write_bytes(b"pin\0")
    (tmp_path / "29").write_bytes(b"one needle")
    last = (
        "06:1: a needle now\n29:1: one needle\nlarge:1: a needle in a large file\n"
        f"(1 file was {no_text}: 05)\n(1 file was not searched, binary data: 99)"
    )
    assert [await found(), alone] == [last, [False, True, True]]
    young = RealDisk(tmp_path)
    runtime = Runtime(Registry(Workspace(young).tools()))
    assert [await found(), young.looked_into] == [last, {}]  # they may change once more, and show the same times


async def test_what_is_no_text_is_read_again_once_it_changed_or_an_encoding_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later searches name it in its place without reading it; one that names an encoding reads what it could not."""
    if _ripgrep.program() is None:
        pytest.skip("ripgrep is not installed")
    for number in range(30):
        (tmp_path / f"{number:02}").write_bytes([b"pin", b"\0needle", b"n\xe9edle"][min(number % 10, 2)])
    monkeypatch.setattr(_finding, "_RIPGREP_FROM", 1)
    read: list[str] = []

    seen_or_none = _real.seen_or_none

    def noted(above: int, entry: Any, limit: int) -> Any:
        read.append(entry[-1])
        return seen_or_none(above, entry, limit)

    monkeypatch.setattr(_real, "seen_or_none", noted)
    runtime = Runtime(Registry(Workspace(LaterDisk(tmp_path)).tools()))

    async def answer(**more: Any) -> Any:
        read.clear()
        [result] = (await runtime.run([ToolCall("1", "search", {"pattern": "needle", **more})])).results
        return result.content

    first = await answer()
    binary, other = ["01", "11", "21"], [f"{number:02}" for number in range(30) if number % 10 > 1]
    assert [name for name in read if name != ".gitignore"] == ["00", *sorted([*binary, *other])]
    assert first == (
        "no line matches\n(3 files were not searched, binary data: 01, 11, 21)\n(24 files were not searched, not UTF-8 "
        "(name the encoding with encoding=): 02, 03, 04, 05, 06 and 19 more)"
    )
    assert [await answer(), read] == [first, ["00"]]
    (tmp_path / "11").write_bytes(b"a needle now")
    assert (await answer()).startswith("11:1: a needle now\n(2 files were not searched, binary data: 01, 21)\n")
    assert read == ["00", "11"]
    named = await answer(pattern="n\xe9edle", encoding="latin-1")
    assert named.count("n\xe9edle") == 24
    assert named.endswith("(2 files were not searched, binary data: 01, 21)")


async def test_a_listing_looks_at_no_more_names_than_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are counted: a look at each of 100,000 takes seconds."""
    looked: list[str] = []
    look = _real._found
    monkeypatch.setattr(_reading, "LISTED_MOST", 2)
    monkeypatch.setattr(_real, "_found", lambda name, listed: looked.append(name) or look(name, listed))
    for name in "dbca":
        (tmp_path / name).touch()
    runtime = Runtime(Registry(Workspace(tmp_path).tools()))
    [result] = (await runtime.run([ToolCall("1", "list_dir", {})])).results
    assert result.content == "a (0 bytes)\nb (0 bytes)\n(2 more names are not shown; use glob)"
    assert looked == ["a", "b"]


def _deep_tree(root: Path, depth: int) -> None:
    """Directories one in the other, two files in each, and as many beside each of them."""
    for level in range(depth):
        for name in ("a", "b"):
            below = root.joinpath(*["a"] * level, name)
            below.mkdir()
            (below / "x.py").write_text("needle\n")


@pytest.mark.parametrize("tool", [("glob", {"pattern": "**/*.py"}), ("search", {"pattern": "needle"})])
async def test_a_walk_opens_each_directory_from_the_one_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: tuple[str, dict[str, Any]]
) -> None:
    """Not from the root again; when it is over nothing is left open."""
    _deep_tree(tmp_path, 20)
    monkeypatch.setattr(_ripgrep, "program", lambda: None)
    opened: list[str] = []
    real = os.open

    def counting(path: Any, *args: Any, **kwargs: Any) -> int:
        opened.append(path)
        return real(path, *args, **kwargs)

    workspace = Workspace(tmp_path)
    monkeypatch.setattr(os, "open", counting)
    before = len(os.listdir("/proc/self/fd"))
    done = await Runtime(Registry(workspace.tools())).run([ToolCall("1", *tool)])
    monkeypatch.undo()
    assert len(str(done.results[0].content).splitlines()) == 40
    assert len(os.listdir("/proc/self/fd")) == before
    # To pass through and to list; a search passes through again, and opens its file.
    assert len(opened) <= (4 if tool[0] == "search" else 2) * 41 + 10


@pytest.mark.parametrize("depth", [30, 60])
async def test_a_walk_through_more_directories_than_may_be_open_finds_all(tmp_path: Path, depth: int) -> None:
    """A way that is long is opened anew for each, and so is any where no more files may be open."""
    _deep_tree(tmp_path, depth)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    workspace = Workspace(tmp_path)
    taken = [int(name) for name in os.listdir("/proc/self/fd")]
    limit = next(one for one in itertools.count() if one - sum(number < one for number in taken) == 16)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        done = await Runtime(Registry(workspace.tools())).run([ToolCall("1", "glob", {"pattern": "**/*.py"})])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(str(done.results[0].content).splitlines()) == 2 * depth


async def test_directories_that_cannot_be_opened_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason is, unless there is none any more."""
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.py").touch()
    errors = {("a",): errno.EMFILE, ("b",): errno.ENOENT}
    real = RealDisk.listing

    def failing(disk: RealDisk, entry: Any) -> Any:
        if entry in errors:
            raise OSError(errors[entry], "no")
        return real(disk, entry)

    monkeypatch.setattr(RealDisk, "listing", failing)
    assert (await answers(Workspace(tmp_path)))[1] == "c/x.py\n(1 directories could not be read)"


async def test_a_directory_that_becomes_a_link_in_the_middle_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither it nor what is below: the walk goes on in the directory that it had entered."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for directory in (root / "a" / "b" / "c", outside / "b" / "c"):
        directory.mkdir(parents=True)
    (root / "a" / "b" / "c" / "in.py").touch()
    (outside / "b" / "c" / "out.py").touch()
    real = RealDisk.listing

    def swapping(disk: RealDisk, entry: Any) -> Any:
        if entry == ("a", "b"):
            os.rename(root / "a", root / "was")
            (root / "a").symlink_to(outside)
        return real(disk, entry)

    monkeypatch.setattr(RealDisk, "listing", swapping)
    found = (await answers(Workspace(root)))[1]
    assert "out.py" not in found
