"""Rows of executions: what is in them, and that tables are made of them as they are."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
import trio

from tests.view import _traces as traces
from toolrt import sim, view
from toolrt.errors import DefinitionRefused, MissingExtra
from toolrt.trace import Trace

_TABLES = {
    "executions": view.execution_rows,
    "calls": view.call_rows,
    "steps": view.step_rows,
    "accesses": view.access_rows,
    "events": view.event_rows,
}
_KINDS = {"int": int, "float": float, "bool": bool, "str": str}


async def _two_steps() -> int:
    cell = sim.Cell(0, name="x")
    await trio.sleep(1.5)
    cell.set(cell.get() + 1)
    return cell.get()


@pytest.fixture
def sources() -> list[Any]:
    """An execution, a failure, a trace of a batch, a recording, and a trace of nothing."""
    report = sim.explore(traces.lost_update, sim.Exhaustive(), lambda execution: execution.value == 2)
    return [sim.run(_two_steps), report.failures[0], traces.live_batch(), traces.large(3), Trace()]


@pytest.mark.parametrize("name", list(_TABLES))
def test_rows_have_the_columns_that_are_told(sources: list[Any], name: str) -> None:
    """Each row of each table has exactly the columns of `COLUMNS`, in that order, and values of their kinds."""
    rows = _TABLES[name](sources)
    assert rows
    for row in rows:
        assert list(row) == list(view.COLUMNS[name])
        for column, value in row.items():
            kind = view.COLUMNS[name][column].kind
            assert type(value) is _KINDS[kind.rstrip("?")] or (value is None and kind.endswith("?")), (column, value)


@pytest.mark.parametrize("name", list(_TABLES))
def test_each_row_names_its_execution(sources: list[Any], name: str) -> None:
    """Rows of several sources are those of each, in order, with its place in the first column."""
    rows = _TABLES[name](sources)
    one_by_one = [{**row, "execution": place} for place, one in enumerate(sources) for row in _TABLES[name](one)]
    assert rows == one_by_one
    assert all(row["execution"] == 0 for row in _TABLES[name](sources[2]))


def test_row_of_an_execution_says_how_it_ended() -> None:
    """Value, steps, preemptions, virtual seconds and the schedule are those of the execution."""
    execution = sim.run(_two_steps)
    [row] = view.execution_rows(execution)
    assert (row["ended"], row["outcome"], row["error"]) == ("returned", "1", None)
    assert (row["steps"], row["tasks"], row["preemptions"], row["seconds"]) == (2, 1, 0, 1.5)
    assert sim.replay(_two_steps, row["schedule"]).value == 1


def test_row_of_an_execution_counts_preemptions_and_tells_of_the_step_limit() -> None:
    """What is counted is what the schedule counts; a schedule that the step limit ended replays as one."""

    async def forever() -> None:
        rounds = sim.Cell(0, name="rounds")
        while True:
            rounds.set(rounds.get() + 1)
            await trio.lowlevel.checkpoint()

    executions = [sim.run(traces.lost_update, sim.RandomWalk(seed=seed)) for seed in range(8)]
    executions.append(sim.run(forever, step_limit=5))
    rows = view.execution_rows(executions)
    assert [row["preemptions"] for row in rows] == [execution.schedule.switches for execution in executions]
    assert [row["schedule"] for row in rows] == [execution.schedule.short for execution in executions]
    assert any(row["preemptions"] for row in rows)
    assert rows[-1]["ended"] == "StepLimit"
    assert isinstance(sim.replay(forever, rows[-1]["schedule"]).error, type(executions[-1].error))


def test_rows_of_calls_say_when_each_waited_and_ran() -> None:
    """Two calls on one counter: the second is submitted with the first, and starts when the first has ended."""
    rows = view.call_rows(traces.live_batch())
    assert [row["call"] for row in rows] == [0, 1, 2, 3, 4, 5]
    first, second, third, alone, _, unknown = rows
    assert (first["started"], first["ended"], first["ran"], first["waited"]) == (0.0, 2.0, 2.0, 0.0)
    assert (second["submitted"], second["started"], second["waited"]) == (0.0, 2.0, 2.0)
    assert (first["waits_for"], second["waits_for"]) == (0, 1)
    assert (third["progress"], third["content"], third["outcome"]) == (3, "done", "ok")
    assert (alone["shared"], alone["outcome"]) == (False, "error")
    assert "no" in alone["error"]
    assert (unknown["outcome"], unknown["lane"], unknown["started"], unknown["ran"]) == ("invalid", None, None, None)
    assert json.loads(first["input"]) == {"name": "x"}


def test_rows_of_steps_and_accesses_agree() -> None:
    """A step's counts are those of its accesses; who preempts and who woke whom is told."""
    execution = sim.run(traces.lost_update, sim.Choices([0, 0, 1]))
    steps, accesses = view.step_rows(execution), view.access_rows(execution)
    for step in steps:
        mine = [access["write"] for access in accesses if access["step"] == step["step"]]
        assert (step["writes"], step["reads"]) == (sum(mine), len(mine) - sum(mine))
    assert [step["preempts"] for step in steps].count(True) == 1
    assert {access["resource"] for access in accesses} >= {"cell x"}
    assert steps[0]["woken_by"] is None
    assert steps[1]["woken_by"] == 0


def test_rows_of_a_recording_have_no_steps() -> None:
    """Events of a real run belong to no step, and there is nothing to replay."""
    recording = traces.large(2)
    assert view.step_rows(recording) == []
    assert {row["step"] for row in view.event_rows(recording)} == {None}
    assert view.execution_rows(recording)[0]["schedule"] is None


def test_text_that_no_table_can_hold_is_written_out() -> None:
    """Half a character in an answer does not keep a table from being made."""
    fields = {"batch": "b", "call": 0, "call_id": "\ud800", "name": "x", "input": {"a": "\udfff"}}
    settled = {"batch": "b", "call": 0, "outcome": "ok", "content": "half \ud800", "error": None}
    trace = Trace([(None, 0.0, "main", "call.submitted", fields), (None, 1.0, "main", "call.settled", settled)])
    for name, rows in _TABLES.items():
        for row in rows(trace):
            "".join(map(str, row.values())).encode(), name
    assert view.call_rows(trace)[0]["content"] == "half \\ud800"


@pytest.mark.parametrize("table", _TABLES.values(), ids=list(_TABLES))
@pytest.mark.parametrize("source", [3, [3], "text", None])
def test_what_has_no_trace_is_refused(table: Any, source: object) -> None:
    """The error says what was given and what is taken."""
    with pytest.raises(DefinitionRefused, match=r"expected .* execution.*, got"):
        table(source)


@pytest.mark.seldom
@pytest.mark.parametrize("name", list(_TABLES))
def test_polars_and_pandas_take_the_rows_as_they_are(sources: list[Any], name: str) -> None:
    """A frame has the columns of the rows, and gives the same rows back."""
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    rows = _TABLES[name](sources)
    frame = polars.DataFrame(rows, infer_schema_length=None)
    assert frame.to_dicts() == rows
    assert list(pandas.DataFrame(rows).columns) == list(rows[0])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frame_of_a_report_has_a_row_for_each_outcome(library: str) -> None:
    """In the report's order, with an outcome that never came at the end."""
    pytest.importorskip(library, reason=f"{library} is not installed: pip install {library}")
    report = sim.explore(traces.lost_update, sim.Exhaustive(), outcomes={1, 2, 3})
    frame = report.to_frame(library)
    assert type(frame).__module__.split(".")[0] == library
    assert list(frame.columns) == ["outcome", "executions", "share"]
    assert dict(zip(frame["outcome"], frame["executions"], strict=True)) == {"1": 4, "2": 2, "3": 0}
    assert frame["share"].sum() == 1
    assert list(view.frame([], library, ("a", "b")).columns) == ["a", "b"]
    rows = view.execution_rows(sim.run(_two_steps))
    assert list(view.frame(rows, library).columns) == list(view.COLUMNS["executions"])


def test_frame_is_of_the_library_that_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """pandas, unless only polars is; and an extra is named where there is none."""
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars")
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    assert isinstance(view.frame([{"a": 1}]), polars.DataFrame)
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match="notebooks"):
        view.frame([{"a": 1}])
    with pytest.raises(DefinitionRefused, match="pandas"):
        view.frame([], "arrow")
