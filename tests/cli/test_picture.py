"""The parts of the live view: what is painted, who is counted, what is said."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.cli._terminal import Window
from toolrt import Outcome, ToolCall, ToolResult
from toolrt.cli.screen._census import CallStage, Census
from toolrt.cli.screen._painter import Painter, fitted
from toolrt.cli.screen._picture import Glyphs, GrowthRate, clock
from toolrt.cli.screen._said import in_bytes, said_in, size_of
from toolrt.order import CallMove, CallRecord, CallState, Siblings, TrackedCall, TrackedCalls

TEXTS = st.text(alphabet="ab 値é━", max_size=30)


@pytest.fixture(autouse=True, scope="module")
def stops_mean_what_they_meant() -> Iterator[None]:
    """Pictures here are not taken away in the end, and hear of Ctrl-Z as long as they are there."""
    stops = getattr(signal, "SIGTSTP", None)
    before = None if stops is None else signal.getsignal(stops)
    yield
    if stops is not None:
        signal.signal(stops, before)


class Emulated:
    """A window in memory: what is painted is shown at once."""

    def __init__(self, columns: int, rows: int, reflows: bool) -> None:
        self.window = Window(columns, rows, reflows=reflows)
        self.size = (columns, rows)
        self.painter = Painter(self, lambda: self.size, lambda text, style: text, reflows)  # type: ignore[arg-type]

    encoding = "utf-8"

    def fileno(self) -> int:
        """It is no file."""
        raise OSError

    def flush(self) -> None:
        """Nothing is kept."""

    def write(self, text: str) -> int:
        """Show it, as a terminal does that makes a line feed a new line."""
        self.window.feed(text.replace("\n", "\r\n").encode())
        return len(text)

    def resize(self, columns: int, rows: int) -> None:
        """Another size."""
        self.size = (columns, rows)
        self.window.resize(columns, rows)


@pytest.mark.seldom
@settings(max_examples=60)
@given(
    st.booleans(),
    st.lists(st.tuples(st.lists(TEXTS, min_size=1, max_size=6), st.integers(12, 60)), min_size=1, max_size=8),
)
def test_painted_picture_is_what_is_shown(reflows: bool, pictures: list[tuple[list[str], int]]) -> None:
    """Whatever was painted before, and however wide the window was: each line in its row, cut, and nothing else."""
    shown = Emulated(pictures[0][1], 40, reflows)
    try:
        shown.write("above\n")
        for lines, columns in pictures:
            shown.resize(columns, 40)
            for _ in range(3):  # the size has to stay as it is before anything is drawn
                shown.painter.paint([[(line, "")] for line in lines])
            wanted = ["".join(text for text, _ in fitted([(line, "")], columns)).rstrip() for line in lines]
            found = [row.rstrip() for row in shown.window.screen.display]
            assert found[: 1 + len(lines)] == ["above", *wanted]
            assert not any(found[1 + len(lines) :])
        shown.painter.wipe()
        assert shown.window.rows() == ["above"]
        assert not shown.window.cursor_is_hidden
    finally:
        shown.window.close()


@given(st.lists(TEXTS, max_size=5), st.integers(1, 40))
def test_fitted_line_is_never_wider(texts: list[str], width: int) -> None:
    """In columns, not in characters; what fits is whole."""
    line = [(text, "") for text in texts]
    shown = "".join(text for text, _ in fitted(line, width))
    assert cell_len(shown) <= width
    if cell_len("".join(texts)) <= width:
        assert shown == "".join(texts)


def test_painter_sends_only_lines_that_changed() -> None:
    """And the last one, where what was typed shows."""
    shown = Emulated(40, 20, False)
    sent: list[str] = []
    shown.write = lambda text: sent.append(text) or len(text)  # type: ignore[func-returns-value,method-assign]
    try:
        for number in range(3):
            shown.painter.paint([[("same", "")], [(f"number {number}", "")], [("last", "")]])
        assert ("same" in sent[0], "same" in sent[2], "number 2" in sent[2], "last" in sent[2]) == (
            True,
            False,
            True,
            True,
        )
    finally:
        shown.window.close()


def test_line_that_is_wider_than_known_takes_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terminals do not agree how wide some characters are: what does not fit is not shown, and nothing moves."""
    monkeypatch.setattr("toolrt.cli.screen._painter.cell_len", lambda text: len(text) // 2)
    shown = Emulated(20, 10, False)
    try:
        for _ in range(3):
            shown.painter.paint([[("first", "")], [("x" * 30, "")], [("last", "")]])
        assert [row[:5] for row in shown.window.rows()] == ["first", "xxxxx", "last"]
    finally:
        shown.window.close()


class Asked(TrackedCall):
    """A view of a call that counts how often it is asked."""

    __slots__ = ()

    asked = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "state":
            Asked.asked += 1
        return super().__getattribute__(name)


def calls_of(count: int) -> Siblings:
    calls = Siblings()
    calls += [CallRecord(ToolCall(str(index), "t"), index, "b", 0.0, calls) for index in range(count)]
    return calls


def settle(call: CallRecord, outcome: Outcome = Outcome.OK) -> ToolResult:
    call.result = ToolResult(call.call_id, call.call_index, call.name, outcome, None, None, 0)
    call.happen(CallMove.SETTLE)
    if call.admitted:
        call.happen(CallMove.END)
    return call.result


#: What brings a call further that waits.
NEXT = {
    CallState.PLACED: CallMove.TAKE,
    CallState.WAITING: CallMove.GRANT,
    CallState.READY: CallMove.SPAWN,
    CallState.SPAWNED: CallMove.START,
}


@given(
    st.integers(1, 12),
    st.integers(1, 15),
    st.lists(st.tuples(st.integers(0, 11), st.sampled_from(["on", "on", "end", "hand over", "look"])), max_size=80),
)
def test_census_comes_to_the_truth(count: int, most: int, happenings: list[tuple[int, str]]) -> None:
    """However few it asks in one look: when nothing happens for a while, each count is what is so."""
    calls = calls_of(count)
    census = Census(TrackedCalls(calls), most)
    for index, what in happenings:
        call = calls[index % count]
        if what == "look":
            census.look(1.0)
        elif what == "hand over":
            if call.status.value == "completed" and call.result is not None:
                call.happen(CallMove.YIELD)
                census.handed_over(call.result)
        elif call.status.value == "executing" or (what == "end" and call.result is None):
            settle(call, Outcome.OK if index % 2 else Outcome.ERROR)
        elif call.result is None:
            call.happen(NEXT[call.state])
    for _ in range(2 * (count // most + 2)):
        census.look(2.0)
    running = [call.call_index for call in calls if call.state in (CallState.SPAWNED, CallState.RUNNING)]
    ended = [call.result for call in calls if call.result is not None]
    assert sorted(census.running) == running
    assert census.counts[CallStage.ENDED] == len(ended)
    assert census.counts[CallStage.RUNNING] + census.waiting == count - len(ended)
    assert sum(census.outcomes.values()) == len(ended)
    assert census.outcomes[Outcome.ERROR] == sum(result.outcome is Outcome.ERROR for result in ended)
    left = [call.call_index for call in calls if call.result is None]
    assert (census.first_left is None) == (not left)
    if left:
        assert census.first_left == TrackedCall(calls[left[0]])
    assert [call.call_index for call in census.first_running(count)] == running
    waiting = [each for each in left if each not in running]
    shown = [call.call_index for call in census.first_waiting(count)]
    assert shown == waiting if most >= count else set(shown) <= set(waiting)


def test_census_asks_a_bounded_number_of_calls() -> None:
    """Of a hundred thousand calls a look asks as many as of five thousand; the twin: of ten it asks ten."""
    for count, most_asked in ((100_000, 5_000), (10, 10)):
        census = Census([Asked(record) for record in calls_of(count)])
        for _ in range(3):
            Asked.asked = 0
            census.look(0.0)
            assert Asked.asked <= 2 * most_asked
        assert Asked.asked >= most_asked


def test_census_counts_a_result_that_a_stop_replaced() -> None:
    """What was seen to be OK and is handed over as skipped was skipped."""
    (call,) = calls_of(1)
    census = Census([TrackedCall(call)])
    settle(call)
    census.look(0.0)
    assert dict(census.outcomes) == {Outcome.OK: 1}
    census.handed_over(ToolResult(call.call_id, 0, "t", Outcome.SKIPPED, None, None, 0))
    assert +census.outcomes == {Outcome.SKIPPED: 1}


@pytest.mark.parametrize(
    ("message", "text", "share", "written"),
    [
        ("counting", "counting", None, None),
        ("code: 30 of 40 files read", "code: 30 of 40 files read", 0.75, None),
        ("at 12.5%, then 50 %", "at 12.5%, then 50 %", 0.5, None),
        ("error 404 of 200 requests", "error 404 of 200 requests", None, None),
        ("2024/10/11", "2024/10/11", None, None),
        ({"progress": 1, "total": 4}, "1 of 4", 0.25, None),
        ({"progress": 9, "total": 4, "message": "x\ny"}, "x\\ny", 1.0, None),
        ({"progress": 1}, "{'progress': 1}", None, None),
        ({"progress": float("nan"), "total": 1}, "{'progress': nan, 'total': 1}", None, None),
        ({"done": 1, "of": 2}, "1 of 2", 0.5, None),
        ({"output": "a\n70% b\n", "offset": 10}, "70% b", None, 18),
        ({"output": "é\n", "offset": 0}, "é", None, 3),
        ({"output": "\n"}, "", None, None),
        ({"path": "a.py", "message": {"done": 1, "of": 2}}, "a.py: 1 of 2", 0.5, None),
        ({"message": "50%"}, "50%", 0.5, None),
        (b"bytes", "b'bytes'", None, None),
        (None, "None", None, None),
    ],
)
def test_said_is_told_in_words(message: object, text: str, share: float | None, written: int | None) -> None:
    """What states how far it is has a bar; in a command's output a number is only a number."""
    said = said_in(message)
    assert (said.text, said.share, said.written) == (text, share, written)


@pytest.mark.seldom
@given(
    st.recursive(
        st.none() | st.floats() | st.text() | st.binary(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["output", "offset", "progress", "total", "path", "message", "done", "of"]), inner
            )
        ),
    )
)
def test_anything_can_be_said(message: Any) -> None:
    """It is one harmless line, a share from 0 to 1, and a size."""
    said = said_in(message)
    assert len(said.text.splitlines()) <= 1
    assert all(character.isprintable() or character == " " or character.isspace() for character in said.text)
    assert said.share is None or 0 <= said.share <= 1
    assert size_of(message) >= 0


def test_bars_are_drawn_in_what_the_encoding_has() -> None:
    """Halves count where there is a sign for them."""
    parts = Glyphs.for_encoding("utf-8").bar(0.55, 10)
    assert "".join(text for text, _ in parts) == "━━━━━╸────"
    parts = Glyphs.for_encoding("latin-1").bar(0.5, 10)
    assert "".join(text for text, _ in parts) == "#####....."
    assert [len("".join(text for text, _ in Glyphs.for_encoding("ascii").bar(share, 7))) for share in (0, 1)] == [7, 7]


def test_rate_is_that_of_the_last_seconds() -> None:
    """None before there is a second; what was long ago does not count."""
    rate = GrowthRate()
    assert [rate.per_second(now, value) for now, value in ((0.0, 0), (0.5, 50), (1.0, 100))] == [None, None, 100.0]
    for second in range(2, 30):
        assert rate.per_second(float(second), 100) is not None
    assert rate.per_second(30.0, 100) == 0


def test_numbers_are_short() -> None:
    """Bytes and times."""
    assert [in_bytes(count) for count in (0, 999, 1000, 9_940, 123_456, 2_000_000, 5e12)] == [
        "0 B", "999 B", "1.0 kB", "9.9 kB", "123 kB", "2.0 MB", "5,000 GB",
    ]  # fmt: skip
    assert [clock(seconds) for seconds in (-1, 7.9, 754, 3723)] == ["0:00", "0:07", "12:34", "1:02:03"]
