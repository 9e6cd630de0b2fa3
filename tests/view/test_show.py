"""``show``: what it takes, and what it gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.view import _traces as traces
from toolrt import sim, view
from toolrt.errors import DefinitionRefused
from toolrt.trace import Trace


def _runs(page: view.Page) -> list[dict[str, Any]]:
    document = json.loads(page.html.split('id="document">')[1].split("</script>")[0])
    runs: list[dict[str, Any]] = document["runs"]
    return runs


def test_execution_shows_itself() -> None:
    """``execution.show()`` is ``view.show(execution)``."""
    execution = sim.run(traces.lost_update, sim.Choices(), details=True)
    assert execution.show().html == view.show(execution).html
    assert _runs(execution.show())[0]["details"]["accesses"]


def test_failure_shows_itself_beside_what_passes() -> None:
    """``failure.show()`` has the minimal failure and the nearest schedule that passes, by these names."""
    failing = sim.explore(traces.lost_update, sim.Exhaustive(), lambda execution: execution.value == 2).failures[0]
    assert [run["name"] for run in _runs(failing.show())] == ["fails", "passes"]
    always = sim.explore(traces.lost_update, sim.Exhaustive(), lambda execution: False).failures[0]
    assert [run["name"] for run in _runs(always.show())] == ["fails"]


def test_page_is_saved_as_utf_8(tmp_path: Path) -> None:
    """The file is the page, whatever the locale says."""
    page = view.show(Trace(), title="注文 é")
    path = page.save(tmp_path / "page.html")
    assert path.read_bytes() == page.html.encode()
    assert "注文 é" in page.html
    assert repr(page) == "<Page '注文 é': <Trace of 0 steps and 0 events>>"


def test_same_trace_gives_the_same_page() -> None:
    """Byte for byte, also after it was written to JSON and read."""
    trace = traces.recorded("batch")
    assert view.show(trace).html == view.show(Trace.from_json(trace.to_json())).html


@pytest.mark.parametrize("names", [["one", "two"], [], "o", [1]])
def test_names_that_do_not_fit_are_refused(names: Any) -> None:
    """One name for each of what is shown."""
    with pytest.raises(DefinitionRefused, match="1 texts"):
        view.show(Trace(), names=names)


def test_second_that_has_no_trace_is_refused() -> None:
    """Both have to have one."""
    with pytest.raises(DefinitionRefused, match=r"show\(other\)"):
        view.show(Trace(), "trace")  # type: ignore[arg-type]


def test_two_recordings_part_where_what_happens_differs() -> None:
    """Recordings without steps are compared by their events: neither times nor names of batches count."""
    one, other = traces.large(3), traces.large(4)
    events = [
        (None, event.time + 5, event.task, event.kind, {**event.fields, "batch": "other"}) for event in one.events
    ]
    page = view.show(one, Trace(events, (), {}))
    assert f'"parting":{{"unit":"events","before":{len(one.events)},' in page.html
    first = next(
        index for index, pair in enumerate(zip(one.events, other.events, strict=False)) if pair[0].kind != pair[1].kind
    )
    assert f'"parting":{{"unit":"events","before":{first},' in view.show(one, other).html


def test_large_trace_has_all_edges_and_no_races(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where races would take too long to find, that is said by there being no list, and all edges are shown."""
    from toolrt.view import _document

    trace = traces.recorded("lost")
    monkeypatch.setattr(_document, "_MOST_CLOCKED", 3)
    (run,) = _runs(view.show(trace))
    assert run["races"] is None
    assert len(run["edges"]) == len(trace.edges) > len(trace.direct_edges)
