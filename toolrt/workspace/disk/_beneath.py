"""Opens a directory many levels down in one system call, where the kernel has ``openat2`` (Linux 5.6).

Rules.  The kernel follows no link on the way and never leaves the directory it starts in.  What fails here says
nothing: the caller opens one directory after the other then, which tells the exact error.

Theory.  A way of ten directories costs twenty calls of ``open`` and ``close``; this is one.  Python has no name for it
yet, so it is called through `ctypes`, whose errors are not looked at.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable

from toolrt.workspace.disk._disk import Entry

#: The call's number, the same on every architecture but one (Alpha), and the flags of ``resolve``.
_OPENAT2 = 437
_RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x04, 0x08


def open_beneath(above: int, entry: Entry, flags: int) -> int:
    """The directory at `entry` below the open directory `above`; negative: it has to be opened step by step."""
    call = _call(flags)
    return -1 if call is None else call(above, os.fsencode("/".join(entry)))


@functools.cache
def _call(flags: int) -> Callable[[int, bytes], int] | None:
    """The system call with these flags; None where there is none."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        syscall = ctypes.CDLL(None).syscall
    except (ImportError, OSError, AttributeError):
        return None
    # struct open_how: flags, mode, resolve.
    how = (ctypes.c_uint64 * 3)(flags, 0, _RESOLVE_NO_SYMLINKS | _RESOLVE_BENEATH)
    size = ctypes.sizeof(how)

    def call(above: int, path: bytes) -> int:
        return int(syscall(_OPENAT2, above, path, how, size))

    found = os.open("/", os.O_RDONLY)
    try:
        opened = call(found, b".")
        if opened < 0:
            return None
        os.close(opened)
    finally:
        os.close(found)
    return call
