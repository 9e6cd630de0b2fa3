"""How large the package is, and how far a reader goes along its three roads.

    python .ci/measure_house.py            print the table
    python .ci/measure_house.py --write    put today's figures beside the earlier ones in docs/explanation/house.md
    python .ci/measure_house.py --names    name the files that each road enters, and the circles of imports

The roads are a batch of two calls, one `edit_file` on a real directory, and `sim.explore(max_executions=1)`. A *move*
is a call of a function whose file differs from the file of the function that was called before it; only functions of
the package count. Each program is measured the third time that it runs, so that what happens once in a process
(imports, caches) does not count.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "toolrt"
PAGE = ROOT / "docs" / "explanation" / "house.md"
_BEGIN, _END = "<!-- figures: .ci/measure_house.py -->\n", "<!-- end of figures -->\n"


def modules() -> dict[str, Path]:
    """Give every module of the package, by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def _nodes(path: Path) -> list[ast.AST]:
    """Give the definitions of classes and the imports in a file; the parse takes longest."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.Import | ast.ImportFrom)]


def classes() -> dict[str, list[str]]:
    """Give the places of every class, by its name; classes inside functions and classes count too."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in _nodes(path):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    return found


def imports() -> dict[str, set[str]]:
    """Give the modules that each module imports, anywhere in it: in functions and for type checkers too."""
    known = modules()
    return {name: set(_imported(name, path, known)) - {name} for name, path in known.items()}


def _imported(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield from (each for each in (full if full in known else node.module,) if each in known)


def circles() -> list[list[str]]:
    """Give the strongly connected parts of the imports that have more than one module, the longest first.

    Tarjan's algorithm (1972), "Depth-first search and linear graph algorithms".
    """
    graph = imports()
    found: list[list[str]] = []
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in number:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == number[module]:
            part = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(part) > 1:
                found.append(sorted(part))

    for module in graph:
        if module not in number:
            visit(module)
    return sorted(found, key=lambda part: (-len(part), part))


def _entered(program: Callable[[], Any]) -> list[str]:
    """Give the file of each function of the package that `program` calls, in the order of the calls."""
    entered: list[str] = []
    root = f"{PACKAGE}/"

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(root):
            entered.append(frame.f_code.co_filename[len(root) :])

    program()
    program()
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        program()
    finally:
        sys.setprofile(before)
    return entered


def two_calls() -> list[str]:
    """Give the files that a batch of two calls enters: each call claims a resource of its own."""
    import trio

    import toolrt

    @toolrt.tool(schema=None, claims=lambda input, state: [toolrt.Claim(("note", input["name"]), toolrt.WRITE)])
    async def note(ctx: Any, name: str) -> str:
        return name

    runtime = toolrt.Runtime(toolrt.Registry([note]))
    calls = [toolrt.ToolCall(f"call-{name}", "note", {"name": name}) for name in "ab"]

    async def run() -> None:
        done = await runtime.run(calls)
        assert [result.content for result in done.results] == ["a", "b"]

    return _entered(lambda: trio.run(run))


def edit_file() -> list[str]:
    """Give the files that one `edit_file` enters, on a real directory."""
    import tempfile

    import trio

    import toolrt

    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "note.txt")
        file.write_text("0", encoding="utf-8")
        runtime = toolrt.Runtime(toolrt.Registry(toolrt.Workspace(directory).tools()))

        def edit() -> None:
            seen = int(file.read_text(encoding="utf-8"))
            change = {"path": "note.txt", "old": str(seen), "new": str(seen + 1)}
            done = trio.run(runtime.run, [toolrt.ToolCall("call-0", "edit_file", change)])
            assert done.results[0].outcome is toolrt.Outcome.OK, done.results[0]

        return _entered(edit)


def explore() -> list[str]:
    """Give the files that one explored execution of a lost update enters."""
    import trio

    from toolrt import sim

    async def program() -> int:
        value = 0

        async def add() -> None:
            nonlocal value
            seen = value
            await trio.lowlevel.checkpoint()
            value = seen + 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add)
            nursery.start_soon(add)
        return value

    return _entered(lambda: sim.explore(program, max_executions=1))


ROADS = {"a batch of two calls": two_calls, "`edit_file`": edit_file, "`explore`, one execution": explore}


def moves(entered: list[str]) -> int:
    """Count the calls whose file differs from the file of the call before; the first one counts."""
    return sum(here != before for before, here in zip(["", *entered], entered, strict=False))


def figures() -> dict[str, str]:
    """Measure the package as it is now; a road is told as files entered and moves between them."""
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    long = sorted((text.count("\n") for text in texts), reverse=True)
    now = {
        "lines of Python": f"{sum(long):,}",
        "files": f"{len(long)}",
        "files above 600 lines": f"{sum(lines > 600 for lines in long)}",
        "classes": f"{sum(map(len, classes().values()))}",
        "circles of files": f"{len(circles())}",
    }
    for name, road in ROADS.items():
        entered = road()
        now[f"{name}: files, moves"] = f"{len(set(entered))}, {moves(entered)}"
    return now


def table(now: dict[str, str], page: str, title: str) -> str:
    """Put a column with `now` behind the columns of `page`; a column of the same title is measured anew."""
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in row] for row in rows]
    titles = rows[0][1:] if rows else []
    told = {row[0]: dict(zip(titles, row[1:], strict=True)) for row in rows[2:]}
    columns = [*(each for each in titles if each != title), title]
    lines = [["measured", *columns], ["---"] * (1 + len(columns))]
    for name, value in now.items():
        lines.append([name, *(value if column == title else told.get(name, {}).get(column, "") for column in columns)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(arguments: list[str]) -> None:
    """Print the table, write it into the page, or name what is behind it."""
    if "--names" in arguments:
        for name, road in ROADS.items():
            entered = road()
            print(f"{name}:", *(f"{file} {count}" for file, count in Counter(entered).most_common()))
        for circle in circles():
            print("circle of", len(circle), *circle)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(_BEGIN)
    told, _, after = rest.partition(_END)
    text = table(figures(), told, date.today().isoformat())
    print(text, end="")
    if "--write" in arguments:
        PAGE.write_text(before + _BEGIN + text + _END + after, encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(sys.argv[1:])
