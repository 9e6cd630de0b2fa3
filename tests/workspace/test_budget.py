"""What is answered of a file that is over its share of the context: as much as fits, and how to get the rest."""

from __future__ import annotations

import re
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from toolrt import MemoryDisk, Registry, Runtime, State, ToolCall, Workspace
from toolrt.workspace import estimated_tokens, head_and_tail
from toolrt.workspace.text._text import lines_of

LEFT_OUT = re.compile(r"^\[\.\.\. lines? (\d+)(?: to (\d+))? left out \.\.\.\]$", re.MULTILINE)


def answers(files: dict[str, str], *reads: dict[str, Any], budget: int | None = 0, **options: Any) -> list[Any]:
    """What each read is answered, or its error."""

    async def run() -> Any:
        workspace = Workspace(MemoryDisk(files), **options)
        calls = [ToolCall(f"{number}", "read_file", input) for number, input in enumerate(reads)]
        return await Runtime(Registry(workspace.tools())).run(calls, State(context_budget=budget))

    return [result.content if result.ok else result.error for result in trio.run(run).results]


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é", 1), ("日本", 2), ("\ud800", 1)]
)
def test_tokens_are_estimated_as_documented(text: str, tokens: int) -> None:
    """Bytes of UTF-8 by 4, rounded up; half a surrogate pair counts too."""
    assert estimated_tokens(text) == tokens


def test_file_of_exactly_its_share_is_answered_whole() -> None:
    """The bound belongs to what fits; one byte more does not."""
    line = "x" * 79 + "\n"
    fits, not_quite = line * 100, line * 100 + "y"
    whole, part = answers({"a": fits, "b": not_quite}, {"path": "a"}, {"path": "b"})
    assert estimated_tokens(fits) == 2000
    assert whole == fits
    assert part.startswith("[b has 101 lines, about 2001 tokens; this read may answer 2000.")


def test_line_numbers_count_for_the_share() -> None:
    """What is answered is what is counted."""
    text = "x" * 70 + "\n"
    plain, numbered = answers({"a": text * 110}, {"path": "a"}, {"path": "a", "line_numbers": True})
    assert plain == text * 110
    assert numbered.startswith("[a has 110 lines")
    assert f"\n1\t{text}2\t{text}" in numbered
    assert numbered.endswith(f"110\t{text}")


def test_skeleton_tells_the_call_that_gets_the_rest() -> None:
    """The lines it names, read as it says, are exactly those that are not shown."""
    text = "".join(f"{number} of many lines\n" for number in range(2000))
    [shown] = answers({"a": text}, {"path": "a"})
    offset, count = map(int, re.search(r"offset=(\d+) and limit \(there are (\d+) to read\)", shown).groups())
    [rest] = answers({"a": text}, {"path": "a", "offset": offset, "limit": count})
    body = shown.split("\n", 1)[1]
    gap = LEFT_OUT.search(body)
    assert (int(gap[1]), int(gap[2])) == (offset, offset + count - 1)
    assert body[: gap.start()] + rest + body[gap.end() + 1 :] == text


@pytest.mark.parametrize("more", [{"offset": 1}, {"limit": 10_000}, {"offset": 2, "limit": 9_000}])
def test_lines_that_are_named_are_always_answered(more: dict[str, int]) -> None:
    """Who asks for lines gets those lines, over the share or not."""
    lines = [f"{number} of many lines\n" for number in range(10_000)]
    [shown] = answers({"a": "".join(lines)}, {"path": "a", **more})
    first = more.get("offset", 1) - 1
    assert shown == "".join(lines[first : first + more.get("limit", len(lines))])


def test_without_a_budget_everything_is_answered() -> None:
    """Unknown is no limit."""
    assert answers({"a": "x\n" * 100_000}, {"path": "a"}, budget=None) == ["x\n" * 100_000]


def test_skeleton_and_count_are_replaceable() -> None:
    """Somebody's own skeleton, by somebody's own count."""
    asked: list[Any] = []

    def signatures(path: str, text: str, budget: int) -> str:
        asked.append((path, len(text), budget))
        return "def f(): ..."

    text = "word " * 1000
    options = {"skeleton": signatures, "tokens": lambda text: 10 * len(text.split())}
    assert answers({"a": text}, {"path": "a"}, budget=30_000, **options) == ["def f(): ..."]
    assert asked == [("a", 5000, 6000)]


@pytest.mark.parametrize("skeleton", [lambda *_: 1 / 0, lambda *_: None, lambda path, text, budget: text])
def test_skeleton_that_fails_or_is_too_long_is_replaced(skeleton: Any) -> None:
    """A read never fails for it, and never answers more than its share."""
    [shown] = answers({"a": "line\n" * 5000}, {"path": "a"}, skeleton=skeleton)
    assert shown == head_and_tail("a", "line\n" * 5000, 2000)


def test_count_that_fails_is_replaced_by_the_estimate() -> None:
    """Likewise."""
    [shown] = answers({"a": "line\n" * 5000}, {"path": "a"}, tokens=lambda text: 1 / 0)
    assert shown == head_and_tail("a", "line\n" * 5000, 2000)


def test_line_that_is_too_long_is_begun() -> None:
    """A file of one line, of a bundle or of data, shows its beginning."""
    shown = head_and_tail("a", "y" * 100_000, 500)
    assert "yyyy" in shown
    assert "[... line 1 left out ...]" in shown
    assert estimated_tokens(shown) <= 500


@given(
    lines=st.lists(st.text(alphabet="ab é\t\r", min_size=4, max_size=60), min_size=60, max_size=400),
    end=st.sampled_from(["", "\n", "\r\n"]),
    budget=st.integers(150, 1000),
)
def test_skeleton_keeps_to_its_share_and_to_the_text(lines: list[str], end: str, budget: int) -> None:
    """Its lines are the first and the last of the file, in order, and with those it names they are all."""
    text = "\n".join(lines) + end
    shown = head_and_tail("a.txt", text, budget)
    assert estimated_tokens(shown) <= budget
    if estimated_tokens(text) <= budget:
        assert shown == text
        return
    gap = LEFT_OUT.search(shown)
    first, last = int(gap[1]), int(gap[2] or gap[1])
    have = lines_of(text)
    assert 1 <= first <= last <= len(have)
    assert shown.endswith("".join(have[last:]))
    head = shown[: gap.start()].split("\n", 1)[1]
    if first > 1:
        assert head.rstrip("\n") == "".join(have[: first - 1]).rstrip("\n")
    else:
        assert have[0].startswith(head.rstrip("\n"))
