r"""Reading unified diffs, and making the text they speak of."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shutil
import subprocess
import tempfile

import pytest
import trio
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests._profile import FULL
from toolrt.workspace import FileProblem
from toolrt.workspace.text._text import PLACES_NAMED
from toolrt.workspace.tools._hunks import FilePatch, _Layer, patched
from toolrt.workspace.tools._patch import parsed_patch


def apply(text, *lines, path="a"):
    """`text` after the hunks of these lines; a header is put before them."""
    (part,) = parsed_patch("\n".join(["--- a/a", "+++ b/a", *lines]) + "\n")
    return patched(path, text, part.hunks)


def refusal(text, *lines):
    with pytest.raises(FileProblem) as caught:
        apply(text, *lines)
    return caught.value


def parts(*lines):
    return [(part.verb, part.source, part.target) for part in parsed_patch("\n".join(lines))]


# What is read


def test_patch_names_a_changed_file():
    """With git's prefixes or without, and with the time that diff writes."""
    for old, new in (("a/d/x", "b/d/x"), ("d/x", "d/x"), ("d/x\t2026-01-01 00:00:00", "d/x\t2026-01-02")):
        assert parts(f"--- {old}", f"+++ {new}", "@@ -1 +1 @@", "-x", "+y") == [("changed", "d/x", "d/x")]


def test_patch_creates_and_deletes():
    """The other side is /dev/null, or git says so of an empty file."""
    assert parts("--- /dev/null", "+++ b/x", "@@ -0,0 +1 @@", "+y") == [("created", None, "x")]
    assert parts("--- a/x", "+++ /dev/null", "@@ -1 +0,0 @@", "-y") == [("deleted", "x", None)]
    assert parts("diff --git a/x b/x", "new file mode 100644", "index 0000000..e69de29") == [("created", None, "x")]
    assert parts("diff --git a/x y b/x y", "deleted file mode 100644") == [("deleted", "x y", None)]


def test_patch_renames_and_copies():
    """With or without a change of the text."""
    head = ["diff --git a/x b/y", "similarity index 90%"]
    assert parts(*head, "rename from x", "rename to y") == [("renamed", "x", "y")]
    assert parts(*head, "copy from x", "copy to y") == [("copied", "x", "y")]
    (part,) = parsed_patch(
        "\n".join([*head, "rename from x", "rename to y", "--- a/x", "+++ b/y", "@@ -1 +1 @@", "-x", "+y"])
    )
    assert len(part.hunks) == 1


def test_rename_lines_may_have_the_prefixes_of_the_other_lines():
    """Git writes none there; with them the names are those of the line that has the same."""
    moved = ["rename from a/x", "rename to b/y"]
    assert parts("diff --git a/x b/y", *moved) == [("renamed", "x", "y")]
    assert parts("--- a/x", "+++ b/y", *moved, "@@ -1 +1 @@", "-x", "+y") == [("renamed", "x", "y")]
    assert parts("diff --git a/a/x b/b/y", *moved) == [("renamed", "a/x", "b/y")]


def test_patch_of_several_files_keeps_their_order():
    """With text before, between and behind, as git writes it in a mail."""
    assert parts(
        "From 123", "Subject: x", "---", " x | 2 +-", "",
        "diff --git a/x b/x", "index 1..2 100644", "--- a/x", "+++ b/x", "@@ -1 +1 @@ def f():", "-x", "+y",
        "diff --git a/n b/n", "new file mode 100755", "--- /dev/null", "+++ b/n", "@@ -0,0 +1 @@", "+y",
        "-- ", "2.39",
    ) == [("changed", "x", "x"), ("created", None, "n")]  # fmt: skip


def test_lines_go_before_the_first_where_the_patch_says_that_there_is_one():
    """Git's line of what the file had says so, and so does another hunk; an empty file takes them in any case."""
    index = ["diff --git a/a b/a", "index 4f3a1c2..5d308e1 100644"]
    lines = ["@@ -0,0 +1 @@", "+0"]
    for patch, before, after in (
        ([*index, "--- a/a", "+++ b/a", *lines], "1\n2\n", "0\n1\n2\n"),
        ([*index, "--- a/a", "+++ b/a", *lines], "\ufeff1\r\n", "\ufeff0\r\n1\r\n"),
        (["--- a/a", "+++ b/a", *lines, "@@ -2 +3 @@", "-2", "+3"], "1\n2\n", "0\n1\n3\n"),
        (["--- a/a", "+++ b/a", *lines], "", "0\n"),
        (["--- a/a", "+++ b/a", *lines], "1\n", None),
        ([index[0], "index e69de29..5d308e1 100644", "--- a/a", "+++ b/a", *lines], "1\n", None),
        ([*index, "--- a/a", "+++ b/a", "@@ -0,0 +2 @@", "+0"], "1\n", None),
    ):
        (part,) = parsed_patch("\n".join([*patch, ""]))
        if after is not None:
            assert patched("a", before, part.hunks) == after
        else:
            with pytest.raises(FileProblem, match="none, and the file is not empty"):
                patched("a", before, part.hunks)


def test_names_in_quotes_are_unquoted():
    """As git quotes them: bytes in octal, and escapes."""
    assert parts('--- "a/\\303\\251\\t\\"x"', '+++ "b/\\303\\251\\t\\"x"', "@@ -1 +1 @@", "-x", "+y") == [
        ("changed", 'é\t"x', 'é\t"x')
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([""], "a unified diff"),
        (["*** Begin Patch"], "a unified diff"),
        (["@@ -1 +1 @@"], "the file's names"),
        (["diff --git a/x b/x", "@@ -1 +1 @@"], "the file's names"),
        (["--- a/x", "+++ b/x"], "a hunk"),
        (["--- a/x", "+++ b/y", "@@ -1 +1 @@", "-x", "+y"], "one name on both lines"),
        (["--- /dev/null", "+++ /dev/null"], "a file's name"),
        (["--- a/x", "+++ b/x", "@@ what @@"], "a hunk with lines"),
        (["--- a/x", "+++ b/x", "@@ -1,2 +1 @@", "-x", "+y", "@@ -9 +9 @@"], "a hunk with lines"),
        (["--- a/x", "+++ b/x", "@@ -1 +1 @@", "-x", "+y", "And also:", "+z"], "the end of the hunk at patch line 3"),
        (["*** Update File: x", "@@", " x"], "a hunk with lines"),
        (["*** Add File: x", "+x", "*** Move to: y"], "*** Move to: directly below"),
        (["<<<<<<< SEARCH", "x", "=======", "y", ">>>>>>> REPLACE"], "the name of a file"),
        (["x", "<<<<<<< SEARCH", "x", "=======", "y"], "a block that ends"),
        (["x", "<<<<<<< SEARCH", "x", ">>>>>>> REPLACE"], "one ======= line"),
        (["x", "<<<<<<< SEARCH", "x", "=======", "y", "=======", ">>>>>>> REPLACE"], "one ======= line"),
        (["x", "<<<<<<< SEARCH", "x", "<<<<<<< SEARCH"], "the end of the block"),
        (["x", "<<<<<<< SEARCH", "x", "=======", "x", ">>>>>>> REPLACE"], "a text that replaces another"),
        (["--- a/x", "+++ b/x", "@@ -1 +1 @@", "\\ No newline at end of file"], "a line of the file before it"),
        (["diff --git a/x b/x", "old mode 100644", "new mode 120000"], "a mode of 100644 or 100755"),
        (["diff --git a/x b/x", "new file mode 120000"], "a regular file"),
        (["diff --git a/x b/x", "GIT binary patch"], "a change of text"),
        (["diff --git a/x b/x", "Binary files a/x and b/x differ"], "a change of text"),
        (["diff --git a/x b/x"], "a change of the file's lines"),
        (["diff --git a/x b/y", "new file mode 100644"], None),
        (["diff --git a/x b/x", "rename from x"], "both names"),
    ],
)
def test_what_is_no_patch_is_refused(lines, expected):
    """The refusal names the line, and what was expected there."""
    if expected is None:
        assert parts(*lines) == [("created", None, "y")]
        return
    with pytest.raises(FileProblem) as caught:
        parsed_patch("\n".join(lines))
    assert caught.value.expected.startswith(expected)
    assert caught.value.path.startswith("patch")


# What is made


END = "\\ No newline at end of file"


@pytest.mark.parametrize(
    ("text", "hunks", "made"),
    [
        ("1\n2\n3\n", ["@@ -1,3 +1,3 @@", " 1", "-2", "+x", " 3"], "1\nx\n3\n"),
        ("1\n\n3\n", ["@@ -1,3 +1,3 @@", " 1", "", "-3", "+x"], "1\n\nx\n"),  # many strip spaces at line ends
        ("\ufeff1\n2\n", ["@@ -1,2 +1,2 @@", "-1", "+x", " 2"], "\ufeffx\n2\n"),  # models leave the mark away
        # A hunk that has drifted is found at exactly one place; those after it are expected as far away.
        ("0\n1\n2\n", ["@@ -1,2 +1,2 @@", " 1", "-2", "+x"], "0\n1\nx\n"),
        ("0\n1\na\na\na\n", ["@@ -1 +1 @@", "-1", "+x", "@@ -3 +3 @@", "-a", "+y"], "0\nx\na\ny\na\n"),
        ("a\nb\na\n", ["@@ -3 +3 @@", "-a", "+x"], "a\nb\nx\n"),  # where its line is right, no other place matters
        # Hunks may come in any order, and show the same context: each is about the text as it was.
        ("a\nb\n", ["@@ -2 +2 @@", "-b", "+x", "@@ -1 +1 @@", "-a", "+y"], "y\nx\n"),
        ("a\nb\n", ["@@", "-b", "+x", "@@", "-a", "+y"], "y\nx\n"),
        ("a\nb\nc\n", ["@@", " a", "-b", "+x", " c", "@@", " b", "-c", "+y"], "a\nx\ny\n"),
        # Without an old line nothing but its line says where it belongs; in an empty file nothing need.
        ("a\nb\n", ["@@ -1,0 +2 @@", "+x"], "a\nx\nb\n"),
        ("a\nb", ["@@ -2,0 +3,1 @@", "+x"], "a\nb\nx"),
        ("a\n\n", ["@@ -1 +0,0 @@", "-a", "@@ -2,0 +2 @@", "+x"], "\nx\n"),
        ("", ["@@ -0,0 +1 @@", "+x"], "x\n"),
        ("", ["@@", "+x"], "x\n"),
        # Line ends are the file's, unless the patch says otherwise: lines are compared with their ends first.
        ("1\r\n2\r\n", ["@@ -1,2 +1,3 @@", " 1", "-2", "+x", "+y"], "1\r\nx\r\ny\r\n"),
        ("1\n2\n", ["@@ -1,2 +1,2 @@\r", " 1\r", "-2\r", "+x\r"], "1\nx\n"),
        ("1\r\n2\n", ["@@ -1 +1 @@", "-1\r", "+1"], "1\n2\n"),
        # Each new line takes the end of the one it replaces, else of the one before.
        ("1\r2\r\n3\n", ["@@ -1,3 +1,4 @@", "-1", "-2", "-3", "+a", "+b", "+c", "+d"], "a\rb\r\nc\nd\n"),
        ("1\r2\r\n3\n", ["@@ -1,3 +1,4 @@", " 1", "+x", " 2", " 3"], "1\rx\r2\r\n3\n"),
        # The last line's end stays as it was, whether the patch says so or not, and changes where it says so.
        ("1\n2", ["@@ -1,2 +1,2 @@", " 1", "-2", END, "+x", END], "1\nx"),
        ("1\n2", ["@@ -1,2 +1,2 @@", " 1", "-2", "+x"], "1\nx"),
        ("1\n2", ["@@ -2 +2,2 @@", " 2", "+x"], "1\n2\nx"),
        ("1\r\n2", ["@@ -2 +2,2 @@", "-2", "+x", "+y"], "1\r\nx\r\ny"),
        ("2", ["@@ -1 +1 @@", "-2", END, "+2"], "2\n"),
        ("2\n", ["@@ -1 +1 @@", "-2", "+2", END], "2"),
        ("1\r\n2", ["@@ -1,2 +1,2 @@", " 1", "-2", END, "+2"], "1\r\n2\r\n"),
        ("1\r\n2\r\n", ["@@ -1,2 +1,2 @@", " 1", "-2", "+2", END], "1\r\n2"),
    ],
)
def test_hunks_make(text, hunks, made):
    """Their lines are changed, and everything around them stays."""
    assert apply(text, *hunks) == made


NOT_EMPTY = "none, and the file is not empty"


@pytest.mark.parametrize(
    ("text", "hunks", "got"),
    [
        ("a\nb\na\n", ["@@ -2 +2 @@", "-a", "+x"], "several others (lines 1, 3)"),  # none of them is guessed
        ("a\nb\n", ["@@", "-b", "+x", "@@", " a", "-b", "+y"], "line 2 in two hunks"),
        # Which of two insertions at one place comes first, neither says.
        ("a\nb\n", ["@@", " a", "+x", " b", "@@", " a", "+y", " b"], "line 2 in two hunks"),
        *[("a\nb\n", [f"@@ {at} @@", "+x"], NOT_EMPTY) for at in ("-1,0 +1", "-0,0 +1", "-3,0 +4", "-1,0 +2,2")],
        ("a\nb\n", ["@@", "+x"], NOT_EMPTY),
        ("a\nb\n", ["@@ -1 +1 @@", "-b", "+c", "@@ -1,0 +2 @@", "+x"], NOT_EMPTY),
        ("1\n2\n", ["@@ -1 +1 @@", "-1", "+x", END], "0 places"),  # it would join two lines
    ],
)
def test_hunks_are_refused(text, hunks, got):
    """Where what they say can be meant in no way, or in two."""
    assert refusal(text, *hunks).got == got


def test_hunk_of_no_place_says_what_is_near():
    """The model sees where the lines part."""
    problem = refusal("def a():\n    return 1\n", "@@ -1,2 +1,2 @@", " def a():", "-    return 2", "+    return 3")
    assert problem.expected == "the lines of hunk 1 (patch line 3) in the file"
    assert "line 2 is: return 1" in problem.remedy


def test_search_takes_linear_time():
    """A hunk of equal lines in a file of equal lines, but for the last."""
    many = 20_000
    lines = ["@@ -1,{0} +1,{0} @@".format(many // 2), *([" a"] * (many // 2 - 1)), "-b", "+c"]
    assert refusal("a\n" * many, *lines).got == "0 places"


LINES = st.lists(st.text("ab \r\u2028\x0b\\-+@", max_size=4), max_size=12)


def written(base, name, content):
    with open(os.path.join(base, name), "wb") as file:
        file.write(content)


@pytest.mark.process
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=600 if FULL else 60)
@given(
    old=LINES,
    new=LINES,
    ends=st.tuples(st.booleans(), st.booleans()),
    context=st.integers(0, 4),
    drift=st.integers(0, 3),
)
def test_patch_that_git_makes_gives_what_git_had(old, new, ends, context, drift):
    """Random texts and line ends: what was, patched, is what came of it; and so it is further down."""
    before, after = ("\n".join(lines) + "\n" * end for lines, end in zip((old, new), ends, strict=True))
    assume(before != after)
    with tempfile.TemporaryDirectory() as base:
        written(base, "x", before.encode())
        written(base, "y", after.encode())
        command = ["git", "-c", "core.safecrlf=false", "diff", "--no-index", "--text", f"-U{context}", "x", "y"]
        answer = subprocess.run(command, cwd=base, capture_output=True, check=False)
    patch = answer.stdout.decode().replace("\n+++ b/y", "\n+++ b/x", 1)
    (part,) = parsed_patch(patch)
    hunks = part.hunks
    assert patched("x", before, hunks) == after
    # Without line numbers it is the same, or refused.
    (bare,) = parsed_patch(re.sub(r"(?m)^@@ .* @@$", "@@", patch))
    with contextlib.suppress(FileProblem):
        assert patched("x", before, bare.hunks) == after
    if len(set(old)) == len(old) and all(hunk.old for hunk in hunks):
        # Lines that stand nowhere else are found wherever they are.
        assert patched("x", "≠\n" * drift + before, hunks) == "≠\n" * drift + after


@given(st.text('-+ @\\ab/1,\n\r"', max_size=80), st.text("ab\n\r", max_size=20))
def test_any_text_is_a_patch_or_refused(patch, text):
    """Nothing else is raised, whatever stands in it."""
    try:
        for part in parsed_patch(f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n{patch}"):
            assert isinstance(part, FilePatch)
            patched("x", text, part.hunks)
    except FileProblem:
        pass


@example(list("b" + "ab" * 20), list("ababababa"))
@example(list("aaaaaa"), list("aaaaa"))
@given(st.lists(st.sampled_from("ab"), max_size=40), st.lists(st.sampled_from("ab"), min_size=1, max_size=9))
def test_places_of_lines_are_those_that_a_scan_finds(lines, wanted):
    """In a text of many equal lines, and in one of few."""
    places = [at for at in range(len(lines) - len(wanted) + 1) if lines[at : at + len(wanted)] == wanted]
    assert _Layer(lines, str).found(tuple(wanted)) == places[: PLACES_NAMED + 1]


async def test_a_cancelled_reader_of_many_hunks_ends_among_them():
    """It asks between them whether its task is cancelled."""
    hunks = "".join(f"@@ -{number} +{number} @@\n-{number}\n+new\n" for number in range(1, 300))

    def read() -> None:
        trio.from_thread.run_sync(scope.cancel)
        parsed_patch(f"--- a/x\n+++ b/x\n{hunks}")

    with trio.CancelScope() as scope:
        await trio.to_thread.run_sync(read)
    assert scope.cancelled_caught


def test_many_hunks_are_no_work_for_the_garbage_collector():
    """What is remembered of a patch is what it stops to go through."""
    (part,) = parsed_patch("--- a/x\n+++ b/x\n" + "@@ -1 +1 @@\n-a\n+b\n" * 300)
    for _ in range(2):  # the lines of a hunk, and then the hunk
        gc.collect()
    assert not any(gc.is_tracked(row) for row in part.hunks._rows)
