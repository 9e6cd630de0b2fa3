"""The table of what a tool is given names tests and variants that are there."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from toolrt.invariants import MUTANTS
from toolrt.runtime import ToolContext


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    """The module that the table refers to most."""
    path = Path(__file__).parents[1] / "properties" / "test_tool_context.py"
    spec = importlib.util.spec_from_file_location("toolrt_rules_of_the_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its variants look themselves up there
    spec.loader.exec_module(module)
    return module


def _rows(root: Path) -> list[list[str]]:
    text = (root / "docs/explanation/tool-context.md").read_text(encoding="utf-8")
    table = text[text.index("| field |") :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def test_table_names_tests_that_are_there(root: Path, rules: ModuleType) -> None:
    """Each file, function and rule of the fourth column."""
    rows = [row for row in _rows(root) if len(row) == 5]
    named: set[str] = set()
    for row in rows:
        path, *functions = re.findall(r"`([^`]+)`", row[3])
        text = (root / path).read_text(encoding="utf-8")
        assert all(f"def {function}(" in text for function in functions), row
        named.update(re.findall(r'"([^"]+)"', row[3]))
    assert named == set(rules.RULES)


def test_table_names_variants_that_are_there(root: Path, rules: ModuleType) -> None:
    """Each variant of the last column stands in the row of the rule that catches it, or is a mutant of a law."""
    named: set[str] = set()
    for row in (row for row in _rows(root) if len(row) == 5):
        held = re.findall(r'"([^"]+)"', row[3])
        for variant in re.findall(r'"([^"]+)"', row[4]):
            named.add(variant)
            assert variant in MUTANTS or rules.VARIANTS[variant][0] in held, row
            assert not held or rules.VARIANTS[variant][0] in held, row
        for path in re.findall(r"`([^`]+\.py)`", row[4]):
            assert (root / path).exists(), row
    assert named >= set(rules.VARIANTS)


def test_table_names_every_field(root: Path) -> None:
    """What a tool can ask its context for has a row, or is told of below the table."""
    text = (root / "docs/explanation/tool-context.md").read_text(encoding="utf-8")
    fields = {name for name in vars(ToolContext) if not name.startswith("_")}
    assert {name for name in fields if not re.search(rf"\b{name}\b", text)} == set()
