"""The tables of docs/reference/events.md, written from the records in `toolrt.events`.

Run it with the Python of a development environment after a change to a record.  A test holds the committed page against
what this gives.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs

from toolrt import events

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "events.md"

_TABLES = re.compile(r"(<!-- records of (\w+) -->\n).*?(<!-- end of records -->\n)", re.DOTALL)


def table(room: str) -> Iterator[str]:
    """Give the lines of the table of the records in one module of `toolrt.events`."""
    yield "| kind | fields | when |"
    yield "|---|---|---|"
    for record in events.kinds().values():
        if record.__module__ == f"toolrt.events._{room}":
            fields = ", ".join(field.name for field in attrs.fields(record))
            when = " ".join((inspect.getdoc(record) or "").split())
            yield f"| `{record.kind}` | `{fields}` | {when} |"


def written(page: str) -> str:
    """Give the page with each of its tables written anew."""
    return _TABLES.sub(lambda found: "\n".join([found[1], *table(found[2]), "", found[3]]), page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
