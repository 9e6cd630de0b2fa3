"""A store of the user's, as checks see it: its rows, and a way back to how they were."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import attrs

from toolrt import probe
from toolrt.errors import DefinitionRefused
from toolrt.model import Claim
from toolrt.trace import plain

#: The rows of a store: by table, and in it by key; a key of several parts is a tuple.
Snapshot = Mapping[str, Mapping[Any, Any]]
#: A table and the parts of a key: the resource that `Row` claims.
RowName = tuple[Any, ...]


@runtime_checkable
class Store(Protocol):
    """What `check_tool`, `check_tools` and `propose_claims` need of a database: all its rows, and a way back.

    ::

        class Orders:
            def snapshot(self):
                return {"orders": {key: row for key, *row in self.connection.execute("select * from orders")}}

            def restore(self, snapshot):
                self.connection.execute("delete from orders")
                rows = [(key, *row) for key, row in snapshot["orders"].items()]
                self.connection.executemany("insert into orders values (?, ?)", rows)
    """

    def snapshot(self) -> Snapshot:
        """All rows: ``{table: {key: row}}``.  A row is any value that can be copied and compared."""

    def restore(self, snapshot: Any) -> None:
        """Make the rows those of a snapshot, and let whatever numbers rows begin where it began then."""


def row_name(name: RowName) -> str:
    """The row as it is shown."""
    return " ".join(map(str, name))


@attrs.frozen
class StoreContent:
    """A store, and the rows that it had when the check began."""

    store: Store
    first: Snapshot
    #: The tables that claims name: a claim on one of these means its rows.
    claimed: frozenset[str] = frozenset()

    def naming(self, claims: Iterable[Claim]) -> StoreContent:
        """The same store, with the tables that these claims name."""
        named = {claim.resource[0] for claim in claims if claim.resource}
        return attrs.evolve(self, claimed=frozenset(named & set(self.first)))

    @classmethod
    def of(cls, store: object, what: str) -> StoreContent:
        """Take the rows that the store has now.

        Args:
            what: names the argument in the error.

        Raises:
            DefinitionRefused: it is no `Store`, or its snapshot is not rows by table and key.
        """
        if not isinstance(store, Store):
            raise DefinitionRefused(what, "an object with snapshot() and restore(snapshot)", store)
        first = copy.deepcopy(store.snapshot())
        if not isinstance(first, Mapping) or not all(
            isinstance(table, str) and isinstance(rows, Mapping) for table, rows in first.items()
        ):
            raise DefinitionRefused(f"the snapshot of {what}", "rows by table and key: {table: {key: row}}", first)
        return cls(store, first)

    def __enter__(self) -> None:
        """Check something; the rows are as they were when the block is left."""

    def __exit__(self, *_: object) -> None:
        self.renew()

    def renew(self, snapshot: Snapshot | None = None) -> None:
        """Make the rows those of the `snapshot`, or those that there were when the check began."""
        with probe.observed_by(None):  # this is no access of the tool's
            self.store.restore(copy.deepcopy(self.first if snapshot is None else snapshot))

    def take(self) -> Snapshot:
        """All rows of now, as a copy."""
        with probe.observed_by(None):
            return copy.deepcopy(self.store.snapshot())

    def rows(self) -> dict[RowName, Any]:
        """The rows of now."""
        with probe.observed_by(None):
            return dict(rows_of(self.store.snapshot()))

    def names(self) -> dict[str, RowName]:
        """The rows of now, and those that there were when the check began, by what they are shown as."""
        return {row_name(name): name for name in (*dict(rows_of(self.first)), *self.rows())}

    def named_rows(self) -> dict[str, Any]:
        """The rows of now, as they are shown."""
        return {row_name(name): row for name, row in self.rows().items()}


def rows_of(snapshot: Snapshot) -> Iterator[tuple[RowName, Any]]:
    """Each row of a snapshot, as JSON."""
    for table, rows in snapshot.items():
        for key, row in rows.items():
            yield named(table, key), plain(row)


def named(table: str, key: Any) -> RowName:
    """The name of the row with this key."""
    return (table, *(key if isinstance(key, tuple) else (key,)))
