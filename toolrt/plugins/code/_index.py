"""Keeping what is known of a workspace's tree up to date.

Rules.
    1. A question is answered from the files as they are when its call's tickets are first in line: before each answer
       the tree is looked at, and what has changed since it was read is read again.  So an answer is the same whether a
       build in the background has begun, is half done or is finished, and whatever happened before.
    2. A file is what was read at one moment.  One that changes while it is parsed is looked at again by the next
       answer, because its stamp is another one; one that was changed so lately that another change may show the same
       stamp is read again.
    3. One refresh at a time; a question that comes meanwhile waits for it.  A refresh that is cancelled keeps what it
       has done.

Theory.  A call that asks claims READ on all of the workspace, so no call that changes files runs meanwhile, those of
a lower index have ended and those of a higher one wait.  To look at a tree costs a fraction of what reading it does;
notices of changes would miss those of commands and of other programs.

Limits.  What ``.gitignore`` leaves out is not known, nor are files above `TEXT_MOST` bytes, Python above `PYTHON_MOST`,
files that are no text and trees beyond `toolrt.workspace.VISITED_MOST` names; an answer says how many were too large or
beyond that.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs
import trio

from toolrt import probe
from toolrt._plain import counted
from toolrt.errors import DefinitionRefused
from toolrt.plugins.code._facts import Facts
from toolrt.plugins.code._languages import LANGUAGES, language_of
from toolrt.plugins.code._parsing import PYTHON_MOST
from toolrt.plugins.code._pieces import pieces_of
from toolrt.plugins.code._reading import facts_of, in_utf8
from toolrt.plugins.code._skeleton import grammars_of_thread
from toolrt.plugins.code._store import FactStore, FileRow, Stored
from toolrt.workspace import (
    Disk,
    Kind,
    Snapshot,
    Stat,
    Walk,
    Workspace,
    at_once,
    ignored_above,
    real_disks,
    state_directory,
)

T = TypeVar("T")

#: The most bytes of a file that is known, but for one in Python, which may have `PYTHON_MOST`.
TEXT_MOST = 1024 * 1024

#: Seconds until a store that another process has is asked again, and how long that goes on.
_PAUSE = 0.02
_PATIENCE = 10.0

#: How many files, and how many bytes, are read before what was read is kept.
_FILES_AT_ONCE = 64
_BYTES_AT_ONCE = 4 * 1024 * 1024

#: How many files' facts are kept between executions of a simulation.
_FACTS_KEPT = 1024

#: Files that are never text.
_NO_TEXT = frozenset(
    (
        ".a", ".bin", ".bmp", ".bz2", ".class", ".db", ".dll", ".dylib", ".eot", ".exe", ".gif", ".gz", ".ico",
        ".jar", ".jpeg", ".jpg", ".lib", ".mo", ".mp3", ".mp4", ".o", ".obj", ".otf", ".parquet", ".pdf", ".pickle",
        ".pkl", ".png", ".pyc", ".pyd", ".pyo", ".so", ".sqlite", ".tar", ".tgz", ".ttf", ".wasm", ".webp", ".whl",
        ".woff", ".woff2", ".xz", ".zip", ".zst",
    )
)  # fmt: skip


@attrs.frozen
class Building:
    """How far a build is."""

    #: How many files have been read, of how many that have to be.
    done: int
    of: int

    def __str__(self) -> str:
        return f"code: {self.done} of {self.of} files read"


class FactIndex:
    """What is known of the files of one workspace.

    Args:
        workspace: whose files.
        state_dir: where it is kept, as for `Workspace`.
    """

    def __init__(self, workspace: Workspace, state_dir: str | os.PathLike[str] | None = None) -> None:
        if not isinstance(workspace, Workspace):
            raise DefinitionRefused("CodeIndex(workspace)", "a toolrt.Workspace", workspace)
        self.workspace = workspace
        self._state_dir = state_dir
        self._store: FactStore | None = None
        self._lock = trio.Lock()
        #: All files that are known, by path; replaced as a whole.
        self.files: dict[str, FileRow] = {}
        #: How often it was looked whether they are so.
        self.age = 0
        #: What could not be known, in words.
        self.notes: tuple[str, ...] = ()
        #: Why it is in memory on a real disk; None: it is not.
        self.problem: str | None = None

    @property
    def store(self) -> FactStore:
        """Where it is kept; made when it is first needed.  May block."""
        if self._store is None:
            self._store = self._opened()
        return self._store

    def _opened(self) -> FactStore:
        disk = self.workspace.disk
        if not real_disks(disk):
            return FactStore(None)
        directory = state_directory(disk, self._state_dir)
        if directory is None:
            self.problem = "the user's state directory is inside the workspace; name another one"
            return FactStore(None)
        try:
            return FactStore(os.path.join(directory, "code.db"))
        except (OSError, sqlite3.Error) as error:
            self.problem = f"the state directory cannot be written ({type(error).__name__})"
            return FactStore(None)

    def close(self) -> None:
        """Let go of what is kept; the caller asks nothing afterwards."""
        if self._store is not None:
            self._store.close()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do `work` in a worker thread, again where another process has the store; in place in a simulation.

        Checkpoint: always, but for a simulation.
        """
        if probe.threads_inline:
            return work()
        until = trio.current_time() + _PATIENCE
        while True:
            try:
                return await trio.to_thread.run_sync(work, abandon_on_cancel=False)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or trio.current_time() >= until:
                    raise
            await trio.sleep(_PAUSE)  # where a deadline or a cancel ends the wait

    async def refresh(self, told: Callable[[Building], None] | None = None) -> int:
        """What is known is what the files are; gives how many files were read.

        Checkpoint: always.
        """
        async with self._lock:
            if probe.sink is not None:
                # What is known is a function of the files, whose accesses the disk reports: refreshing commutes.
                probe.sink.access(("code",), False)
            found = await at_once(self.workspace.disk, self._walked)
            known = await self.in_thread(self._known)
            wanted: list[tuple[str, Stat]] = []
            for path, stat in found.items():
                row = known.get(path)
                if row is None or not row.settled or row.stamp != _stamp(stat):
                    wanted.append((path, stat))
            gone = [path for path in known if path not in found]
            read = 0
            if told is not None and wanted:
                told(Building(0, len(wanted)))
            if gone:
                await self.in_thread(lambda: self.store.keep((), gone))
            start = 0
            while start < len(wanted):
                batch, start = await self._read(wanted, start)
                read += await self.in_thread(lambda batch=batch: self._keep(batch, known))  # type: ignore[misc]
                if told is not None:
                    told(Building(start, len(wanted)))
            if wanted or gone:
                known = await self.in_thread(lambda: self.store.files())
            # Also where nothing was to be read: another process may have.
            self.files = known
            self.age += 1
            return read

    def _known(self) -> dict[str, FileRow]:
        """All rows there are."""
        changed = self.store.changed()
        if changed or not self.age:
            return self.store.files()
        return self.files

    async def _walked(self, disk: Disk) -> dict[str, Stat]:
        """The files there are, by path."""
        walk = Walk(disk, (), await ignored_above(disk, ()), looks=True)
        found: dict[str, Stat] = {}
        large = unnamed = 0
        try:
            for names in await walk.names(files_alone=True):
                if os.path.splitext(names[-1])[1].lower() in _NO_TEXT:
                    continue
                stat = walk.stats[names]
                if stat.size > (PYTHON_MOST if language_of(names[-1]) is LANGUAGES["python"] else TEXT_MOST):
                    large += 1
                    continue
                path = "/".join(names)
                if path.isprintable() or path.encode(errors="ignore").decode() == path:
                    found[path] = stat
                else:
                    unnamed += 1
        except OSError:
            pass  # the root itself cannot be listed any more: then there is nothing
        notes = []
        if large:
            notes.append(f"not known: {counted(large, 'file')} above {TEXT_MOST} bytes")
        if unnamed:
            notes.append(f"not known: {counted(unnamed, 'file')} with a name that is no UTF-8")
        if walk.unreadable:
            notes.append(f"not read, because of an error: {counted(walk.unreadable, 'directory', 'directories')}")
        if walk.cut_short:
            notes.append("the tree is too large: some of it is not known")
        self.notes = tuple(notes)
        return found

    async def _read(
        self, wanted: Sequence[tuple[str, Stat]], start: int
    ) -> tuple[list[tuple[str, Snapshot, bool]], int]:
        """Some of the files from `start` on: path, what was read, and whether it is settled."""
        disk = self.workspace.disk
        batch: list[tuple[str, Snapshot, bool]] = []
        size = 0
        while start < len(wanted) and len(batch) < _FILES_AT_ONCE and size < _BYTES_AT_ONCE:
            path, _ = wanted[start]
            start += 1
            now = disk.now_ns()
            try:
                snapshot = await disk.read(tuple(path.split("/")), PYTHON_MOST)
            except OSError as error:
                # Gone, swapped or not to be read: it has no content, and is asked for again.
                snapshot = Snapshot(b"", attrs.evolve(_NOTHING, inode=error.errno or 0))
                batch.append((path, snapshot, False))
                continue
            size += len(snapshot.content)
            batch.append((path, snapshot, now - snapshot.stat.changed_ns > disk.time_step_ns))
        return batch, start

    def _keep(self, batch: Sequence[tuple[str, Snapshot, bool]], known: dict[str, FileRow]) -> int:
        """Parse and keep what was read; gives how many files had another content."""
        kept: list[Stored] = []
        touched: list[tuple[str, bool, str]] = []
        for path, snapshot, settled in batch:
            if not probe.threads_inline:
                trio.from_thread.check_cancelled()
            stamp = _stamp(snapshot.stat)
            digest = hashlib.sha256(snapshot.content).digest()[:16]
            row = known.get(path)
            if row is not None and row.digest == digest:
                touched.append((stamp, settled, path))
                continue
            kept.append(_stored(path, snapshot.content, digest, stamp, settled))
        if kept:
            self.store.keep(kept)
        if touched:
            self.store.touch(touched)
        return len(kept)


_NOTHING = Stat(Kind.FILE, 0, 0, 0, 0, 0, 0, 1)

#: By language and digest: facts that were made lately.  They are a function of both, so who made them decides nothing.
_made: OrderedDict[tuple[str, bytes], Facts] = OrderedDict()


def _stored(path: str, content: bytes, digest: bytes, stamp: str, settled: bool) -> Stored:
    if b"\0" in content[:8192]:
        return Stored(path, digest, stamp, settled, Facts("", 0, note="no text"))
    language = language_of(path)
    content = in_utf8(language, content)
    if language is None:
        facts = facts_of(grammars_of_thread(), None, content)
    elif probe.threads_inline:
        key = language.name, digest
        made = _made.get(key)
        if made is None:
            made = _made[key] = facts_of(grammars_of_thread(), language, content)
            if len(_made) > _FACTS_KEPT:
                _made.popitem(last=False)
        facts = made
    else:
        facts = facts_of(grammars_of_thread(), language, content)
    text = content.decode("utf-8", "replace")
    if "\ufffd" in text and not facts.note and text.encode() != content:
        facts = facts._replace(note="not UTF-8")
    return Stored(path, digest, stamp, settled, facts, tuple(pieces_of(facts, text)))


def _stamp(stat: Stat) -> str:
    return f"{stat.mtime_ns} {stat.ctime_ns} {stat.size} {stat.inode} {stat.device}"
