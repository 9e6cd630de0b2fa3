"""Where one message ends and the next begins: the base protocol of LSP 3.17.

Rules.  A header is ASCII, ends with an empty line and has a ``Content-Length``; its other fields are not looked at.
After a header that is none, or names more than is taken, nothing can be understood any more: that is an error.  A
content that is no JSON object is skipped, and counted.
"""

from __future__ import annotations

import json
import re

from toolrt.plugins.lsp._port import Message
from toolrt.processes._unanswered import Gone

#: Bytes of one message.
MESSAGE_MOST = 16 * 1024 * 1024
#: Bytes of a header.
_HEADER_MOST = 4 * 1024
#: Contents in a row that are no message.
_GARBAGE_MOST = 100

_LENGTH = re.compile(rb"(?:^|\r\n)content-length:[ \t]*([0-9]{1,12})[ \t]*(?=\r\n|$)", re.IGNORECASE)


def framed(message: Message) -> bytes:
    """`message` as it is sent."""
    content = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(content), content)


class Framing:
    """Makes messages of bytes that come in pieces."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        #: How long the content is whose header was read; None: a header comes next.
        self._length: int | None = None
        self._in_a_row = 0
        #: How many contents were no messages.
        self.garbage = 0

    def feed(self, piece: bytes) -> list[Message]:
        """The messages that `piece` completes.

        Raises:
            Gone: what comes cannot be understood.
        """
        self._bytes += piece
        messages: list[Message] = []
        while True:
            if self._length is None and not self._read_header():
                return messages
            assert self._length is not None
            if len(self._bytes) < self._length:
                return messages
            content = bytes(self._bytes[: self._length])
            del self._bytes[: self._length]
            self._length = None
            message = _message_of(content)
            if message is not None:
                self._in_a_row = 0
                messages.append(message)
                continue
            self.garbage += 1
            self._in_a_row += 1
            if self._in_a_row > _GARBAGE_MOST:
                raise Gone(f"it sent more than {_GARBAGE_MOST} messages in a row that are no JSON objects")

    def _read_header(self) -> bool:
        end = self._bytes.find(b"\r\n\r\n", 0, _HEADER_MOST + 4)
        if end < 0:
            if len(self._bytes) > _HEADER_MOST:
                raise Gone("it wrote what is no message of the protocol to its standard output")
            return False
        found = _LENGTH.search(bytes(self._bytes[:end]))
        if found is None:
            raise Gone("it wrote what is no message of the protocol to its standard output")
        length = int(found[1])
        if length > MESSAGE_MOST:
            raise Gone(f"it announced a message of more than {MESSAGE_MOST:,} bytes")
        del self._bytes[: end + 4]
        self._length = length
        return True


def _message_of(content: bytes) -> Message | None:
    try:
        message = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None
