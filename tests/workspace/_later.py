"""A disk on which every file has been as it is for long."""

from __future__ import annotations

from toolrt.workspace import RealDisk


class LaterDisk(RealDisk):
    """A disk whose clock is an hour ahead, so that what it has is remembered."""

    def now_ns(self) -> int:
        """An hour later than it is."""
        return super().now_ns() + 3600 * 10**9
