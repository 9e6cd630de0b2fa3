r"""Reads some lines of a file of any size, block by block.

Rules.  What is in memory at a time is bounded by what an answer may have, not by the file.  Lines are counted and cut
as for other files (``\n``, ``\r\n``, ``\r``).  The file is read as it is found: lines that another program appends
meanwhile may be there or not, but another file under the name is a refusal.

Theory.  In most encodings the bytes of a line end are line ends and nothing else, so line ends are looked for as if the
file were Latin-1.  UTF-16, UTF-32 and EBCDIC write them otherwise: there each character, or each half of one, has as
many bytes as any other, so a block that begins where one begins is decoded by itself.

Limits.  The file does not count as seen: what is too large to be edited needs no check of what it had.
"""

from __future__ import annotations

import codecs
import itertools
from functools import partial

import attrs

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._held import FileAccess
from toolrt.workspace.change._mutation import SIZE_LIMIT, in_thread, os_errors
from toolrt.workspace.disk._disk import Snapshot
from toolrt.workspace.names._identity import Identity
from toolrt.workspace.text._encoding import DEFAULT, decoded, encoding_of
from toolrt.workspace.text._text import LINE_END, line_ends

#: How many bytes are read at a time.
_BLOCK = 1024 * 1024

#: How many characters of a large file a read gives at most, as each may have 4 bytes.
CHARACTERS_MOST = SIZE_LIMIT // 4


@attrs.define
class LargeFile:
    """One file of more than `SIZE_LIMIT` bytes, as one call reads it."""

    _workspace: FileAccess
    _identity: Identity
    #: As `toolrt.workspace.text._encoding.named` gave it; None: what the first block says.
    _encoding: str | None
    #: How many characters the answer may have; where more were asked for, a few more are given.
    most: int
    #: The device and the number of the file that was found; None: none was read yet.
    _number: tuple[int, int] | None = attrs.field(default=None, init=False)
    #: How many bytes it has, and how many the end of a line has.
    _size: int = attrs.field(default=0, init=False)
    _unit: int = attrs.field(default=1, init=False)
    #: What it is read in to find the ends of its lines.
    _ends_as: str = attrs.field(default="latin-1", init=False)

    async def lines(self, first: int, limit: int | None) -> str:
        """`limit` lines from line `first` on, counted from 1, or so many of them that no more fit.

        Raises:
            FileProblem: there is no such line, the lines are no text, or the file cannot be read.

        Checkpoint: always.
        """
        at, line = 0, 1
        while line < first and (block := await self._block(at, _BLOCK)):
            count, end = await in_thread(partial(self._skipped, block, first - line))
            line, at = line + count, at + (end if line + count == first else len(block))
        found = b""
        # From so many bytes on a text is longer than the answer may be, whatever its characters are.
        while line == first and len(found) <= 4 * self.most + 64 and (block := await self._block(at, _BLOCK)):
            found, at = found + block, at + len(block)
            if limit is not None:
                count, end = await in_thread(partial(self._skipped, found, limit))
                if count == limit:
                    return self._text(found[:end])
        if not found and first > 1:
            count = await self.count()
            raise FileProblem(self._identity.path, f"offset of at most {count}", f"{first}", f"It has {count} lines.")
        return self._text(found, cut=at < self._size)

    async def last_lines(self, count: int) -> tuple[str, int]:
        """The last `count` lines, or so many of them that no more fit; and how many they are.

        Raises:
            FileProblem: as `lines`.

        Checkpoint: always.
        """
        await self._block(0, 4)
        at, found, starts = self._size, b"", [0]
        while at > 0 and len(found) <= 4 * self.most + 64 and len(starts) <= count:
            begin = max(0, at - _BLOCK) // self._unit * self._unit
            found = (await self._block(begin, at - begin, to_its_end=True)) + found
            at, text = begin, found.decode(self._ends_as, "replace")
            starts = [0, *(end.end() for end in LINE_END.finditer(text) if end.end() < len(text))]
        if at > 0:
            del starts[0]  # a line that begins before
        if not starts:
            raise FileProblem(
                self._identity.path, "a last line that fits into an answer", "a longer one", "Search can show parts."
            )
        starts = starts[-count:]
        return self._text(found[self._bytes_of(text[: starts[0]]) :]), len(starts)

    async def count(self) -> int:
        """How many lines it has.

        Checkpoint: always.
        """
        at, ends, block = 0, 0, b""
        while more := await self._block(at, _BLOCK):
            block = more
            ends += (await in_thread(partial(self._skipped, block, None)))[0]
            at += len(block)
        last = block[-self._unit :].decode(self._ends_as, "replace")
        return ends + (last not in "\r\n")

    async def _block(self, at: int, size: int, *, to_its_end: bool = False) -> bytes:
        """The bytes from `at` on; none at the end.  A CR at the end is left to the next, unless `to_its_end`."""
        part: Snapshot | None = None
        found = b""
        while part is None or (to_its_end and part.content and len(found) < size):
            with os_errors(self._identity.path):
                part = await self._workspace.disk.read_part(self._identity.entry, at + len(found), size - len(found))
            number = (part.stat.device, part.stat.inode)
            if self._number is None:
                self._number, self._size = number, part.stat.size
                self._encoding = self._encoding or encoding_of(part.content) or DEFAULT
                if (end := "\n".encode(self._encoding)) != b"\n":
                    self._unit, self._ends_as = len(end), self._encoding
            elif number != self._number:
                raise FileProblem(
                    self._identity.path, "the file as its beginning was", "another one by now", "Read it again.",
                    retryable=True,
                )  # fmt: skip
            found += part.content
        if not to_its_end and at + len(found) < self._size:
            found = found[: len(found) // self._unit * self._unit]
            if len(found) > self._unit and found.endswith("\r".encode(self._ends_as)):
                return found[: -self._unit]
        return found

    def _text(self, content: bytes, *, cut: bool = False) -> str:
        """The text of some lines; `cut` where the last one may have only its beginning."""
        encoding = self._encoding or DEFAULT
        if cut:
            # Half a character at the end is none of it.
            decoder = codecs.getincrementaldecoder(encoding)("ignore")
            decoder.decode(content)
            content = content[: len(content) - len(decoder.getstate()[0])]
        return decoded(self._identity.path, content, encoding)

    def _skipped(self, block: bytes, most: int | None) -> tuple[int, int]:
        """How many lines end in the block, up to `most`, and where the last of these ends."""
        text = block.decode(self._ends_as, "replace")
        ends = line_ends(text)
        if most is None or ends < most:
            return ends, len(block)
        last = next(itertools.islice(LINE_END.finditer(text), most - 1, None))
        return most, self._bytes_of(text[: last.end()])

    def _bytes_of(self, text: str) -> int:
        """How many bytes there were of what is `text` where the ends of lines are looked for."""
        return len(text.encode(self._ends_as, "replace"))
