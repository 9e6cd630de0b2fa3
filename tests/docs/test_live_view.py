"""The picture of the live view is one of a live run."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are pseudo-terminals on POSIX systems")


def test_picture_of_the_live_view_is_what_is_shown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The committed file is the one that ``python .ci/draw_live_view.py`` writes."""
    for name in ("CI", "NO_COLOR", "COLUMNS", "LINES", "TERM"):
        monkeypatch.setenv(name, "")  # it changes them, and they have to be put back
    script = runpy.run_path(str(root / ".ci" / "draw_live_view.py"))
    board = script["_board"]
    monkeypatch.setattr(board, "_SHARE", board._SHARE)
    drawn = script["drawn"](script["live"]())
    committed = (root / "docs/images/live-view.svg").read_text(encoding="utf-8")
    assert drawn == committed, "run: python .ci/draw_live_view.py"
