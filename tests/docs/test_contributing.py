"""The pages for contributors: what they point at is there, and the workflows check what the project admits."""

from __future__ import annotations

import importlib.util
import re
import runpy
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / ".github" / "CONTRIBUTING.md", ROOT / "tests" / "README.md"]


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def contributing(request: pytest.FixtureRequest) -> Path:
    """One page for contributors."""
    found: Path = request.param
    return found


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_links_of_contributors_pages_lead_somewhere(contributing: Path) -> None:
    """Each relative link names a file or a folder of the checkout."""
    links = re.findall(r"\]\(([^)#\s]+)", contributing.read_text(encoding="utf-8"))
    assert [link for link in links if ":" not in link and not (contributing.parent / link).exists()] == []


def test_files_that_contributors_are_sent_to_are_there(contributing: Path) -> None:
    """Each name in backticks that looks like a path is one, from the top or from the page's own folder."""
    text = contributing.read_text(encoding="utf-8")
    named = {path for path in re.findall(r"`([\w./-]+/[\w./-]*)`", text) if "=" not in path}
    assert len(named) > 5
    assert [
        path for path in sorted(named) if not ((ROOT / path).exists() or (contributing.parent / path).exists())
    ] == []


def test_rows_of_tests_name_every_folder_that_is_no_room() -> None:
    """The table has a row for each folder of tests without a room of its name."""
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and list(path.glob("*.py"))}
    rooms = {path.name for path in (ROOT / "toolrt").iterdir() if path.is_dir()}
    rows = set(re.findall(r"^\| `(\w+)/` \|", PAGES[1].read_text(encoding="utf-8"), re.MULTILINE))
    assert rows == folders - rooms


def test_workflow_checks_every_admitted_version() -> None:
    """The matrix has every minor version of Trio that the dependency admits, and Python from the lowest on."""
    text = (ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8")
    found = {name: re.findall(r'"([\d.]+)"', text.split(f" {name}: [")[1].split("]")[0]) for name in ("python", "trio")}
    project = _project()["project"]
    (trio,) = [each for each in project["dependencies"] if each.startswith("trio")]
    first, last = map(int, re.findall(r"0\.(\d+)", trio))
    assert found["trio"] == [f"0.{minor}" for minor in range(first, last)]
    assert f">={found['python'][0]}" == project["requires-python"]
    classified = [each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert set(classified) <= set(found["python"])


def test_versions_that_have_not_run_have_no_badge() -> None:
    """No page shows a badge: the workflows have not run yet, as the table says."""
    assert "not yet run" in PAGES[0].read_text(encoding="utf-8")
    for page in [*PAGES, ROOT / "README.md"]:
        assert "badge" not in re.sub(r"no badges", "", page.read_text(encoding="utf-8"))


def test_hooks_are_local() -> None:
    """Before a commit nothing is fetched: every hook runs a tool that is installed."""
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"repo: (\S+)", text) == ["local"]
    assert text.count("language: system") == text.count("- id:")


def test_room_of_a_changed_file_has_its_tests_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast session finds the folder of tests for each room, and its table names no room that is gone."""
    # The table is held against the tree also where nox, which only runs it, is not installed.
    monkeypatch.setitem(sys.modules, "nox", SimpleNamespace(session=lambda of: of, options=SimpleNamespace()))
    noxfile = runpy.run_path(str(ROOT / ".ci" / "noxfile.py"))
    for room, folder in noxfile["_TESTS"].items():
        assert (ROOT / "toolrt" / room).is_dir() or (ROOT / "toolrt" / f"{room}.py").is_file(), room
        assert (ROOT / "tests" / folder).is_dir(), folder
    tests_for = noxfile["tests_for"]
    for room in (path.stem for path in (ROOT / "toolrt").iterdir() if path.suffix in ("", ".py")):
        if room not in ("__init__", "__main__", "__pycache__"):
            assert len(tests_for([f"toolrt/{room}/_file.py"])) == 1, room
    assert tests_for(["docs/index.md", "tests/sim/test_clock.py", "LICENSE"]) == ["tests/docs", "tests/sim"]
    assert tests_for(["tests/conftest.py"]) == []
    importers = tests_for(noxfile["importers_of"](["toolrt/order/_machine.py", "docs/index.md"]))
    assert {"tests/order", "tests/runtime", "tests/invariants"} <= set(importers)
    assert "tests/sim" not in importers
    assert noxfile["importers_of"](["toolrt/no_such_module.py"]) == []


# Of the extra "cluster", and of the adapters, which are tested in environments of their own.
_NOT_IN_DEV = {"agent_framework", "agents", "anthropic", "distributed", "langchain_core", "langgraph", "llama_index"}
_NOT_IN_DEV |= {"openai", "pydantic_ai"}


def test_what_tests_skip_without_comes_with_the_extra_for_developers() -> None:
    """Where "dev" is installed no test is skipped for a module, but for those of extras that "dev" leaves out."""
    wanted: set[str] = set()
    for file in (ROOT / "tests").rglob("*.py"):
        wanted.update(re.findall(r'importorskip\(\s*"(\w+)', file.read_text(encoding="utf-8")))
    assert len(wanted) > 5
    assert {name for name in wanted if importlib.util.find_spec(name) is None} <= _NOT_IN_DEV


def test_conftests_leave_the_path_of_imports_alone() -> None:
    """What tests share is imported by its whole name, so no two folders can mean different files by one name."""
    changed = [file for file in ROOT.joinpath("tests").rglob("conftest.py") if "sys.path" in file.read_text()]
    assert changed == []


def test_newcomers_test_has_true_answers() -> None:
    """The four answers take ten lines at most, and each file has what the answer finds there."""
    section = PAGES[0].read_text(encoding="utf-8").split("## The newcomer's test")[1].split("\n## ")[0]
    answers = section[section.index("- (a)") :].strip()
    assert re.findall(r"^- \((.)\)", answers, re.MULTILINE) == ["a", "b", "c", "d"]
    assert len(answers.splitlines()) <= 10
    there = {
        "toolrt/model/_call.py": "class Outcome(",
        "toolrt/sim/policies/_policy.py": "class Policy(",
        "toolrt/interop/_format.py": "Format",
        "toolrt/interop/_shape.py": "def format_of(",
        "toolrt/interop/_response.py": "def read_response(",
        "toolrt/interop/_render.py": "def render_results(",
        "toolrt/cli/experiment/_variation.py": "_FAULTS = (",
        "toolrt/workspace/disk/_memory.py": "self._fault(",
    }
    files = set(re.findall(r"`(toolrt/[\w/]+\.py)`", answers))
    assert files == there.keys()
    assert [file for file, text in there.items() if text not in (ROOT / file).read_text(encoding="utf-8")] == []
