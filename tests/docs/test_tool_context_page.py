"""The table of what a tool is given names tests and variants that are there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.properties._rules import RULES, VARIANTS
from toolrt.invariants import MUTANTS
from toolrt.runtime import ToolContext


def _rows(root: Path) -> list[list[str]]:
    text = (root / "docs/explanation/tool-context.md").read_text(encoding="utf-8")
    table = text[text.index("| field |") :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def test_table_names_tests_that_are_there(root: Path) -> None:
    """Each file, function and rule of the fourth column."""
    rows = [row for row in _rows(root) if len(row) == 5]
    named: set[str] = set()
    for row in rows:
        path, *functions = re.findall(r"`([^`]+)`", row[3])
        text = (root / path).read_text(encoding="utf-8")
        assert all(f"def {function}(" in text for function in functions), row
        named.update(re.findall(r'"([^"]+)"', row[3]))
    assert named == set(RULES)


def test_table_names_variants_that_are_there(root: Path) -> None:
    """Each variant of the last column stands in the row of the rule that catches it, or is a mutant of a law."""
    named: set[str] = set()
    for row in (row for row in _rows(root) if len(row) == 5):
        held = re.findall(r'"([^"]+)"', row[3])
        for variant in re.findall(r'"([^"]+)"', row[4]):
            named.add(variant)
            assert variant in MUTANTS or VARIANTS[variant].rule in held, row
            assert not held or VARIANTS[variant].rule in held, row
        for path in re.findall(r"`([^`]+\.py)`", row[4]):
            assert (root / path).exists(), row
    assert named >= set(VARIANTS)


def test_table_names_every_field(root: Path) -> None:
    """What a tool can ask its context for has a row, or is told of below the table."""
    text = (root / "docs/explanation/tool-context.md").read_text(encoding="utf-8")
    fields = {name for name in vars(ToolContext) if not name.startswith("_")}
    assert {name for name in fields if not re.search(rf"\b{name}\b", text)} == set()
