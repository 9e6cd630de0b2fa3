"""What one result may hold, for every kind of tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from toolrt import Outcome, Registry, Runtime, State, ToolCall, ToolContext, ToolOutput, ToolResult, Workspace
from toolrt.errors import DefinitionRefused
from toolrt.interop import render_results
from toolrt.model._bounded import MESSAGE_MOST, RESULT_MOST, bounded

LINES = "".join(f"line {number} of a long file\n" for number in range(1, 200_001))


def result_of(runtime: Runtime, name: str, input: Any = None, state: State | None = None) -> ToolResult:
    return trio.run(runtime.run, [ToolCall("1", name, input or {})], state).results[0]


def answering(answer: Any, **options: Any) -> toolrt.Tool:
    @toolrt.tool(safe=True, schema=None, **options)
    async def answers(ctx: ToolContext) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return answers


@pytest.mark.parametrize(
    "answer",
    ["x" * 5_000_000, ["x" * 50] * 100_000, {"rows": [{"a": 1, "b": None}] * 100_000}, [[]] * 1_000_000],
    ids=["text", "texts", "rows", "lists"],
)
def test_result_that_is_too_long_is_cut_and_says_so(answer: Any) -> None:
    """By default, for any tool."""
    result = result_of(Runtime(Registry([answering(answer)])), "answers")
    assert result.outcome is Outcome.OK
    assert len(result.content) <= RESULT_MOST
    assert "left out: a result may have 200,000" in result.content


def test_result_keeps_its_beginning_and_its_end() -> None:
    """What a command exited with stands at the end."""
    result = result_of(Runtime(Registry([answering("a" * 500 + "b" * 500)]), max_result=400), "answers")
    assert result.content.startswith("aaa")
    assert result.content.endswith("bbb")
    assert len(result.content) <= 400


def test_error_is_bounded_as_content_is() -> None:
    """Also the text of an exception."""
    for answer in (ValueError("x" * 1_000_000), ToolOutput(error="x" * 1_000_000)):
        result = result_of(Runtime(Registry([answering(answer)])), "answers")
        assert result.outcome is Outcome.ERROR
        assert len(result.error or "") <= RESULT_MOST


def test_tool_says_how_much_its_results_may_have() -> None:
    """Its own bound goes before the runtime's."""
    long = "x" * 300_000
    assert result_of(Runtime(Registry([answering(long, max_result=300_000)])), "answers").content == long
    assert len(result_of(Runtime(Registry([answering(long, max_result=1_000)])), "answers").content) <= 1_000
    assert result_of(Runtime(Registry([answering(long)]), max_result=None), "answers").content == long


def test_tool_reads_what_its_result_may_have() -> None:
    """So it can answer page by page."""

    @toolrt.tool(safe=True, schema=None)
    async def told(ctx: ToolContext) -> int | None:
        return ctx.max_result

    assert result_of(Runtime(Registry([told])), "told").content == RESULT_MOST
    assert result_of(Runtime(Registry([told]), max_result=None), "told").content is None


def test_results_of_a_sub_batch_are_whole() -> None:
    """A tool reads them, no model; what it answers is bounded."""

    @toolrt.tool(schema=None)
    async def outer(ctx: ToolContext) -> int:
        done = await ctx.run([ToolCall("2", "answers", {})])
        return len(done.results[0].content)

    assert result_of(Runtime(Registry([outer, answering("x" * 300_000)])), "outer").content == 300_000


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "many"])
def test_bound_that_is_no_number_of_characters_is_refused(value: Any) -> None:
    """Where it is given."""
    with pytest.raises(DefinitionRefused, match="max_result"):
        Runtime(Registry([]), max_result=value)
    with pytest.raises(DefinitionRefused, match="max_result"):
        answering("x", max_result=value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.just(object()),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@given(JSON, st.integers(1, 300))
def test_bound_holds_for_every_value(value: Any, most: int) -> None:
    """What a model is sent of it is not much longer, and the same each time."""
    cut = bounded(value, most)
    assert bounded(value, most) == cut or cut is value
    if isinstance(cut, str):
        assert len(cut) <= most + 60


def test_value_that_holds_itself_is_bounded() -> None:
    """It has no end."""
    endless: list[Any] = [1]
    endless.append(endless)
    assert len(bounded(endless, 100)) <= 100
    assert isinstance(render_results([result_of(Runtime(Registry([answering(endless)])), "answers")], "calls"), list)


class Closed(list[Any]):
    """A list that is read from where it came, which has been closed."""

    def __iter__(self) -> Iterator[Any]:
        raise OSError("it is closed")


def test_value_that_cannot_be_read_costs_no_other_call_its_answer() -> None:
    """Its own code raises; it is told by its text, and the batch goes on."""
    runtime = Runtime(Registry([answering(Closed([1]))]))
    results = trio.run(runtime.run, [ToolCall("a", "answers", {}), ToolCall("b", "answers", {})]).results
    assert [result.outcome.value for result in results] == ["ok", "ok"]
    assert [message["content"] for message in cast(Any, render_results(results, "calls"))] == ["[1]", "[1]"]


# Files


def test_whole_file_that_is_too_long_says_which_lines_to_ask_for(tmp_path: Any) -> None:
    """Without a context budget too."""
    (tmp_path / "a.txt").write_text(LINES)
    runtime = Runtime(Registry(Workspace(tmp_path).tools()))
    result = result_of(runtime, "read_file", {"path": "a.txt"})
    assert len(result.content) <= RESULT_MOST
    assert result.content.startswith("[a.txt has 200000 lines")
    assert "with offset=" in result.content.splitlines()[0]


@pytest.mark.parametrize("line_numbers", [False, True])
def test_reading_on_as_a_file_says_gives_all_of_it(tmp_path: Any, line_numbers: bool) -> None:
    """Page by page, no line is left out or comes twice."""
    (tmp_path / "a.txt").write_text(LINES[:300_000])
    runtime = Runtime(Registry(Workspace(tmp_path).tools()), max_result=20_000)
    offset, read = 1, ""
    while True:
        input = {"path": "a.txt", "offset": offset, "line_numbers": line_numbers}
        content = result_of(runtime, "read_file", input).content
        assert len(content) <= 20_000
        notice, _, rest = content.partition("\n")
        if "read on with offset=" not in notice:
            read += content
            break
        read += rest
        offset = int(notice.partition("offset=")[2].rstrip(".]"))
    if line_numbers:
        read = "".join(line.partition("\t")[2] for line in read.splitlines(keepends=True))
    assert read == LINES[:300_000]


def test_line_that_is_too_long_is_shown_from_its_beginning(tmp_path: Any) -> None:
    """No page can hold it."""
    (tmp_path / "a.txt").write_text("first\n" + "x" * 500_000)
    runtime = Runtime(Registry(Workspace(tmp_path).tools()))
    content = result_of(runtime, "read_file", {"path": "a.txt", "offset": 2}).content
    assert content.startswith("[a.txt: the beginning of line 2 of what was asked for")
    assert len(content) <= RESULT_MOST
    assert content.endswith("xxx")


async def test_progress_that_is_too_long_is_cut_and_says_so() -> None:
    """A text keeps its beginning and its end, anything else the beginning of its JSON; what fits stays what it is."""
    fits: list[Any] = ["x" * MESSAGE_MOST, {"progress": 1, "message": "page"}, None, object()]

    @toolrt.tool(safe=True, schema=None)
    async def tells(ctx: ToolContext) -> None:
        for message in (*fits, "a" * MESSAGE_MOST + "b" * MESSAGE_MOST, {"rows": ["x" * 50] * 100_000}):
            ctx.progress(message)

    async with Runtime(Registry([tells])).open_batch() as batch:
        batch.submit(ToolCall("1", "tells", {}))
        batch.seal()
        told = [update.message async for update in batch if isinstance(update, toolrt.Progress)]
    assert all(one is other for one, other in zip(told[:-2], fits, strict=True))
    text, rows = told[-2:]
    assert (text[:3], text[-3:]) == ("aaa", "bbb")
    assert "\n[... 100,000 characters left out: a progress message may have 100,000 characters ...]\n" in text
    assert rows.startswith('{"rows":["xxx')
    assert rows.endswith("the rest left out: a progress message may have 100,000 characters ...]\n")
    assert all(len(one) < MESSAGE_MOST + 200 for one in (text, rows))
