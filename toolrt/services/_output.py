"""What a command writes: streamed as it comes, and kept as far as it fits, its beginning and its end.

Rules.  Bytes become text by UTF-8, a character at a time, and what is none becomes U+FFFD: nothing raises, and no chunk
ends within a character.  The output names the number of bytes that did not fit.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any

#: Bytes of one command that are streamed; what comes after is kept as the rest is, and told at its end.
_STREAMED_MOST = 1024 * 1024


class Captured:
    """Takes what a command writes.

    Args:
        limit: how many bytes are kept: half of them from the beginning, the others up to the end.
        tell: is handed each chunk: ``{"offset": bytes before it, "output": text}``; and, as one more, that the rest is
            not streamed.
        note: also gets each chunk, as `OutputChunk`'s values; None: no callback.
    """

    def __init__(
        self,
        limit: int,
        tell: Callable[[dict[str, Any]], None],
        note: Callable[[int, str], None] | None = None,
    ) -> None:
        self._head = bytearray()
        self._head_most = limit - limit // 2
        self._tail = bytearray()
        self._tail_most = limit // 2
        self._tell = tell
        self._note = note
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._streamed = 0
        #: How many bytes there were altogether.
        self.size = 0

    def take(self, chunk: bytes) -> None:
        """The next bytes of the output."""
        self.size += len(chunk)
        room = self._head_most - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        # Now and then is enough, and cheaper than each time.
        if len(self._tail) > 2 * self._tail_most + 4096:
            del self._tail[: len(self._tail) - self._tail_most]
        if self.size - len(chunk) < _STREAMED_MOST:
            self._stream(chunk, False)
        elif self._streamed >= 0:
            self._stream(b"", True)
            self._tell({"offset": self._streamed, "output": "(what follows is not streamed)"})
            self._streamed = -1

    def end(self) -> str:
        """There is no more; the text of it, with what was left out between its beginning and its end."""
        if self._streamed >= 0:
            self._stream(b"", True)
        if self.size <= self._head_most + self._tail_most:
            return bytes(self._head + self._tail).decode("utf-8", "replace")
        head, tail = (
            _whole_end(bytes(self._head)),
            _whole_beginning(bytes(self._tail[-self._tail_most or len(self._tail) :])),
        )
        left_out = self.size - len(head) - len(tail)
        between = f"\n[... {left_out} bytes left out ...]\n"
        return f"{head.decode('utf-8', 'replace')}{between}{tail.decode('utf-8', 'replace')}"

    def _stream(self, chunk: bytes, final: bool) -> None:
        pending = len(self._decoder.getstate()[0])
        text = self._decoder.decode(chunk, final)
        if text:
            self._tell({"offset": self._streamed, "output": text})
            if self._note is not None:
                self._note(self._streamed, text)
        self._streamed += pending + len(chunk) - len(self._decoder.getstate()[0])


def _whole_end(text: bytes) -> bytes:
    """Without the beginning of a character at its end."""
    for back in range(1, min(4, len(text) + 1)):
        byte = text[-back]
        if byte >= 0xC0:
            # The first byte of a character says how many there are.
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return text[:-back] if needed > back else text
        if byte < 0x80:
            break
    return text


def _whole_beginning(text: bytes) -> bytes:
    """Without the end of a character at its beginning."""
    for skipped in range(4):
        if skipped == len(text) or text[skipped] & 0xC0 != 0x80:
            return text[skipped:]
    return text
