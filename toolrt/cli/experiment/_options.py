"""The options that commands share, and what they mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token

from toolrt.errors import InputRefused

#: Which policies order the calls, by name.
Lanes = Annotated[
    str, Parameter(help="Which calls may overlap: by_claims, by_safety, parallel, serial, or your MODULE:NAME.")
]
Slots = Annotated[
    str | None, Parameter(help="Which ready call goes next: your MODULE:NAME; the lowest call_index unless given.")
]

#: Where the executions run.
Cluster = Annotated[
    str | None, Parameter(help="Run on the dask cluster whose scheduler has this address, such as tcp://10.0.0.1:8786.")
]

#: How many calls run at once, unless told otherwise: as `toolrt.Runtime`.
LIMIT = 10


def _whole(kind: Any, tokens: Sequence[Token]) -> int:
    """The number as it is written; cyclopts alone would take 1.5 for 2."""
    written = tokens[0].value
    try:
        return int(written, 10)
    except ValueError:
        raise ValueError(f"expected a whole number, got {written!r:.60}") from None


#: A whole number, and nothing that would have to be rounded to one.
Whole = Annotated[int, Parameter(converter=_whole)]


def at_least_one(option: str, value: int) -> int:
    """`value`, if it is 1 or more.

    Raises:
        InputRefused: it is not.
    """
    if value < 1:
        raise InputRefused(option, f"expected a whole number, 1 or more, got {value}", "See --help.")
    return value


def above_0(option: str, seconds: float) -> float:
    """`seconds`, if they are above 0 and finite.

    Raises:
        InputRefused: they are not.
    """
    if not 0 < seconds < math.inf:
        raise InputRefused(option, f"expected seconds above 0, finite, got {seconds:g}", "See --help.")
    return seconds
