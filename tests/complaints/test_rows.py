"""The tests of this folder are named by what they forbid; the docstrings begin with a row of the research on peers."""

from __future__ import annotations

import re
from pathlib import Path

#: A row with its tests elsewhere: it is about MCP clients (tests/plugins/mcp).
ELSEWHERE = {63}


def test_rows_have_a_test_each() -> None:
    """The first words of the docstrings name rows 1 to 64."""
    rows = set(ELSEWHERE)
    for file in Path(__file__).parent.glob("test_no_*.py"):
        text = file.read_text(encoding="utf-8")
        for first, last in re.findall(r'-> None:\n    """(\d+)(?: to (\d+))?\. ', text):
            rows |= set(range(int(first), int(last or first) + 1))
        names = re.findall(r"^(?:async )?def test_(\w+)", text, re.MULTILINE)
        assert [name for name in names if not name.startswith("no_")] == []
    assert rows == set(range(1, 65))
