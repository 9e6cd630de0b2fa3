"""The record of what was found, and the page that shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.frameworks import catalogue

__all__ = ["PAGE", "RECORD", "read_record", "shown", "unexplained", "write_page", "write_record"]

_DOCS = Path(__file__).parents[2] / "docs" / "explanation"
RECORD = _DOCS / "frameworks.json"
PAGE = _DOCS / "frameworks.md"

#: What was found of each row, by its title.
Record = dict[str, dict[str, Any]]


def read_record() -> Record:
    """Give what was found, by the rows' titles; nothing where there is no record."""
    if not RECORD.exists():
        return {}
    return {row["row"]: row for row in json.loads(RECORD.read_text(encoding="utf-8"))["rows"]}


def write_record(record: Record, python: str) -> None:
    """Keep what was found, in the order of the catalogue."""
    rows = [record[row.title] for row in catalogue.ROWS if row.title in record]
    text = json.dumps({"schema": 1, "python": python, "rows": rows}, indent=1, ensure_ascii=False)
    RECORD.write_text(text + "\n", encoding="utf-8")


def unexplained(record: Record) -> list[str]:
    """Say where the catalogue's causes are not those of the broken cells, and what is not in the record."""
    wrong = []
    for row in catalogue.ROWS:
        if row.title not in record:
            wrong.append(f"{row.title}: not in the record")
            continue
        broken = {cell["law"] for cell in record[row.title]["laws"] if cell["verdict"] == "broken"}
        wrong += [f"{row.title}: {law} is broken without a cause" for law in sorted(broken - set(row.causes))]
        wrong += [f"{row.title}: {law} has a cause and is not broken" for law in sorted(set(row.causes) - broken)]
    return wrong


def shown(record: Record) -> dict[str, str]:
    """Give the two generated parts of the page, by name."""
    parts = {"matrix": _matrix(record), "broken": _sections(record)}
    # What a framework said may end in a space.
    return {name: re.sub(r"[ \t]+$", "", "\n".join(lines), flags=re.MULTILINE) for name, lines in parts.items()}


def write_page(record: Record) -> None:
    """Write the generated parts of the page."""
    text = PAGE.read_text(encoding="utf-8")
    for name, part in shown(record).items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        text = re.sub(f"(?s){begin}.*?{end}", lambda _, b=begin, p=part, e=end: f"{b}\n{p}\n{e}", text)
    PAGE.write_text(text, encoding="utf-8")


def _matrix(record: Record) -> Iterator[str]:
    found = [(row, record[row.title]) for row in catalogue.ROWS if row.title in record]
    laws = [cell["law"] for cell in found[0][1]["laws"]]
    yield f"| framework | version | by which means | {' | '.join(laws)} | seconds |"
    yield "|" + "---|" * (len(laws) + 4)
    for row, one in found:
        cells = " | ".join(_cell(row, cell) for cell in one["laws"])
        first = (
            [row.framework, one["version"], row.means] if row.framework else [row.means, "this checkout", "as it is"]
        )
        yield f"| {' | '.join(first)} | {cells} | {one['seconds']} |"


def _cell(row: catalogue.Row, cell: Mapping[str, Any]) -> str:
    if cell["verdict"] == "held":
        return f"held in {cell['examples']} examples"
    return (
        f"[broken](#{_anchor(_heading(row))})" if cell["verdict"] == "broken" else f"not applicable: {cell['detail']}"
    )


def _anchor(title: str) -> str:
    """The anchor that a heading has."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _heading(row: catalogue.Row) -> str:
    """A heading without code, so that each kind of page gives it the same anchor."""
    return row.title.replace("`", "")


def _sections(record: Record) -> Iterator[str]:
    for row in catalogue.ROWS:
        if row.title not in record:
            continue
        broken = [cell for cell in record[row.title]["laws"] if cell["verdict"] == "broken"]
        if broken:
            yield f"### {_heading(row)}\n"
        for example, cells in _by_example(broken):
            for cell in cells:
                yield f"- `{cell['law']}`: {cell['detail']}. {row.causes.get(cell['law'], 'No cause is known.')}"
            yield f"\n```text\n{example}\n```\n"


def _by_example(cells: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """The cells that one smallest batch breaks, together."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        lines = [
            *cell["plan"],
            "a serial run answers",
            *_indented(cell["serial"]),
            "what came",
            *_indented(cell["got"]),
        ]
        found.setdefault("\n".join(lines), []).append(cell)
    return list(found.items())


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]
