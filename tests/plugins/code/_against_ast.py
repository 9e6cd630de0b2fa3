"""The symbols and calls of Python files as `ast` has them, held against what code intelligence knows.

``python -m tests.plugins.code._against_ast [PACKAGE ...]`` compares every file of installed packages and prints what is
missing or too much; without a package those of `PACKAGES`.  It also asks ripgrep, where there is one, for every line
that has one of the names, and compares the lines with those of ``find_references``.  What calls mean is held against
jedi by ``python tests/benchmarks/code.py --only edges``.

Left out: ``type(x).a = b``, which the grammar takes for the statement that names a type; ``type`` is Python's own.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from toolrt import Workspace
from toolrt.plugins.code import LANGUAGES, CodeIndex
from toolrt.plugins.code._parsing import Grammars
from toolrt.plugins.code._reading import facts_of, in_utf8

#: Installed packages, by the names of their modules.
PACKAGES = ("trio", "attr", "hypothesis", "_pytest", "anyio")

#: A name, and the line that it stands in.
Named = tuple[str, int]


def files_of(package: str) -> list[Path]:
    """The package's Python files, by path."""
    return sorted(Path(sysconfig.get_path("purelib"), package).rglob("*.py"))


def difference(grammars: Grammars, content: bytes) -> dict[str, list[Named]]:
    """The symbols and calls that only one side has; empty for a file that Python does not compile.

    A symbol is known by its qualified name and the line of ``def`` or ``class``, a call by its last name and the line
    of that.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return {}
    facts = facts_of(grammars, LANGUAGES["python"], in_utf8(LANGUAGES["python"], content))
    theirs = Counter(_symbols(tree, "")), Counter(_calls(tree))
    ours = (
        Counter((symbol.qualified, symbol.named_at) for symbol in facts.symbols),
        Counter((call.name, call.line) for call in facts.calls if call.name),
    )
    found = {
        "missing symbols": theirs[0] - ours[0],
        "other symbols": ours[0] - theirs[0],
        "missing calls": theirs[1] - ours[1],
        "other calls": ours[1] - theirs[1],
    }
    different = {what: [one for one in named.elements() if one[0] != "type"] for what, named in found.items()}
    return {what: named for what, named in different.items() if named}


def _symbols(tree: ast.AST, above: str) -> Iterator[Named]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield above + node.name, node.lineno
            yield from _symbols(node, f"{above}{node.name}.")
        elif not isinstance(node, ast.expr):
            yield from _symbols(node, above)


def _calls(tree: ast.AST) -> Iterator[Named]:
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        while isinstance(called, ast.Subscript | ast.NamedExpr):
            called = called.value
        if isinstance(called, ast.Name):
            yield called.id, called.lineno
        elif isinstance(called, ast.Attribute) and called.end_lineno is not None:
            yield called.attr, called.end_lineno


def _references(package: str, rg: str) -> None:
    """Print the names for which ripgrep finds other lines than ``find_references``."""
    from tests.plugins.code._code_index import ask

    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "work").resolve()
        shutil.copytree(files_of(package)[0].parent, root, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        code = CodeIndex(Workspace(root, state_dir=f"{directory}/state"), state_dir=f"{directory}/state")
        grammars = Grammars()
        names = Counter(
            symbol.name
            for path in files_of(package)
            for symbol in facts_of(grammars, LANGUAGES["python"], path.read_bytes()).symbols
        )
        different = places = 0
        for name in sorted(names)[:: max(1, len(names) // 200)]:
            asked = (rg, "--no-config", "-n", "--no-heading", "-P", rf"(?<![\w$]){name}(?![\w$])", ".")
            said = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=False).stdout
            theirs = {":".join(line.removeprefix("./").split(":", 2)[:2]) for line in said.splitlines()}
            answer = ask(code, "find_references", name=name, limit=1000)
            ours = {one for one in theirs if f"\n{one} " in answer or f"\n{one}:" in answer}
            places += len(ours)
            if theirs != ours and len(theirs) < 1000:
                different += 1
                print(f"  {name}: not among the references: {sorted(theirs - ours)[:5]}")
        code.close()
        print(f"{package}: {places:,} references of 200 names; {different} names with lines that only ripgrep has")


def main() -> None:
    """Compare, and print."""
    rg = shutil.which("rg") or shutil.which("rg", path=sysconfig.get_path("scripts"))
    for package in sys.argv[1:] or PACKAGES:
        grammars, count, total = Grammars(), Counter[str](), 0
        for path in files_of(package):
            content = path.read_bytes()
            total += len(facts_of(grammars, LANGUAGES["python"], content).symbols)
            for what, named in difference(grammars, content).items():
                count[what] += len(named)
                print(f"  {path}: {what}: {named[:5]}")
        print(f"{package}: {total:,} symbols", *(f"{number} {what}" for what, number in count.items()), sep="; ")
        if rg is not None:
            _references(package, rg)


if __name__ == "__main__":
    main()
