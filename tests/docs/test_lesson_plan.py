"""The lesson plan, walked as a teacher would: its commands run, and what it says of programs and notebooks is so."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import trio

from toolrt import sim
from toolrt.teaching import lab
from toolrt.teaching.litmus import LITMUS
from toolrt.teaching.play import Game

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "teach-a-class.md"
TEXT = PAGE.read_text(encoding="utf-8")

#: Commands that need an index or a screen; each is checked below without one.
_NOT_RUN = ("python3 -m venv", ".venv/bin/pip install", ".venv/bin/jupyter lab")


def _commands() -> list[str]:
    """Every command of the page, in blocks and in sentences, each once."""
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)).splitlines()
    inline = re.findall(r"`((?:\.venv/bin/|python3? |toolrt |pip )[^`]+)`", TEXT)
    return list(dict.fromkeys([*blocks, *inline]))


def _cells(notebook: str, kind: str) -> str:
    cells = json.loads((ROOT / "notebooks" / notebook).read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == kind)


def _sections(text: str) -> set[int]:
    """Numbers such as those of "sections 5 to 7"."""
    return {
        number
        for first, last in re.findall(r"sections? (\d)(?: (?:to|and) (\d))?", text)
        for number in range(int(first), int(last or first) + 1)
    }


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone of the checkout with its environment in .venv, as the plan makes it; one small notebook."""
    for name in (".gitattributes", ".ci"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    (tmp_path / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "01-why-timing-must-not-decide.ipynb", tmp_path / "notebooks")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    scripts = tmp_path / ".venv" / "bin"
    scripts.mkdir(parents=True)
    for name, command in (("python", ""), ("toolrt", " -m toolrt")):
        (scripts / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{command} "$@"\n')
        (scripts / name).chmod(0o755)
    return tmp_path


def _run(command: str, cwd: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        shlex.split(command), cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _document(page: Path) -> dict[str, Any]:
    block = page.read_text(encoding="utf-8").split('id="document">')[1].split("</script>")[0]
    return json.loads(block)  # type: ignore[no-any-return]


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.process
def test_commands_of_the_lesson_plan_run(clone: Path) -> None:
    """Each ends well, in the order of the page; the pages for the class are games, and the notebook stays clean."""
    pytest.importorskip("nbclient", reason="nbclient is not installed: pip install 'toolrt[notebooks]'")
    run = [command for command in _commands() if not command.startswith(_NOT_RUN)]
    assert len(run) >= 5
    for command in run:
        assert command.startswith(".venv/bin/"), f"{command}: the plan's environment is .venv"
        _run(command, clone)
    pages = sorted(clone.glob("*.html"))
    assert [page.name for page in pages] == ["game.html", "lock.html"]
    for page in pages:
        assert set(_document(page)) >= {"nodes", "ends", "classes"}, "this page is no game"


@pytest.mark.seldom
@pytest.mark.process
def test_class_is_not_handed_the_failing_schedule(tmp_path: Path) -> None:
    """Every page that the plan makes is made with `--play`, and has neither a schedule that fails nor a verdict."""
    pages = [command for command in _commands() if "--html" in command]
    assert pages
    for command in pages:
        assert "--play" in shlex.split(command)
    html = re.findall(r"[\w-]+\.html", TEXT)
    assert {name for command in pages for name in re.findall(r"[\w-]+\.html", command)} == set(html)
    for number, command in enumerate(pages):
        words = shlex.split(command)
        words[words.index("--html") + 1] = str(tmp_path / f"{number}.html")
        _run(shlex.join([sys.executable, "-m", "toolrt", *words[1:]]), tmp_path)
        page = tmp_path / f"{number}.html"
        assert "runs" not in _document(page)
        assert 'id="verdict"' not in page.read_text(encoding="utf-8")
        assert "Who runs next?" in page.read_text(encoding="utf-8")


def test_installation_names_extras_that_exist() -> None:
    """What pip is told to install is there, and the extras have what the other commands need."""
    (install,) = [command for command in _commands() if "pip install" in command]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = re.findall(r"\[([\w,]+)\]", install)[0].split(",")
    assert set(asked) <= set(project["optional-dependencies"])
    needed = " ".join(package for extra in asked for package in project["optional-dependencies"][extra])
    assert "nbclient" in needed
    assert "ipykernel" in needed
    assert "cyclopts" in needed
    assert "jupyterlab" in needed
    (opened,) = [command for command in _commands() if "jupyter lab" in command]
    assert (ROOT / opened.split()[-1]).is_dir()
    lowest = re.findall(r"Python (3\.\d+) or newer", TEXT)
    assert lowest == [project["requires-python"].removeprefix(">=")]


def test_figures_of_the_games_are_so() -> None:
    """The first program has as many classes, and as many wrong ones, as the plan says; the second has none."""
    classes, wrong = map(int, re.findall(r"(\d+) classes, (\d+) of them wrong", TEXT)[0])
    tree = Game(LITMUS["lost_update_2x1"]).tree()
    assert tree["classes"] == classes
    assert len({number for _, is_wrong, number in tree["ends"].values() if is_wrong}) == wrong
    assert not any(is_wrong for _, is_wrong, _ in Game(LITMUS["lock_2"]).tree()["ends"].values())
    assert len(LITMUS) > 100


def test_answers_to_the_class_are_so() -> None:
    """What a teacher answers about the games: how many schedules are a class, and what a plain run gives."""
    litmus = LITMUS["lost_update_2x1"]
    report = sim.explore(litmus.program, sim.Exhaustive())
    assert (report.executions, dict(report.outcomes)) == (6, {1: 4, 2: 2})
    assert "In 4 of the 6 schedules both tasks read first: these 4 are 2 classes" in TEXT
    assert [trio.run(litmus.program) for _ in range(10)] == [1] * 10
    assert "so every plain run loses one edit" in TEXT
    locked = sim.explore(LITMUS["lock_2"].program, sim.Exhaustive())
    assert (locked.executions, list(locked.outcomes)) == (6, [2])


def test_minutes_add_up() -> None:
    """The parts of the lesson follow each other and last 90 minutes."""
    rows = re.findall(r"^\| (\d):(\d\d) \| (\d+) \|", TEXT, re.MULTILINE)
    now = 0
    for hours, minutes, lasts in rows:
        assert 60 * int(hours) + int(minutes) == now
        now += int(lasts)
    assert now == 90
    assert "One lesson of 90 minutes" in TEXT


def test_sections_and_exercises_are_there() -> None:
    """Sections and exercises that the plan names are in the notebooks it names."""
    first = _cells("01-why-timing-must-not-decide.ipynb", "markdown")
    lesson = TEXT.split("## One lesson")[1].split("## Four lessons")[0]
    assert _sections(lesson) >= set(range(8))
    assert all(f"\n## {number}. " in first for number in _sections(lesson))
    for words, notebook, wanted in [
        ("number 1 of *Break it again*: who broke which promise?", "01-why-timing-must-not-decide", "who broke which"),
        ("`inventory`, number 2 of *Try it* in 02", "02-lanes-and-partition", "2. Add a tool `inventory`"),
        (
            "a mode that cannot be left, number 1 of *Try it* in 04",
            "04-queued-modifiers",
            "1. Let `set_mode` refuse to leave",
        ),
        ("five or six files where there are three", "05-one-file-many-names", "Three. The first claim of each"),
        ("Which of the six would a test", "01-why-timing-must-not-decide", "six times, each time in another way"),
    ]:
        assert words in TEXT
        assert wanted in _cells(f"{notebook}.ipynb", "markdown")
    assert "a sheet of fifteen exercises, one a week" in TEXT
    assert sorted(exercise.week for exercise in lab.SHEET.values()) == list(range(1, 16))
    for notebook in sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb")):
        assert notebook in TEXT


@pytest.mark.seldom
def test_what_goes_wrong_in_a_notebook_goes_wrong_so(tmp_path: Path) -> None:
    """An await before `%autoawait trio` holds, and a simulation inside a cell with await, raise what the plan says."""
    nbclient = pytest.importorskip("nbclient", reason="it is not installed: pip install 'toolrt[notebooks]'")
    nbformat = pytest.importorskip("nbformat", reason="it is not installed: pip install 'toolrt[notebooks]'")
    cells = [
        "import trio\nfrom toolrt import sim, Registry, Runtime\nasync def program():\n    pass",
        "await trio.sleep(0)",
        "await Runtime(Registry([])).run([])",
        "%autoawait trio",
        "sim.run(program)\nawait trio.sleep(0)",
        "sim.run(program)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", allow_errors=True, resources=resources
    ).execute()
    raised = [
        (output["ename"], output["evalue"])
        for cell in notebook.cells
        for output in cell.outputs
        if output["output_type"] == "error"
    ]
    assert [name for name, _ in raised] == ["RuntimeError", "MisuseError", "NotSimulated"]
    parts = " ".join(TEXT.split())
    for said, (_, text) in zip(("Task got bad yield", "a batch of a Runtime runs in Trio"), raised, strict=False):
        assert said in text
        assert f"`{said}`" in parts
    assert "`NotSimulated`" in TEXT
