"""Errors of a disk beside the system's own: each is an `OSError` whose text shows no path above the root."""

from __future__ import annotations

import errno
import os

from toolrt.workspace.disk._disk import Entry, Kind


class TooLarge(OSError):
    """A file has more bytes than the reader wants; nothing was read.

    Attributes:
        size: its bytes.
        limit: how many were wanted at most.
    """

    def __init__(self, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(errno.EFBIG, f"{size} bytes where at most {limit} are read")


class NotRegular(OSError):
    """What stands behind the name is neither file nor directory; it was not opened.

    Attributes:
        kind: what it is.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        super().__init__(errno.EINVAL, f"{kind.value} where a regular file was expected")


class Changed(OSError):
    """Another program changed the entry while it was being revised; its change was left as it is.

    Its errno is ESTALE.
    """

    def __init__(self) -> None:
        super().__init__(errno.ESTALE, "another program changed it meanwhile")


class Inseparable(OSError):
    """A file has names elsewhere, and a file of its own for this name could not have its owner or its attributes.

    Nothing was changed.  Its errno is EPERM.
    """

    def __init__(self) -> None:
        super().__init__(errno.EPERM, "it has names elsewhere and cannot be copied with its owner and attributes")


class DiskBusy(OSError):
    """Another toolrt process went on changing what stands there; nothing was changed.  Its errno is EAGAIN."""

    def __init__(self) -> None:
        super().__init__(errno.EAGAIN, "another process is changing it")


class Unsynced(OSError):
    """The change stands, but the disk failed to say that it would outlive a loss of power.

    Its errno is the one that the system gave (EIO).
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "changed, but not known to outlive a loss of power")


def require_below_root(entry: Entry, number: int) -> None:
    """Refuse the root, with the error of that number."""
    if not entry:
        raise failure(number, entry)


def failure(number: int, entry: Entry | None = None) -> OSError:
    """The error `number` at `entry`; its text shows no path above the root, and with None no path at all."""
    if entry is None:
        return OSError(number, os.strerror(number))
    return OSError(number, os.strerror(number), "/".join(entry) or ".")
