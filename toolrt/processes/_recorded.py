"""What doubles of programs share: a record takes its time in the clock that runs, and says what it says on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import trio

from toolrt.errors import DefinitionRefused

T = TypeVar("T")


def check_recorded_seconds(what: str, value: object) -> None:
    """Check the value of how long something recorded took; `what` is its name in the message.

    Raises:
        DefinitionRefused: it is no number of seconds.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise DefinitionRefused(what, "seconds, 0 or more", value)


async def spread(said: Sequence[T], seconds: float, say: Callable[[T], object]) -> None:
    """Say all that is `said`, the first at once and the rest spread over that many seconds, and take as long.

    Checkpoint: always.
    """
    if not said:
        await trio.sleep(seconds)
    for one in said:
        say(one)
        await trio.sleep(seconds / len(said))
