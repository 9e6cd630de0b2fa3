"""Wildcards over names and paths."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrt.workspace.rules._patterns import Glob, PatternRefused, braces_expanded, name_matcher


def matches(pattern, path):
    return Glob.of(pattern).matches(path.split("/"))


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "a.py"),
        ("*.py", ".py"),
        ("src/*.py", "src/a.py"),
        ("**/*.py", "a.py"),
        ("**/*.py", "x/y/a.py"),
        ("x/**/a", "x/a"),
        ("x/**/a", "x/y/z/a"),
        ("x/**", "x/y/z"),
        ("**", "x/y"),
        ("**/**/a", "a"),
        ("./x//a", "x/a"),
        ("[a-c]?[!d]", "bxe"),
        ("[]]", "]"),
        ("[!]]", "a"),
        ("[[:digit:]][[:alpha:]_]", "1_"),
        ("[a", "[a"),
        ("\\*\\?\\[", "*?["),
        ("[\\]]", "]"),
        ("[a-]", "-"),
        ("日*", "日本"),
        ("a**b", "axxb"),
    ],
)
def test_pattern_matches(pattern, path):
    """Each kind of wildcard."""
    assert matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "x/a.py"),
        ("src/*.py", "src/x/a.py"),
        ("x/**/a", "y/a"),
        ("a?", "a"),
        ("[!a]", "a"),
        ("[a-c]", "d"),
        ("[c-a]", "b"),
        ("a\\", "a"),
        ("a\\", "a\\"),
        ("[[:nothing:]]", "a"),
        ("A", "a"),
        ("a", "a\n"),
        ("[^a-c]", "b"),
    ],
)
def test_pattern_does_not_match(pattern, path):
    """No wildcard matches a slash, and case is told apart."""
    assert not matches(pattern, path)


NAMES = st.text("ab[]!-?*.", max_size=8)


@given(pattern=st.text("ab[]!-?*.", max_size=8), name=NAMES)
def test_names_match_as_for_fnmatch(pattern, name):
    """Without a backslash, which fnmatch does not know, and the caret, which it takes for itself."""
    assert bool(name_matcher(pattern).match(name)) is bool(fnmatch.fnmatchcase(name, pattern))


@given(
    pattern=st.lists(st.sampled_from(["a", "b", "*", "**", "a*"]), min_size=1, max_size=6),
    names=st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=6),
)
def test_paths_match_as_the_definition_says(pattern, names):
    """The walk agrees with the plain recursion over both lists."""

    def defined(pattern, names):
        if not pattern:
            return not names
        first, *rest = pattern
        if first == "**":
            return defined(rest, names) or (bool(names) and defined(pattern, names[1:]))
        return bool(names) and fnmatch.fnmatchcase(names[0], first) and defined(rest, names[1:])

    assert Glob.of("/".join(pattern)).matches(names) is defined(pattern, names)


def test_walk_ends_where_nothing_can_match():
    """A directory that no match can lie below need not be entered."""
    glob = Glob.of("src/*/a")
    assert glob.step(glob.start, "doc") == ()
    assert glob.step(glob.start, "src")


def test_many_stars_take_no_time():
    """A pattern that would make a backtracking matcher try for years."""
    assert not name_matcher("*a" * 40 + "*b").match("a" * 250)
    assert not Glob.of("/".join(["**", "a*"] * 40 + ["b"])).matches(["a"] * 200)


@pytest.mark.parametrize(
    ("pattern", "expanded"),
    [
        ("a", ["a"]),
        ("a.{b,c}", ["a.b", "a.c"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]),
        ("{a,{b,c}}", ["a", "b", "c"]),
        ("{a,}x", ["ax", "x"]),
        ("{a}", ["{a}"]),
        ("{a,b", ["{a,b"]),
        ("a,b}", ["a,b}"]),
        ("\\{a,b}", ["\\{a,b}"]),
        ("{a,a}", ["a"]),
    ],
)
def test_braces_stand_for_patterns(pattern, expanded):
    """In the order they are written, each once."""
    assert braces_expanded(pattern) == expanded


def test_too_many_braces_are_refused():
    """Ten groups of two are 1,024 patterns."""
    with pytest.raises(PatternRefused, match="more than 100"):
        braces_expanded("{a,b}" * 10)
    assert len(braces_expanded("{a,b}" * 6)) == 64
