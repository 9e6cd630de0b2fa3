"""The index of a workspace of several roots: one tree, where each file has its name there and no path of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
import trio

from tests.plugins.code._code_index import ask, asked, write
from toolrt import MemoryDisk, Outcome, Registry, Runtime, State, ToolCall, Workspace
from toolrt.plugins.code import CodeIndex, skeleton

pytest.importorskip("tree_sitter", reason="the code extra is not installed")

REPO = {"app.py": "from lib.core import area\n\n\ndef show():\n    return area(2)\n", ".gitignore": "made_*.py\n"}
LIB = {
    "core.py": 'def area(side):\n    """The area of a square."""\n    return side * side\n',
    "sub/more.py": "from lib.core import area\n\n\nclass Cube:\n    def volume(self):\n        return area(3) * 3\n",
    "made_by_a_build.py": "def area():\n    pass\n",
}
LONG = "".join(f"def name_{number}(a: int) -> int:\n{'    a += 1' * 9}\n    return a\n\n\n" for number in range(200))


@attrs.frozen
class World:
    """A directory, and another that is mounted in it as ``lib``."""

    code: CodeIndex
    #: The other's own path.
    lib: str
    #: Writes a file of the other, as somebody else does.
    write: Callable[[str, str], None]


@pytest.fixture(params=["real", "twin"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    if request.param == "twin":
        lib = MemoryDisk(LIB, root="/srv/private/lib")
        files = Workspace(MemoryDisk(REPO, root="/home/me/repo"), mounts={"lib": lib}, skeleton=skeleton)
        return World(CodeIndex(files), lib.root, lib.put)
    base = tmp_path.resolve()
    for where, content in (("repo", REPO), ("private/lib", LIB)):
        for name, text in content.items():
            write(base / where / name, text)
    root = base / "private/lib"
    files = Workspace(base / "repo", mounts={"lib": root}, state_dir=base / "state", skeleton=skeleton)
    return World(CodeIndex(files, state_dir=base / "state"), str(root), lambda name, text: write(root / name, text))


def paths_in(answer: str) -> set[str]:
    return {line.strip().partition(":")[0] for line in answer.splitlines()}


def test_every_tool_knows_mounted_files_by_their_names(world: World) -> None:
    """Symbols, calls, imports and words lead from root to root, and no answer has a path of the machine."""
    code = world.code
    answers = {
        "list_symbols": ask(code, "list_symbols", path="lib/sub/more.py"),
        "read_symbol": ask(code, "read_symbol", symbol="area"),
        "search_code": ask(code, "search_code", query="area of a square"),
        "find_references": ask(code, "find_references", name="area", path="lib"),
        "find_callers": ask(code, "find_callers", symbol="area"),
        "find_callees": ask(code, "find_callees", symbol="show"),
        "find_call_path": ask(code, "find_call_path", source="show", target="area"),
        "file_dependencies": ask(code, "file_dependencies", path="lib/core.py"),
        "blast_radius": ask(code, "blast_radius", symbol="area"),
    }
    assert len(answers) == len(code.tools())
    assert "class Cube" in answers["list_symbols"]
    assert answers["read_symbol"].startswith("lib/core.py:1-3 function area")
    assert answers["search_code"].splitlines()[1].startswith("lib/core.py:1: function area")
    assert {"lib/core.py", "lib/sub/more.py"} <= paths_in(answers["find_references"])
    assert "app.py" not in answers["find_references"]
    assert {"app.py", "lib/sub/more.py"} <= paths_in(answers["find_callers"])
    assert "line 5: area -> lib/core.py:1" in answers["find_callees"]
    assert "lib/core.py:1" in answers["find_call_path"]
    assert "lib/core.py is imported by 2 files" in answers["file_dependencies"]
    assert "lib/sub/more.py" in answers["blast_radius"]
    for tool, answer in answers.items():
        assert "private" not in answer, tool
        assert "made_by_a_build" not in answer, tool


def test_a_mounted_file_is_asked_about_by_its_own_path(world: World) -> None:
    """It is the same file; the answer has its name in the workspace."""
    own = ask(world.code, "read_symbol", symbol="area", path=f"{world.lib}/core.py")
    assert own == ask(world.code, "read_symbol", symbol="area", path="lib/core.py")
    assert ask(world.code, "find_references", name="area", path=world.lib) == ask(
        world.code, "find_references", name="area", path="lib"
    )
    refused = asked(world.code, "list_symbols", path=f"{world.lib}/../other.py")
    assert refused.outcome is Outcome.ERROR
    assert "private" not in str(refused.error)


def test_a_change_in_a_mount_is_seen(world: World) -> None:
    """Of somebody else, of a call of the same batch, and that a file is gone."""
    code = world.code
    assert ask(code, "find_callers", symbol="area").splitlines()[0] == "callers of lib/core.py:1 function area: 2"
    world.write("late.py", "from lib.core import area\n\n\ndef late():\n    area(1)\n")
    assert "lib/late.py:5 in late: area" in ask(code, "find_callers", symbol="area")
    calls = [
        ToolCall("0", "edit_file", {"path": "lib/core.py", "old": "def area", "new": "def extent"}),
        ToolCall("1", "search_code", {"query": "extent"}),
        ToolCall("2", "delete_path", {"path": "lib/late.py"}),
        ToolCall("3", "find_references", {"name": "late"}),
    ]
    results = trio.run(Runtime(Registry([*code.workspace.tools(), *code.tools()])).run, calls).results
    assert [result.outcome for result in results] == [Outcome.OK] * 4
    assert "lib/core.py:1: function extent" in str(results[1].content)
    assert "lib/late.py" not in str(results[3].content)


def test_what_is_known_of_mounts_outlives_the_process(tmp_path: Path) -> None:
    """Only what changed in one of the roots is read again; other mounts have another index."""
    base = tmp_path.resolve()
    for where in ("repo", "lib", "other"):
        write(base / where / "a.py", f"def of_{where}():\n    pass\n")

    def index(**mounts: str) -> CodeIndex:
        roots = {name: base / where for name, where in mounts.items()}
        return CodeIndex(Workspace(base / "repo", mounts=roots, state_dir=base / "state"), state_dir=base / "state")

    assert trio.run(index(lib="lib").build) == 2
    assert trio.run(index(lib="lib").build) == 0
    write(base / "lib/a.py", "def of_lib_by_now():\n    pass\n")
    assert trio.run(index(lib="lib").build) == 1
    other = index(lib="other")
    assert trio.run(other.build) == 2
    assert "lib/a.py:1-2 function of_other" in ask(other, "read_symbol", symbol="of_other")
    assert asked(other, "read_symbol", symbol="of_lib_by_now").outcome is Outcome.ERROR


def test_a_long_file_of_a_mount_is_shown_by_its_signatures(world: World) -> None:
    """Where the budget cuts it, under its name in the workspace."""
    world.write("long.py", LONG)
    runtime = Runtime(Registry(world.code.workspace.tools()))
    calls = [ToolCall("0", "read_file", {"path": f"{world.lib}/long.py"})]
    [result] = trio.run(runtime.run, calls, State(context_budget=0)).results
    text = str(result.content)
    assert "python signatures" in text.splitlines()[0]
    assert "def name_199(a: int) -> int" in text
    assert "private" not in text
