"""The index of history's segments, in SQLite: which versions there are, and where their contents are.

Rules.  Everything in it is made from the segments, up to where it has read each of them; asking it reads the rest
first.  So it need not survive a loss of power (``synchronous=OFF``), and is made anew when it cannot be read.
Several processes share it: write-ahead logging, and each transaction waits its turn.

States of a row: pending until its writer says that it happened; then it stands.  What did not happen is deleted.
Whoever asks knows what he did himself; of others also the pending rows are shown, because a writer that has nothing
more to write says nothing more, and what is pending has nearly always happened.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toolrt.workspace._disk import Entry
from toolrt.workspace._segment import Record, path_of, records_of, segments_in
from toolrt.workspace._version import Row

__all__ = ["Index"]

#: How long a transaction waits for those of other processes, in milliseconds.
_BUSY_MS = 10_000

#: Changes with the tables; an index with another number is made anew.
_FORMAT = 1

_TABLES = """
CREATE TABLE segments (number INTEGER PRIMARY KEY, upto INTEGER NOT NULL, session TEXT NOT NULL);
CREATE TABLE rows (
    id INTEGER PRIMARY KEY AUTOINCREMENT, segment INTEGER NOT NULL, session TEXT NOT NULL, serial INTEGER NOT NULL,
    stands INTEGER NOT NULL, batch TEXT NOT NULL, key TEXT NOT NULL, target_key TEXT, said TEXT NOT NULL
);
CREATE INDEX rows_by_writer ON rows (session, serial);
CREATE INDEX rows_by_key ON rows (key);
CREATE INDEX rows_by_target ON rows (target_key) WHERE target_key IS NOT NULL;
CREATE INDEX rows_by_batch ON rows (batch);
CREATE INDEX rows_by_segment ON rows (segment);
CREATE INDEX rows_pending ON rows (segment) WHERE stands = 0;
CREATE TABLE contents (
    digest BLOB PRIMARY KEY, segment INTEGER NOT NULL, start INTEGER NOT NULL, size INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX contents_by_segment ON contents (segment);
CREATE TABLE dropped (key TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
"""


class Index:
    """The index beside the segments in `directory`.  Not for use by two threads at once.

    Raises:
        sqlite3.Error, OSError: it cannot be made there.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._path = os.path.join(directory, "index.db")
        try:
            self._connection = self._connect()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise  # locked, read-only, no room: it may be whole
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path + suffix)
            self._connection = self._connect()

    def _connect(self) -> sqlite3.Connection:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.close(descriptor)
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            if connection.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
                self._make_tables(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        with _transaction(connection):
            if connection.execute("PRAGMA user_version").fetchone()[0] == _FORMAT:
                return
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (name,) in tables:
                if not name.startswith("sqlite_"):
                    connection.execute(f"DROP TABLE {name}")
            for statement in _TABLES.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {_FORMAT}")

    def close(self) -> None:
        """Let it go."""
        self._connection.close()

    def absorb(self) -> dict[int, int]:
        """Read what the segments have that it does not know; gives where each one ends, by number."""
        ends: dict[int, int] = {}
        with _transaction(self._connection):
            known = {
                number: (upto, session)
                for number, upto, session in self._connection.execute("SELECT number, upto, session FROM segments")
            }
            begun: list[tuple[int, int, str, int, Sequence[Any]]] = []
            ended: list[tuple[str, int, bool]] = []
            latest: dict[str, int] = {}
            for number in segments_in(self._directory):
                upto, session = known.get(number, (0, ""))
                with _opened(path_of(self._directory, number)) as descriptor:
                    if descriptor is None:
                        continue
                    start = upto
                    for record in records_of(descriptor, start):
                        session = record.said.get("session", session)
                        self._absorb_record(number, session, record, latest, begun, ended)
                        upto = record.next_at
                ends[number] = upto
                if upto != start or number not in known:
                    self._connection.execute(
                        "INSERT OR REPLACE INTO segments (number, upto, session) VALUES (?, ?, ?)",
                        (number, upto, session),
                    )
            # Of one file, different writers' changes are ordered by time; one writer's by their serial numbers.
            begun.sort(key=lambda one: one[0])
            for _, number, session, serial, values in begun:
                self._insert(number, session, serial, values)
            for session, serial, landed in ended:
                self._end(session, serial, landed)
        return ends

    def _absorb_record(
        self,
        number: int,
        session: str,
        record: Record,
        latest: dict[str, int],
        begun: list[tuple[int, int, str, int, Sequence[Any]]],
        ended: list[tuple[str, int, bool]],
    ) -> None:
        said = record.said
        if "begun" in said:
            serial, rows, contents = said["begun"]
            for values in rows:
                # Never before what the same writer wrote before it: his rows keep their order whatever his clock said.
                latest[session] = max(latest.get(session, 0), Row.from_json(values).time_ns)
                begun.append((latest[session], number, session, serial, values))
            start = record.contents_at
            for digest, size in contents:
                self._connection.execute(
                    "INSERT OR REPLACE INTO contents (digest, segment, start, size) VALUES (?, ?, ?, ?)",
                    (bytes.fromhex(digest), number, start, size),
                )
                start += size
        ended.extend((session, serial, True) for serial in said.get("landed", ()))
        ended.extend((session, serial, False) for serial in said.get("void", ()))

    def _insert(self, number: int, session: str, serial: int, values: Sequence[Any]) -> None:
        row = Row.from_json(values)
        target = None if row.target_key is None else _key(row.target_key)
        self._connection.execute(
            "INSERT INTO rows (segment, session, serial, stands, batch, key, target_key, said)"
            " VALUES (?, ?, ?, 0, ?, ?, ?, ?)",
            (number, session, serial, _ascii(row.batch_id), _key(row.key), target, json.dumps(values)),
        )

    def _end(self, session: str, serial: int, landed: bool) -> None:
        if landed:
            self._connection.execute("UPDATE rows SET stands = 1 WHERE session = ? AND serial = ?", (session, serial))
        else:
            self._connection.execute("DELETE FROM rows WHERE session = ? AND serial = ?", (session, serial))

    def pending(self, segments: Sequence[int]) -> list[tuple[int, Row]]:
        """The rows of these segments of which nobody has said whether they happened, oldest first."""
        found: list[tuple[int, Row]] = []
        for number in segments:
            query = "SELECT id, said FROM rows WHERE segment = ? AND stands = 0"
            found.extend(
                (id, Row.from_json(json.loads(said))) for id, said in self._connection.execute(query, (number,))
            )
        return sorted(found, key=lambda pair: pair[0])

    def next_of(self, id: int, key: Entry) -> Row | None:
        """The next change of that entry, by whoever."""
        query = "SELECT said FROM rows WHERE key = ? AND id > ? ORDER BY id LIMIT 1"
        found = self._connection.execute(query, (_key(key), id)).fetchone()
        return None if found is None else Row.from_json(json.loads(found[0]))

    def settle(self, decided: Sequence[tuple[int, bool]]) -> None:
        """Pending rows happened, or did not."""
        with _transaction(self._connection):
            for id, landed in decided:
                statement = "UPDATE rows SET stands = 1 WHERE id = ?" if landed else "DELETE FROM rows WHERE id = ?"
                self._connection.execute(statement, (id,))

    def rows_of_batch(self, session: str, batch_id: str) -> list[Row]:
        """See `Store.rows_of_batch`; `session` is who asks."""
        query = (
            "SELECT said FROM rows WHERE batch = ?1 AND (stands = 1 OR session != ?2) AND session ="
            " (SELECT session FROM rows WHERE batch = ?1 AND (stands = 1 OR session != ?2) ORDER BY id DESC LIMIT 1)"
            " ORDER BY id"
        )
        found = self._connection.execute(query, (_ascii(batch_id), session))
        return [Row.from_json(json.loads(said)) for (said,) in found]

    def rows_of_file(self, session: str, key: Entry) -> tuple[int, list[Row]]:
        """See `Store.rows_of_file`; `session` is who asks."""
        name = _key(key)
        dropped = self._connection.execute("SELECT count FROM dropped WHERE key = ?", (name,)).fetchone()
        query = (
            "SELECT said FROM rows WHERE (key = ?1 OR target_key = ?1) AND (stands = 1 OR session != ?2) ORDER BY id"
        )
        rows = [Row.from_json(json.loads(said)) for (said,) in self._connection.execute(query, (name, session))]
        return (dropped[0] if dropped is not None else 0), rows

    def place_of(self, digest: bytes) -> tuple[int, int, int] | None:
        """Where a content is: segment, start, size."""
        query = "SELECT segment, start, size FROM contents WHERE digest = ?"
        found: tuple[int, int, int] | None = self._connection.execute(query, (digest,)).fetchone()
        return found

    def counts(self) -> tuple[int, int]:
        """How many rows stand, and how many bytes of contents are known."""
        rows = self._connection.execute("SELECT count(*) FROM rows WHERE stands = 1").fetchone()[0]
        size = self._connection.execute("SELECT coalesce(sum(size), 0) FROM contents").fetchone()[0]
        return rows, size

    def drop_segment(self, number: int, remove: Callable[[], None]) -> None:
        """Forget what that segment has, and `remove` it."""
        with _transaction(self._connection):
            for column in ("key", "target_key"):
                self._connection.execute(
                    f"INSERT INTO dropped (key, count) SELECT {column}, count(*) FROM rows"
                    f" WHERE segment = ? AND stands = 1 AND {column} IS NOT NULL"
                    f"{'' if column == 'key' else ' AND target_key != key'} GROUP BY {column}"
                    " ON CONFLICT (key) DO UPDATE SET count = count + excluded.count",
                    (number,),
                )
            for table in ("rows", "contents"):
                self._connection.execute(f"DELETE FROM {table} WHERE segment = ?", (number,))
            self._connection.execute("DELETE FROM segments WHERE number = ?", (number,))
            # The counts of files without versions are forgotten: they begin anew.
            self._connection.execute(
                "DELETE FROM dropped WHERE NOT EXISTS (SELECT 1 FROM rows WHERE rows.key = dropped.key)"
                " AND NOT EXISTS (SELECT 1 FROM rows WHERE rows.target_key = dropped.key)"
            )
            remove()


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextlib.contextmanager
def _opened(path: str) -> Iterator[int | None]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _key(key: Entry) -> str:
    return json.dumps(list(key))


def _ascii(text: str) -> str:
    """A text that SQLite takes, whatever is in it (half a surrogate pair, NUL)."""
    return json.dumps(text)
