"""The notebooks are numbered, hold no logic, and are kept without outputs; the commands that see to it do."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted(ROOT.joinpath("notebooks").glob("*.ipynb"))
STRIP = ROOT / ".ci" / "strip_notebooks.py"
CHECK = ROOT / ".ci" / "check_notebooks.py"

#: What a program to look at may be made of; a class, a loop without end or a handler of errors would be logic.
_REFUSED = (ast.ClassDef, ast.While, ast.Try, ast.TryStar, ast.Global, ast.Nonlocal)
#: Statements of one function, those inside it counted: what can be read at a glance.
_MOST_STATEMENTS = 14


def _cells(path: Path, kind: str) -> list[str]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def _code(path: Path) -> list[ast.Module]:
    """The code of each cell, without lines that are commands of IPython."""
    plain = ["\n".join(line for line in cell.splitlines() if not line.startswith("%")) for cell in _cells(path, "code")]
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    return [compile(cell, path.name, "exec", flags, dont_inherit=True) for cell in plain]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.name)
def notebook(request: pytest.FixtureRequest) -> Path:
    """One notebook."""
    found: Path = request.param
    return found


def _notebook(*cells: tuple[str, str]) -> dict[str, Any]:
    """A notebook as an editor leaves it: executed, with a cell's state and the kernel's version."""
    made: list[dict[str, Any]] = []
    for number, (kind, source) in enumerate(cells):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number:02}", "metadata": {"scrolled": True}}
        cell["source"] = source.splitlines(keepends=True)
        if kind == "code":
            cell["execution_count"] = number + 7
            output = {"output_type": "stream", "name": "stdout", "text": ["secret\n"]}
            cell["outputs"] = [output]
        made.append(cell)
    language = {"name": "python", "version": "3.11.7", "mimetype": "text/x-python"}
    return {"cells": made, "metadata": {"language_info": language}, "nbformat": 4, "nbformat_minor": 5}


def test_notebooks_are_numbered_without_a_gap() -> None:
    """01, 02, 03 and so on: the order in which they are read."""
    names = [path.name for path in NOTEBOOKS]
    assert [name[:3] for name in names] == [f"{number:02}-" for number in range(1, len(names) + 1)]


def test_notebook_is_kept_without_outputs(notebook: Path) -> None:
    """What is in the checkout is what the command would leave."""
    text = notebook.read_text(encoding="utf-8")
    assert runpy.run_path(str(STRIP))["stripped"](text) == text, "run: python .ci/strip_notebooks.py"


def test_notebook_has_no_logic_of_its_own(notebook: Path) -> None:
    """It calls toolrt, and defines small tools and programs to look at: what is more belongs into the package."""
    for cell in _code(notebook):
        for node in ast.walk(cell):
            assert not isinstance(node, _REFUSED), f"{notebook.name}, line {node.lineno}: {type(node).__name__}"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                statements = sum(isinstance(inside, ast.stmt) for inside in ast.walk(node)) - 1
                assert statements <= _MOST_STATEMENTS, f"{notebook.name}: {node.name} has {statements} statements"


def test_notebook_begins_with_a_title_and_a_question(notebook: Path) -> None:
    """The first cell says what is asked, so that a class knows what it looks for."""
    first = _cells(notebook, "markdown")[0]
    assert re.match(r"# .+\n\n\*\*.+\?\*\*\n", first), first


def test_notebook_asks_before_it_shows(notebook: Path) -> None:
    """All but the sheet ask for a guess; the cell that asks prints nothing, and has no guess as it is kept."""
    asking = [cell for cell in _code(notebook) if "lab.Prediction(" in ast.unparse(cell)]
    assert bool(asking) is not notebook.name.startswith("10-")
    for cell in asking:
        assert "guess = None" in map(ast.unparse, cell.body)
        assert ast.unparse(cell.body[-1]).startswith("lab.Prediction(")
        assert "print(" not in ast.unparse(cell)


def test_links_of_notebook_lead_somewhere(notebook: Path) -> None:
    """Relative links name files of the checkout, seen from notebooks/."""
    text = re.sub(r"`[^`\n]+`", "", "\n".join(_cells(notebook, "markdown")))
    links = re.findall(r"\]\(([^)\s#]+)", text)
    assert [link for link in links if ":" not in link and not (notebook.parent / link).exists()] == []


# ---------------------------------------------------------------------- the commands


def _git(*arguments: str, cwd: Path, **more: Any) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    named = ["-c", "user.name=someone", "-c", "user.email=someone@localhost"]
    done = subprocess.run(
        ["git", *named, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False, **more
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with the filter's two files."""
    for name in (".gitattributes", ".ci/strip_notebooks.py"):
        target = tmp_path / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    _git("init", "--quiet", cwd=tmp_path)
    return tmp_path


@pytest.mark.process
def test_filter_keeps_outputs_out_of_git(clone: Path) -> None:
    """Once it is installed git is given no outputs, and the file in the working tree keeps them."""
    subprocess.run([sys.executable, ".ci/strip_notebooks.py", "--install"], cwd=clone, check=True, capture_output=True)
    file = clone / "one.ipynb"
    file.write_text(json.dumps(_notebook(("markdown", "# One"), ("code", "print('secret')"))))
    _git("add", "one.ipynb", cwd=clone)
    kept = json.loads(_git("show", ":one.ipynb", cwd=clone))
    assert [cell.get("outputs") for cell in kept["cells"]] == [None, []]
    assert kept["cells"][1]["execution_count"] is None
    assert "version" not in kept["metadata"]["language_info"]
    assert "secret" in file.read_text().split('"outputs"')[1]


@pytest.mark.process
def test_filter_lets_git_have_nothing_that_is_no_notebook(clone: Path) -> None:
    """A file that cannot be read is refused, not passed on with what may be in it."""
    subprocess.run([sys.executable, ".ci/strip_notebooks.py", "--install"], cwd=clone, check=True, capture_output=True)
    (clone / "bad.ipynb").write_text("outputs: secret")
    done = subprocess.run(["git", "add", "bad.ipynb"], cwd=clone, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "this is no notebook" in done.stderr


@pytest.mark.process
def test_command_strips_in_place_and_names_what_it_changed(tmp_path: Path) -> None:
    """A second time there is nothing left to do; a pasted picture and the tags of a cell stay."""
    file = tmp_path / "one.ipynb"
    notebook = _notebook(("markdown", "# One\n![](attachment:a.png)"), ("code", "1 + 1"))
    notebook["cells"][0]["attachments"] = {"a.png": {"image/png": "aGk="}}
    notebook["cells"][1]["metadata"]["tags"] = ["exercise"]
    file.write_text(json.dumps(notebook))
    said = [
        subprocess.run([sys.executable, str(STRIP), str(file)], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said == [f"{file}: stripped\n", ""]
    markdown, code = json.loads(file.read_text())["cells"]
    assert markdown["attachments"] == notebook["cells"][0]["attachments"]
    assert (code["metadata"], code["outputs"]) == ({"tags": ["exercise"]}, [])


@pytest.mark.seldom
@pytest.mark.process
def test_check_runs_a_notebook_and_writes_it_with_outputs(tmp_path: Path) -> None:
    """Top-level await runs under Trio, and what is written has what came of it."""
    pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'toolrt[notebooks]'")
    file = tmp_path / "one.ipynb"
    cell = "await trio.sleep(0)\nprint('in', type(trio.lowlevel.current_clock()).__name__)"
    made = _notebook(("code", "%autoawait trio\nimport trio"), ("code", cell))
    file.write_text(runpy.run_path(str(STRIP))["stripped"](json.dumps(made)))
    command = [sys.executable, str(CHECK), "--write", str(tmp_path / "out"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    executed = json.loads((tmp_path / "out" / "one.ipynb").read_text())["cells"][1]
    assert executed["outputs"][0]["text"] == ["in SystemClock\n"]


@pytest.mark.seldom
@pytest.mark.process
def test_lines_of_a_notebook_are_named_by_its_cells(tmp_path: Path) -> None:
    """Not by the files that a kernel keeps them in, which are called otherwise each time."""
    pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'toolrt[notebooks]'")
    program = "from toolrt import sim\nasync def program():\n    sim.Cell(0, name='x').set(1)"
    look = "sim.run(program, sim.Choices(), details=True).trace.notes['details']['accesses'][0][3]"
    file = tmp_path / "one.ipynb"
    made = _notebook(("code", "1 + 1"), ("code", program), ("code", look))
    file.write_text(runpy.run_path(str(STRIP))["stripped"](json.dumps(made)))
    command = [sys.executable, str(CHECK), "--write", str(tmp_path / "out"), str(file)]
    subprocess.run(command, capture_output=True, check=True)
    cells = json.loads((tmp_path / "out" / "one.ipynb").read_text())["cells"]
    assert cells[2]["outputs"][0]["data"]["text/plain"] == ["'In[2]:3'"]


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize(
    ("cell", "complaint"),
    [("1 / 0", "ZeroDivisionError"), ("import sys; print('odd', file=sys.stderr)", "a cell complains: odd")],
)
def test_check_refuses_a_notebook_that_fails(tmp_path: Path, cell: str, complaint: str) -> None:
    """An error, or a warning, ends the check with 1 and says what it was; so do outputs that were kept."""
    pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'toolrt[notebooks]'")
    file = tmp_path / "one.ipynb"
    file.write_text(json.dumps(_notebook(("code", cell))))
    done = subprocess.run([sys.executable, str(CHECK), str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert "one.ipynb: it has outputs" in done.stderr
