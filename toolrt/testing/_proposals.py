"""Proposes claims for tools, from what their calls read and change in a store of the user's.

Rules.
    1. The calls run one after the other, each on the rows that the calls before it left.
    2. A call *changes* the rows that differ afterwards, and those that it would make anew if they were not there.
    3. A call *reads* a row if it answers otherwise, or changes other rows otherwise, where that row is not there.  Rows
       are taken away in halves until single ones are found (delta debugging: Zeller and Hildebrandt, 2002).
    4. A field of the input is proposed as the key of a table if in every call its value names the rows that the call
       touches.  Otherwise the whole table is proposed.

Limits.  What no given call shows is not proposed: give calls that succeed, that are refused, and that name different
rows.  A row that a call only looks at, and would do the same without, is not seen, nor is a row that the call would see
if it were there.  So `check_tools` comes after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import trio

from toolrt import sim
from toolrt.errors import NotSimulated
from toolrt.model import READ, WRITE, BatchOutcome, Mode, Registry, Row, State, Tool, ToolCall
from toolrt.order import serial
from toolrt.runtime import Runtime
from toolrt.testing._promises import checked_calls
from toolrt.testing._stores import RowName, Snapshot, Store, StoreContent, named, row_name, rows_of
from toolrt.trace import plain


@attrs.frozen
class TouchedRows:
    """What one call did to the rows of the store."""

    #: The call.
    call: ToolCall
    #: The rows that it read, each as a table and the parts of a key.
    reads: tuple[RowName, ...]
    #: The rows that it changed.
    writes: tuple[RowName, ...]
    #: Whether it ended as OK.
    succeeded: bool
    #: Whether it did the same when it ran again on the same rows; if not, nothing is known of what it reads.
    repeats: bool = True

    def keys_in(self, table: str, mode: Mode) -> list[tuple[Any, ...]]:
        """The keys in `table` of the rows that it changed, where `mode` is `WRITE`, or else that it only read."""
        only_read = [name for name in self.reads if name not in self.writes]
        return [name[1:] for name in (self.writes if mode is WRITE else only_read) if name[0] == table]


@attrs.frozen
class ProposedClaims:
    """The claims that a tool's calls suggest.  Its text is what to write."""

    #: The tool's name.
    tool: str
    #: For each `Row`, how its rows were touched; empty: nothing was.
    claims: Mapping[Row, Mode]
    #: What each call touched, in call order.
    seen: tuple[TouchedRows, ...]
    #: What to look at before taking it over, in sentences.
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = ", ".join(f"{row!r}: {mode!r}" for row, mode in self.claims.items())
        lines = [f"{self.tool}: claims={{{what}}}", *(f"  {warning}" for warning in self.warnings)]
        return "\n".join(lines)


def propose_claims(
    tools: Iterable[Tool], calls: Iterable[ToolCall], store: Store, state: State | None = None
) -> list[ProposedClaims]:
    """Run `calls` on `store`, and give claims for their tools, from what each call reads and changes.

    Each call runs serially, and then again for every few rows that it might have read; so give a store of some dozens
    of rows.  What it answers must depend on the rows and its input alone.

    Args:
        tools: the tools, as for a `Registry`; what they claim already is not looked at.
        calls: in an order in which they make sense; for each tool several, which name different rows.
        store: the database that the tools work on.  When this returns its rows are as they were.
        state: what `ctx.state` is for the first call; the empty one by default.

    Raises:
        DefinitionRefused: a call names no tool, there is no call, or an argument is not what it must be.

    Checkpoint: never (it is not async); call it outside Trio.

    Example::

        for proposal in propose_claims([pay, cancel], calls, database):
            print(proposal)  # pay: claims={Row("orders", "order_id"): WRITE}
    """
    content, asked = checked_calls("propose_claims", tools, calls, store)
    registry = Registry({tool.name: tool for tool, _ in asked}.values())
    recorder = _Recorder(content, Runtime(registry, lanes=serial), State() if state is None else state)
    with content:
        seen = [recorder.touched(call) for _, call in asked]
    return [
        _proposal(tool, [rows for rows in seen if rows.call.name == tool.name], seen, recorder.refused)
        for tool in registry
    ]


@attrs.frozen
class _Effect:
    """What a call did: its answer and the state it left, and the rows that differ from before."""

    answer: Any
    changed: Mapping[RowName, Any]

    def equals(self, other: _Effect, apart_from: Iterable[RowName]) -> bool:
        """Whether both are one effect, whatever becomes of some rows."""
        left_out = set(apart_from)
        mine, theirs = (
            {name: row for name, row in effect.changed.items() if name not in left_out} for effect in (self, other)
        )
        return bool(self.answer == other.answer and mine == theirs)


#: Stands for a row that there is not.
_ABSENT = "absent"


@attrs.define
class _Recorder:
    """Runs calls on a store, one at a time, and finds what they touch."""

    content: StoreContent
    runtime: Runtime
    #: What the next call starts with.
    state: State
    #: How often the store refused to take rows without some of them.
    refused: int = 0

    def touched(self, call: ToolCall) -> TouchedRows:
        """Run one call, and give what it read and changed; the store is left as the call left it."""
        start = self.content.take()
        outcome = self._run(call, start)
        left, base = self.content.take(), self._effect(outcome, start)
        writes = dict.fromkeys(base.changed)

        def read_among(rows: list[tuple[str, Any]]) -> list[RowName]:
            if not rows:
                return []
            gone = [named(table, key) for table, key in rows]
            effect = self._without(call, start, rows)
            if effect is None:
                return []
            anew = [name for name in gone if name in effect.changed and name not in base.changed]
            writes.update(dict.fromkeys(anew))
            if effect.equals(base, apart_from=anew):
                return []
            half = len(rows) // 2
            # Some rows matter only together: where there has to be one of them.
            return gone if half == 0 else (read_among(rows[:half]) + read_among(rows[half:]) or gone)

        again = self._without(call, start, [])
        repeats = again is None or again.equals(base, apart_from=())
        tables = start if repeats else ()
        reads = [name for table in tables for name in read_among([(table, key) for key in start[table]])]
        self.content.renew(left)
        self.state = outcome.state
        return TouchedRows(call, tuple(dict.fromkeys(reads)), tuple(writes), outcome.results[0].ok, repeats)

    def _without(self, call: ToolCall, start: Snapshot, rows: list[tuple[str, Any]]) -> _Effect | None:
        """What the call does where these rows are not there; None: the store does not take the others alone."""
        gone = set(rows)
        less = {
            table: {key: row for key, row in kept.items() if (table, key) not in gone} for table, kept in start.items()
        }
        try:
            self.content.renew(less)
        except Exception:
            self.refused += 1
            return None
        return self._effect(self._run(call, less), less)

    def _run(self, call: ToolCall, start: Snapshot) -> BatchOutcome:
        """Run the call in the simulator, or on the real clock where it needs what the simulator has not."""

        async def program() -> BatchOutcome:
            return await self.runtime.run([call], self.state)

        execution = sim.run(program)
        outcome: BatchOutcome
        if isinstance(execution.error, NotSimulated):
            self.content.renew(start)
            outcome = trio.run(program)
        elif execution.error is not None:
            raise execution.error
        else:
            outcome = execution.value
        return outcome

    def _effect(self, outcome: BatchOutcome, start: Snapshot) -> _Effect:
        [result] = outcome.results
        before, after = dict(rows_of(start)), self.content.rows()
        names = dict.fromkeys((*before, *after))
        changed = {
            name: after.get(name, _ABSENT) for name in names if before.get(name, _ABSENT) != after.get(name, _ABSENT)
        }
        return _Effect([str(result.outcome), plain(result.content), result.error, outcome.state.to_json()], changed)


def _proposal(tool: Tool, seen: list[TouchedRows], every: list[TouchedRows], refused: int) -> ProposedClaims:
    claims: dict[Row, Mode] = {}
    warnings = []
    for mode in (WRITE, READ):
        for table in dict.fromkeys(name[0] for rows in seen for name in (*rows.writes, *rows.reads)):
            if Row(table) in claims:
                continue
            touched = [(tool.complete(rows.call.input), rows.keys_in(table, mode)) for rows in seen]
            touched = [(input, keys) for input, keys in touched if keys]
            found = _rows_of_table(table, touched)
            claims |= {row: mode for row in found if row not in claims}
            does = "changes" if mode is WRITE else "reads"
            if Row(table) in found:
                warnings.append(
                    f"It {does} {row_name((table, *touched[0][1][0]))}, which no field of the input names, so the "
                    "whole table is proposed. A function can claim the row alone: see docs/how-to/databases.md."
                )
            elif found and len(touched) == 1:
                warnings.append(f"One call alone {does} a row of {table}: give calls that name others, too.")
    if tool.safe is True and tool.claims is None:
        warnings += _conflicts_of_safe(tool, seen, every)
    if not any(rows.succeeded for rows in seen):
        warnings.append("No call of it succeeded: give calls that do.")
    if not all(rows.repeats for rows in seen):
        warnings.append("It does something else when it runs again on the same rows, so what it reads is not known.")
    if refused:
        warnings.append(f"The store refused {refused} sets of rows, so some rows that are read may be missing.")
    return ProposedClaims(tool.name, claims, tuple(seen), tuple(warnings))


def _conflicts_of_safe(tool: Tool, seen: list[TouchedRows], every: list[TouchedRows]) -> list[str]:
    """What a tool that says it is safe reads although others change it, or changes itself."""
    warnings = [
        f"It says safe=True and changes {row_name(rows.writes[0])}: safe=True declares that it touches nothing."
        for rows in seen
        if rows.writes
    ]
    reads = dict.fromkeys(name for rows in seen for name in rows.reads)
    for other in every:
        common = [name for name in other.writes if name in reads]
        if common and other.call.name != tool.name:
            warnings.append(
                f"It says safe=True and reads {row_name(common[0])}, which {other.call.name} changes. Where that tool "
                "declares its claims, the two run at the same time, and timing decides the answer. Declare these, too."
            )
    return warnings[:1]


#: The inputs of some calls, each with the keys that the call touched in one table.
_Touched = list[tuple[Mapping[str, Any], list[tuple[Any, ...]]]]


def _rows_of_table(table: str, touched: _Touched) -> list[Row]:
    """The rows that name every key by the fields of the input; the whole table where no fields do."""
    if not touched:
        return []
    fields = [field for field in touched[0][0] if all(field in input for input, _ in touched)]
    path: list[str] = []
    width = max(len(key) for _, keys in touched for key in keys)
    for place in range(width):
        best = max(fields, key=lambda field: _named(field, place, touched), default=None)
        if best is None or _named(best, place, touched)[0] < sum(len(keys) for _, keys in touched):
            break
        path.append(best)
    if len(path) == width:
        return [Row(table, *path)]
    if path:
        return [Row(table, *path, subtree=True)]
    return _several(table, fields, touched) if width == 1 else [Row(table)]


def _named(field: str, place: int, touched: _Touched) -> tuple[int, int]:
    """How many of the keys the field names at this place, and, negative, how much else it names."""
    hits = others = 0
    for input, keys in touched:
        values = _values(input[field])
        parts = [str(key[place]) for key in keys if place < len(key)]
        hits += sum(part in values for part in parts)
        others += len(values - set(parts))
    return hits, -others


def _several(table: str, fields: list[str], touched: _Touched) -> list[Row]:
    """Rows by several fields that name every key together, such as a payer and a payee; or the whole table."""
    chosen: list[str] = []
    rest = touched
    while rest:
        best = max(fields, key=lambda field: _named(field, 0, rest), default=None)
        if best is None or _named(best, 0, rest)[0] == 0:
            return [Row(table)]
        chosen.append(best)
        left = [(input, [key for key in keys if str(key[0]) not in _values(input[best])]) for input, keys in rest]
        rest = [(input, keys) for input, keys in left if keys]
    return [Row(table, field) for field in chosen]


def _values(value: Any) -> set[str]:
    """What a field names, as text."""
    values = value if isinstance(value, list | tuple) else [value]
    return {str(one) for one in values if isinstance(one, str | int | float) and not isinstance(one, bool)}
