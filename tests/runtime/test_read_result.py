"""Results that are too long are kept in the state, and a model reads on in them by a handle."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from toolrt import Image, Outcome, Registry, Runtime, State, ToolCall, ToolContext, ToolResult, sim
from toolrt.model import _read_result
from toolrt.model._bounded import KEPT_MOST
from toolrt.model._read_result import KEPT_RESULTS, keep, kept
from toolrt.store import Codec


@toolrt.tool(schema=None, safe=True)
async def answers(ctx: ToolContext, value: Any) -> Any:
    await trio.lowlevel.checkpoint()
    return value


REGISTRY = Registry([answers, toolrt.read_result])


def run(runtime: Runtime, calls: list[tuple[str, dict[str, Any]]], state: State | None = None) -> toolrt.BatchOutcome:
    return trio.run(runtime.run, [ToolCall(str(index), *call) for index, call in enumerate(calls)], state)


def place(result: ToolResult) -> dict[str, Any]:
    """Where the result says that one reads on: a handle, and an offset if it names one."""
    text = result.content if isinstance(result.content, str) else result.content[-1].text
    [(handle, offset)] = re.findall(r"read_result\(handle='(\w+)'(?:, offset=(\d+))?\)", text)
    return {"handle": handle, "offset": int(offset or 0)}


def rest_of(runtime: Runtime, result: ToolResult, state: State, **limit: int) -> tuple[int, str]:
    """The offset that a result names, and all that is read from there on."""
    at = place(result)
    begins, text = at["offset"], ""
    while True:
        [page] = run(runtime, [("read_result", {**at, **limit})], state).results
        assert len(page.content) <= runtime.max_result
        told, _, part = page.content.partition("\n")
        text += part
        if told.endswith("; the end]"):
            return begins, text
        at["offset"] = int(told.partition("offset=")[2].rstrip("]"))


#: Long texts; of a character that JSON escapes, a structure's size is an estimate.
WORDS = st.text(st.characters(codec="utf-8", exclude_characters='"\\', min_codepoint=32), min_size=1, max_size=20).map(
    lambda text: text * (700 // len(text) + 1)
)

#: Numbers with more digits than a short one.
NUMBERS = {name * 350: number for name, number in (("ab", -999_999_979_520), ("cd", 0.1 + 0.2), ("ef", 7**50))}


@given(WORDS | st.lists(WORDS, min_size=1, max_size=3) | st.dictionaries(WORDS, st.integers(), min_size=1), st.data())
def test_reading_on_gives_all_of_a_result(value: Any, data: st.DataObject) -> None:
    """Page by page from where it was cut; the pages are never cut themselves."""
    whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    runtime = Runtime(REGISTRY, max_result=data.draw(st.integers(400, len(whole) - 1)))
    done = run(runtime, [("answers", {"value": value})])
    [result] = done.results
    begins, rest = rest_of(runtime, result, done.state, **data.draw(st.sampled_from([{}, {"limit": 170}])))
    assert result.content[:begins] + rest == whole
    assert Codec().decode(json.loads(json.dumps(Codec().encode(done.state)))) == done.state


@pytest.mark.parametrize("value", [NUMBERS, list(NUMBERS.values()) * 20, {"a" * 500: {}}, [[], True, False, None] * 99])
def test_answer_that_is_one_character_too_long_is_cut(value: Any) -> None:
    """The size of a structure is that of its JSON, whatever is in it."""
    size = len(json.dumps(value, separators=(",", ":")))
    for most, is_whole in ((size, True), (size - 1, False)):
        [result] = run(Runtime(REGISTRY, max_result=most), [("answers", {"value": value})]).results
        assert (result.content == value) is is_whole


def _outcomes_of_two_calls() -> sim.Report:
    """Two calls of one lane that are too long; what the model and the next batch have of them."""

    async def program() -> Any:
        calls = [ToolCall(str(size), "answers", {"value": f"{size} " * size}) for size in (300, 500)]
        done = await Runtime(REGISTRY, max_result=400).run(calls)
        return [result.content for result in done.results], [one.handle for one in done.state.long_results]

    return sim.explore(program, strategy=sim.DPOR())


def test_no_timing_decides_a_handle_or_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever call ends first; handles that count what was kept so far are caught by the same check."""
    report = _outcomes_of_two_calls()
    assert len(report.outcomes) == 1
    counted = itertools.count()
    monkeypatch.setattr(_read_result, "_handle_of", lambda text: f"{next(counted) % 2}")
    assert len(_outcomes_of_two_calls().outcomes) > 1


def test_oldest_texts_make_room_for_new_ones() -> None:
    """By number and by characters, in the order of their calls."""
    state = State()
    for index in range(KEPT_RESULTS + 1):
        state = keep(state, _read_result.LongResult(str(index), "x" * (index + 1)))
    assert [one.handle for one in state.long_results] == [str(index) for index in range(1, KEPT_RESULTS + 1)]
    state = keep(state, _read_result.LongResult("1", "xx"))
    assert [one.handle for one in state.long_results][-1] == "1"
    output = kept("y" * (KEPT_MOST + 5), 400)
    state = output.modifiers[0](state)
    assert [len(one.text) for one in state.long_results] == [KEPT_MOST]


def test_parts_of_an_answer_are_read_on_as_text() -> None:
    """The picture stays in the result, and all of the text is read from its beginning."""
    runtime = Runtime(REGISTRY, max_result=1_000)
    picture = Image(b"\x89PNG\r\n\x1a\n")
    done = run(runtime, [("answers", {"value": ["a" * 2_000, picture]})])
    [result] = done.results
    assert picture not in result.content
    begins, rest = rest_of(runtime, result, done.state)
    assert (begins, rest) == (0, f"{'a' * 2_000}\n{picture.in_words()}")


def test_unknown_handle_is_told_which_there_are() -> None:
    """An error that the model can act on."""
    runtime = Runtime(REGISTRY, max_result=400)
    state = run(runtime, [("answers", {"value": "x" * 500})]).state
    [result] = run(runtime, [("read_result", {"handle": "other"})], state).results
    assert result.outcome is Outcome.ERROR
    assert f"there are: '{state.long_results[0].handle}' (500 characters)" in str(result.error)


def test_nothing_is_kept_where_no_model_can_read_on() -> None:
    """Without the tool, and in a sub-batch, whose results a tool reads whole."""

    @toolrt.tool(schema=None)
    async def outer(ctx: ToolContext) -> int:
        done = await ctx.run([ToolCall("2", "answers", {"value": "x" * 500})])
        return len(done.results[0].content)

    done = run(Runtime(Registry([answers]), max_result=400), [("answers", {"value": "x" * 500})])
    assert done.state == State()
    assert "read_result" not in done.results[0].content
    done = run(Runtime(Registry([outer, answers, toolrt.read_result]), max_result=400), [("outer", {})])
    assert (done.results[0].content, done.state) == (500, State())
