"""What .gitignore leaves out, as git itself does."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests._profile import FULL
from toolrt.workspace.rules._ignore import RULES_MOST, Ignored, IgnoreFile


def left_out(files, path):
    """Whether a walk from the root comes to `path`, given .gitignore contents by directory."""
    *directories, name = path.rstrip("/").split("/")
    here, ignored = (), Ignored()
    if () in files:
        ignored = ignored.including(IgnoreFile.of(files[()]))
    for directory in directories:
        if ignored.leaves_out(directory, True):
            return True
        here, ignored = (*here, directory), ignored.enter(directory)
        if here in files:
            ignored = ignored.including(IgnoreFile.of(files[here]))
    return ignored.leaves_out(name, path.endswith("/"))


@pytest.mark.parametrize(
    ("lines", "path", "expected"),
    [
        ("*.o", "x/a.o", True),
        ("/a.o", "x/a.o", False),
        ("/a.o", "a.o", True),
        ("x/a.o", "y/x/a.o", False),
        ("build/", "build", False),
        ("build/", "build/", True),
        ("build/", "x/build/a", True),
        ("a\n!a", "a", False),
        ("!a\na", "a", True),
        ("x/\n!x/a", "x/a", True),
        ("x/*\n!x/a", "x/a", False),
        ("# a", "# a", False),
        ("\\#a", "#a", True),
        ("\\!a", "!a", True),
        ("a   ", "a", True),
        ("a\\ ", "a ", True),
        ("a\\", "a", False),
        ("x/**", "x/y/a", True),
        ("x/**", "x/", False),
        ("**/x", "y/x", True),
        ("x/**/a", "x/a", True),
        ("a\r\nb\r\n", "a", True),
        ("/", "a", False),
        ("[/[ab]", "a", True),
        ("./a", "a", False),
        ("", "a", False),
        ("nothing", ".git/", True),
        ("***/x", "x", True),
        ("***/x", "y/z/x", True),
        ("x/***", "x/y", True),
        ("x/***", "x/", False),
        ("a/***/b", "a/b", True),
        ("***/***", "x", True),
        ("foo**/bar", "foobar", True),
        ("foo**/bar", "fool/x/bar", True),
        ("foo**/bar", "foo/bar", True),
        ("foo**/bar", "barfoo/bar", False),
        ("foo**/bar", "foobarn", False),
        ("x/foo**", "x/fool", True),
        ("/foo**/*b**/c", "fooab/c", True),
        ("a**/b**/c", "abc", True),
        ("a**/**", "ab/c", True),
        ("**a**/b", "a/x/b", False),
        ("x\\/y", "x/y", True),
        ("**\\/x", "x", False),
        ("**\\/x", "y/z/x", True),
        ("a**\\/x", "a/x", True),
        ("a**\\/x", "ax", False),
        ("a**/b" * 500, "ab", False),
        ("a**//", "a/", True),
        ("a**//", "ab/", False),
        ("a**//b", "a/b", True),
        ("a**//b", "ax/b", False),
        ("a**///b", "a/b", False),
    ],
)
def test_lines_leave_out(lines, path, expected):
    """The cases of the manual page."""
    assert left_out({(): lines.encode()}, path) is expected


def test_byte_order_mark_is_no_part_of_a_pattern():
    """Editors on Windows write one."""
    assert left_out({(): b"\xef\xbb\xbfa"}, "a")


def test_deeper_file_decides():
    """A nested file takes back what the one above leaves out, and the other way round."""
    assert not left_out({(): b"*.o", ("x",): b"!a.o"}, "x/a.o")
    assert left_out({("x",): b"*.o"}, "x/y/a.o")
    assert not left_out({("x",): b"*.o"}, "a.o")
    assert left_out({("x",): b"/a.o"}, "x/a.o")
    assert not left_out({("x",): b"/a.o"}, "x/y/a.o")


def test_names_that_are_no_text_are_compared():
    """A name of bytes that are not UTF-8 matches itself."""
    assert left_out({(): b"a\xff"}, os.fsdecode(b"a\xff"))


PIECES = st.sampled_from(
    [
        *(
            "a",
            "b",
            "ab",
            "*",
            "**",
            "***",
            "a**/",
            "\\/",
            "?",
            "/",
            "/",
            "!",
            "#",
            "\\",
            " ",
            "[ab]",
            "[!a]",
            "[",
            "]",
        ),
        *("a*", ".", "\\ ", "-"),
    ]
)
LINES = st.lists(PIECES, max_size=6).map("".join)
CONTENT = st.lists(LINES, max_size=5).map("\n".join)
NAMES = st.sampled_from(["a", "b", "ab", "a b", "!a", "#", "a ", "[", "\\", "b]"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(tuple)


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=600 if FULL else 60)
@given(
    files=st.dictionaries(st.lists(NAMES, max_size=2).map(tuple), CONTENT, max_size=3),
    paths=st.lists(PATHS, min_size=1, max_size=12, unique=True),
)
def test_git_leaves_out_the_same(files, paths):
    """Random patterns in random directories, against `git check-ignore`."""
    with tempfile.TemporaryDirectory() as base:
        made = []
        for path in paths:
            parent = os.path.join(base, *path[:-1])
            try:
                os.makedirs(parent, exist_ok=True)
                if not os.path.lexists(os.path.join(base, *path)):
                    with open(os.path.join(base, *path), "xb"):
                        pass
                made.append(path)
            except OSError:
                continue  # one path has a file where another has a directory
        contents = {}
        for directory, content in files.items():
            if os.path.isdir(os.path.join(base, *directory)):
                with open(os.path.join(base, *directory, ".gitignore"), "wb") as file:
                    file.write(content.encode())
                contents[directory] = content.encode()
        environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": base, "GIT_DIR": os.path.join(base, ".git")}
        subprocess.run(["git", "init", "-q", base], env=environment, check=True, capture_output=True)
        asked = b"".join("/".join(path).encode() + b"\0" for path in made)
        answer = subprocess.run(
            ["git", "-C", base, "check-ignore", "--no-index", "--stdin", "-z"],
            env={**environment, "GIT_WORK_TREE": base},
            input=asked,
            capture_output=True,
            check=False,
        )
        ignored = set(answer.stdout.decode().split("\0")) - {""}
        ours = set()
        for path in made:
            is_directory = os.path.isdir(os.path.join(base, *path))
            if left_out(contents, "/".join(path) + ("/" if is_directory else "")):
                ours.add("/".join(path))
        assert ours == ignored


def test_a_path_is_held_only_against_rules_that_may_be_about_it():
    """Of many rules those that name something else are never made, so they cost a path nothing."""
    lines = [text for number in range(1000) for text in (f"name{number}", f"*.end{number}", f"dir{number}/*x")]
    file = IgnoreFile.of("\n".join([*lines, "!dir7/keep.end7"]).encode())
    assert file.verdict(("a.py",), False) is None
    assert file.verdict(("dir7", "b.end7"), False) is True
    assert file.verdict(("dir7", "keep.end7"), False) is False
    assert len(file._made) <= 3


def test_patterns_beyond_the_bound_are_told():
    """Of patterns that every path is held against the first ones count, and the others are counted."""
    file = IgnoreFile.of("\n".join(f"a*{number}b*" for number in range(RULES_MOST + 5)).encode())
    assert file.unread == 5
    assert file.verdict((f"a{RULES_MOST - 1}b",), False) is True
    assert Ignored().including(file).enter("d").unread == 5
