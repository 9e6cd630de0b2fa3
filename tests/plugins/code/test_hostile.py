"""Files that mean harm to who parses them: whatever they are, they end, and the rest of the tree is known."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest
import trio

pytest.importorskip("tree_sitter", reason="the code extra is not installed")

from tests.plugins.code._code_index import ask, asked, index_of, tree_in, write
from toolrt import MemoryDisk, Registry, Runtime, State, ToolCall, Workspace, plugins
from toolrt.plugins.code import CodeIndex, _index, _parsing
from toolrt.plugins.code._reading import facts_of
from toolrt.workspace import Snapshot, Special, Symlink, head_and_tail


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree_in(tmp_path)


def test_links_pipes_and_circles_are_passed_over():
    """Nothing is opened but files, and each once."""
    files = {"d/a.py": "def f(): ...\n", "d/up": Symlink(".."), "loop": Symlink("loop"), "b.py": Symlink("d/a.py"),
             "pipe.py": Special()}  # fmt: skip
    code = CodeIndex(Workspace(MemoryDisk(files)))
    assert ask(code, "find_callers", symbol="f").startswith("callers of d/a.py:1 function f: 0")


def test_a_circle_of_real_links_ends(root):
    (root / "self").symlink_to(root, target_is_directory=True)
    (root / "d").mkdir()
    (root / "d" / "up").symlink_to("../d", target_is_directory=True)
    assert trio.run(index_of(root).build) == 2


class ChangingDisk(MemoryDisk):
    """A file of it changes just after it was read."""

    async def read(self, entry: tuple[str, ...], limit: int) -> Snapshot:
        snapshot = await super().read(entry, limit)
        if entry == ("a.py",) and b"old" in snapshot.content:
            self.put("a.py", "def new_name(): ...\n")
        return snapshot


def test_a_file_that_changes_while_it_is_parsed_is_read_again():
    """By the next answer: its look is another one."""
    code = CodeIndex(Workspace(ChangingDisk({"a.py": "def old_name(): ...\n"})))
    trio.run(code.build)
    assert ask(code, "find_callers", symbol="new_name").startswith("callers of a.py:1 function new_name")
    assert "which nothing is called" in str(asked(code, "find_callers", symbol="old_name").error)


class VanishingDisk(MemoryDisk):
    """Its files are gone when they are read."""

    async def read(self, entry: tuple[str, ...], limit: int) -> Snapshot:
        if entry == ("b.py",):
            raise FileNotFoundError(2, "gone")
        return await super().read(entry, limit)


def test_a_file_that_vanishes_is_no_failure():
    code = CodeIndex(Workspace(VanishingDisk({"a.py": "def f(): ...\n", "b.py": "f()\n"})))
    assert ask(code, "find_callers", symbol="f").startswith("callers of a.py:1 function f: 0")


HOSTILE = {
    "one line": b"x = [" * 15_000,
    "brackets": b"(" * 200_000,
    "braces": b"{" * 200_000,
    "calls": b"f(" * 60_000 + b")" * 60_000,
    "attributes": b"a" + b".b()" * 50_000,
    "functions": b"".join(b" " * depth + b"def f():\n" for depth in range(600)),
    "no text": bytes(range(256)) * 1000,
    "half of UTF-8": b"def f\xc3(\xff): \xe2\x82\n" * 1000,
    "lines": b"def f(): f()\n" * 3_000,
}


@pytest.mark.drawn(16)
@pytest.mark.parametrize("name", ["a.py", "a.js", "a.cpp", "a.rb"])
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_no_content_is_a_failure(name, content):
    """It is parsed, or not; the rest of the tree is known in any case."""
    code = CodeIndex(Workspace(MemoryDisk({name: content, "good.py": "def good(): good()\n"})))
    assert "good.py:1 in good: good" in ask(code, "find_callers", symbol="good")
    asked(code, "list_symbols", path=name)
    assert plugins.code.skeleton(name, content.decode("utf-8", "replace"), 500)


@pytest.mark.seldom
def test_a_file_of_50_mb_in_one_line_is_not_read(root):
    """Nor parsed for a skeleton; answers say that there is one."""
    with (root / "big.py").open("wb") as file:
        file.truncate(50 * 1024 * 1024)
    code = index_of(root)
    assert ask(code, "find_callers", symbol="g").endswith("(not known: 1 file above 1048576 bytes)")
    text = "x" * (50 * 1024 * 1024)
    assert plugins.code.skeleton("big.py", text, 500) == head_and_tail("big.py", text, 500)


def test_large_and_long_files_are_not_parsed():
    """Each bound, and just below it; Python has a larger one, whatever its lines are."""
    grammars = _parsing.Grammars()
    script, python = (grammars.of(plugins.code.LANGUAGES[name]) for name in ("javascript", "python"))
    line = b"name = 'a text'\n"
    most = _parsing.PARSED_MOST // len(line)
    assert _parsing.parsed(script, line * most) is not None
    assert _parsing.parsed(script, line * (most + 1)) is None
    long = b"/" * (_parsing._LINE_LONGEST - 1) + b"\n"
    assert _parsing.parsed(script, long * 300) is not None
    assert _parsing.parsed(script, b"/" * 20 + long.strip() * 300) is None
    text = b"#" * (_parsing.PYTHON_MOST - 1)
    assert _parsing.parsed(python, text + b"\n") is not None
    assert _parsing.parsed(python, text + b"#\n") is None


def test_a_query_looks_only_so_deep():
    """Else it is quadratic in the depth: 40,000 nested calls would take a minute."""
    content = b"f(\n" * 5_000 + b")\n" * 5_000
    facts = facts_of(_parsing.Grammars(), plugins.code.LANGUAGES["python"], content)
    assert 0 < len(facts.calls) < _parsing._DEEPEST


def test_a_tree_with_too_wide_an_error_is_not_asked():
    """Else it is quadratic in the width."""
    grammar = _parsing.Grammars().of(plugins.code.LANGUAGES["javascript"])
    assert _parsing.parsed(grammar, b"{\n" * (_parsing._WIDEST_ERROR - 10)) is not None
    assert _parsing.parsed(grammar, b"{\n" * (_parsing._WIDEST_ERROR + 10)) is None


def test_bytes_that_are_no_utf_8_are_known_as_far_as_they_go(root):
    """What cannot be decoded is U+FFFD in what is shown; everything else of the file is known."""
    write(root / "c.py", b"# caf\xe9\n\ndef \xff(): ...\n\n\ndef h():\n    '\xf0\x28'\n    g()\n\nfrom b import g\n")
    code = index_of(root)
    assert "c.py:8 in h: g" in ask(code, "find_callers", symbol="g")
    assert "function h | def h()" in ask(code, "search_code", query="h")
    assert ask(code, "list_symbols", path="c.py")


def test_deep_nesting_ends_and_the_rest_of_the_tree_is_known(root):
    """Of brackets, of blocks and of calls, in one file each."""
    write(root / "brackets.py", "x = " + "[\n" * 20_000 + "]\n" * 20_000)
    write(root / "blocks.py", "".join(" " * depth + "if x:\n" for depth in range(600)) + " " * 600 + "g()\n")
    write(root / "calls.js", "f(\n" * 20_000 + ")\n" * 20_000)
    code = index_of(root)
    assert "a.py:5 in f: g" in ask(code, "find_callers", symbol="g")
    for name in ("brackets.py", "blocks.py", "calls.js"):
        assert plugins.code.skeleton(name, (root / name).read_text(), 500)


@pytest.mark.parametrize(
    ("language", "unit"),
    [
        ("java", b"%w("), ("java", b"a(*"), ("java", b"a(\n*"), ("c", b"a=>"), ("c", b"a=>\n"),
        ("c", b"a\n=>"), ("rust", b"a(%"), ("rust", b"=>w("), ("cpp", b"a<-"),
    ],
)  # fmt: skip
def test_operators_that_pile_up_are_not_parsed(language, unit):
    """Else memory is quadratic in them, at the end of the file: 6,000 bytes took 1.4 GB."""
    grammar = _parsing.Grammars().of(plugins.code.LANGUAGES[language])
    assert _parsing.parsed(grammar, unit * (_parsing._PILED_MOST + 1)) is None
    assert _parsing.parsed(grammar, unit * 50 + b";\n") is not None


@pytest.mark.parametrize("unit", [b"/*\n", b"|* *\n", b"%**\n"])
def test_operators_of_python_do_not_pile_up(unit):
    """The parser is not shown those that would: 4,500 bytes took 760 MB."""
    grammar = _parsing.Grammars().of(plugins.code.LANGUAGES["python"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert _parsing.parsed(grammar, unit * 1500 + b"def f(): ...\n") is not None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


@pytest.mark.parametrize("name", ["python", "c", "javascript"])
def test_operators_of_many_statements_do_not_pile_up(name):
    """Nor do comments in the languages that have such."""
    grammar = _parsing.Grammars().of(plugins.code.LANGUAGES[name])
    lines = b"x = a * b / c\n" if name == "python" else b"x = a * b / c; // as * is\n/* what\n * it is\n */\n"
    assert _parsing.parsed(grammar, lines * _parsing._PILED_MOST) is not None


def test_a_file_on_the_disk_that_changes_while_it_is_parsed_is_read_again(root, monkeypatch):
    """What was read of it is known until the next answer, which looks at it again."""
    parse, changed = _index._stored, []

    def stored(path: str, *more: Any) -> Any:
        if path == "b.py" and not changed:
            changed.append(path)
            write(root / "b.py", "def other():\n    return 100\n")
        return parse(path, *more)

    monkeypatch.setattr(_index, "_stored", stored)
    code = index_of(root)
    trio.run(code.build)
    assert changed == ["b.py"]
    assert ask(code, "find_callers", symbol="other").startswith("callers of b.py:1 function other")
    assert "which nothing is called" in str(asked(code, "read_symbol", symbol="g").error)


def test_read_file_of_50_mb_in_one_line_is_refused(root):
    """In words, before anything of it is parsed."""
    with (root / "big.py").open("wb") as file:
        file.write(b"x = '" + b"y" * (50 * 1024 * 1024) + b"'")
    workspace = Workspace(root, state_dir=root.parent / "state", skeleton=plugins.code.skeleton)
    call = ToolCall("id", "read_file", {"path": "big.py"})
    [result] = trio.run(Runtime(Registry(workspace.tools())).run, [call], State()).results
    assert "big.py: expected at most 10485760 bytes, got 52428806 bytes" in str(result.error)
