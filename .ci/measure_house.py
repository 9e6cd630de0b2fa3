"""What docs/explanation/house.md tells in figures: how large the package is, and how far a reader goes through it.

    python .ci/measure_house.py            print the table
    python .ci/measure_house.py --write    write it into docs/explanation/house.md
    python .ci/measure_house.py --names    name the files that were entered, and the circles

tests/docs/test_house.py holds the limits and the page. A *move* is a call of a function whose file differs from the
file of the function that was called before it; only functions of the package count. Every program is measured the
second time that it runs, so that what happens once in a process (imports, caches) does not count.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "toolrt"
PAGE = ROOT / "docs" / "explanation" / "house.md"
#: The state before the rooms were rebuilt inside. For the same tree this script counts 14 files in the longest circle
#: (it was in `workspace`; the 12 were in `runtime`) and 50 for the last row, whose program is not known any more.
BEFORE = {
    "lines of Python": 65_462,
    "files": 388,
    "classes": 596,
    "longest circle of imports, files": 12,
    "files that one streaming call enters": 22,
    "moves between files in one streaming call": 98,
    "files that `explore`, shrink and explain enter": 48,
}
_BEGIN, _END = "<!-- figures: .ci/measure_house.py -->\n", "<!-- end of figures -->\n"


def modules() -> dict[str, Path]:
    """Give every module of the package, by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def classes() -> dict[str, list[str]]:
    """Give the places of every class, by its name; classes inside functions and classes count too."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    return found


def imports() -> dict[str, set[str]]:
    """Give the modules that each module imports, anywhere in it: in functions and for type checkers too."""
    known = modules()
    return {name: set(_imported(name, path, known)) - {name} for name, path in known.items()}


def _imported(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        program()
    finally:
        sys.setprofile(before)
    return entered


def streaming_call() -> list[str]:
    """Give the files that one batch enters: one call of a tool with one claim that returns a text; updates are read."""
    import trio

    import toolrt

    @toolrt.tool(schema=None, claims=lambda input, state: [toolrt.Claim(("note",), toolrt.WRITE)])
    async def note(ctx: Any) -> str:
        return "hello"

    runtime = toolrt.Runtime(toolrt.Registry([note]))

    async def stream() -> None:
        async with runtime.open_batch() as batch:
            batch.submit(toolrt.ToolCall("call-0", "note"))
            batch.seal()
            results = [update.result async for update in batch if isinstance(update, toolrt.ResultReady)]
        assert [result.content for result in results] == ["hello"]

    # Trio shuffles the tasks that can run, so the reader may look before or after the call: the longest way counts.
    return max((_entered(lambda: trio.run(stream)) for _ in range(8)), key=moves)


def lost_update() -> list[str]:
    """Give the files that finding, shrinking and explaining one lost update enters."""
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

    def explored() -> None:
        report = sim.explore(program, check=lambda execution: execution.value == 2)
        assert report.verdict is sim.FAIL
        report.failures[0].explain()

    return _entered(explored)


def moves(entered: list[str]) -> int:
    """Count the calls whose file differs from the file of the call before; the first one counts."""
    return sum(here != before for before, here in zip(["", *entered], entered, strict=False))


def figures() -> dict[str, int]:
    """Measure the package as it is now, by the names of `BEFORE`."""
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    call = streaming_call()
    now = (
        sum(text.count("\n") for text in texts),
        sum(path.is_file() and path.suffix != ".pyc" for path in PACKAGE.rglob("*")),
        sum(map(len, classes().values())),
        max(map(len, circles()), default=1),
        len(set(call)),
        moves(call),
        len(set(lost_update())),
    )
    return dict(zip(BEFORE, now, strict=True))


def table(now: dict[str, int]) -> str:
    """Write the figures as the page has them."""
    rows = [f"| {name} | {BEFORE[name]:,} | {value:,} |\n" for name, value in now.items()]
    return "| measured | before | now |\n|---|---|---|\n" + "".join(rows)


def main(arguments: list[str]) -> None:
    """Print the table, write it into the page, or name what is behind it."""
    if "--names" in arguments:
        for entered in (streaming_call(), lost_update()):
            print(len(set(entered)), "files:", *(f"{file} {count}" for file, count in Counter(entered).most_common()))
        for circle in circles():
            print("circle of", len(circle), *circle)
        return
    text = table(figures())
    print(text, end="")
    if "--write" in arguments:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(_BEGIN)
        PAGE.write_text(before + _BEGIN + text + _END + rest.partition(_END)[2], encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(sys.argv[1:])
