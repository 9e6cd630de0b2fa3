"""The page of events is made from their records."""

from __future__ import annotations

import runpy
from pathlib import Path

from toolrt import events


def test_events_page_is_what_the_records_give(root: Path) -> None:
    """The committed page is the one that ``python .ci/write_events.py`` writes."""
    page = (root / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    written = runpy.run_path(str(root / ".ci" / "write_events.py"))["written"]
    assert page == written(page), "run: python .ci/write_events.py"


def test_events_page_has_every_record(root: Path) -> None:
    """No module of records is left out."""
    page = (root / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    assert [kind for kind in events.kinds() if f"| `{kind}` |" not in page] == []
