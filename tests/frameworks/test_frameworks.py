"""The page of frameworks shows what the record holds, and an executor that is wrong makes a broken cell."""

import json
import re
from typing import Any

from tests.conformance._executors import Shielded
from tests.frameworks import catalogue, page
from toolrt.conformance import LAWS, conformance


def test_the_page_shows_the_record() -> None:
    """Each generated part of the page is what the record gives."""
    text = page.PAGE.read_text(encoding="utf-8")
    for name, part in page.shown(page.read_record()).items():
        [written] = re.findall(f"(?s)<!-- {name}: begin -->\n(.*?)\n<!-- {name}: end -->", text)
        assert written == part, f"{name}: run python -m tests.frameworks --page"


def test_every_cell_says_something_and_every_broken_one_has_its_cause() -> None:
    """Held in so many examples, broken with a smallest batch, or not applicable with a reason; versions as pinned."""
    record = page.read_record()
    assert page.unexplained(record) == []
    assert list(record) == [row.title for row in catalogue.ROWS]
    for row in catalogue.ROWS:
        found = record[row.title]
        assert [cell["law"] for cell in found["laws"]] == list(LAWS)
        assert found["version"] == (catalogue.FRAMEWORKS[row.framework].version if row.framework else "")
        for cell in found["laws"]:
            shows = {"held": cell["examples"] >= 100, "broken": cell["plan"], "not applicable": cell["detail"]}
            assert shows[cell["verdict"]], (row.title, cell)


def test_a_serial_executor_and_toolrt_hold_every_law() -> None:
    """In the record."""
    record = page.read_record()
    for title in ("a serial executor", "toolrt, through `toolrt.aio`"):
        assert {cell["verdict"] for cell in record[title]["laws"]} == {"held"}


def test_a_wrong_executor_makes_a_broken_cell_without_a_cause() -> None:
    """One that does not listen to a cancel, in the row of a serial executor."""
    row = catalogue.ROWS[0]
    record: dict[str, Any] = json.loads(json.dumps(page.read_record()))
    record[row.title]["laws"] = conformance(Shielded, 20, laws=["cancel_truthful"]).to_json()["laws"]
    assert page.unexplained(record) == [f"{row.title}: cancel_truthful is broken without a cause"]
    assert "was cancelled at" in page.shown(record)["broken"]
