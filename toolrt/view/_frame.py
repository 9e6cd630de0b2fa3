"""Rows as a data frame of pandas or polars.

Rules.  Neither library is imported before a frame is asked for.  The rows stay as they are: no index, no column more.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolrt.errors import DefinitionRefused, MissingExtra

_LIBRARIES = ("pandas", "polars")


def frame(rows: Iterable[Mapping[str, Any]], library: str | None = None, columns: Sequence[str] = ()) -> Any:
    """Give `rows` as a data frame of pandas or polars.

    Args:
        rows: dicts with the same keys, such as `execution_rows` gives.
        library: "pandas" or "polars"; None: the one that the program has imported, of both pandas, otherwise the one
            that is installed.
        columns: the names of the columns, in order; a frame without rows has these columns.

    Returns:
        A ``pandas.DataFrame`` or a ``polars.DataFrame`` with a row for each of `rows`.

    Raises:
        DefinitionRefused: `library` is another one.
        MissingExtra: the library is not installed; the extra "notebooks" has pandas.

    Checkpoint: never.
    """
    if library not in (None, *_LIBRARIES):
        raise DefinitionRefused("frame(library)", '"pandas", "polars" or None', library)
    found = _imported(library)
    rows = [dict(row) for row in rows]
    if found.__name__ == "polars":
        # polars guesses a column's type from its first rows, and a column may begin with None.
        return found.DataFrame(rows, schema=list(columns) or None, infer_schema_length=None)
    return found.DataFrame(rows, columns=list(columns) or None)


def _imported(library: str | None) -> Any:
    """The module of `library`, or of the one to take where it is None."""
    wanted = (library,) if library else sorted(_LIBRARIES, key=lambda name: name not in sys.modules)
    for name in wanted:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise MissingExtra("a data frame" if library is None else f"a data frame of {library}", "notebooks")
