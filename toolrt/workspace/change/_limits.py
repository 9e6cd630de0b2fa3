"""The bounds on what a workspace remembers: contents, answers, versions, removed trees."""

from __future__ import annotations

import math

import attrs

from toolrt.errors import DefinitionRefused


@attrs.frozen
class Limits:
    """How much a workspace remembers; the oldest goes first.

    Raises:
        DefinitionRefused: a value is no number of 0 or more.
    """

    #: Files whose last seen content is known by its digest, some 200 bytes each.
    seen: int = 100_000
    #: Contents kept to be read again: how many, and their bytes together.
    stored: int = 4096
    stored_bytes: int = 64 * 1024 * 1024
    #: Answers kept for a file and a part of it: how many, and their bytes together.
    cached: int = 4096
    cached_bytes: int = 16 * 1024 * 1024
    #: Versions in the history: how many, and the bytes of their contents together.
    versions: int = 100_000
    history_bytes: int = 256 * 1024 * 1024
    #: Bytes of removed files and directories, too large for history, that are kept aside beside the workspace's files.
    kept_bytes: int = 4 * 1024 * 1024 * 1024
    #: Seconds after which what is kept aside may go: it goes when the next removal is kept; None: it stays while there
    #: is room.
    kept_seconds: float | None = None

    def __attrs_post_init__(self) -> None:
        for name, value in attrs.asdict(self).items():
            is_number = type(value) is int or (name == "kept_seconds" and type(value) is float)
            if not (is_number and 0 <= value < math.inf) and (name, value) != ("kept_seconds", None):
                expected = "seconds, 0 or more, or None" if name == "kept_seconds" else "a whole number, 0 or more"
                raise DefinitionRefused(f"Limits({name}=)", expected, value)
