"""The house keeps its shape: no circles, one class for a name; its measures are printed, not bounded."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from toolrt import events

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("measure_house", ROOT / ".ci" / "measure_house.py")
assert _SPEC is not None
assert _SPEC.loader is not None
# An explanation looks into the modules of its program, as where the script runs: this one has to be known as one.
sys.modules["measure_house"] = _MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
HOUSE: dict[str, Any] = vars(_MODULE)
PACKAGE = ROOT / "toolrt"


def test_imports_have_no_circle() -> None:
    """Imports in functions and for type checkers count: a reader follows them, too."""
    assert HOUSE["circles"]() == []


def test_class_names_stand_once_in_the_package() -> None:
    """One name means one thing."""
    assert {name: places for name, places in HOUSE["classes"]().items() if len(places) > 1} == {}


def test_roads_are_measured_beside_earlier_figures() -> None:
    """A column of the day stands behind those before it; a row that is new has no earlier figure."""
    page = "| measured | then |\n|---|---|\n| files | 9 |\n"
    assert HOUSE["table"]({"files": "8", "roads": "1, 2"}, page, "today").splitlines() == [
        "| measured | then | today |",
        "| --- | --- | --- |",
        "| files | 9 | 8 |",
        "| roads |  | 1, 2 |",
    ]
    for road in HOUSE["ROADS"].values():
        entered = road()
        assert 1 < len(set(entered)) <= HOUSE["moves"](entered)


@pytest.mark.parametrize("room", ["invariants", "view", "teaching", "cli"])
def test_readers_of_traces_name_events_by_class(room: str) -> None:
    """A literal kind would survive a renamed record unseen."""
    kinds = "|".join(kind.replace(".", r"\.") for kind in events.kinds())
    found = {
        path.relative_to(ROOT).as_posix(): literals
        for path in (PACKAGE / room).rglob("*.py")
        if (literals := re.findall(rf'"({kinds})"', path.read_text(encoding="utf-8")))
    }
    assert found == {}
