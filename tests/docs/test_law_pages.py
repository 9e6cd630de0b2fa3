"""The pages of the laws say what is so: of code, of mutants and of how they fail."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from toolrt import invariants
from toolrt.cli import main

LAWS = list(invariants.LAWS.values())


@pytest.fixture(params=LAWS, ids=lambda law: law.name)
def law(request: pytest.FixtureRequest) -> invariants.Law:
    """One of the seventeen."""
    found: invariants.Law = request.param
    return found


@pytest.fixture
def text(law: invariants.Law, root: Path) -> str:
    """The law's page."""
    return (root / f"docs/explanation/laws/{law.number:02}-{law.name.replace('_', '-')}.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def drawn() -> dict[str, Any]:
    """What draws the timelines."""
    return runpy.run_path(str(Path(__file__).parents[2] / ".ci" / "draw_laws.py"))


def _mutant(text: str) -> invariants.Mutant:
    (name,) = re.findall(r"^The mutant `([^`]+)`:", text, re.MULTILINE)
    return invariants.MUTANTS[name]


def _functions(path: Path) -> set[str]:
    """Every function and method of a file, by its path in it."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, _FUNCTION)}
        elif isinstance(node, _FUNCTION):
            found.add(node.name)
    return found


_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def test_page_states_the_law(law: invariants.Law, text: str) -> None:
    """Its number, its name and its sentence stand at the top, and its parts below in order."""
    assert text.startswith(f"# {law.number}. ")
    assert f"\n`{law.name}`: {law.sentence}\n" in text
    parts = [
        "What went wrong elsewhere",
        "The rule",
        "What keeps it",
        "How it fails",
        "See it yourself",
        "What holds it",
    ]
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == parts


def test_page_names_code_that_is_there(text: str, root: Path) -> None:
    """Each file has the function of its row."""
    rows = re.findall(r"^\| `([^`]+\.py)` \| `([^`]+)` \| \S.* \|$", text, re.MULTILINE)
    assert rows
    missing = [(file, function) for file, function in rows if function not in _functions(root / file)]
    assert missing == []


def test_page_names_tests_that_are_there(law: invariants.Law, text: str, root: Path) -> None:
    """The law's property, and files; each thread that is cited is one that the complaints' tests tell of."""
    assert f"def test_{law.name}(" in (root / "tests/properties/test_laws.py").read_text(encoding="utf-8")
    held = text.split("## What holds it")[1]
    assert all((root / file).is_file() for file in re.findall(r"`(tests/[^`]+)`", held))
    complaints = "".join(path.read_text(encoding="utf-8") for path in (root / "tests/complaints").glob("test_*.py"))
    story = text.split("## The rule")[0]
    assert [thread for thread in re.findall(r"#\d+", story) if not re.search(rf"{thread}\b", complaints)] == []


def test_mutant_of_page_is_caught_by_its_law_alone(law: invariants.Law, text: str, drawn: dict[str, Any]) -> None:
    """No other law sees it, laws 7 and 15 apart; and it is said in the mutant's own words."""
    mutant = _mutant(text)
    assert mutant.name == drawn["SHOWN"][law.name]
    assert mutant.law == law.name
    assert mutant.sentence in " ".join(text.split())
    (row,) = invariants.table(12, mutants=[mutant], workloads=[]).rows
    assert row.alone


def test_timeline_of_page_is_of_a_live_run(law: invariants.Law, text: str, drawn: dict[str, Any]) -> None:
    """What stands there is what the mutant gives now, and it has the place where the law breaks."""
    kept = text.split("<!-- timeline: begin -->\n")[1].split("<!-- timeline: end -->")[0]
    assert kept == drawn["timeline"](law.name), "run: python .ci/draw_laws.py"
    assert "\n!!" in kept


@pytest.mark.drawn(3)
def test_commands_of_page_run(text: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They end well; one that asks a person is of a program that another one shows, and pytest runs its file anyway."""
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for line in block.splitlines():
        program, *arguments = line.split()
        if program == "pytest":
            assert all((root / file).is_file() for file in arguments)
            continue
        assert program == "toolrt"
        if "--play" in arguments:
            assert f"{line.removesuffix('--play')}--html " in block
            continue
        assert main(arguments) == 0, line
