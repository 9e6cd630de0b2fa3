"""What commands are given: files that are read, directories that are worked on, targets that are written.

Rules.  Everything is checked before anything is run, and what is wrong is an `InputRefused`.  A file's size is
looked at before it is read, and no more than the limit is read of what has no size (a pipe).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import attrs

from toolrt.cli._arguments import STANDARD_INPUT
from toolrt.errors import InputRefused
from toolrt.interop import MAX_RESPONSE_BYTES, parse_response
from toolrt.model import ToolCall


@attrs.frozen
class LoadedResponse:
    """A response that was read."""

    #: What errors and reports call it: the path as it was given.
    name: str
    #: Its text.
    text: str
    #: Its calls, at least one.
    calls: tuple[ToolCall, ...]


def load_response(path: str) -> LoadedResponse:
    """The response in the file at `path`, or on standard input for `STANDARD_INPUT`.

    Raises:
        InputRefused: it cannot be read, is larger than the limit, or is no response with tool calls.
    """
    name = "standard input" if path == STANDARD_INPUT else path
    content = read_limited(path, MAX_RESPONSE_BYTES, "Give the response alone, or split its calls into several files.")
    loaded = parse_response(content, name)
    return LoadedResponse(name, content.decode(), loaded.calls)


def read_limited(path: str, limit: int, remedy: str) -> bytes:
    """All bytes of a file, or of standard input for `STANDARD_INPUT`.

    Args:
        limit: the most bytes it may have.
        remedy: what to do when it has more.

    Raises:
        InputRefused: it cannot be read, is a directory, or is larger.
    """
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise InputRefused("standard input", "it is closed", "Name a file, or give the response there.")
        return _read(sys.stdin.buffer, "standard input", limit, remedy)
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            if stat.S_ISREG(found.st_mode) and found.st_size > limit:
                raise _too_large(path, limit, remedy)
            return _read(file, path, limit, remedy)
    except IsADirectoryError:
        raise InputRefused(path, "expected a file, got a directory", "Name the file that holds the JSON.") from None
    except (OSError, ValueError) as error:
        raise InputRefused(path, f"it cannot be read ({_why(error)})", "Name a file that can be read.") from None


def _read(file: BinaryIO, name: str, limit: int, remedy: str) -> bytes:
    content = file.read(limit + 1)
    if len(content) > limit:
        raise _too_large(name, limit, remedy)
    return content


def _too_large(name: str, limit: int, remedy: str) -> InputRefused:
    return InputRefused(name, f"it is larger than the limit of {limit:,} bytes", remedy)


def _why(error: OSError | ValueError) -> str:
    return os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)


def checked_directory(path: str) -> Path:
    """The directory at `path`, which can be listed and entered; links resolved.

    Raises:
        InputRefused: it does not exist, is no directory, or cannot be looked into.
    """
    what = f"workspace {path!r}"
    if not path:
        raise InputRefused(what, "expected a directory, got an empty name", "Name it; . is the current directory.")
    try:
        root = Path(path).resolve(strict=True)
        with os.scandir(root) as entries:
            next(entries, None)
    except NotADirectoryError:
        raise InputRefused(what, "expected a directory, got a file", "Name the directory it is in.") from None
    except (OSError, ValueError, RuntimeError) as error:
        why = "symbolic links that lead in a circle" if isinstance(error, RuntimeError) else _why(error)
        raise InputRefused(
            what, f"expected a directory, got none ({why})", "Name a directory that can be read."
        ) from None
    if not os.access(root, os.X_OK):
        raise InputRefused(
            what, "expected a directory, got one that cannot be entered", "Name a directory that can be read."
        )
    return root


def checked_target(path: str, option: str, outside: Sequence[Path] = ()) -> Path:
    """Where a file will be written, once there is something to write; nothing is made yet.

    Args:
        option: what the path was given to.
        outside: directories it must not lie in.

    Raises:
        InputRefused: it cannot be written, as far as can be told without writing.
    """
    what = f"{option} {path!r}"
    remedy = "Name a file in a directory that can be written."
    try:
        target = Path(path).resolve()
        if target.is_dir():
            raise InputRefused(what, "expected a file, got a directory", remedy)
        if not target.parent.is_dir():
            raise InputRefused(what, "its directory does not exist", "Create the directory first.")
        writable = os.access(target, os.W_OK) if target.exists() else os.access(target.parent, os.W_OK | os.X_OK)
    except (OSError, ValueError, RuntimeError) as error:
        why = "symbolic links that lead in a circle" if isinstance(error, RuntimeError) else _why(error)
        raise InputRefused(what, f"it cannot be written ({why})", remedy) from None
    if not writable:
        raise InputRefused(what, f"it cannot be written ({os.strerror(13)})", remedy)
    if any(target.is_relative_to(directory) for directory in outside):
        raise InputRefused(
            what, "it lies in the workspace, which explore never writes to", "Name a file that lies elsewhere."
        )
    return target


def write_target(target: Path, text: str, option: str, *, private: bool = True) -> None:
    """Write `text` to `target`.

    Args:
        target: the file.
        text: what it is to hold, without the end of its last line.
        option: that named the file.
        private: whether it holds contents of files: then no other user may read it.

    Raises:
        InputRefused: it could not be written after all.
    """
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o666)
        with open(descriptor, "w", encoding="utf-8") as file:
            if private and stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.fchmod(descriptor, 0o600)
            file.write(text + "\n")
    except OSError as error:
        raise InputRefused(
            f"{option} {str(target)!r}", f"it could not be written ({_why(error)})", "What was run stays run."
        ) from None
