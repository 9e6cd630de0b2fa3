"""The index of history's segments, in SQLite: which versions there are, and where their contents are.

Rules.  Everything in it is made from the segments, up to where it has read each of them; asking it reads the rest
first.  So it need not survive a loss of power (``synchronous=OFF``), and may be made anew at any time, in memory too
(see `toolrt.workspace.journal._catalogue`).  Several processes share it: write-ahead logging, and each transaction
waits its turn.

States of a row: pending until its writer says that it happened; then it stands.  What did not happen is deleted.
Whoever asks knows what he did himself; of others also the pending rows are shown, because a writer that has nothing
more to write says nothing more, and what is pending has nearly always happened.

Limits.  How many versions of a file were dropped is known to the index alone: where it is made anew, the versions that
are left are numbered from 1.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Sequence

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._version import Row
from toolrt.workspace.disk._disk import BOXED, KEPT, Entry
from toolrt.workspace.journal._segment import Record, path_of, records_of, segments_in

__all__ = ["Decision", "Index", "Place"]

#: How long a transaction waits for those of other processes, in milliseconds.  Nothing can end this wait early, so it
#: is short: after it the index in memory answers (`toolrt.workspace.journal._catalogue`).
_BUSY_MS = 100

#: Changes with the tables; an index with another number is made anew.
_FORMAT = 4

_TABLES = """
CREATE TABLE segments (
    number INTEGER PRIMARY KEY, upto INTEGER NOT NULL, session TEXT NOT NULL, blind INTEGER NOT NULL
);
CREATE TABLE rows (
    id INTEGER PRIMARY KEY AUTOINCREMENT, segment INTEGER NOT NULL, session TEXT NOT NULL, serial INTEGER NOT NULL,
    place INTEGER NOT NULL, since INTEGER NOT NULL, stands INTEGER NOT NULL, batch TEXT NOT NULL, key TEXT NOT NULL,
    target_key TEXT, said TEXT NOT NULL
);
CREATE INDEX rows_by_writer ON rows (session, serial);
CREATE INDEX rows_by_key ON rows (key);
CREATE INDEX rows_by_target ON rows (target_key) WHERE target_key IS NOT NULL;
CREATE INDEX rows_by_batch ON rows (batch);
CREATE INDEX rows_by_segment ON rows (segment);
CREATE INDEX rows_pending ON rows (segment) WHERE stands = 0;
CREATE TABLE contents (
    digest BLOB NOT NULL, segment INTEGER NOT NULL, start INTEGER NOT NULL, size INTEGER NOT NULL,
    PRIMARY KEY (digest, segment)
) WITHOUT ROWID;
CREATE INDEX contents_by_segment ON contents (segment);
CREATE TABLE dropped (key TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
"""


#: A row as the segments know it: segment, session, serial number, and its place among those begun together.
Place = tuple[int, str, int, int]

#: A row that a start found pending (session, serial number, place), and whether it happened.
Decision = tuple[str, int, int, bool]


class _News:
    """What the segments have that the index does not know."""

    def __init__(self) -> None:
        self.segments: list[tuple[int, int, str, bool]] = []
        self.contents: list[tuple[bytes, int, int, int]] = []
        #: When, segment, session, serial number, place in its record, the segment with its batch's first row, batch,
        #: key, target's key, and all of it.
        self.rows: list[tuple[int, int, str, int, int, int, str, str, str | None, str]] = []
        self.landed: set[tuple[str, int]] = set()
        self.void: set[tuple[str, int]] = set()
        #: What a start decided: session, serial number, place, whether it happened.
        self.decided: list[Decision] = []
        #: When each session wrote last.
        self._latest: dict[str, int] = {}

    def add(self, number: int, session: str, record: Record) -> None:
        """Take note of one record."""
        said = record.said
        if "begun" in said:
            serial, rows, contents = said["begun"]
            for place, values in enumerate(rows):
                row = Row.from_json(values)
                # Never before what the same writer wrote before it: his rows keep their order whatever his clock said.
                latest = self._latest[session] = max(self._latest.get(session, 0), row.time_ns)
                target = None if row.target_key is None else _key(row.target_key)
                about = (_encoded(row.batch_id), _key(row.key), target, _encoded(values))
                self.rows.append((latest, number, session, serial, place, said.get("since", number), *about))
            start = record.contents_at
            for digest, size in contents:
                self.contents.append((bytes.fromhex(digest), number, start, size))
                start += size
        self.landed.update((session, serial) for serial in said.get("landed", ()))
        self.void.update((session, serial) for serial in said.get("void", ()))
        self.decided.extend((*about, bool(landed)) for *about, landed in said.get("decided", ()))


class Index:
    """The index beside the segments in `directory`.  Not for use by two threads at once.

    Args:
        directory: where the segments are.
        in_memory: whether the index is for this object alone, and leaves nothing behind.

    Raises:
        sqlite3.Error, OSError: it cannot be made there.
    """

    def __init__(self, directory: str, *, in_memory: bool = False) -> None:
        self._directory = directory
        self._connection = self._connect(":memory:" if in_memory else index_in(directory))
        # Nobody closes a workspace; since Python 3.13 a connection complains when it is dropped open.
        weakref.finalize(self, self._connection.close)

    def _connect(self, path: str) -> sqlite3.Connection:
        if path != ":memory:":
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
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
                number: (upto, session, blind)
                for number, upto, session, blind in self._connection.execute(
                    "SELECT number, upto, session, blind FROM segments"
                )
            }
            news = _News()
            numbers = segments_in(self._directory)
            for number in sorted(known.keys() - set(numbers)):
                self._forget(number)  # dropped by who had another index
            for number in numbers:
                start, session, blind = known.get(number, (0, "", False))
                upto = start
                with _opened(path_of(self._directory, number)) as descriptor:
                    if descriptor is None:
                        continue
                    for record in records_of(descriptor, start):
                        session = record.said.get("session", session)
                        blind = record.said.get("blind", blind)
                        news.add(number, session, record)
                        upto = record.next_at
                ends[number] = upto
                if upto != start or number not in known:
                    news.segments.append((number, upto, session, blind))
            self._keep(news)
        return ends

    def _keep(self, news: _News) -> None:
        keep = self._connection.executemany
        keep("INSERT OR REPLACE INTO segments (number, upto, session, blind) VALUES (?, ?, ?, ?)", news.segments)
        keep("INSERT OR REPLACE INTO contents (digest, segment, start, size) VALUES (?, ?, ?, ?)", news.contents)
        # Of one file, different writers' changes are ordered by time; one writer's by their serial numbers.
        news.rows.sort(key=lambda row: row[0])
        keep(
            "INSERT INTO rows (segment, session, serial, place, since, stands, batch, key, target_key, said)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (number, session, serial, place, since, (session, serial) in news.landed, *about)
                for _, number, session, serial, place, since, *about in news.rows
                if (session, serial) not in news.void
            ],
        )
        # And those that the index had before.
        new = {(session, serial) for _, _, session, serial, *_ in news.rows}
        self._end(sorted(news.landed - new), sorted(news.void - new))
        one = "WHERE session = ? AND serial = ? AND place = ?"
        keep(f"UPDATE rows SET stands = 1 {one}", [about for *about, landed in news.decided if landed])
        keep(f"DELETE FROM rows {one}", [about for *about, landed in news.decided if not landed])

    def end(self, session: str, ended: Sequence[tuple[int, bool]]) -> None:
        """Changes of that session happened, or did not, which is not in the segments yet."""
        with _transaction(self._connection):
            landed = [(session, serial) for serial, happened in ended if happened]
            self._end(landed, [(session, serial) for serial, happened in ended if not happened])

    def _end(self, landed: Sequence[tuple[str, int]], void: Sequence[tuple[str, int]]) -> None:
        keep = self._connection.executemany
        keep("UPDATE rows SET stands = 1 WHERE session = ? AND serial = ?", landed)
        keep("DELETE FROM rows WHERE session = ? AND serial = ?", void)

    def blind(self, segments: Sequence[int]) -> list[int]:
        """Those of these segments whose writer went on where nothing was written down."""
        query = "SELECT number FROM segments WHERE blind != 0 ORDER BY number"
        return [number for (number,) in self._connection.execute(query) if number in segments]

    def pending(self, segments: Sequence[int]) -> list[tuple[Place, Row]]:
        """The rows of these segments of which nobody has said whether they happened, oldest first."""
        found: list[tuple[int, Place, Row]] = []
        for number in segments:
            query = "SELECT id, session, serial, place, said FROM rows WHERE segment = ? AND stands = 0"
            found.extend(
                (id, (number, session, serial, place), Row.from_json(json.loads(said)))
                for id, session, serial, place, said in self._connection.execute(query, (number,))
            )
        return [(at, row) for _, at, row in sorted(found, key=lambda one: one[0])]

    def next_of(self, at: Place, key: Entry) -> Row | None:
        """The next change of that entry after the one `at` that place, by whoever."""
        query = (
            "SELECT said FROM rows WHERE key = ? AND id >"
            " (SELECT id FROM rows WHERE session = ? AND serial = ? AND place = ?) ORDER BY id LIMIT 1"
        )
        found = self._connection.execute(query, (_key(key), *at[1:])).fetchone()
        return None if found is None else Row.from_json(json.loads(found[0]))

    def rows_of_batch(self, session: str, batch_id: str) -> list[Row]:
        """See `Store.rows_of_batch`; `session` is who asks.

        Raises:
            FileProblem: it is nobody's own, and two sessions had a batch of this id at one time.
        """
        query = "SELECT session, said FROM rows WHERE batch = :batch AND (stands = 1 OR session != :me) ORDER BY id"
        sessions: dict[str, list[Row]] = {}
        last = session
        for last, said in self._connection.execute(query, {"batch": _encoded(batch_id), "me": session}):
            sessions.setdefault(last, []).append(Row.from_json(json.loads(said)))
        if session in sessions:
            return sessions[session]
        rows = sessions.pop(last, [])
        began = min((row.time_ns for row in rows), default=0)
        if any(row.time_ns > began for others in sessions.values() for row in others):
            raise FileProblem(
                f"batch {batch_id}",
                "a batch of one session",
                "an id that two sessions used at one time",
                "Undo it where it was run.",
            )
        return rows

    def is_whole(self, session: str, batch_id: str) -> bool:
        """See `Store.is_whole`; `session` is who asks."""
        query = (
            "SELECT count(*) FROM rows WHERE batch = :batch AND since NOT IN (SELECT number FROM segments)"
            " AND session = (SELECT session FROM rows WHERE batch = :batch AND (stands = 1 OR session != :me)"
            " ORDER BY session = :me DESC, id DESC LIMIT 1)"
        )
        lost = self._connection.execute(query, {"batch": _encoded(batch_id), "me": session}).fetchone()[0]
        return not lost

    def has_batch(self, session: str, batch_id: str) -> bool:
        """Whether that session has rows of that batch, which stand."""
        query = "SELECT 1 FROM rows WHERE batch = ? AND session = ? AND stands = 1 LIMIT 1"
        return self._connection.execute(query, (_encoded(batch_id), session)).fetchone() is not None

    def rows_of_file(self, session: str, key: Entry) -> tuple[int, list[Row]]:
        """See `Store.rows_of_file`; `session` is who asks."""
        name = _key(key)
        dropped = self._connection.execute("SELECT count FROM dropped WHERE key = ?", (name,)).fetchone()
        query = (
            "SELECT said FROM rows WHERE (key = :key OR target_key = :key) AND (stands = 1 OR session != :me)"
            " ORDER BY id"
        )
        found = self._connection.execute(query, {"key": name, "me": session})
        rows = [Row.from_json(json.loads(said)) for (said,) in found]
        return (dropped[0] if dropped is not None else 0), rows

    def kept(self) -> list[Row]:
        """See `Store.kept`."""
        query = f'SELECT said FROM rows WHERE target_key LIKE \'%{KEPT}","{BOXED}"]\' ORDER BY id'
        return [Row.from_json(json.loads(said)) for (said,) in self._connection.execute(query)]

    def place_of(self, digest: bytes) -> tuple[int, int, int] | None:
        """Where a content is: segment, start, size."""
        query = "SELECT segment, start, size FROM contents WHERE digest = ? ORDER BY segment DESC LIMIT 1"
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
            self._forget(number)
            remove()

    def _forget(self, number: int) -> None:
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


def index_in(directory: str) -> str:
    """Where the index of the segments in `directory` is."""
    return os.path.join(directory, "index.db")


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite ends it itself where there is no room
            connection.execute("ROLLBACK")
        raise


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


#: Everything is text in ASCII for SQLite, whatever is in a name (half a surrogate pair, NUL).
_encoded = json.JSONEncoder(separators=(",", ":")).encode


def _key(key: Entry) -> str:
    return _encoded(list(key))
