"""Parses Python where a finaliser may parse, too.

Theory.  Python 3.11 before 3.11.8 counts the levels of all syntax trees that are being made in one place
(https://github.com/python/cpython/issues/106905), and may collect garbage while it makes one.  A finaliser that parses
then, as one does whose traceback is formatted, or another thread that comes to parse, ends the outer one with
``SystemError: AST constructor recursion depth mismatch``.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Let no garbage be collected inside the block."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def parsed(source: str | bytes, file: str = "<unknown>") -> ast.Module:
    """Give the tree of `source`.

    Raises:
        SyntaxError, ValueError: it is no Python.
    """
    with uncollected():
        return ast.parse(source, file)
