"""What code intelligence costs on a real tree, as ratios to what else could be done, and how right its edges are.

Run it as ``python tests/benchmarks/code.py [DIRECTORY]``; without one the tree is the running Python's site-packages.
Nothing is written into the tree; what is known is kept in a temporary directory.

*Cost.*  Building everything, against reading and parsing the same files with Python's own `ast` (Python files alone);
reading again after one edit, against building everything; a search by words, against a plain scan of all texts in an
FTS5 table without ranks, names or parts of words, and against ripgrep for the same word; references to a name, against
ripgrep for it; callers, against jedi's references.  *Alone* is without the look at the tree that comes first.  All in
one run, medians, each pair in turn.

*Edges.*  For each call in a package, what the graph says it means is held against what jedi infers: how many of ours
jedi has (precision), how many of jedi's we have (recall).  Only what is defined in the package counts.  Where jedi has
nothing and the graph has something, that is counted against the graph and shown apart: most of it is right.

*Hostile.*  How long content takes that means harm, as large as is parsed, in the language that takes the longest for
it, against ordinary Python of that size; and the most memory of that.  What a file of 50 MB in one line costs questions
beside it, and a search, against reading it.

``--only cost``, ``--only edges`` and ``--only hostile`` do a part; ``--package`` names the packages; ``--every`` takes
every nth call; ``--json`` prints rows as JSON lines.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sysconfig
import tempfile
import time
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trio
from _tree import linked, ms, python_files, ratio, timed, told

from toolrt import Registry, Runtime, State, ToolCall, Workspace
from toolrt.plugins.code import LANGUAGES, CodeIndex
from toolrt.plugins.code._parsing import PARSED_MOST, Grammars
from toolrt.plugins.code._reading import facts_of
from toolrt.plugins.code._resolve import Python
from toolrt.plugins.code._tree import SourceTree

#: Words that are searched for: rare and common, one and several.
QUERIES = ("parse config file", "getLogger", "connection pool", "retry backoff", "token")
#: Names whose callers are asked for.
NAMES = ("getLogger", "dedent", "urlparse", "suppress", "lru_cache")
ROUNDS = 5

#: Content that means harm, of as many bytes as are parsed or almost.
HOSTILE = {
    "one line": b"x = [" * 13_000,
    "brackets": b"(" * 65_000,
    "braces in lines": b"{\n" * 131_000,
    "nested calls": b"f(\n" * 43_000 + b")\n" * 43_000,
    "a chain of attributes": b"a" + b"\n.b()" * 50_000,
    "nested functions": b"".join(b" " * depth + b"def f():\n" for depth in range(700)),
    "quotes": b"'\n" * 131_000,
    "backquotes": b"`\n" * 131_000,
    "all three quotes": b"'\"`\n" * 65_000,
    "comments that never end": b"/*\n" * 87_000,
    "less-than signs": b"a<b\n" * 65_000,
    "no UTF-8": b"def f\xc3(\xff): \xe2\x82\n" * 16_000,
    "every byte": bytes(range(256)) * 1_000,
    "small functions": b"def f(): f()\n" * 20_000,
}


async def _no_look(told: Any = None) -> int:
    await trio.lowlevel.checkpoint()
    return 0


class Session:
    """One tree and what is known of it."""

    def __init__(self, root: Path, state_dir: str) -> None:
        self.code = CodeIndex(Workspace(root, state_dir=state_dir), state_dir=state_dir)
        self.runtime = Runtime(Registry([*self.code.workspace.tools(), *self.code.tools()]))

    def ask(self, tool: str, looks: bool = True, **input: Any) -> str:
        """One call, in a batch of its own; with `looks` the tree is looked at first, as always."""
        index, refresh = self.code._index, self.code._index.refresh
        if not looks:
            index.refresh = _no_look  # type: ignore[method-assign]
        try:
            [result] = trio.run(self.runtime.run, [ToolCall("id", tool, input)], State()).results
        finally:
            index.refresh = refresh  # type: ignore[method-assign]
        return str(result.error if result.content is None else result.content)


def cost(given: Path, most: int) -> Iterator[dict[str, Any]]:
    """The rows of the first half."""
    with (
        tempfile.TemporaryDirectory() as copy,
        tempfile.TemporaryDirectory() as state_dir,
        tempfile.TemporaryDirectory() as elsewhere,
    ):
        root = Path(copy).resolve()
        linked(given, root, most)
        session = Session(root, state_dir)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        built = timed(lambda: trio.run(session.code.build))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        files = session.code._index.files
        size = sum(os.path.getsize(root / path) for path in files)
        store = next(Path(state_dir).glob("*/code.db"))
        pythons = [path for path, row in files.items() if row.language == "python"]

        def plain() -> None:
            for path in pythons:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        ast.parse((root / path).read_bytes())
                    except (SyntaxError, ValueError):
                        continue

        parsing = timed(plain)
        yield {"what": "tree", "files": len(files), "python": len(pythons), "MB": round(size / 1e6, 1)}
        yield {
            "what": "build", "seconds": round(built, 1), "to reading and ast.parse of the Python files":
            round(built / parsing, 2), "MB of memory": grown, "MB kept": round(store.stat().st_size / 1e6, 1),
        }  # fmt: skip
        table = scanned(root, list(files), Path(elsewhere))
        plain_size = (Path(elsewhere) / "plain.db").stat().st_size
        yield kept(store, size, plain_size)
        looks = [timed(lambda: trio.run(session.code.build)) for _ in range(ROUNDS)]
        yield {"what": "look at the tree, nothing changed", "ms": ms(looks), "to build": ratio(looks, [built])}
        yield from edited(root, session, built)

        rg = shutil.which("rg") or shutil.which("rg", path=sysconfig.get_path("scripts"))
        for query in QUERIES:
            rows: dict[str, list[float]] = {"search": [], "search alone": [], "plain FTS": [], "ripgrep": []}
            for _ in range(ROUNDS):
                rows["search"].append(timed(lambda query=query: session.ask("search_code", query=query)))
                rows["search alone"].append(
                    timed(lambda query=query: session.ask("search_code", looks=False, query=query))
                )
                match = " AND ".join(query.split())
                rows["plain FTS"].append(timed(lambda match=match: table.execute(
                    "SELECT rowid FROM text WHERE text MATCH ? LIMIT 20", (match,)).fetchall()))  # fmt: skip
                if rg is not None:
                    rows["ripgrep"].append(timed(lambda query=query: grep(rg, query.split()[0], root)))
            yield told(f"search_code {query!r}", rows, "search")
        for name in NAMES:
            rows = {"references": [], "references alone": [], "ripgrep": []}
            for _ in range(ROUNDS):
                rows["references"].append(timed(lambda name=name: session.ask("find_references", name=name)))
                rows["references alone"].append(
                    timed(lambda name=name: session.ask("find_references", looks=False, name=name))
                )
                if rg is not None:
                    rows["ripgrep"].append(timed(lambda name=name: grep(rg, rf"\b{name}\b", root)))
            yield told(f"find_references {name}", rows, "references")
        yield from called(root, session)
        table.close()


def kept(store: Path, texts: int, plain: int) -> dict[str, Any]:
    """How large what is kept is on disk: what search needs, and what the graph needs."""
    connection = sqlite3.connect(store)
    sizes = {"graph": 0, "search": 0}
    for name, size in connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"):
        sizes["search" if name.startswith(("text", "piece", "vector")) else "graph"] += size
    connection.close()
    return {
        "what": "kept", "MB for search": round(sizes["search"] / 1e6, 1),
        "MB for the graph": round(sizes["graph"] / 1e6, 1), "search to the texts": ratio([sizes["search"]], [texts]),
        "graph to the texts": ratio([sizes["graph"]], [texts]),
        "search to a plain FTS5 table": ratio([sizes["search"]], [plain]),
    }  # fmt: skip


def hostile(root: Path) -> Iterator[dict[str, Any]]:
    """What content that means harm takes at most, each alone."""
    grammars, most = Grammars(), PARSED_MOST
    ordinary = b""
    for path in python_files(root):
        if len(ordinary) + path.stat().st_size < most:
            ordinary += path.read_bytes()
    python = LANGUAGES["python"]
    beside = [timed(lambda: facts_of(grammars, python, ordinary)) for _ in range(ROUNDS)]
    yield {"what": f"{len(ordinary):,} bytes of ordinary Python", "ms": ms(beside)}
    for name, content in HOSTILE.items():
        took, language = max(
            (timed(lambda one=one, content=content: facts_of(grammars, one, content)), one.name)
            for one in LANGUAGES.values()
        )
        most_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        yield {
            "what": f"{name}, in {language}", "seconds": round(took, 2), "to ordinary": ratio([took], beside),
            "MB so far": most_memory,
        }  # fmt: skip
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as state_dir:
        place = Path(directory).resolve()
        (place / "long.py").write_bytes(b"x = '" + b"y" * (50 * 1024 * 1024) + b"'")
        (place / "a.py").write_text("def f(): ...\n")
        session = Session(place, state_dir)
        tools = {
            "find_callers beside it": lambda: session.ask("find_callers", symbol="f"),
            "search for a text": lambda: session.ask("search", pattern="yyz"),
        }
        reading = [timed(lambda: (place / "long.py").read_bytes()) for _ in range(ROUNDS)]
        for name, work in tools.items():
            rounds = [timed(work) for _ in range(ROUNDS)]
            yield {"what": f"50 MB in one line: {name}", "ms": ms(rounds), "to reading it": ratio(rounds, reading)}


def edited(root: Path, session: Session, built: float) -> Iterator[dict[str, Any]]:
    """One edit, and what it takes until the next answer."""
    victim = next(python_files(root))
    rounds = []
    for number in range(ROUNDS):
        text = victim.read_bytes()
        victim.unlink()  # so that the file's other name keeps its text
        victim.write_bytes(text + f"\n\ndef added_{number}(): ...\n".encode())
        rounds.append(timed(lambda: trio.run(session.code.build)))
    yield {"what": "read again after one edit", "ms": ms(rounds), "to build": ratio(rounds, [built])}


def scanned(root: Path, paths: list[str], directory: Path) -> sqlite3.Connection:
    """All texts in one FTS5 table, a row each."""
    table = sqlite3.connect(directory / "plain.db", isolation_level=None)
    table.execute("PRAGMA synchronous = OFF")
    table.execute("CREATE VIRTUAL TABLE text USING fts5 (body)")
    table.execute("BEGIN")
    for number, path in enumerate(paths):
        text = (root / path).read_text(errors="replace")
        table.execute("INSERT INTO text (rowid, body) VALUES (?, ?)", (number, text))
    table.execute("COMMIT")
    return table


def grep(program: str, pattern: str, root: Path) -> None:
    """All lines that have it."""
    subprocess.run([program, "--no-config", "-n", pattern, str(root)], stdout=subprocess.DEVNULL, check=False)


def called(root: Path, session: Session) -> Iterator[dict[str, Any]]:
    """Callers of the most called functions of a package, against jedi's references."""
    import jedi

    project = jedi.Project(str(root))
    for symbol, path in (("attrib", "attr/_make.py"), ("open_nursery", "trio/_core/_run.py")):
        if path not in session.code._index.files:
            continue
        place = session.ask("find_callers", symbol=symbol, path=path).split(":", 2)
        line = int(place[1].split()[0])
        source = (root / path).read_text()
        column = source.split("\n")[line - 1].index(symbol)
        script = jedi.Script(source, path=str(root / path), project=project)
        ours = [timed(lambda symbol=symbol, path=path: session.ask("find_callers", symbol=symbol, path=path))
                for _ in range(ROUNDS)]  # fmt: skip
        theirs = [timed(lambda script=script, line=line, column=column: script.get_references(line, column))]
        yield told(f"find_callers {symbol}", {"callers": ours, "jedi, the same project": theirs}, "callers")


def edges(root: Path, package: str, every: int, show: int) -> dict[str, Any]:
    """How many calls of a package mean what jedi says."""
    import jedi

    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory() as state_dir:
        copy = Path(directory).resolve()
        shutil.copytree(
            root / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "_tests", "tests", "*.so")
        )
        code = CodeIndex(Workspace(copy, state_dir=state_dir), state_dir=state_dir)
        trio.run(code.build)
        project = jedi.Project(str(copy), sys_path=[str(copy), str(root)])
        count = {"calls": 0, "ours": 0, "jedi's": 0, "both": 0, "where jedi has none": 0}
        seconds = {"ours": 0.0, "jedi's": 0.0}
        with code._index.store.connection() as connection:
            tree = SourceTree(connection, code._index.files, OrderedDict())
            names = Python(tree)
            number = 0
            for path, row in code._index.files.items():
                if row.language != "python":
                    continue
                script = jedi.Script(path=str(copy / path), project=project)
                for call in tree.facts(path).calls:
                    number += 1
                    if not call.name or number % every:
                        continue
                    start = time.perf_counter()
                    ours = {
                        (one.path, tree.facts(one.path).symbols[one.symbol].named_at)
                        for one in names.called(path, call.caller, call.callee)
                    }
                    between = time.perf_counter()
                    theirs = set()
                    try:
                        inferred = script.infer(call.line, call.column)
                    except Exception:  # jedi's own
                        inferred = []
                    for one in inferred:
                        where = None if one.module_path is None else Path(one.module_path)
                        if one.type in ("function", "class") and where is not None and where.is_relative_to(copy):
                            theirs.add((str(where.relative_to(copy)), one.line))
                    seconds["ours"] += between - start
                    seconds["jedi's"] += time.perf_counter() - between
                    count["calls"] += 1
                    count["ours"] += len(ours)
                    count["jedi's"] += len(theirs)
                    count["both"] += len(ours & theirs)
                    count["where jedi has none"] += len(ours) if not theirs else 0
                    if show and ours != theirs:
                        show -= 1
                        print(f"  {path}:{call.line} {call.callee}: ours {sorted(ours)}, jedi's {sorted(theirs)}")
        code.close()
    theirs_took = seconds["jedi's"]
    return {
        "what": f"edges of {package}", **count, "precision": round(count["both"] / max(1, count["ours"]), 3),
        "recall": round(count["both"] / max(1, count["jedi's"]), 3),
        "precision where jedi has any": round(count["both"] / max(1, count["ours"] - count["where jedi has none"]), 3),
        "time to jedi's": float(f"{seconds['ours'] / max(1e-9, theirs_took):.2g}"),
    }  # fmt: skip


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", default=sysconfig.get_path("purelib"))
    parser.add_argument("--only", choices=("cost", "edges", "hostile"))
    parser.add_argument("--package", action="append", help="a package in the directory; trio unless it is given")
    parser.add_argument("--files", type=int, default=6000, help="how many files of the tree (default: 6000)")
    parser.add_argument("--every", type=int, default=10, help="take every nth call (default: 10)")
    parser.add_argument("--show", type=int, default=0, help="show so many calls where both differ")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    root = Path(options.directory).resolve()

    def rows() -> Iterator[dict[str, Any]]:
        if options.only in (None, "cost"):
            yield from cost(root, options.files)
        if options.only in (None, "hostile"):
            yield from hostile(root)
        if options.only in (None, "edges"):
            for package in options.package or ["trio"]:
                yield edges(root, package, options.every, options.show)

    for row in rows():
        print(
            json.dumps(row) if options.json else "; ".join(f"{key} {value}" for key, value in row.items()), flush=True
        )


if __name__ == "__main__":
    main()
