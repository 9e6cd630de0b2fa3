"""Messages that wait for a host to take them."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import trio


class News:
    """Wakes every task that waits for a change of one connection."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def tell(self) -> None:
        """Wake those that wait now."""
        self._event.set()
        self._event = trio.Event()

    async def wait(self) -> None:
        """Return after the next `tell`.

        Checkpoint: always.
        """
        await self._event.wait()


class Outbox:
    """What one stream of a host's is still to be sent, in order.

    Args:
        news: hears of each message.
    """

    def __init__(self, news: News) -> None:
        self._news = news
        self._unsent: deque[bytes] = deque()
        #: Bytes that wait, and those that are being sent.
        self.bytes = 0

    def put(self, message: dict[str, Any]) -> None:
        """Queue a message.

        Checkpoint: never.
        """
        data = as_json(message)
        self._unsent.append(data)
        self.bytes += len(data)
        self._news.tell()

    def take(self) -> list[bytes]:
        """All messages that wait, each as JSON on one line; they count as waiting until `sent`.

        Checkpoint: never.
        """
        taken = list(self._unsent)
        self._unsent.clear()
        return taken

    def sent(self, messages: list[bytes]) -> None:
        """The host has these.

        Checkpoint: never.
        """
        self.bytes -= sum(map(len, messages))
        self._news.tell()


def as_json(message: dict[str, Any]) -> bytes:
    """A JSON-RPC message on one line, without its end."""
    message = {"jsonrpc": "2.0", **message}
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, such as in an id: it goes back as it came.
        return json.dumps(message, separators=(",", ":")).encode()
