"""list_dir, glob and search, alike on the real disk and on the twin."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.workspace._called import claims, refusal
from toolrt.model import READ, WRITE, Claim, State
from toolrt.workspace import (
    SIZE_LIMIT,
    Directory,
    FileProblem,
    HardLink,
    MemoryDisk,
    RealDisk,
    Special,
    Symlink,
    Workspace,
)
from toolrt.workspace.finding import _finding, _ripgrep, _search_file, _walk
from toolrt.workspace.tools import _reading

FINDING = {"list_dir": {}, "glob": {"pattern": "**"}, "search": {"pattern": "x"}}


# All three


@pytest.mark.parametrize("name", FINDING)
async def test_missing_directory_is_refused(tree, call, name):
    """The refusal says how to make one."""
    problem = await refusal(call, tree, name, path="d", **FINDING[name])
    assert str(problem) == (
        "d: expected a directory, got nothing of that name. Check the name, or make the directory with make_dir."
    )


@pytest.mark.parametrize("name", FINDING)
@pytest.mark.parametrize("path", ["../outside", "out", "", "a\0b", "x" * 300, "loop", "pipe", "file/x", "~/outside"])
async def test_names_of_no_directory_are_refused(tree, call, name, path):
    """Nothing outside is looked at, and no name makes a tool hang."""
    tree.put(f"{tree.outside}/secret", "x")
    tree.put("out", Symlink(tree.outside))
    tree.put("loop", Symlink("loop"))
    tree.put("pipe", Special())
    tree.put("file", "s")
    assert "secret" not in str(await refusal(call, tree, name, path=path, **FINDING[name]))


@pytest.mark.parametrize("name", FINDING)
async def test_directory_that_became_another_is_a_retryable_error(tree, call, name):
    """RULE 18: what the name meant is claimed, not what it means."""
    tree.put("d/a", "x")
    tree.put("e/b", "x")
    tree.put("way", Symlink("d"))
    with pytest.raises(FileProblem) as caught:
        await call(tree, name, path="way", between=lambda: tree.put("way", Symlink("e")), **FINDING[name])
    assert caught.value.retryable


@pytest.mark.parametrize("name", FINDING)
def test_all_below_is_claimed(tree, name):
    """A write to any file below waits, and so does one through a file's other names."""
    tree.put("d/a", "x")
    found = claims(tree, name, path="d", **FINDING[name])
    assert Claim(("file", "d"), READ, subtree=True) in found
    assert Claim(("links",), READ, subtree=True) in found
    assert any(claim.conflicts_with(Claim(("file", "d", "x", "y"), WRITE)) for claim in found)
    assert all(claim.mode is READ for claim in found)


@pytest.mark.parametrize("name", FINDING)
async def test_links_are_not_followed(tree, call, name):
    """Neither to a file nor to a directory, and where they lead is not told."""
    tree.put(f"{tree.outside}/secret", "x")
    tree.put("d/a", "x")
    tree.put("way", Symlink("d"))
    tree.put("out", Symlink(f"{tree.outside}/secret"))
    answer = await call(tree, name, **FINDING[name])
    assert "secret" not in answer
    assert "way/a" not in answer
    assert "out:" not in answer


# list_dir


async def test_list_shows_names_and_what_they_are(tree, call):
    """Sorted, and sizes of files in bytes."""
    tree.put("b", "12345")
    tree.put("a/x", "")
    tree.put("link", Symlink("b"))
    tree.put("pipe", Special())
    assert await call(tree, "list_dir") == "a/\nb (5 bytes)\nlink (a symbolic link)\npipe (a named pipe)"
    assert await call(tree, "list_dir", path="a") == "x (0 bytes)"


async def test_list_of_an_empty_directory_says_so(tree, call):
    """An empty answer would say nothing."""
    tree.put("d", Directory())
    assert await call(tree, "list_dir", path="d") == "d is empty"


async def test_list_is_bounded(tree, call, monkeypatch):
    """The rest is counted."""
    monkeypatch.setattr(_reading, "LISTED_MOST", 2)
    for name in "abcd":
        tree.put(name)
    assert (await call(tree, "list_dir")).splitlines() == [
        "a (0 bytes)", "b (0 bytes)", "(2 more names are not shown; use glob)"
    ]  # fmt: skip


async def test_list_gives_a_tree_whose_nearer_levels_come_first(tree, call, monkeypatch):
    """A directory whose names are too many is named with their number, and .git is not entered."""
    for name in ("a/x/deep", "a/y", "b/1", "b/2", "b/3", ".git/config"):
        tree.put(name)
    tree.put("c", Symlink("a"))
    whole = [".git/", "a/", "  x/", "    deep (0 bytes)", "  y (0 bytes)"]
    whole += ["b/", *(f"  {n} (0 bytes)" for n in "123"), "c (a symbolic link)"]
    assert (await call(tree, "list_dir", depth=3)).splitlines() == whole
    assert await call(tree, "list_dir", path="a", depth=2) == "x/\n  deep (0 bytes)\ny (0 bytes)"
    monkeypatch.setattr(_reading, "LISTED_MOST", 7)
    assert (await call(tree, "list_dir", depth=9)).splitlines() == [*whole[:5], "b/ (3 names)", "c (a symbolic link)"]
    for depth in (0, 10**5000):
        assert (await refusal(call, tree, "list_dir", depth=depth)).path == "depth"


# glob


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("*.py", ".", "a.py"),
        ("**/*.py", ".", "a.py d/b.py d/e/c.py"),
        ("**/*.py", "d", "d/b.py d/e/c.py"),
        ("d/*", ".", "d/b.py d/n.txt"),
        ("**/{c,n}.*", ".", "d/e/c.py d/n.txt"),
        ("d", ".", ""),
        ("x*", ".", ""),
    ],
)
async def test_glob_finds_files(tree, call, pattern, path, found):
    """In sorted order, files alone."""
    for name in ("a.py", "d/b.py", "d/n.txt", "d/e/c.py"):
        tree.put(name)
    assert await call(tree, "glob", pattern=pattern, path=path) == ("\n".join(found.split()) or "no file matches")


async def test_what_is_found_is_relative_to_the_working_directory(tree, call):
    """So that it can be given to another tool as it is, and shows nothing of the machine."""
    tree.put("d/e/a", "x")
    tree.put("b", "x")
    state = State(working_dir="d")
    assert await call(tree, "glob", pattern="**", state=state) == "e/a"
    assert await call(tree, "glob", pattern="*", path="..", state=state) == "../b"
    assert await call(tree, "glob", pattern="*", path=f"{tree.root}/d/e", state=state) == "e/a"
    assert await call(tree, "search", pattern="x", path="../b", state=state) == "../b:1: x"
    assert await call(tree, "search", pattern="x", path=f"{tree.root}/b") == "b:1: x"


@pytest.mark.parametrize("pattern", ["", "/a", "a/", "../a", "a/../b", "~/a", "{a,b}" * 9, "x" * 1001])
async def test_glob_refuses_patterns_that_lead_elsewhere(tree, call, pattern):
    """What cannot match below a directory is not answered with nothing."""
    assert (await refusal(call, tree, "glob", pattern=pattern)).path == "pattern"
    assert (await refusal(call, tree, "search", pattern="x", glob=pattern)).path == "glob"


async def test_glob_is_bounded(tree, call, monkeypatch):
    """The rest is counted."""
    monkeypatch.setattr(_finding, "_GLOBBED_MOST", 1)
    for name in "abc":
        tree.put(name)
    assert await call(tree, "glob", pattern="*") == "a\n(2 more are not shown; use a narrower pattern)"


async def test_huge_tree_is_walked_in_part(tree, call, monkeypatch):
    """The answer says so."""
    monkeypatch.setattr(_walk, "VISITED_MOST", 2)
    for name in ("a/1", "b/1", "c/1"):
        tree.put(name)
    assert "names were looked at" in await call(tree, "glob", pattern="**")


# What is left out


async def test_gitignore_leaves_out(tree, call):
    """Nested files too, and .git always."""
    tree.put(".gitignore", "*.o\nbuild/\n")
    tree.put("a.o", "x")
    tree.put("a", "x")
    tree.put("build/b", "x")
    tree.put("d/.gitignore", "!keep.o\n/c\n")
    tree.put("d/keep.o", "x")
    tree.put("d/c", "x")
    tree.put("d/e/c", "x")
    tree.put(".git/config", "x")
    assert (await call(tree, "glob", pattern="**")).split() == [".gitignore", "a", "d/.gitignore", "d/e/c", "d/keep.o"]
    assert (await call(tree, "search", pattern="^x$")).split("\n") == ["a:1: x", "d/e/c:1: x", "d/keep.o:1: x"]
    everything = await call(tree, "glob", pattern="**", ignored=True)
    assert {"a.o", "build/b", "d/c"} < set(everything.split())
    assert ".git/config" not in everything


async def test_gitignore_above_the_directory_counts(tree, call):
    """It is the same file, wherever the search begins; who names a directory that is left out wants it."""
    tree.put(".gitignore", "*.o\n/d/e/x\nbuild\n")
    tree.put("d/e/a.o", "x")
    tree.put("d/e/x", "x")
    tree.put("d/e/y", "x")
    tree.put("build/a.o", "x")
    assert await call(tree, "glob", pattern="**", path="d/e") == "d/e/y"
    assert await call(tree, "glob", pattern="**", path="build") == "build/a.o"


def test_gitignore_above_is_claimed(tree):
    """Who writes it changes the answer."""
    tree.put("d/e/a", "x")
    for name in ("glob", "search"):
        found = claims(tree, name, path="d/e", **FINDING[name])
        for file in ((".gitignore",), ("d", ".gitignore"), ("d", "e", ".gitignore")):
            assert any(claim.conflicts_with(Claim(("file", *file), WRITE)) for claim in found)
        assert Claim(("file", ".gitignore"), READ) not in claims(tree, name, path="d/e", ignored=True, **FINDING[name])


async def test_gitignore_that_is_a_link_counts_for_nothing(tree, call):
    """As for git; it may lead outside."""
    tree.put(f"{tree.outside}/rules", "a\n")
    tree.put(".gitignore", Symlink(f"{tree.outside}/rules"))
    tree.put("a", "x")
    assert "a" in (await call(tree, "glob", pattern="*")).split()


# search


async def test_search_shows_line_and_text(tree, call):
    """Lines are counted from 1, and end where any line end is."""
    tree.put("a", "one\r\ntwo\rthree\nfour two")
    tree.put("d/b", "two")
    assert await call(tree, "search", pattern="tw[o]") == "a:2: two\na:4: four two\nd/b:1: two"
    assert await call(tree, "search", pattern="nothing") == "no line matches"


async def test_search_of_one_file(tree, call):
    """A file may be named in a directory's place."""
    tree.put("d/b", "1\ntwo\n")
    assert await call(tree, "search", pattern="two", path="d/b") == "d/b:2: two"


async def test_search_of_one_file_that_is_no_text_is_refused(tree, call):
    """Among others it is passed over and named; alone it is an error."""
    tree.put("a", b"x\0")
    tree.put("b", "x")
    assert await call(tree, "search", pattern="x") == "b:1: x\n(1 file was not searched, binary data: a)"
    assert "2 bytes of binary data" in str(await refusal(call, tree, "search", pattern="x", path="a"))


async def test_search_takes_a_plain_text_and_any_case(tree, call):
    """The same options as everywhere."""
    tree.put("a", "f(x)\nF(X)\nfx\n")
    assert await call(tree, "search", pattern="f(x)") == "a:3: fx"
    assert await call(tree, "search", pattern="f(x)", literal=True) == "a:1: f(x)"
    assert await call(tree, "search", pattern="f(x)", literal=True, ignore_case=True) == "a:1: f(x)\na:2: F(X)"
    assert await call(tree, "search", pattern="^f.x", ignore_case=True) == "a:1: f(x)\na:2: F(X)"


async def test_search_goes_over_lines(tree, call):
    """Whatever ends them, by a text or an expression; and a match at the end of the file is whole."""
    tree.put("a", "def f(x):\r\n    return x\r\n\r\ndef g(y):\r\n    pass\r\n")
    assert await call(tree, "search", pattern=r"def \w\(.*\n\s+pass") == "a:4: def g(y):\na:5:     pass"
    assert await call(tree, "search", pattern="X\n\ndef g", literal=True, ignore_case=True) == (
        "a:2:     return x\na:3: \na:4: def g(y):"
    )
    for at_end in (r"pass\n", r"pass\nx?"):
        assert await call(tree, "search", pattern=at_end) == "a:5:     pass"
    assert await call(tree, "search", pattern=r"x:\n") == "no line matches"
    for refused in (r"(x\n)+", r"\n*", r"a|b\nc"):
        assert "a line's end" in str(await refusal(call, tree, "search", pattern=refused))
    tree.put("a", "x" * (SIZE_LIMIT + 1))
    assert "reads no further: a" in await call(tree, "search", pattern=r"x\ny")


async def test_search_narrows_files(tree, call):
    """A pattern without a slash is for names at any depth."""
    for name in ("a.py", "d/b.py", "d/c.txt"):
        tree.put(name, "x")
    assert await call(tree, "search", pattern="x", glob="*.py") == "a.py:1: x\nd/b.py:1: x"
    assert await call(tree, "search", pattern="x", glob="d/*") == "d/b.py:1: x\nd/c.txt:1: x"


async def test_search_reads_every_encoding(tree, call):
    """UTF-16 and UTF-32 with their marks, also where nothing but a plain text is searched for."""
    tree.put("16", codecs.BOM_UTF16_LE + "né\n日本".encode("utf-16-le"))
    tree.put("32", codecs.BOM_UTF32_BE + "日本".encode("utf-32-be"))
    tree.put("8", "日本")
    tree.put("latin", "né".encode("latin-1"))
    assert (await call(tree, "search", pattern="日本", literal=True)).split("\n") == [
        "16:2: 日本",
        "32:1: 日本",
        "8:1: 日本",
        "(1 file was not searched, not UTF-8 (name the encoding with encoding=): latin)",
    ]


async def test_search_is_bounded(tree, call):
    """By lines and by their length, and it says so."""
    tree.put("a", "x\n" * 5 + "y" * 1000)
    tree.put("b", "x")
    narrower = "(only the first {} lines are shown; search for something narrower)"
    assert await call(tree, "search", pattern="x", limit=2) == f"a:1: x\na:2: x\n{narrower.format(2)}"
    assert await call(tree, "search", pattern="x", limit=5, path="a") == "\n".join(f"a:{n}: x" for n in range(1, 6))
    assert narrower.format(5) in await call(tree, "search", pattern="x", limit=5)
    assert await call(tree, "search", pattern="y") == f"a:6: {'y' * 300} ..."


async def test_search_shows_lines_around_a_match(tree, call):
    """A line that two matches share is shown once, and a gap is marked."""
    tree.put("a", "1\n2 x\n3\n4 x\r\n5\n6\n7\n8\n9 x")
    tree.put("b", "x")
    answer = await call(tree, "search", pattern="x", context=1)
    assert answer.splitlines() == [
        "a-1- 1", "a:2: 2 x", "a-3- 3", "a:4: 4 x", "a-5- 5", "--", "a-8- 8", "a:9: 9 x", "--", "b:1: x"
    ]  # fmt: skip


async def test_context_does_not_count_as_matches(tree, call):
    """The limit is for lines that match."""
    tree.put("a", "x\n1\n2\nx\n3\nx\n")
    answer = await call(tree, "search", pattern="x", context=1, limit=2)
    assert answer.splitlines() == [
        "a:1: x", "a-2- 1", "a-3- 2", "a:4: x", "a-5- 3",
        "(only the first 2 lines are shown; search for something narrower)",
    ]  # fmt: skip


async def test_no_context_is_shown_of_a_match_that_is_not(tree, call):
    """What stands before it."""
    tree.put("a", "x\n1\n2\n3\n4\nx\n")
    answer = await call(tree, "search", pattern="x", context=1, limit=1)
    assert answer.splitlines()[:-1] == ["a:1: x", "a-2- 1"]


@pytest.mark.parametrize(
    ("show", "limit", "found"),
    [
        ("files", 5, ["a", "c/d"]),
        ("counts", 5, ["a: 2", "c/d: 1"]),
        ("files", 1, ["a", "(only the first 1 files are shown; search for something narrower)"]),
    ],
)
async def test_search_shows_files_or_counts(tree, call, show, limit, found):
    """One line for each file that has a match."""
    tree.put("a", "x\n\nxx\n")
    tree.put("b", "y")
    tree.put("c/d", "x")
    assert (await call(tree, "search", pattern="x", show=show, limit=limit, context=3)).splitlines() == found


async def test_search_reads_what_other_tools_do_not_read(tree, call):
    """A file that is too large to be read or edited is searched all the same."""
    tree.put("a", b"y\n" * (SIZE_LIMIT // 2) + b"x")
    assert await call(tree, "search", pattern="x") == f"a:{SIZE_LIMIT // 2 + 1}: x"


@pytest.mark.parametrize(
    ("input", "path"),
    [
        ({"pattern": ""}, "pattern"),
        ({"pattern": "("}, "pattern"),
        ({"pattern": r"(a\nb)"}, "pattern"),
        ({"pattern": "x", "limit": 0}, "limit"),
        ({"pattern": "x", "limit": 10**5000}, "limit"),
        ({"pattern": "x", "context": -1}, "context"),
        ({"pattern": "x", "context": 101}, "context"),
        ({"pattern": "x", "show": "names"}, "show"),
    ],
)
async def test_search_refuses_what_cannot_be_meant(tree, call, input, path):
    """The refusal names the parameter."""
    tree.put("a", "x")
    assert (await refusal(call, tree, "search", **input)).path == path


async def test_search_of_a_large_file_is_the_same(tree, call, monkeypatch):
    """What goes to a worker thread gives what would be found here."""
    tree.put("a", "one\ntwo\n" * 5000)
    first = await call(tree, "search", pattern="tw.", limit=3)
    monkeypatch.setattr(_search_file, "_THREAD_FROM", 10**9)
    assert await call(tree, "search", pattern="tw.", limit=3) == first


async def test_search_finds_a_file_under_each_of_its_names(tree, call):
    """Hard links are names like others."""
    tree.put("a", "x")
    tree.put("b", HardLink("a"))
    assert await call(tree, "search", pattern="x") == "a:1: x\nb:1: x"


LINES = st.lists(st.text("ab é", max_size=5), max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.dictionaries(st.text("abc/", min_size=1, max_size=5), LINES, max_size=5),
    wanted=st.text("ab é", min_size=1, max_size=2),
)
async def test_search_finds_what_python_finds(call, files, wanted):
    """The lines that have the text, of all files, in order."""

    class Tree:
        workspace = Workspace(MemoryDisk())

    for path, lines in files.items():
        parts = [part for part in path.split("/") if part]
        if parts and not any(name.startswith(parts[0]) for name in Tree.workspace.snapshot()):
            Tree.workspace.disk.put("/".join(parts), "\n".join(lines))
    expected = [
        f"{path}:{number}: {line}"
        for path, content in sorted(Tree.workspace.snapshot().items(), key=lambda item: item[0].split("/"))
        for number, line in enumerate(content.decode().split("\n"), 1)
        if wanted in line
    ]
    assert await call(Tree, "search", pattern=wanted, literal=True) == ("\n".join(expected) or "no line matches")


# ripgrep


def with_ripgrep(monkeypatch, found):
    """Ask it from the second file on, and note what it said."""
    if _ripgrep.program() is None:
        pytest.skip("ripgrep is not installed")
    candidates = _finding.candidates

    async def noted(directory, factor, **options):
        found.append(await candidates(directory, factor, **options))
        return found[-1]

    monkeypatch.setattr(_finding, "candidates", noted)
    monkeypatch.setattr(_finding, "_RIPGREP_FROM", 1)


WANTED = ["needle", "nee(dle)?s*", "né日", "日", "need.e", "\ufeffx", "needle$", "\u0a0a"]


@pytest.mark.parametrize("wanted", WANTED)
async def test_search_finds_the_same_with_ripgrep(tmp_path, call, monkeypatch, wanted):
    """In every encoding, hidden files and ignored ones; it reads fewer files, and decides nothing."""

    class Tree:
        workspace = None

    (tmp_path / "work").mkdir()
    Tree.workspace = Workspace(tmp_path / "work")
    for number, encoding in enumerate(["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "latin-1"]):
        for name in ("a", ".hidden", "-rf", "x\ny", "d/e", "build/o"):
            path = tmp_path / "work" / f"{number}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            text = "one\r\nneedles\rné日 needle\nx\u0a0ay\n" if encoding != "latin-1" else "needle é"
            path.write_bytes(("\ufeff" * encoding.startswith("utf-") + text).encode(encoding))
    (tmp_path / "work" / ".gitignore").write_text("build\n")
    (tmp_path / "work" / "binary").write_bytes(b"needle\0")
    (tmp_path / "work" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a").write_text("needle")
    for more in ({}, {"path": "1"}, {"ignored": True}, {"literal": True}):
        with monkeypatch.context() as patched:
            said = []
            with_ripgrep(patched, said)
            answer = await call(Tree, "search", pattern=wanted, **more)
        assert answer == await call(Tree, "search", pattern=wanted, **more)
        assert said
        assert None not in said


async def test_search_goes_on_when_ripgrep_fails(tree, call, monkeypatch):
    """A program that is none, or is another one, names no candidates; so all files are searched."""
    for name in "abc":
        tree.put(name, "needle")
    monkeypatch.setattr(_finding, "_RIPGREP_FROM", 1)
    for program in ("/nowhere/rg", "false", None):
        monkeypatch.setattr(_ripgrep, "program", lambda program=program: program)
        assert await call(tree, "search", pattern="needle") == "a:1: needle\nb:1: needle\nc:1: needle"


@pytest.mark.parametrize(("code", "said"), [(2, b"a\0"), (-9, b""), (None, b"")])
async def test_search_goes_on_when_ripgrep_ends_badly(tree, call, monkeypatch, code, said):
    """What it named before counts for nothing then."""

    async def run(command, directory):
        return (0, b"ripgrep 14") if "--version" in command else (code, said)

    for name in "abc":
        tree.put(name, "needle")
    monkeypatch.setattr(_finding, "_RIPGREP_FROM", 1)
    monkeypatch.setattr(_ripgrep, "program", lambda: "some rg")
    monkeypatch.setattr(_ripgrep, "_run", run)
    assert await call(tree, "search", pattern="needle") == "a:1: needle\nb:1: needle\nc:1: needle"


async def test_ripgrep_is_asked_about_large_trees_only(tree, call, monkeypatch):
    """Starting it takes longer than reading a few files; the twin has no files for it."""
    asked = []

    async def note(directory, factor, **options):
        asked.append(factor.literals)

    monkeypatch.setattr(_finding, "candidates", note)
    monkeypatch.setattr(_ripgrep, "program", lambda: "rg")
    monkeypatch.setattr(_finding, "_RIPGREP_FROM", 3)
    for name in "abcd":
        tree.put(name, "needle")
        await call(tree, "search", pattern="nee(dle)+")
    assert asked == ([("needle",)] if isinstance(tree.disk, RealDisk) else [])


@pytest.mark.parametrize("name", ["glob", "search"])
async def test_directories_deeper_than_any_name_are_not_looked_into(tree, call, name):
    """They are counted."""
    deepest = "/".join(["d"] * 256)
    tree.put(f"{deepest}/x", "x")
    tree.put("a", "x")
    answer = await call(tree, name, **FINDING[name])
    assert answer.splitlines()[-1] == "(1 directories, more than 256 deep, were not looked into)"
    assert answer.splitlines()[0][0] == "a"
    assert "/x" not in answer
