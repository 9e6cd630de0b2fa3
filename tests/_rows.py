"""Which rows of a call's table random mixes go through, and which rows of two conflicting calls meet.

Rules.
    1. A row is a state and what happens in it, as `toolrt.order` has them in its tables: ``waiting grant``.
    2. Two calls of one batch conflict if their tickets claim what conflicts.
    3. Rows meet when one of two such calls goes through its row while the other one has gone through its own last:
       ``later waiting settle | spawned start`` is a later call whose wait is ended while the earlier one runs.  The
       other's row is ``-`` before its first.
    4. Which rows can meet is not derived: the tables alone allow six times what the rest of the rules lets happen.
       `KNOWN` are those that a large kept sample has met (``.ci/write_mutation.py --rows``).

Theory.  Coverage of pairs.  A bug in how two calls wait for each other needs both at a certain place, so a test that
has been through every row of one call has seen little of what two can do to each other.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest

from toolrt.model import Claim
from toolrt.order import CallRecord, Siblings
from toolrt.order import _states as tables

#: The file of what a large sample has met.
KNOWN = Path(__file__).with_name("known_rows.json")

_WORDS = {
    id(move.leads): move.value for moves in (tables.CallMove, tables.LaneMove, tables.BatchMove) for move in moves
}


@cache
def known() -> dict[str, Any]:
    """Give what the kept sample has met: ``pairs`` by the row, ``examples``, ``commit``."""
    found: dict[str, Any] = json.loads(KNOWN.read_text(encoding="utf-8"))
    return found


def known_pairs() -> set[str]:
    """Give the pairs of rows that the kept sample has met."""
    return {f"{row} | {other}" for row, others in known()["pairs"].items() for other in others}


def verdict(pairs: set[str], batches: int) -> list[str]:
    """Say how much of what is known was met, and name the rest, a line for each row."""
    every = known_pairs()
    lines = [f"rows x rows reached: {len(pairs & every)} of {len(every)}, by {batches:,} batches"]
    if new := sorted(pairs - every):
        lines.append(f"  not known before: {', '.join(new)}")
    missed: dict[str, list[str]] = {}
    for pair in sorted(every - pairs):
        row, other = pair.split(" | ")
        missed.setdefault(row, []).append(other)
    lines += [f"  not reached: {row} | {', '.join(others)}" for row, others in missed.items()]
    return lines


class _StateNoted:
    """Stands for `CallRecord.state`: notes each change."""

    def __init__(self, watch: RowWatch) -> None:
        self._watch = watch

    def __get__(self, record: Any, kind: type) -> Any:
        state = tables.CallState.PLACED
        return state if record is None else record.__dict__.get("state", state)

    def __set__(self, record: Any, state: Any) -> None:
        self._watch.changed(record)
        record.__dict__["state"] = state


class RowWatch:
    """Counts, from its ``with`` on, the rows of all machines and the pairs of rows of conflicting calls.

    It patches classes of `toolrt.order`, so only one may watch at a time, and no batch may run in another thread.
    """

    def __init__(self) -> None:
        #: How often each row was gone through, of calls, lanes and batches.
        self.rows: Counter[str] = Counter()
        #: In how many batches each pair of rows was met.
        self.pairs: Counter[str] = Counter()
        #: How many outermost batches were run.
        self.batches = 0
        self._patch = pytest.MonkeyPatch()
        self._row = ""
        self._logs: dict[int, _Log] = {}

    def __enter__(self) -> RowWatch:
        def look(rows: Any, state: Any) -> Any:
            found = dict.__getitem__(rows, state)
            self._row = f"{state.name.lower()} {_WORDS[id(rows)]}"
            self.rows[self._row] += 1
            return found

        self._patch.setattr(tables.Rows, "__getitem__", look, raising=False)
        self._patch.setattr(
            tables.Rows, "get", lambda rows, state: look(rows, state) if state in rows else None, raising=False
        )
        self._patch.setattr(CallRecord, "state", _StateNoted(self))
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()
        self._note()

    def changed(self, record: CallRecord) -> None:
        """Note that a call goes through the row that was looked up last."""
        siblings = record.siblings
        found = self._logs.get(id(siblings))
        if found is None:
            if record.parent is None:
                self._note()
                self.batches += 1
            found = self._logs[id(siblings)] = _Log(siblings)
        found.rows.append((record.call_index, self._row))
        for ticket in record.tickets:
            found.claims.setdefault(record.call_index, set()).update(group.claim for group in ticket._groups)

    def _note(self) -> None:
        for log in self._logs.values():
            self.pairs.update(set(log.pairs()))
        self._logs.clear()


@attrs.frozen
class _Log:
    """What the calls of one batch went through."""

    #: Kept alive, because its id is the log's name.
    siblings: Siblings
    #: A call's index, and its row.
    rows: list[tuple[int, str]] = attrs.field(factory=list)
    #: What each call's tickets have claimed, by its index.
    claims: dict[int, set[Claim]] = attrs.field(factory=dict)

    def pairs(self) -> Iterator[str]:
        """Give each pair of rows of two conflicting calls, as often as it was met."""
        for earlier, later in itertools.combinations(sorted(self.claims), 2):
            if any(mine.conflicts_with(theirs) for mine in self.claims[earlier] for theirs in self.claims[later]):
                last = {earlier: "-", later: "-"}
                for index, row in self.rows:
                    if index in last:
                        which, other = ("earlier", later) if index == earlier else ("later", earlier)
                        yield f"{which} {row} | {last[other]}"
                        last[index] = row


def pytest_configure(config: pytest.Config) -> None:
    """Watch the run: this module is a plugin of pytest, ``-p tests._rows``."""
    config.pluginmanager.register(SaysRows(config), "toolrt.rows")


class SaysRows:
    """Watches the whole run, also in the workers of xdist, and says what was reached."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._watch = RowWatch()
        self._pairs: set[str] = set()
        self._batches = 0

    def pytest_sessionstart(self) -> None:
        """Begin."""
        self._watch.__enter__()

    def pytest_sessionfinish(self) -> None:
        """End; a worker sends what it has to the process that writes the summary."""
        self._watch.__exit__()
        self._add(sorted(self._watch.pairs), self._watch.batches)
        if hasattr(self._config, "workerinput"):
            output: dict[str, Any] = getattr(self._config, "workeroutput")  # noqa: B009
            output["toolrt_rows"] = sorted(self._pairs), self._batches

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker sends."""
        self._add(*getattr(node, "workeroutput", {}).get("toolrt_rows", ((), 0)))

    def _add(self, pairs: Sequence[str], batches: int) -> None:
        self._pairs.update(pairs)
        self._batches += batches

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say it."""
        terminalreporter.write_sep("=", "rows of mixes")
        for line in verdict(self._pairs, self._batches):
            terminalreporter.write_line(line)
