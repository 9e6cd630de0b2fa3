"""multi_edit, apply_patch, make_dir, move_path, delete_path, change_dir, and encodings, alike on both disks."""

from __future__ import annotations

import codecs
import errno

import pytest

from tests.workspace._called import claims, refusal
from toolrt.model import READ, WRITE, Claim, State
from toolrt.order import by_claims
from toolrt.workspace import Directory, FileProblem, HardLink, Special, Symlink


def patch(*lines):
    return "\n".join(lines) + "\n"


CHANGE = ["--- a/a", "+++ b/a", "@@ -1 +1 @@", "-one", "+1"]


# Encodings


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
async def test_file_keeps_its_encoding_and_mark(tree, call, encoding):
    """Whichever tool changes it, and whether or not the new text begins with the mark."""
    tree.put("a", "\ufeffone\r\ntwo\r\n".encode(encoding))
    assert await call(tree, "read_file", path="a") == "one\r\ntwo\r\n"
    await call(tree, "edit_file", path="a", old="one", new="né")
    await call(tree, "multi_edit", path="a", edits=[{"old": "two\n", "new": "日\n"}])
    assert tree.workspace.snapshot() == {"a": "\ufeffné\r\n日\r\n".encode(encoding)}
    await call(tree, "apply_patch", patch=patch("--- a/a", "+++ b/a", "@@ -1,2 +1,1 @@", "-né", "-日", "+x"))
    assert tree.workspace.snapshot() == {"a": "\ufeffx\r\n".encode(encoding)}
    for content in ("new", "\ufeffnew"):
        await call(tree, "write_file", path="a", content=content)
        assert tree.workspace.snapshot() == {"a": "\ufeffnew".encode(encoding)}


async def test_named_encoding_is_used(tree, call):
    """For reading, editing and writing; nothing is guessed from the name later."""
    tree.put("a", "né".encode("latin-1"))
    assert await call(tree, "read_file", path="a", encoding="latin-1") == "né"
    await call(tree, "edit_file", path="a", old="n", new="ü", encoding="latin-1")
    await call(tree, "write_file", path="b", content="né", encoding="cp1252")
    await call(tree, "write_file", path="c", content="né", encoding="utf-16")
    assert tree.workspace.snapshot() == {
        "a": "üé".encode("latin-1"), "b": b"n\xe9", "c": codecs.BOM_UTF16_LE + "né".encode("utf-16-le")
    }  # fmt: skip
    assert await call(tree, "read_file", path="c") == "né"


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"old": "s", "new": "t"}),
        ("multi_edit", {"edits": [{"old": "s", "new": "t"}]}),
    ],
)
async def test_unknown_encoding_is_refused(tree, call, name, more):
    """Before the file is touched."""
    tree.put("a", "s")
    problem = await refusal(call, tree, name, path="a", encoding="rot13", **more)
    assert problem.expected == "the name of a text encoding"


async def test_character_that_the_files_encoding_lacks_is_refused(tree, call):
    """The file is as it was."""
    tree.put("a", "né".encode("latin-1"))
    await refusal(call, tree, "edit_file", path="a", old="n", new="€", encoding="latin-1")


async def test_numbered_lines_have_their_own_numbers(tree, call):
    """Also in a range."""
    tree.put("a", "x\r\ny\nz")
    assert await call(tree, "read_file", path="a", offset=2, line_numbers=True) == "2\ty\n3\tz"


# multi_edit


async def test_multi_edit_makes_all_edits(tree, call):
    """In order, and the answer says where."""
    tree.put("a", "one\ntwo\nx\nx\n")
    edits = [{"old": "one", "new": "1"}, {"old": "1\ntwo", "new": "2"}, {"old": "x", "new": "y", "all": True}]
    assert await call(tree, "multi_edit", path="a", edits=edits) == (
        "replaced 4 places in a (1 at line 1; 1 at line 1; 2 at lines 2, 3)"
    )
    assert tree.workspace.snapshot() == {"a": b"2\ny\ny\n"}


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([{"old": "one", "new": "1"}, {"old": "three", "new": "3"}], "old at exactly one place (edit 2 of 2)"),
        ([{"old": "one", "new": "1"}, {"old": "", "new": "3"}], "an old text in edit 2 of 2"),
        ([{"old": "one", "new": "one"}], "a new text in edit 1 of 1"),
        ([], "1 to 1000 edits"),
        ([{"old": "one", "new": "a\0"}], "text as new"),
    ],
)
async def test_multi_edit_fails_as_a_whole(tree, call, edits, expected):
    """No edit is made if one cannot be."""
    tree.put("a", "one\ntwo\n")
    assert (await refusal(call, tree, "multi_edit", path="a", edits=edits)).expected == expected


async def test_multi_edit_of_a_missing_file_is_refused(tree, call):
    """It creates none."""
    assert (await refusal(call, tree, "multi_edit", path="a", edits=[{"old": "x", "new": "y"}])).got == (
        "nothing of that name"
    )


# apply_patch


async def test_patch_changes_creates_deletes_renames_and_copies(tree, call):
    """All by one call."""
    tree.put("a", "one\ntwo\n")
    tree.put("gone", "x\n")
    tree.put("d/old", "1\n2\n")
    tree.put("d/src", "1\n")
    answer = await call(
        tree,
        "apply_patch",
        patch=patch(
            *CHANGE[:2], "@@ -1,2 +1,2 @@", "-one", "+1", " two",
            "--- /dev/null", "+++ b/x/new", "@@ -0,0 +1 @@", "+né",
            "--- a/gone", "+++ /dev/null", "@@ -1 +0,0 @@", "-x",
            "diff --git a/d/old b/e/new", "rename from d/old", "rename to e/new",
            "--- a/d/old", "+++ b/e/new", "@@ -1,2 +1,2 @@", "-1", "+x", " 2",
            "diff --git a/d/src b/d/copy", "copy from d/src", "copy to d/copy",
        ),
    )  # fmt: skip
    assert answer == (
        "patched 5 files: changed a; created x/new; deleted gone; renamed d/old to e/new; copied d/src to d/copy"
    )
    assert tree.workspace.snapshot() == {
        "a": b"1\ntwo\n", "x/new": "né\n".encode(), "e/new": b"x\n2\n", "d/src": b"1\n", "d/copy": b"1\n"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "got"),
    [
        (["--- a/b", "+++ b/b", "@@ -1 +1 @@", "-other", "+x"], "0 places"),
        (["--- a/missing", "+++ b/missing", "@@ -1 +1 @@", "-x", "+y"], "nothing of that name"),
        (["--- /dev/null", "+++ b/b", "@@ -0,0 +1 @@", "+x"], "a file that is there already"),
        (["--- a/b", "+++ /dev/null", "@@ -1 +0,0 @@", "-one"], "4 bytes left over"),
        (["diff --git a/b b/b", "deleted file mode 100644"], "8 bytes left over"),
        (["diff --git a/b b/a", "rename from b", "rename to a"], "a file that is there already"),
        (["diff --git a/b b/x", "rename from x", "rename to y"], "nothing of that name"),
        (["--- a/hard", "+++ b/hard", "@@ -1 +1 @@", "-one", "+x"], "one in two parts"),
        (["--- a/link", "+++ b/link", "@@ -1 +1 @@", "-one", "+x"], "one in two parts"),
        (["--- a/link", "+++ /dev/null", "@@ -1 +0,0 @@", "-one"], "a symbolic link to it"),
        (["--- a/binary", "+++ b/binary", "@@ -1 +1 @@", "-one", "+x"], "2 bytes of binary data (NUL at byte 1)"),
        (["--- a/d", "+++ b/d", "@@ -1 +1 @@", "-one", "+x"], "a directory"),
        (["--- a/../outside/x", "+++ b/../outside/x", "@@ -1 +1 @@", "-one", "+x"], "one that leads outside"),
    ],
)
async def test_patch_fails_as_a_whole(tree, call, lines, got):
    """What a part before it would have done is not done."""
    tree.put("a", "one\n")
    tree.put("hard", HardLink("a"))
    tree.put("link", Symlink("a"))
    tree.put("b", "one\ntwo\n")
    tree.put("binary", b"x\0")
    tree.put("d", Directory())
    assert (await refusal(call, tree, "apply_patch", patch=patch(*CHANGE, *lines))).got == got


async def test_text_that_is_no_patch_is_refused(tree, call):
    """It claims nothing that could hold anybody up."""
    problem = await refusal(call, tree, "apply_patch", patch="*** Begin Patch\n")
    assert problem.path == "patch"
    assert {claim.mode for claim in claims(tree, "apply_patch", patch="*** Begin Patch\n")} == {READ}


async def test_renamed_binary_file_keeps_its_bytes(tree, call):
    """A rename without a hunk reads no text."""
    tree.put("a", b"x\0\xff")
    await call(tree, "apply_patch", patch=patch("diff --git a/a b/b", "rename from a", "rename to b"))
    assert tree.workspace.snapshot() == {"b": b"x\0\xff"}


async def test_patch_says_whether_a_file_may_be_executed(tree, call, mode_of):
    """Alone, with a rename, and with a change of lines; all may execute it that may read it, and undo puts it back."""
    tree.put("a", "one\n", mode=0o640)
    git, now, no_more = ["diff --git a/a b/a"], ["old mode 100644", "new mode 100755"], ["new mode 100644"]
    await call(tree, "apply_patch", patch=patch(*git, *now))
    assert mode_of(tree, "a") == 0o750
    await tree.workspace.history.undo("batch")
    assert mode_of(tree, "a") == 0o640
    await call(tree, "apply_patch", patch=patch(*git, *now, "rename from a", "rename to b"))
    assert mode_of(tree, "b") == 0o750
    lines = ["--- a/b", "+++ b/b", "@@ -1 +1 @@", "-one", "+two"]
    await call(tree, "apply_patch", patch=patch("diff --git a/b b/b", *no_more, *lines))
    assert (mode_of(tree, "b"), tree.workspace.snapshot()) == (0o640, {"b": b"two\n"})


async def test_renamed_and_copied_files_keep_their_modes(tree, call, mode_of):
    """Also in a directory that is new, and back again by undo."""
    for name in ("a", "c"):
        tree.put(name, "one\n")
        await tree.disk.set_mode((name,), 0o751)
    lines = ["diff --git a/a b/x/b", "rename from a", "rename to x/b", "diff --git a/c b/d", "copy from c", "copy to d"]
    await call(tree, "apply_patch", patch=patch(*lines))
    assert [mode_of(tree, name) for name in ("x/b", "c", "d")] == [0o751] * 3
    await tree.workspace.history.undo("batch")
    assert mode_of(tree, "a") == 0o751
    assert set(tree.workspace.snapshot()) == {"a", "c"}


async def test_created_file_that_may_be_executed_may_be(tree, call, mode_of):
    """As git's mode of it says; any other has a new file's, and one that is there keeps its own."""
    lines = ["diff --git a/run b/run", "new file mode 100755", "--- /dev/null", "+++ b/run", "@@ -0,0 +1 @@", "+x"]
    lines += ["diff --git a/d/e b/d/e", "new file mode 100755"]
    lines += ["diff --git a/text b/text", "new file mode 100644", "--- /dev/null", "+++ b/text", "@@ -0,0 +1 @@", "+y"]
    await call(tree, "apply_patch", patch=patch(*lines))
    assert [mode_of(tree, name) & 0o111 for name in ("run", "d/e", "text")] == [0o111, 0o111, 0]
    assert tree.workspace.snapshot() == {"run": b"x\n", "d/e": b"", "text": b"y\n"}


def test_patch_claims_every_file_it_names(tree):
    """And READ alone on what it copies from."""
    lines = [*CHANGE, "--- /dev/null", "+++ b/new", "@@ -0,0 +1 @@", "+x"]
    lines += ["diff --git a/c b/d", "copy from c", "copy to d", "diff --git a/e b/f", "rename from e", "rename to f"]
    found = {claim.resource[1:]: claim.mode for claim in claims(tree, "apply_patch", patch=patch(*lines))}
    assert found == {("a",): WRITE, ("new",): WRITE, ("c",): READ, ("d",): WRITE, ("e",): WRITE, ("f",): WRITE}


async def test_patch_of_a_name_that_means_another_file_by_now_is_a_retryable_error(tree, call):
    """Nothing of it is done."""
    tree.put("a", "one\n")
    tree.put("b", "one\n")
    with pytest.raises(FileProblem) as caught:
        await call(tree, "apply_patch", patch=patch(*CHANGE), between=lambda: tree.put("a", Symlink("b")))
    assert caught.value.retryable
    assert tree.workspace.snapshot() == {"a": "-> b", "b": b"one\n"}


# make_dir


async def test_make_dir_makes_all_on_the_way(tree, call):
    """And is content with what is there."""
    assert await call(tree, "make_dir", path="d/e") == "made d/e"
    assert await call(tree, "make_dir", path="d/e/") == "d/e is there already"
    assert tree.workspace.snapshot() == {"d/e/": ""}


@pytest.mark.parametrize("path", ["a", "a/b", "link", "../outside/x", ""])
async def test_make_dir_in_a_files_place_is_refused(tree, call, path):
    """Nothing is made, inside or outside."""
    tree.put("a", "x")
    tree.put("link", Symlink("a"))
    await refusal(call, tree, "make_dir", path=path)
    assert tree.disk.listdir(tree.outside) == []


# move_path


async def test_move_renames_files_directories_and_links(tree, call):
    """Whatever it is; a link is moved itself."""
    tree.put("a", "x")
    tree.put("d/b", "y")
    tree.put("link", Symlink("a"))
    assert await call(tree, "move_path", source="a", target="new/a") == "moved a to new/a"
    await call(tree, "move_path", source="d", target="e")
    await call(tree, "move_path", source="link", target="l")
    assert tree.workspace.snapshot() == {"new/a": b"x", "e/b": b"y", "l": "-> a"}


@pytest.mark.parametrize(
    ("source", "target"),
    [("missing", "x"), ("a", "b"), ("d", "d/e/f"), ("a", "../outside/x"), (".", "x"), ("a", "d"), ("a", "b/x")],
)
async def test_move_that_cannot_be_is_refused(tree, call, source, target):
    """Nothing is lost, and nothing is overwritten."""
    tree.put("a", "x")
    tree.put("b", "y")
    tree.put("d/c", "z")
    await refusal(call, tree, "move_path", source=source, target=target)


def test_move_claims_both_ends(tree):
    """With all below them."""
    tree.put("d/a", "x")
    found = claims(tree, "move_path", source="d", target="e")
    assert Claim(("file", "d"), WRITE, subtree=True) in found
    assert Claim(("file", "e"), WRITE, subtree=True) in found


# delete_path


async def test_delete_deletes_files_links_and_directories(tree, call):
    """Of a link the link alone; a special file too."""
    tree.put("a", "x")
    tree.put("link", Symlink("a"))
    tree.put("pipe", Special())
    tree.put("empty", Directory())
    tree.put("d/e/f", "y")
    for path in ("link", "pipe", "empty"):
        assert await call(tree, "delete_path", path=path) == f"deleted {path}"
    assert tree.workspace.snapshot() == {"a": b"x", "d/e/f": b"y"}
    await call(tree, "delete_path", path="d", recursive=True)
    assert tree.workspace.snapshot() == {"a": b"x"}


@pytest.mark.parametrize("path", ["missing", "d", ".", "../outside", "a/x"])
async def test_delete_that_cannot_be_is_refused(tree, call, path):
    """A directory that is not empty needs recursive."""
    tree.put("d/e", "x")
    tree.put("a", "x")
    await refusal(call, tree, "delete_path", path=path)


async def test_delete_of_the_workspace_itself_is_refused(tree, call):
    """Also with recursive."""
    tree.put("a", "x")
    for path in (".", tree.root, "d/.."):
        await refusal(call, tree, "delete_path", path=path, recursive=True)


# change_dir


async def test_change_dir_returns_a_modifier(tree, call):
    """Relative paths start there, also that of the next change."""
    tree.put("d/e/a", "x")
    output = await call(tree, "change_dir", path="d")
    assert output.content == "the working directory is d"
    (modifier,) = output.modifiers
    state = modifier(State({"k": 1}))
    assert state["k"] == 1
    assert await call(tree, "read_file", path="e/a", state=state) == "x"
    (further,) = (await call(tree, "change_dir", path="e", state=state)).modifiers
    assert await call(tree, "read_file", path="a", state=further(state)) == "x"
    (back,) = (await call(tree, "change_dir", path="../..", state=further(state))).modifiers
    assert back(further(state)) == State({"k": 1})


@pytest.mark.parametrize("path", ["missing", "a", "../outside", "/", ""])
async def test_change_dir_to_no_directory_is_refused(tree, call, path):
    """The working directory is always one inside."""
    tree.put("a", "x")
    await refusal(call, tree, "change_dir", path=path)


def test_change_dir_runs_alone(tree):
    """It says what it looks at, which is what counts in a sub-batch, and is a lane of its own."""
    tool = next(tool for tool in tree.workspace.tools() if tool.name == "change_dir")
    assert tool.alone
    assert not by_claims(tool, {"path": "d"})
    assert not tool.is_safe({"path": "d"})


@pytest.mark.seldom
async def test_tree_deeper_than_any_name_is_refused_untouched(tree, call):
    """It costs a refusal, however deep it is; one as deep as a name may lead is removed."""
    deepest = "/".join(["d"] * 256)
    tree.put(f"{deepest}/x", "text")
    tree.put("e", Symlink("d"))
    before = tree.workspace.snapshot()
    problem = await refusal(call, tree, "delete_path", path="d", recursive=True)
    assert str(problem) == "d: expected at most 256 directories deep, got more. Nothing was removed."
    with pytest.raises(OSError) as caught:
        await tree.disk.remove_tree(("d",))
    assert caught.value.errno == errno.ENAMETOOLONG
    assert tree.workspace.snapshot() == before
    await tree.disk.remove((*deepest.split("/"), "x"))
    await call(tree, "delete_path", path="d", recursive=True)
    assert tree.workspace.snapshot() == {"e": "-> d"}
