"""What holds for every tree, every spelling and every sequence of calls."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path, PurePosixPath

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrt.model import State
from toolrt.workspace import Directory, FileProblem, HardLink, MemoryDisk, RealDisk, Symlink, Workspace, identify
from toolrt.workspace.text._text import edited, lines_of, slice_of

SETTINGS = settings(max_examples=150)


@attrs.frozen
class Context:
    state: State
    claims: tuple = ()
    batch_id: str = "batch"
    call_index: int = 0


TREE = {
    "a": "one\ntwo\n",
    "d/a": "one\r\ntwo\r\n",
    "d/e/f": "\ufeffone two",
    "hard": HardLink("a"),
    "link": Symlink("d/a"),
    "way": Symlink("d/e"),
    "d/up": Symlink(".."),
    "dangling": Symlink("d/new"),
    "loop": Symlink("loop"),
    "out": Symlink("../outside"),
    "empty": Directory(),
    "binary": b"\x00\xff",
}


def real_tree(root):
    for path, what in TREE.items():
        target = Path(root, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, Symlink):
            target.symlink_to(what.target)
        elif isinstance(what, HardLink):
            target.hardlink_to(Path(root, what.target))
        elif isinstance(what, Directory):
            target.mkdir()
        else:
            target.write_bytes(what if isinstance(what, bytes) else what.encode())


entries = ["a", "d", "e", "f", "hard", "link", "way", "up", "dangling", "loop", "out", "empty", "binary"]
names = st.sampled_from([*entries, "new", "..", ".", "", "\u00e9"])
paths = st.lists(names, min_size=1, max_size=5).map("/".join)
texts = st.text(st.sampled_from("onetw \n\r\u00e9"), max_size=6)
calls = st.one_of(
    st.fixed_dictionaries(
        {"name": st.just("read_file"), "path": paths},
        optional={"offset": st.integers(-1, 3), "limit": st.integers(0, 2)},
    ),
    st.fixed_dictionaries({"name": st.just("write_file"), "path": paths, "content": texts}),
    st.fixed_dictionaries(
        {"name": st.just("edit_file"), "path": paths, "old": texts, "new": texts, "all": st.booleans()}
    ),
)


async def answers(workspace, sequence, working_dir):
    """What each call answers, and what is there after it."""
    tools = {tool.name: tool for tool in workspace.tools()}
    state = State(working_dir=working_dir)
    for step in sequence:
        input = {key: value for key, value in step.items() if key != "name"}
        tool = tools[step["name"]]
        claims = tool.claims_for(input, state)
        try:
            answer = await tool.function(Context(state, claims), **tool.complete(input))
        except FileProblem as problem:
            answer = str(problem)
        # Devices have other numbers on other disks.
        shown = [
            (claim.resource[0] if claim.resource[0] == "links" else claim.resource, claim.mode) for claim in claims
        ]
        yield shown, answer, workspace.snapshot()


@pytest.mark.seldom
@SETTINGS
@given(sequence=st.lists(calls, min_size=1, max_size=6), working_dir=st.sampled_from([None, "d", "way", "out"]))
def test_twin_and_real_answer_alike(sequence, working_dir):
    """Any sequence of calls gives the same claims, the same texts and the same bytes on both disks."""

    async def both():
        real = answers(Workspace(f"{base}/repo"), sequence, working_dir)
        twin = answers(Workspace(MemoryDisk(TREE, root=f"{base}/repo")), sequence, working_dir)
        for _ in sequence:
            assert await anext(real) == await anext(twin)
        await real.aclose()
        await twin.aclose()

    with tempfile.TemporaryDirectory() as base:
        base = str(Path(base).resolve())
        Path(base, "repo").mkdir()
        Path(base, "outside").mkdir()
        real_tree(f"{base}/repo")
        trio.run(both)
        assert not list(Path(base, "outside").iterdir())


@pytest.mark.seldom
@SETTINGS
@given(path=paths.filter(bool))
def test_key_is_where_the_system_ends_up(path):
    """A name that the system can follow to a file inside has the key of that file's real path."""
    with tempfile.TemporaryDirectory() as base:
        root = Path(base).resolve() / "repo"
        root.mkdir()
        (root.parent / "outside").mkdir()
        real_tree(root)
        identity = identify(RealDisk(root), path)
        spelled = f"{root}/{path}" if not path.startswith("/") else path
        try:
            os.stat(spelled)
        except OSError:
            return
        real = Path(os.path.realpath(spelled, strict=True))
        if not real.is_relative_to(root):
            assert identity.key is None
        else:
            assert identity.key == real.relative_to(root).parts


@SETTINGS
@given(path=paths)
def test_key_stays_after_creation(path):
    """A name of a missing file has the same key, and the same claims, once the file is made under its own key."""
    disk = MemoryDisk(TREE)
    workspace = Workspace(disk)
    before = workspace.identify(path)
    if before.problem is None and before.found is None:
        trio.run(disk.make_dirs, before.entry[:-1])
        trio.run(disk.revise, before.entry, 0, lambda _: b"")
        after = workspace.identify(path)
        # "new/../new" goes through a directory that the file then stands in the place of.
        if before.key not in after.through:
            assert after.key == before.key
            assert after.through == before.through


@SETTINGS
@given(
    path=paths, detour=st.lists(st.sampled_from([".", "d/..", "way/../..", "d/up", "empty/..", "new/.."]), max_size=4)
)
def test_every_alias_has_the_same_key(path, detour):
    """A detour that comes back to where it started, an absolute prefix and a working directory change no key."""
    workspace = Workspace(MemoryDisk(TREE))
    path = path.lstrip("/") or "a"
    key = workspace.identify(path).key
    assert workspace.identify("/".join([*detour, path])).key == key
    assert workspace.identify("/".join(["/workspace", *detour, path])).key == key
    assert workspace.identify("/".join([*detour, path]), State(working_dir=PurePosixPath("/workspace/d/up"))).key == key
    assert workspace.identify("../" + path, State(working_dir="d")).key == key


@SETTINGS
@given(text=texts, old=texts.filter(bool), new=texts, every=st.booleans())
def test_edit_without_carriage_returns_is_a_replacement(text, old, new, every):
    """Where all lines end with LF, an edit is exactly the replacement of a text by a text."""
    text, old, new = (value.replace("\r", "") for value in (text, old or "x", new))
    if not old:
        return
    places = sum(text.startswith(old, at) for at in range(len(text)))
    if places == 0 or (places > 1 and not every):
        with pytest.raises(FileProblem) as caught:
            edited("a", text, old, new, every)
        assert caught.value.got.startswith(f"{places} places")
    else:
        result = edited("a", text, old, new, every)
        assert result.text == text.replace(old, new)
        assert result.count == text.count(old)


@SETTINGS
@given(text=texts, old=texts.filter(bool), new=texts, every=st.booleans())
def test_edit_keeps_a_crlf_file_one(text, old, new, every):
    """A file whose every line ends with CRLF has no other line end after any edit with LF texts."""
    text = "".join(lines_of(text.replace("\r", ""))).replace("\n", "\r\n")
    old, new = old.replace("\r", ""), new.replace("\r", "")
    if "\r\n" not in text or not old:
        return
    try:
        result = edited("a", text, old, new, every).text
    except FileProblem:
        return
    assert result == text.replace("\r\n", "\n").replace(old, new).replace("\n", "\r\n")


@SETTINGS
@given(text=texts, cut=st.integers(1, 8))
def test_slices_joined_are_the_text(text, cut):
    """Reading a file in pieces loses nothing."""
    pieces = [slice_of("a", text, start, cut) for start in range(1, max(1, len(lines_of(text))) + 1, cut)]
    assert "".join(pieces) == text
