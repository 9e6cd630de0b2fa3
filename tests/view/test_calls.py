"""What the events of a batch say of its calls: whom each waits for, and how its time is divided."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.view import _traces as traces
from toolrt import view
from toolrt.model import READ, WRITE, Claim
from toolrt.trace import Trace
from toolrt.view._calls import batches_of, calls_of
from toolrt.view._document import document_of
from toolrt.view._short import one_line, short, short_text


def test_time_of_a_call_is_divided_into_spans_that_touch() -> None:
    """From its submission to the moment its result is read there is no gap and no overlap."""
    for trace in (traces.recorded("batch"), traces.live_batch(), traces.large(40)):
        for call in calls_of(trace):
            assert call.spans[0].start == call.submitted
            for one, other in zip(call.spans, call.spans[1:], strict=False):
                assert one.end == other.start
            assert all(span.start < span.end for span in call.spans)


def test_phases_are_those_that_the_runtime_went_through() -> None:
    """The second on one counter waits for the first, one beyond the limit for a place, one alone for its lane."""
    calls = {call.index: call for call in calls_of(traces.live_batch())}
    phases = {index: [span.phase for span in call.spans] for index, call in calls.items()}
    assert phases[0][:3] == ["lane", "soon", "runs"]
    assert phases[1][:4] == ["lane", "tickets", "slot", "runs"]
    assert phases[2][:3] == ["lane", "slot", "runs"]
    assert "tickets" not in phases[3]
    assert phases[5] == ["lane", "kept"]
    assert calls[1].waits_for == [0]
    assert [call.outcome for call in calls.values()] == ["ok", "ok", "ok", "error", "ok", "invalid"]


_CLAIMS = st.lists(
    st.builds(
        Claim,
        st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(tuple),
        st.sampled_from([READ, WRITE]),
        st.booleans(),
    ),
    max_size=3,
)


@given(claims=st.lists(_CLAIMS, min_size=1, max_size=6))
def test_calls_wait_for_those_whose_claims_conflict(claims: list[list[Claim]]) -> None:
    """Whom a call waits for is what the claims' own rule says, pair by pair."""
    fields: dict[str, Any] = {"batch": "b"}
    events: list[Any] = [
        (None, 0.0, "main", "call.submitted", {**fields, "call": index, "call_id": "", "name": "x", "input": {}})
        for index in range(len(claims))
    ]
    for index, mine in enumerate(claims):
        told = [[claim.mode.value, list(claim.resource), claim.subtree] for claim in mine]
        more = {"call": index, "lane": 0, "shared": True, "claims": told, "stops": False, "reads_only": False}
        events.append((None, 0.0, "main", "ticket.taken", {**fields, **more}))
    found = calls_of(Trace(events))
    assert [call.index for call in found] == list(range(len(claims)))
    for call in found:
        expected = [
            index
            for index in range(call.index)
            if any(one.conflicts_with(other) for one in claims[index] for other in claims[call.index])
        ]
        assert call.waits_for == expected
    (batch,) = document_of([Trace(events)], ["one"], "x")["runs"][0]["batches"]
    for shown in batch["calls"]:
        mine = claims[shown["index"]]
        assert shown["claims"] == [str(claim) for claim in mine]
        assert [holder[0] for holder in shown["holders"]] == shown["waits"]
        for index, own, held in shown["holders"]:
            assert mine[own].conflicts_with(claims[index][held])


def test_claims_that_are_odd_are_left_out() -> None:
    """A trace from elsewhere may claim anything: what is no claim holds back no call, and the batch has its page."""
    fields: dict[str, Any] = {"batch": "b"}
    odd = [
        ["write", ["a"], False],
        ["own", ["a"], False],
        "write a",
        ["write", [["a"]], False],
        ["write", [None], True],
    ]
    events: list[Any] = []
    for index in range(2):
        events.append((None, 0.0, "main", "call.submitted", {**fields, "call": index, "name": "x"}))
        more = {"call": index, "lane": 0, "shared": True, "claims": odd if index else odd[1:], "stops": False}
        events.append((None, 0.0, "main", "ticket.taken", {**fields, **more}))
    (batch,) = document_of([Trace(events)], ["one"], "x")["runs"][0]["batches"]
    assert [call["claims"] for call in batch["calls"]] == [["?"] * 4, ["write a", *["?"] * 4]]
    assert all(len(holder) == 1 for call in batch["calls"] for holder in call["holders"])


def test_stopping_call_holds_back_those_that_do_more_than_read() -> None:
    """What follows a call that may stop the batch waits for it, unless it only reads."""
    fields: dict[str, Any] = {"batch": "b"}
    events: list[Any] = []
    for index, (stops, reads) in enumerate([(True, False), (False, False), (False, True)]):
        events.append((None, 0.0, "main", "call.submitted", {**fields, "call": index, "name": "x"}))
        more = {"call": index, "lane": 0, "shared": True, "claims": [], "stops": stops, "reads_only": reads}
        events.append((None, 0.0, "main", "ticket.taken", {**fields, **more}))
    assert [call.waits_for for call in calls_of(Trace(events))] == [[], [0], []]
    (batch,) = document_of([Trace(events)], ["one"], "x")["runs"][0]["batches"]
    assert [call["holders"] for call in batch["calls"]] == [[], [[0]], []]


def test_batch_inside_a_call_says_so() -> None:
    """A sub-batch is called after the call that opened it, in every picture."""
    fields = {"policy": "parallel", "limit": 2, "state": {}}
    events = [
        (None, 0.0, "main", "batch.opened", {"batch": "a", "parent": None, **fields}),
        (None, 0.0, "main", "call.submitted", {"batch": "a", "call": 0, "name": "x"}),
        (None, 0.0, "main.0", "batch.opened", {"batch": "b", "parent": ["a", 0], **fields}),
        (None, 0.0, "main.0", "call.submitted", {"batch": "b", "call": 0, "name": "y"}),
    ]
    trace = Trace(events)
    assert [batch.label for batch in batches_of(trace)] == ["batch a", "batch b in [0] of a"]
    for draw in (view.text, view.svg, view.chrome):
        assert "batch b in [0] of a" in draw(trace)
    assert '"label":"batch b in [0] of a"' in view.show(trace).html


# ---------------------------------------------------------------------- short texts


def test_long_texts_say_how_much_is_left_out() -> None:
    """A text, a list and an object are cut, and each says by how much."""
    assert short_text("a" * 400) == "a" * 400
    assert short_text("a" * 1_401) == "a" * 400 + "… (+1,001 characters)"
    assert short(list(range(51)))[-1] == "… (+1)"
    assert short({str(number): number for number in range(60)})["…"] == "+10"
    deep: Any = "x"
    for _ in range(50):
        deep = [deep]
    assert "…" in repr(short(deep))


@pytest.mark.parametrize("number", [2**53, -(2**53), 10**5000], ids=["above", "below", "far above"])
def test_number_that_no_browser_holds_is_a_text(number: int) -> None:
    """A browser would round it."""
    assert isinstance(short(number), str)
    assert short(2**53 - 1) == 2**53 - 1


@given(text=st.text(), most=st.integers(1, 80))
def test_one_line_is_one_line(text: str, most: int) -> None:
    """Whatever is in it, nothing a terminal acts on is left, and it is as short as asked."""
    written = one_line(text, most)
    assert len(written) <= most
    assert all(each.isprintable() or unicodedata.category(each) == "Zs" for each in written)


def test_document_of_ten_thousand_events_is_small() -> None:
    """Two megabytes at most: a page of it opens at once."""
    trace = traces.large(1_000)
    assert len(str(document_of([trace], ["one"], "large"))) < 3_000_000
