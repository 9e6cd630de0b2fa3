"""Searches one file: small ones as a whole, large ones block by block; and counts what it could not read.

Rules.  A file is searched in the encoding that its byte order mark tells, else in UTF-8; one that is no text in that
encoding is searched in the encoding that the caller names, if one is named.  A small file that is no text is not
searched.  A large one is searched up to the first byte that is no text.  The answer names the files not searched.

Theory.  Blocks are searched by whole lines: what stands behind a block's last line end waits for the next block.  So a
search of any file needs the memory of some blocks and of one line.

Limits.  The encodings that keep a state between characters (ISO-2022-JP, UTF-7) are valid UTF-8, so a file in one of
them is searched as it stands.  A large file that is written while it is searched is searched as each block is found.
"""

from __future__ import annotations

import codecs
from collections.abc import Awaitable, Callable
from functools import partial

import attrs

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._mutation import SIZE_LIMIT, in_thread, problem_of
from toolrt.workspace.disk._disk import Disk, Entry, Kind, Snapshot
from toolrt.workspace.disk._disk_errors import TooLarge
from toolrt.workspace.finding._search import LineFound, SearchPattern, matching_lines, with_context
from toolrt.workspace.text._encoding import DEFAULT, decoded, encoding_of
from toolrt.workspace.text._text import line_count

#: Bytes of a large file that are searched at once: some milliseconds.
_BLOCK = 1024 * 1024

#: From how many bytes on a file is searched in a worker thread: what takes longer than the way there.
_THREAD_FROM = 16 * 1024

#: How many of the files that were not searched are named, for each reason.
_NAMED = 5

_BINARY = "binary data"
_NOT_TEXT = "not UTF-8 (name the encoding with encoding=)"
_UNREADABLE = "cannot be read"
_TOO_LONG = f"a line of more than {SIZE_LIMIT} characters"
_SEVERAL_LINES = f"more than {SIZE_LIMIT} bytes, where a search over several lines reads no further"
_CHANGED = "another file took the name meanwhile"


@attrs.define
class FileSearch:
    """Looks for one thing in file after file, and remembers those that it did not read, or not to their end."""

    #: What is looked for.
    _wanted: SearchPattern
    #: How many lines before and behind each are shown, in a file that is not large.
    _around: int
    #: What a file is read in that is no text otherwise, as `toolrt.workspace.text._encoding.named` gave it; None: no
    #: other.
    _encoding: str | None
    #: How an answer shows the file at an entry.
    _shown: Callable[[Entry], str]
    #: The files that were not searched: the first names of each reason, and how many there are.
    _unsearched: dict[str, tuple[list[str], int]] = attrs.field(factory=dict, init=False)
    #: The files that were read and are no text, and the reason of each.
    no_text: dict[Entry, str] = attrs.field(factory=dict, init=False)

    def leave(self, reason: str, entry: Entry, start: int = 0) -> None:
        """The file at `entry` is not searched from byte `start` on, for that reason."""
        names, count = self._unsearched.get(reason, ([], 0))
        if count < _NAMED:
            names.append(self._shown(entry) + (f" (from byte {start} on)" if start else ""))
        self._unsearched[reason] = names, count + 1

    def notes(self) -> list[str]:
        """What the answer says of the files not searched: for each reason their number, and the first names."""
        return [
            f"{_files(count)} not searched, {reason}: {', '.join(names)}"
            + (f" and {count - len(names)} more" if count > len(names) else "")
            for reason, (names, count) in self._unsearched.items()
        ]

    async def lines(
        self, disk: Disk, entry: Entry, path: str, large: bool, read: Callable[[], Awaitable[Snapshot]], most: int
    ) -> list[LineFound] | FileProblem:
        """The first `most` lines of a file that have what is wanted; or why a small file cannot be searched at all.

        Of a file that is not large the lines around them are among them.

        Args:
            disk: where the file at `entry` is.
            path: the file, for what is raised or given of a problem.
            large: whether it is known to have more than `SIZE_LIMIT` bytes.
            read: reads a file that is not large.

        Raises:
            FileProblem: the search makes too much work.

        Checkpoint: always, but in a thread of `toolrt.workspace.names._at_once`.
        """
        try:
            try:
                if not large:
                    found = await read()
            except TooLarge:
                large = True
            if large:
                return await self._lines_of_large(disk, entry, most)
        except FileProblem as problem:
            return await self._unread(disk, entry, problem)
        except OSError as error:
            return await self._unread(disk, entry, problem_of(path, error))

        def searched() -> list[LineFound] | FileProblem:
            text = _text_of(path, found.content, self._encoding)
            if isinstance(text, FileProblem):
                return text
            return with_context(text, matching_lines(text, self._wanted, most), self._around)

        result = await in_thread(searched, blocks=len(found.content) >= _THREAD_FROM)
        if isinstance(result, FileProblem):
            binary = encoding_of(found.content) is None and b"\0" in found.content
            self.no_text[entry] = _BINARY if binary else _NOT_TEXT
            self.leave(self.no_text[entry], entry)
        return result

    async def _unread(self, disk: Disk, entry: Entry, problem: FileProblem) -> FileProblem:
        """A file could not be read; what vanished meanwhile counts as never having been there."""
        if problem.path == "pattern":
            raise problem
        try:
            if (await disk.look(entry)).kind is Kind.FILE:
                self.leave(_UNREADABLE, entry)
        except OSError:
            pass
        return problem

    async def _lines_of_large(self, disk: Disk, entry: Entry, most: int) -> list[LineFound]:
        if self._wanted.following:
            await in_thread(lambda: self.leave(_SEVERAL_LINES, entry))
            return []
        blocks = _Blocks(self._wanted, most, None)
        await _feed(disk, entry, blocks)
        if blocks.stopped is not None and self._encoding is not None and blocks.stopped != _CHANGED:
            again = _Blocks(self._wanted, most, self._encoding)
            await _feed(disk, entry, again)
            if again.stopped is None or again.at > blocks.at:
                blocks = again
        if blocks.stopped is not None:
            self.leave(blocks.stopped, entry, blocks.at)
        return blocks.found


def _files(count: int) -> str:
    return "1 file was" if count == 1 else f"{count} files were"


def _text_of(path: str, content: bytes, encoding: str | None) -> str | FileProblem:
    try:
        return decoded(path, content)
    except FileProblem as problem:
        if encoding is None:
            return problem
    try:
        return decoded(path, content, encoding)
    except FileProblem as problem:
        return problem


async def _feed(disk: Disk, entry: Entry, blocks: _Blocks) -> None:
    """Give it the file, block by block, until it has enough."""
    at, number, size = 0, None, 0
    while True:
        part = await disk.read_part(entry, at, _BLOCK)
        if number is None:
            number, size = (part.stat.device, part.stat.inode), part.stat.size
        elif number != (part.stat.device, part.stat.inode):
            blocks.stop(_CHANGED, at)
            return
        at += len(part.content)
        last = at >= size or not part.content
        await in_thread(partial(blocks.take, part.content, last))
        if last or blocks.stopped is not None or len(blocks.found) >= blocks.most:
            return


@attrs.define
class _Blocks:
    """A search that is given a file block by block."""

    _wanted: SearchPattern
    #: How many lines are wanted at most.
    most: int
    #: The encoding; None: what the first block says.
    _encoding: str | None
    #: What was found so far.
    found: list[LineFound] = attrs.field(factory=list, init=False)
    #: Why the rest of the file is not searched, and from which byte on; None: it is.
    stopped: str | None = attrs.field(default=None, init=False)
    at: int = attrs.field(default=0, init=False)
    _decoder: codecs.IncrementalDecoder | None = attrs.field(default=None, init=False)
    #: How many bytes were given, and how many lines were searched.
    _bytes: int = attrs.field(default=0, init=False)
    _lines: int = attrs.field(default=0, init=False)
    #: What stands behind the last line end.
    _pending: str = attrs.field(default="", init=False)

    def stop(self, reason: str, at: int) -> None:
        """The file is not searched from byte `at` on."""
        self.stopped, self.at = reason, at

    def take(self, block: bytes, last: bool) -> None:
        """Search the next block; may run in a worker thread."""
        text = self._pending + self._text(block, last)
        whole = len(text) if last and self.stopped is None else _last_line_end(text)
        lines, self._pending = text[:whole], text[whole:]
        found = matching_lines(lines, self._wanted, self.most - len(self.found))
        self.found += [LineFound(self._lines + one.number, one.text) for one in found]
        self._lines += line_count(lines)
        if len(self._pending) > SIZE_LIMIT and self.stopped is None:
            self.stop(_TOO_LONG, self._bytes)

    def _text(self, block: bytes, last: bool) -> str:
        """The text of the block, up to what is none."""
        if self._decoder is None:
            self._encoding = self._encoding or encoding_of(block) or DEFAULT
            self._decoder = codecs.getincrementaldecoder(self._encoding)("strict")
        waiting = len(self._decoder.getstate()[0])
        begins = self._bytes - waiting
        self._bytes += len(block)
        try:
            text = self._decoder.decode(block, last)
        except UnicodeDecodeError as error:
            text = error.object[: error.start].decode(error.encoding, "ignore")
            self.stop(_NOT_TEXT, begins + error.start)
        nul = text.find("\0")
        if nul >= 0:
            text = text[:nul]
            self.stop(_BINARY, begins + len(text.encode(self._encoding or DEFAULT, "surrogatepass")))
        return text


def _last_line_end(text: str) -> int:
    """Where the last line that has its end ends; a CR at the end of the text may be half of one."""
    end = len(text) - text.endswith("\r")
    return max(text.rfind("\n", 0, end), text.rfind("\r", 0, end)) + 1
