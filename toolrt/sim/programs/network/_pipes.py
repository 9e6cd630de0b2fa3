"""One direction of a connection."""

from __future__ import annotations

from toolrt.probe import Resource
from toolrt.sim.programs.network._records import Records


class BytePipe:
    """One direction of a connection."""

    def __init__(self, name: Resource, size: int) -> None:
        #: What the explorer calls it.
        self.name = name
        self.size = size
        #: What has arrived and is unread, and how many bytes have not arrived.
        self.data = bytearray()
        self.underway = 0
        #: True when the end has arrived; and when it has been sent.
        self.ended = self.is_shut = False
        #: When the last of what was sent arrives, in virtual seconds.
        self.last_arrival = 0.0
        self.records = Records()

    def room(self) -> int:
        """Give how many bytes still fit."""
        return self.size - len(self.data) - self.underway
