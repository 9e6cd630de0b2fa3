"""What a program may warn of while an execution that was given up is torn down: nothing.

Rules.  The explorer cancels such a program where it stands.  A generator that it was going through is dropped, a file
is not closed in time: what warns of that does not speak of the program, and where warnings are errors it would fail a
test.  The filter is taken out of whatever list of filters is in force afterwards: the program may leave a block of its
own that restores another one.
"""

from __future__ import annotations

import gc
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Whether the last collection of an execution's garbage looked at young objects alone.
_may_be_left = False

# Its pattern is no other's, so that it is never taken for a filter of the program's.
_NOTHING: Any = ("ignore", re.compile("(?s)(?:)"), Warning, None, 0)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Let warnings go unheard inside the block."""
    filters: Any = warnings.filters
    filters.insert(0, _NOTHING)
    try:
        yield
    finally:
        after: Any = warnings.filters
        for each in (filters, after):
            each[:] = [one for one in each if one is not _NOTHING]


def collect_unheard(generation: int = 2) -> None:
    """Collect what such a program has left in circles: it would complain in what runs next.

    Args:
        generation: the oldest that is looked through.
    """
    global _may_be_left
    _may_be_left = generation < 2
    with finalisers_unheard(), without_warnings():
        gc.collect(generation)


def collect_what_is_left() -> None:
    """Collect it where it may not have been found at once: a log, or an error, still had it."""
    if _may_be_left:
        collect_unheard()


@contextmanager
def finalisers_unheard() -> Iterator[None]:
    """Let no error be heard that a finaliser raises inside the block."""
    hook = sys.unraisablehook
    sys.unraisablehook = bool
    try:
        yield
    finally:
        sys.unraisablehook = hook
