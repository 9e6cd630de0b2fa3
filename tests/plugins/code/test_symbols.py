"""No symbol and no call of a file that Python compiles is missed; `ast` says which there are."""

from __future__ import annotations

import pytest

pytest.importorskip("tree_sitter", reason="the code extra is not installed")

from tests.plugins.code._against_ast import PACKAGES, difference, files_of
from tests.plugins.code._code_index import ask
from toolrt import MemoryDisk, Workspace
from toolrt.plugins.code import CodeIndex
from toolrt.plugins.code._parsing import Grammars

#: Every such file of the packages, so that the comparison takes about a second.
_EVERY = 12

#: What Python compiles, and a parser may take for something else.
ODD = {
    "carriage returns": b"class A:\r    def f(self): ...\r\rx = 1\r",
    "both": b"class A:\r\n    def f(self): ...\r\n",
    "a byte-order mark": b"\xef\xbb\xbfdef f(): ...\n",
    "form feeds": b"\x0cclass A: ...\n\x0cdef f(): ...\n",
    "tabs": b"class A:\n\tdef f(self):\n\t  return 1\n",
    "compatible letters": "def \ufb01(): \ufb02()\n".encode(),
    "a comment of operators": b"class A:\n    x = 1\n" + b'# / * a */ b /* c | * "d"\n' * 2_000 + b"def f(): ...\n",
    "operators of a table": b"X = [\n" + b"    [a * b, c / d, e % f, g << h],\n" * 500 + b"]\ndef f(): ...\n",
    "a text of operators": b'X = """\n' + b"# /* |* */\n" * 2_000 + b'"""\ndef f(): ...\n',
    "a line of 70 kB": b"X = [" + b"1, " * 24_000 + b"]\ndef f(): ...\n",
    "small statements": b"x\n" * 4_000 + b"def f(): ...\n",
    "words that are names, too": b"def type(): ...\ndef match(): print >>a, b\nclass case: ...\nmatch(type())\n",
    "less indentation in brackets": (
        b"class A:\n    def f(self):\n        (a.\n    b)\n        g(lambda: # (\n1, {'\"':\n h('''[ \\'\n(''',\n"
        b"i(\n2))})\n    def j(self): k(\n)\nclass B:\n    def l(self): m()\n"
    ),
    "latin-1": "# coding: latin-1\nclass Größe:\n    def \xe4(self): \xf6()\n".encode("latin-1"),
    "shift_jis that is UTF-8, too": "# -*- coding: shift_jis -*-\ndef ｿ(): ｿﾀ()\n".encode("shift_jis"),
    "iso-2022-jp": "#!x\n# vim: fileencoding=iso-2022-jp\ndef 日本(): 語()\n".encode("iso-2022-jp"),
    "calls of all kinds": b"[*f()]; (g)(); (h := i)(); j[int](); k[0][1](); l().m()\n@n\nclass A(o()): ...\n",
}


@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_odd_files_have_all_their_symbols_and_calls(content):
    """Whatever their lines end with, and whatever stands in comments."""
    compile(content, "odd", "exec")
    assert difference(Grammars(), content) == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_installed_packages_have_all_their_symbols_and_calls(package):
    """A sample, and the file whose comments are full of operators."""
    grammars = Grammars()
    files = files_of(package)
    assert files
    chosen = [path for number, path in enumerate(files) if number % _EVERY == 0 or path.name == "_io_epoll.py"]
    assert {path.name: found for path in chosen if (found := difference(grammars, path.read_bytes()))} == {}


def test_python_file_above_a_mebibyte_is_known():
    """Other texts of that size are not."""
    much = b"# " + b"a" * 98 + b"\n"
    content = much * 12_000 + b"def f(): ...\n"
    code = CodeIndex(Workspace(MemoryDisk({"big.py": content, "big.txt": content, "a.py": "from big import f\nf()\n"})))
    said = ask(code, "find_callers", symbol="f")
    assert said.startswith("callers of big.py:12001 function f: 1")
    assert "not known: 1 file above" in said


def test_python_in_another_encoding_is_known_by_its_letters():
    """As Python reads it: its symbols, what they call, and their text."""
    content = "# coding: latin-1\nclass Größe:\n    def maß(self):\n        return fläche()\n".encode("latin-1")
    code = CodeIndex(Workspace(MemoryDisk({"old.py": content, "a.py": "def fläche(): ...\n"})))
    assert "return fläche()" in ask(code, "read_symbol", path="old.py", symbol="Größe.maß")
    said = ask(code, "find_references", name="fläche")
    assert "old.py:4" in said
    assert "another encoding" not in said
