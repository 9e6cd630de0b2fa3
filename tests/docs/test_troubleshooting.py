"""The page of messages quotes what the package says."""

from __future__ import annotations

import re
from pathlib import Path

import toolrt


def test_messages_on_the_page_are_those_of_the_package(root: Path) -> None:
    """Each quoted part stands in a text of the package, which may be broken into several lines there."""
    page = (root / "docs/how-to/troubleshooting.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`[^|]*) \|", page, re.MULTILINE)
    quoted = [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]
    assert len(quoted) > 20
    package = Path(toolrt.__file__).parent
    sources = "\n".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    said = re.sub(r'"\s*\n\s*f?"', "", sources)
    assert [text for text in quoted if text not in said] == []
