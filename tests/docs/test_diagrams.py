"""The diagrams that are drawn from the code show the code as it is."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "name", ["docs/images/tracked-call.svg", "docs/images/house.svg", "docs/explanation/states.md"]
)
def test_diagram_is_what_the_code_gives(root: Path, name: str) -> None:
    """The committed file is the one that ``python .ci/draw_diagrams.py`` writes."""
    diagrams = runpy.run_path(str(root / ".ci" / "draw_diagrams.py"))["DIAGRAMS"]
    assert (root / name).read_text(encoding="utf-8") == diagrams[name](), "run: python .ci/draw_diagrams.py"
