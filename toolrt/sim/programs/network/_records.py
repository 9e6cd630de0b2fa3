"""Where the records of TLS end in a stream of bytes.

What OpenSSL encrypts differs from one execution to the next, and so may the length of a record; how many records there
are, and in which order, does not.  A read that moves a part only is therefore cut where a record ends.
"""

from __future__ import annotations

_HEADER = 5


class Records:
    """The ends of the records in one direction of a connection; none when it does not carry TLS."""

    def __init__(self) -> None:
        #: How many records have arrived.
        self.count = 0
        self._is_tls = False
        # The begin of a record whose header is not complete, and how many bytes of the last record are to come.
        self._begun = b""
        self._missing = 0
        # The ends of records that are unread, from the first unread byte, and how many bytes are unread.
        self._ends: list[int] = []
        self._unread = 0

    def add(self, data: bytes) -> None:
        """Take note of bytes that have arrived."""
        place, self._unread = self._unread, self._unread + len(data)
        if not self._is_tls:
            if not self.carries(data):
                return
            self._is_tls = True
        while data:
            if self._missing:
                step = min(self._missing, len(data))
                data, place, self._missing = data[step:], place + step, self._missing - step
                if not self._missing:
                    self._ends.append(place)
                    self.count += 1
                continue
            step = _HEADER - len(self._begun)
            self._begun, data, place = self._begun + data[:step], data[step:], place + len(data[:step])
            if len(self._begun) == _HEADER:
                self._missing, self._begun = int.from_bytes(self._begun[3:], "big"), b""

    def carries(self, data: bytes) -> bool:
        """Say whether `data`, which comes next, is TLS: a handshake begins it, also behind words in the clear."""
        return self._is_tls or (data[:2] == b"\x16\x03" and data[2:3] in (b"\1", b"\2", b"\3", b"\4"))

    def taken(self, count: int) -> None:
        """Take note that so many bytes were read."""
        self._unread -= count
        self._ends = [end - count for end in self._ends if end > count]

    def ends_within(self, count: int) -> tuple[int, ...] | None:
        """Give where records end before so many unread bytes; None when it does not carry TLS."""
        return tuple(end for end in self._ends if end < count) if self._is_tls else None
