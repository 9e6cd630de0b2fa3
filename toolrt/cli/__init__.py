"""The command line: ``toolrt run``, ``explore``, ``replay``, ``timeline``, ``litmus`` and ``laws``.

``python -m toolrt`` is the same.  What the commands do lives in one module each, and is imported only when `main` is
called: a program that imports toolrt pays nothing for them, and one without the ``cli`` extra is told what to
install.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from toolrt.errors import MissingExtra

__all__ = ["main"]

#: What the extra brings, by the names under which it is imported.
_NEEDED = ("cyclopts", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for, and give the exit code.

    Args:
        arguments: those after the program's name; None is the process's own.

    Returns:
        The exit code: see ``toolrt --help``.  Nothing is raised for bad usage or input.
    """
    try:
        from toolrt.cli._app import dispatch
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        print(f"toolrt: {MissingExtra('the command line', 'cli')}", file=sys.stderr)
        return 2
    return dispatch(arguments)
