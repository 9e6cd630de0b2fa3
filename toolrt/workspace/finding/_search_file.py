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
import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import attrs

from toolrt import probe
from toolrt._plain import counted
from toolrt.events import observer
from toolrt.workspace._problem import FileProblem, from_os_error
from toolrt.workspace.change._held import FileAccess
from toolrt.workspace.change._mutation import SIZE_LIMIT, in_thread
from toolrt.workspace.change._revision import CallContext
from toolrt.workspace.disk._disk import Disk, Entry, Kind, Snapshot, Stat
from toolrt.workspace.disk._disk_errors import TooLarge
from toolrt.workspace.finding._ripgrep import KnownFiles
from toolrt.workspace.finding._search import LineFound, SearchPattern, matching_lines, with_context
from toolrt.workspace.names._at_once import at_once
from toolrt.workspace.names._identity import Identity, KeysBelow
from toolrt.workspace.text._encoding import DEFAULT, decoded, encoding_of
from toolrt.workspace.text._text import line_count

#: Bytes of a large file that are searched at once: some milliseconds.
_BLOCK = 1024 * 1024

#: From how many bytes on a file is searched in a worker thread: what takes longer than the way there.
_THREAD_FROM = 16 * 1024

#: How many characters of a line are shown.
_CHARACTERS_SHOWN = 300

#: How many of the files that were not searched are named, for each reason.
_NAMED = 5

_BINARY = "binary data"
_NOT_TEXT = "not UTF-8 (name the encoding with encoding=)"
_UNREADABLE = "cannot be read"
_TOO_LONG = f"a line of more than {SIZE_LIMIT} characters"
_SEVERAL_LINES = f"more than {SIZE_LIMIT} bytes, where a search over several lines reads no further"
_CHANGED = "another file took the name meanwhile"


@attrs.define(eq=False)
class FileSearch:
    """One search, file after file: what it has found so far, and which files it did not read, or not to their end."""

    _workspace: FileAccess
    _ctx: CallContext
    #: What is searched, a directory or a file.
    _base: Identity
    #: What is looked for.
    _wanted: SearchPattern
    #: What a file is read in that is no text otherwise, as `toolrt.workspace.text._encoding.named` gave it; None: no
    #: other.
    _encoding: str | None
    #: Shows the path of what is at some names below the base.
    _path: Callable[[Entry], str]
    #: How many matches are shown.
    _limit: int
    #: How many lines before and behind each are shown, in a file that is not large.
    _around: int
    #: What is shown of them: ``lines``, ``files`` or ``counts``.
    _show: str
    _lines: list[str] = attrs.field(factory=list, init=False)
    #: How many matches those show.
    _count: int = attrs.field(default=0, init=False)
    #: The files that were not searched: the first names of each reason, and how many there are.
    _unsearched: dict[str, tuple[list[str], int]] = attrs.field(factory=dict, init=False)
    #: The files that were read and are no text, and the reason of each.
    _no_text: dict[Entry, str] = attrs.field(factory=dict, init=False)
    _keys: KeysBelow = attrs.field(init=False)

    @_keys.default
    def _keys_below(self) -> KeysBelow:
        return KeysBelow(self._workspace.disk, self._base)

    @property
    def wants_more(self) -> bool:
        """Whether more matches are wanted: one beyond the limit tells that there are more."""
        return self._count <= self._limit

    def _leave(self, reason: str, names: Entry, start: int = 0) -> None:
        """The file at these names is not searched from byte `start` on, for that reason."""
        shown, count = self._unsearched.get(reason, ([], 0))
        if count < _NAMED:
            shown.append(self._path(names) + (f" (from byte {start} on)" if start else ""))
        self._unsearched[reason] = shown, count + 1

    async def add_all(
        self, files: Sequence[Entry], stats: Mapping[Entry, Stat], known: KnownFiles | None = None
    ) -> None:
        """Add the lines of these files, in their order, until there are enough.

        Args:
            stats: what was seen of them; of all or of none.
            known: what is known of them, and is told what is no text; None: nothing.

        Raises:
            FileProblem: the search makes too much work.

        Checkpoint: always.
        """

        async def searched(disk: Disk) -> None:
            for names in files:
                if not self.wants_more:
                    return
                if known is not None and names in known.reasons:
                    self._leave(known.reasons[names], names)
                    continue
                stat = stats.get(names)
                if stat is None and disk is self._workspace.disk:
                    stat = await disk.look((*self._base.entry, *names))
                await self.add(disk, names, stat)

        if probe.sink is None and not observer.records:
            await at_once(self._workspace.disk, searched)
        else:
            await searched(self._workspace.disk)  # it reports each read, from Trio's thread
        if known is not None:
            for names, reason in self._no_text.items():
                known.remember(names, reason)

    async def add(self, disk: Disk, names: Entry, stat: Stat | None) -> FileProblem | None:
        """Add the lines of the file at these names; gives why it cannot be searched at all, if it cannot.

        Args:
            disk: the workspace's, or a view of it.
            stat: what was seen of the file; None: nothing, for a view.

        Raises:
            FileProblem: the search makes too much work.

        Checkpoint: always, but in a thread of `toolrt.workspace.names._at_once`.
        """
        entry = (*self._base.entry, *names)
        most = {"lines": self._limit + 1 - self._count, "files": 1, "counts": sys.maxsize}[self._show]
        # What cannot be searched is named by the reason alone, unless it is the only file.
        path = "" if names else self._base.path
        try:
            small = None
            if stat is None or stat.size <= SIZE_LIMIT:
                with contextlib.suppress(TooLarge):
                    small = await self._read(disk, names, stat)
            if small is None:
                self._say(names, await self._lines_of_large(disk, entry, names, most))
                return None
        except FileProblem as problem:
            return await self._unread(disk, entry, names, problem)
        except OSError as error:
            return await self._unread(disk, entry, names, from_os_error(path, error))
        content = small.content

        def searched() -> list[LineFound] | FileProblem:
            text = _text_of(path, content, self._encoding)
            if isinstance(text, FileProblem):
                return text
            return with_context(text, matching_lines(text, self._wanted, most), self._around)

        found = await in_thread(searched, blocks=len(content) >= _THREAD_FROM)
        if not isinstance(found, FileProblem):
            self._say(names, found)
            return None
        self._no_text[names] = _BINARY if encoding_of(content) is None and b"\0" in content else _NOT_TEXT
        self._leave(self._no_text[names], names)
        return found

    async def _read(self, disk: Disk, names: Entry, stat: Stat | None) -> Snapshot:
        if disk is not self._workspace.disk or stat is None:
            return await disk.read((*self._base.entry, *names), SIZE_LIMIT)
        identity = self._keys.identity(names, stat) if names else self._base
        return await self._workspace.files.scan(self._ctx, identity)

    async def _unread(self, disk: Disk, entry: Entry, names: Entry, problem: FileProblem) -> FileProblem:
        """A file could not be read; what vanished meanwhile counts as never having been there."""
        if problem.path == "pattern":
            raise problem
        with contextlib.suppress(OSError):
            if (await disk.look(entry)).kind is Kind.FILE:
                self._leave(_UNREADABLE, names)
        return problem

    async def _lines_of_large(self, disk: Disk, entry: Entry, names: Entry, most: int) -> list[LineFound]:
        if self._wanted.following:
            await in_thread(lambda: self._leave(_SEVERAL_LINES, names))
            return []
        blocks = _Blocks(self._wanted, most, None)
        await _feed(disk, entry, blocks)
        if blocks.stopped is not None and self._encoding is not None and blocks.stopped != _CHANGED:
            again = _Blocks(self._wanted, most, self._encoding)
            await _feed(disk, entry, again)
            if again.stopped is None or again.at > blocks.at:
                blocks = again
        if blocks.stopped is not None:
            self._leave(blocks.stopped, names, blocks.at)
        return blocks.found

    def _say(self, names: Entry, found: list[LineFound]) -> None:
        """Add what is shown of one file."""
        if not found:
            return
        path = self._path(names)
        if self._show != "lines":
            self._count += 1
            if self.wants_more:
                self._lines.append(path if self._show == "files" else f"{path}: {len(found)}")
            return
        last, until = -1, 0
        for one in found:
            self._count += one.matches
            until = one.number + self._around if one.matches else until
            if not self.wants_more:
                return
            if self._count == self._limit and one.number > until:
                continue  # it stands near a match that is not shown
            if self._around and self._lines and one.number != last + 1:
                self._lines.append("--")
            last = one.number
            mark = ":" if one.matches else "-"
            self._lines.append(f"{path}{mark}{one.number}{mark} {_cut(one.text)}")

    def answer(self, notes: list[str]) -> str:
        """What the search answers; `notes` are of the walk."""
        unsearched = [
            f"{counted(count, 'file')} {'was' if count == 1 else 'were'} not searched, {reason}: {', '.join(names)}"
            + (f" and {count - len(names)} more" if count > len(names) else "")
            for reason, (names, count) in self._unsearched.items()
        ]
        notes = [*unsearched, *notes]
        if not self.wants_more:
            shown = "lines" if self._show == "lines" else "files"
            notes = [f"only the first {self._limit} {shown} are shown; search for something narrower", *notes]
        return "\n".join([*(self._lines or ["no line matches"]), *noted(notes)])


def noted(notes: list[str]) -> list[str]:
    """The notes, as an answer ends with them."""
    return [f"({note})" for note in notes]


def _cut(line: str) -> str:
    line = line if len(line) <= _CHARACTERS_SHOWN else f"{line[:_CHARACTERS_SHOWN]} ..."
    return line if line.isprintable() else line.translate(_OTHER_LINE_ENDS)


#: What some programs take for the end of a line, though here it is none: an answer has one line for each match.
_OTHER_LINE_ENDS = {ord(end): repr(end)[1:-1] for end in "\v\f\x1c\x1d\x1e\x85\u2028\u2029"}


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
        # A CR at the end of the text may be half of a line's end.
        end = len(text) - text.endswith("\r")
        ended = max(text.rfind("\n", 0, end), text.rfind("\r", 0, end)) + 1
        whole = len(text) if last and self.stopped is None else ended
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
