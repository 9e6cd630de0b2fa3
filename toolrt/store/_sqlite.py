"""Records in one SQLite database: WAL mode, synchronous=FULL, one process at a time.

Rules.
    1. A commit is on the disk when it returns: SQLite syncs the log before it says so.
    2. The process that has the database open holds SQLite's own lock on it; another one is refused.  The lock ends with
       the process, however it ends, so a batch is never resumed while another process still runs it.
    3. The file has mode 0600, a directory that is made for it 0700.  What is deleted is overwritten with zeros.

Theory.  SQLite's crash tests count for this store (*How SQLite Is Tested*, section 3): power loss and kills at every
write.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence

from toolrt.errors import JournalRefused
from toolrt.store._records import FULL, IDS_MOST, USED, Bounds

#: Says in the file's header that toolrt wrote it ("trtj"), and in which format.
_APPLICATION, _FORMAT = 0x7472746A, 1

#: Wall seconds that a process waits for the lock of one that is just ending.
_PATIENCE = 2.0

_OPEN, _OVER, _EMPTIED = range(3)

_SCHEMA = """
CREATE TABLE batch(
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, state INTEGER NOT NULL, began_ns INTEGER NOT NULL);
CREATE INDEX batch_state ON batch(state, number);
CREATE TABLE record(number INTEGER PRIMARY KEY, batch INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX record_batch ON record(batch, number);
"""


class SqliteRecords:
    """The records of one file.  `opened` gives the one that this process has for a path.

    Args:
        path: the file; it is made with the first record.
    """

    blocks = True

    def __init__(self, path: str) -> None:
        self.name = path
        self.running: dict[str, Exception | None] = {}
        self.lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._finalizer: weakref.finalize | None = None  # type: ignore[type-arg]

    def _connected(self) -> sqlite3.Connection:
        """The connection, which holds the lock.

        Raises:
            JournalRefused: another process has the file open, it is no journal, or of another format.
            OSError, sqlite3.Error: the disk refuses.
        """
        if self._connection is not None:
            return self._connection
        _made_private(self.name)
        connection = sqlite3.connect(self.name, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(connection)
        except sqlite3.OperationalError as error:
            connection.close()
            if "locked" not in str(error):
                raise
            raise JournalRefused(
                self.name,
                "another process has it open",
                "Let that one end, or give each process a journal of its own.",
            ) from None
        except sqlite3.DatabaseError as error:
            connection.close()
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise JournalRefused(self.name, f"it is no journal ({error})", "Name another file.") from None
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._finalizer = weakref.finalize(self, connection.close)
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        [application] = connection.execute("PRAGMA application_id").fetchone()
        [version] = connection.execute("PRAGMA user_version").fetchone()
        [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and (application, version) != (_APPLICATION, _FORMAT):
            why = "a database that is no journal" if application != _APPLICATION else f"format {version}"
            raise JournalRefused(self.name, f"expected a journal of format {_FORMAT}, got {why}", "Name another file.")
        for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        with _transaction(connection):
            if not tables:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id={_APPLICATION}")
                connection.execute(f"PRAGMA user_version={_FORMAT}")

    def begin(self, batch_id: str, record: str, bounds: Bounds) -> str | None:
        """See `RecordStore.begin`."""
        connection = self._connected()
        with _transaction(connection):
            if connection.execute("SELECT 1 FROM batch WHERE id=?", (batch_id,)).fetchone():
                return USED
            while self._size(connection) > bounds.most_bytes:
                if not self._empty_oldest(connection, 1):
                    return FULL
            made = connection.execute(
                "INSERT INTO batch(id, state, began_ns) VALUES(?, ?, ?)", (batch_id, _OPEN, time.time_ns())
            )
            connection.execute("INSERT INTO record(batch, body) VALUES(?, ?)", (made.lastrowid, record))
        return None

    def commit(self, records: Sequence[tuple[str, str]]) -> None:
        """See `RecordStore.commit`."""
        connection = self._connected()
        with _transaction(connection):
            self._insert(connection, records)

    def _insert(self, connection: sqlite3.Connection, records: Sequence[tuple[str, str]]) -> None:
        connection.executemany(
            "INSERT INTO record(batch, body) VALUES((SELECT number FROM batch WHERE id=?), ?)", records
        )

    def over(self, batch_id: str, record: str, bounds: Bounds) -> None:
        """See `RecordStore.over`."""
        connection = self._connected()
        with _transaction(connection):
            self._insert(connection, [(batch_id, record)])
            connection.execute("UPDATE batch SET state=? WHERE id=?", (_OVER, batch_id))
            [over] = connection.execute("SELECT count(*) FROM batch WHERE state=?", (_OVER,)).fetchone()
            if over > bounds.keep:
                self._empty_oldest(connection, over - bounds.keep)

    def _empty_oldest(self, connection: sqlite3.Connection, count: int) -> bool:
        """Empty `count` batches that are over; says whether there was one."""
        oldest = connection.execute(
            "SELECT number FROM batch WHERE state=? ORDER BY number LIMIT ?", (_OVER, count)
        ).fetchall()
        connection.executemany("DELETE FROM record WHERE batch=?", oldest)
        connection.executemany(f"UPDATE batch SET state={_EMPTIED} WHERE number=?", oldest)
        connection.execute(
            "DELETE FROM batch WHERE number IN "
            "(SELECT number FROM batch WHERE state=? ORDER BY number DESC LIMIT -1 OFFSET ?)",
            (_EMPTIED, IDS_MOST),
        )
        return bool(oldest)

    def _size(self, connection: sqlite3.Connection) -> int:
        """Bytes in use."""
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def read(self, batch_id: str) -> list[str] | None:
        """See `RecordStore.read`."""
        connection = self._connected()
        found = connection.execute("SELECT number FROM batch WHERE id=?", (batch_id,)).fetchone()
        if found is None:
            return None
        rows = connection.execute("SELECT body FROM record WHERE batch=? ORDER BY number", found)
        return [body for (body,) in rows]

    def unfinished(self) -> list[str]:
        """See `RecordStore.unfinished`."""
        rows = self._connected().execute("SELECT id FROM batch WHERE state=? ORDER BY number", (_OPEN,))
        return [batch_id for (batch_id,) in rows]

    def purge(self, before_ns: int | None, *, unfinished: bool) -> int:
        """See `RecordStore.purge`; the file shrinks to what is left, and its log is emptied."""
        connection = self._connected()
        chosen = _OPEN if unfinished else _OVER, 2**62 if before_ns is None else before_ns
        which = "WHERE state >= ? AND began_ns < ?"
        with _transaction(connection):
            connection.execute(f"DELETE FROM record WHERE batch IN (SELECT number FROM batch {which})", chosen)
            gone = connection.execute(f"DELETE FROM batch {which}", chosen).rowcount
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return gone

    def close(self) -> None:
        """See `RecordStore.close`; what is asked later opens it again."""
        if self._finalizer is not None:
            self._finalizer()
        self._connection = self._finalizer = None


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _made_private(path: str) -> None:
    """The file is there, and only its owner may read it."""
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.name == "posix" and os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


#: The stores that this process has open, by process and path: SQLite's lock keeps a second connection out.
_STORES: weakref.WeakValueDictionary[tuple[int, str], SqliteRecords] = weakref.WeakValueDictionary()


def opened(path: str) -> SqliteRecords:
    """The store of this process for the file at `path`."""
    key = os.getpid(), os.path.realpath(path)
    store = _STORES.get(key)
    if store is None:
        store = _STORES[key] = SqliteRecords(key[1])
    return store
