"""Prints what a benchmark measured: as tables, or with ``--json`` as one JSON object a line."""

from __future__ import annotations

import json
from typing import Any


class Rows:
    """The rows of one table after the other.

    Args:
        as_json: True: print each row as a JSON object, with the name of its table.
    """

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._table = ""
        self._columns: dict[str, str] = {}

    def begin(self, table: str, columns: dict[str, str]) -> None:
        """Begin a table; `columns` gives each title its format, such as ``>12,.0f``."""
        if not self._as_json:
            titles = (f"{title:{_place(form)}}" for title, form in columns.items())
            print(f"{chr(10) if self._columns else ''}{' '.join(titles)}")
        self._table, self._columns = table, columns

    def add(self, *values: Any) -> None:
        """Print a row."""
        named = dict(zip(self._columns, values, strict=True))
        if self._as_json:
            print(json.dumps({"table": self._table, **named}), flush=True)
            return
        cells = (_cell(named[title], form) for title, form in self._columns.items())
        print(" ".join(cells), flush=True)


def _place(form: str) -> str:
    """Give the part of a format that is alignment and width."""
    return form.partition(",")[0].partition(".")[0]


def _cell(value: Any, form: str) -> str:
    return f"{value!s:{_place(form)}}" if value is None or isinstance(value, str | list) else f"{value:{form}}"
