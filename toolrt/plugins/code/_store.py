"""What is known of a tree, in SQLite: each file with its facts, and an index of its text.

Rules.  All of it is made from the files and may be lost; a store of another format is made anew.  What is kept of a
file is a function of its content and its path.  Several processes may share one: write-ahead logging, and each file's
change is one transaction's.  A connection is used by one thread at a time.

Theory.  Which symbol a call means is not kept, only what is written there (`toolrt.plugins.code._facts`): so a change
of one file changes the rows of that file alone, and what is asked afterwards is answered as after a build from nothing.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence

import attrs

from toolrt.errors import InputRefused
from toolrt.plugins.code._facts import Facts, last_names, to_text
from toolrt.plugins.code._pieces import Piece

#: Changes with the tables and with what is put into them.
FORMAT = 5

#: How long a transaction waits for those of other processes, in milliseconds; a caller that can wait asks again.
_BUSY_MS = 50

_TABLES = """
CREATE TABLE file (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, digest BLOB, stamp TEXT NOT NULL, settled INTEGER NOT NULL,
    language TEXT NOT NULL, lines INTEGER NOT NULL, note TEXT NOT NULL
);
CREATE TABLE facts (file INTEGER PRIMARY KEY, said TEXT NOT NULL);
CREATE TABLE defined (name TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY (name, file)) WITHOUT ROWID;
CREATE INDEX defined_by_file ON defined (file);
CREATE TABLE mentioned (name TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY (name, file)) WITHOUT ROWID;
CREATE INDEX mentioned_by_file ON mentioned (file);
CREATE TABLE piece (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, line INTEGER NOT NULL, end_line INTEGER NOT NULL,
    symbol INTEGER NOT NULL
);
CREATE INDEX piece_by_file ON piece (file);
CREATE TABLE vector (piece INTEGER PRIMARY KEY, numbers BLOB NOT NULL);
CREATE VIRTUAL TABLE text USING fts5 (names, path, body, parts, tokenize = "unicode61 remove_diacritics 0");
"""


@attrs.frozen
class FileRow:
    """What is known of a file beside its facts."""

    id: int
    path: str
    #: The digest of its content; None: it was not read.
    digest: bytes | None
    #: What a look showed when it was read.
    stamp: str
    #: Whether it had not been changed for so long that another change would show.
    settled: bool
    language: str
    lines: int
    #: Why it is not known as well as it could be; "" where it is.
    note: str


@attrs.frozen
class Stored:
    """What is to be kept of one file."""

    path: str
    digest: bytes | None
    stamp: str
    settled: bool
    facts: Facts
    pieces: Sequence[Piece] = ()


class FactStore:
    """The rows of one tree.

    Args:
        path: the database's file, made when it is missing; None: it is in memory, and gone with the store.

    Raises:
        InputRefused: SQLite was built without FTS5.
        sqlite3.Error, OSError: it cannot be made there.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        #: Connections that no thread uses.
        self._idle: list[sqlite3.Connection] = []
        self._memory = threading.Lock()
        # No code closes a workspace's services; since Python 3.13 a connection complains when it is dropped open.
        self._made: list[sqlite3.Connection] = []
        self._finalizer = weakref.finalize(self, _close, self._made)
        if path is not None:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        try:
            connection = self._connect()
        except sqlite3.DatabaseError as error:
            if path is None or isinstance(error, sqlite3.OperationalError):
                raise
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path + suffix)
            connection = self._connect()
        self._idle.append(connection)
        #: Only ever asked whether something was changed through another one; None where there is no other.
        self._watch = None if path is None else self._connect()
        self._version = -1

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path or ":memory:", isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            if self._path is not None:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = OFF")
            if connection.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
                _make_tables(connection)
        except BaseException:
            connection.close()
            raise
        self._made.append(connection)
        return connection

    @contextlib.contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection that no other thread uses inside the block.  Blocks, where the store is in memory."""
        if self._path is None:
            with self._memory:
                yield self._idle[0]
            return
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._connect()
        try:
            yield connection
        finally:
            with self._lock:
                self._idle.append(connection)

    def close(self) -> None:
        """Close the connections; the caller does not use it afterwards."""
        self._finalizer()

    # What is kept

    def changed(self) -> bool:
        """Whether anything was kept since the last call of this, by any thread; not for two threads at once."""
        if self._watch is None:
            return True
        version: int = self._watch.execute("PRAGMA data_version").fetchone()[0]
        changed = version != self._version
        self._version = version
        return changed

    def files(self) -> dict[str, FileRow]:
        """All files, by path."""
        with self.connection() as connection:
            rows = connection.execute(
                "SELECT id, path, digest, stamp, settled, language, lines, note FROM file ORDER BY path"
            ).fetchall()
        return {
            path: FileRow(id, path, digest, stamp, bool(settled), language, lines, note)
            for id, path, digest, stamp, settled, language, lines, note in rows
        }

    def keep(self, stored: Sequence[Stored], gone: Sequence[str] = ()) -> None:
        """These files are so, and those are not there; all of it or nothing."""
        with self.connection() as connection, _transaction(connection):
            for path in gone:
                _drop(connection, path)
            for one in stored:
                _drop(connection, one.path)
                _add(connection, one)

    def touch(self, rows: Sequence[tuple[str, bool, str]]) -> None:
        """These files have other stamps and the same content: stamp, whether it is settled, path."""
        with self.connection() as connection, _transaction(connection):
            connection.executemany("UPDATE file SET stamp = ?, settled = ? WHERE path = ?", rows)


def _make_tables(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.asked USING fts5 (body)")
        connection.execute("DROP TABLE temp.asked")
    except sqlite3.OperationalError as error:
        if "fts5" not in str(error):
            raise
        raise InputRefused(
            f"SQLite {sqlite3.sqlite_version}",
            "expected one with FTS5, got one that was built without it",
            "Use a Python whose sqlite3 has it (python.org's, uv's and those of the common distributions do).",
        ) from None
    with _transaction(connection):
        if connection.execute("PRAGMA user_version").fetchone()[0] == FORMAT:
            return
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
        )
        names = [name for (name,) in tables]
        for name in names:
            connection.execute(f"DROP TABLE {name}")
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if not name.startswith("sqlite_"):
                connection.execute(f"DROP TABLE {name}")
        for statement in _TABLES.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def _drop(connection: sqlite3.Connection, path: str) -> None:
    found = connection.execute("SELECT id FROM file WHERE path = ?", (path,)).fetchone()
    if found is None:
        return
    of_file = "SELECT id FROM piece WHERE file = ?"
    connection.execute(f"DELETE FROM text WHERE rowid IN ({of_file})", found)
    connection.execute(f"DELETE FROM vector WHERE piece IN ({of_file})", found)
    for table in ("piece", "defined", "mentioned", "facts"):
        connection.execute(f"DELETE FROM {table} WHERE file = ?", found)
    connection.execute("DELETE FROM file WHERE id = ?", found)


def _add(connection: sqlite3.Connection, one: Stored) -> None:
    facts = one.facts
    values = (one.path, one.digest, one.stamp, one.settled, facts.language, facts.lines, facts.note)
    file = connection.execute(
        "INSERT INTO file (path, digest, stamp, settled, language, lines, note) VALUES (?, ?, ?, ?, ?, ?, ?)", values
    ).lastrowid
    if facts.language:
        connection.execute("INSERT INTO facts (file, said) VALUES (?, ?)", (file, to_text(facts)))
        connection.executemany(
            "INSERT INTO defined (name, file) VALUES (?, ?)", [(name, file) for name in defined_in(facts)]
        )
        connection.executemany(
            "INSERT INTO mentioned (name, file) VALUES (?, ?)", [(name, file) for name in mentioned_in(facts)]
        )
    for piece in one.pieces:
        id = connection.execute(
            "INSERT INTO piece (file, line, end_line, symbol) VALUES (?, ?, ?, ?)",
            (file, piece.line, piece.end_line, piece.symbol),
        ).lastrowid
        connection.execute(
            "INSERT INTO text (rowid, names, path, body, parts) VALUES (?, ?, ?, ?, ?)",
            (id, piece.names, one.path, piece.body, piece.parts),
        )


def defined_in(facts: Facts) -> list[str]:
    """The names that a file defines."""
    return list(dict.fromkeys(symbol.name for symbol in facts.symbols))


def mentioned_in(facts: Facts) -> list[str]:
    """The names by which a file may call, import or inherit from something."""
    names = dict.fromkeys(call.name for call in facts.calls if call.name)
    for written in (*(one.value for one in facts.bindings), *(one.callee for one in facts.calls if not one.name)):
        names.update(dict.fromkeys(sorted(last_names(written))))
    for one in facts.imports:
        names[one.name or _last(one.module)] = None
        names[_last(one.module)] = None
    for symbol in facts.symbols:
        names.update(dict.fromkeys(_last(base) for base in symbol.bases))
    names.pop("", None)
    return list(names)


def _last(name: str) -> str:
    """The last name of a module, a path or an expression."""
    plain = name.rstrip("/").rpartition("/")[2].replace("::", ".")
    stem, _, ending = plain.rpartition(".")
    return stem.rpartition(".")[2] if stem and ending in _ENDINGS else ending.rstrip("()[]*")


_ENDINGS = frozenset(("h", "hpp", "hh", "hxx", "js", "mjs", "cjs", "ts", "tsx", "jsx", "rb", "c"))


def _close(connections: list[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
