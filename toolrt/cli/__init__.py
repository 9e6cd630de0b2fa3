"""The command line: ``toolrt run``, ``explore``, ``replay``, ``timeline``, ``litmus``, ``laws`` and
``conformance``.

``python -m toolrt`` is the same.  Each command has a module of its own, which `main` imports when the command is
called.  So a program that imports toolrt does not pay for the commands, and without the ``cli`` extra `main` says what
to install.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TextIO

from toolrt.errors import MissingExtra

if TYPE_CHECKING:
    from toolrt.cli.screen._board import BatchBoard
    from toolrt.runtime import Batch

__all__ = ["main", "watching"]

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


def watching(batch: Batch, stream: TextIO | None = None) -> AbstractAsyncContextManager[BatchBoard]:
    """Show a batch that a program runs, as ``toolrt run`` does, while the block runs.

    Args:
        batch: which; what is shown of progress is what its reader hands to ``take`` of the board.
        stream: a terminal, where it is a picture that is drawn over, or any text stream, where it is lines; None is
            standard error.

    Returns:
        A context manager that gives the board.  An error of the block comes out as it is.

    Raises:
        MissingExtra: the ``cli`` extra is not installed.

    Checkpoint: never; leaving the block is one.

    Example::

        async with runtime.open_batch() as batch, watching(batch) as board:
            for call in calls:
                batch.submit(call)
            batch.seal()
            async for update in batch:
                board.take(update)
    """
    try:
        from toolrt.cli.screen._board import watching as shown
        from toolrt.cli.screen._screen import Screen
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        raise MissingExtra("the live view", "cli") from error
    return shown(Screen(sys.stderr if stream is None else stream), batch)
