"""The command line: ``toolrt run``, ``explore``, ``replay``, ``timeline``, ``litmus``, ``laws`` and
``conformance``.

``python -m toolrt`` is the same.  Each command has a module of its own, which `main` imports when the command is
called.  So a program that imports toolrt does not pay for the commands, and without the ``cli`` extra `main` says what
to install.
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
