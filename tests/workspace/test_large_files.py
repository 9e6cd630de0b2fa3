"""Lines of files that are too large to be read as a whole, and the last lines of any file, alike on both disks."""

from __future__ import annotations

import pytest
import trio

import toolrt
from tests.workspace.test_tools import refusal
from toolrt.model import Registry, State, ToolCall
from toolrt.workspace import SIZE_LIMIT, MemoryDisk, Workspace
from toolrt.workspace.tools import _large_file


@pytest.fixture
def small_limits(monkeypatch):
    """Files of more than 20 bytes are large, and are read 9 bytes at a time."""
    monkeypatch.setattr("toolrt.workspace.tools._reading.SIZE_LIMIT", 20)
    monkeypatch.setattr(_large_file, "_BLOCK", 9)


async def test_lines_of_a_large_file_are_read(tree, call):
    """From its beginning, its middle and its end; as a whole it is refused, and the refusal says how to go on."""
    lines = [f"line {number}\n" for number in range(1, 1_000_001)]
    tree.put("log", "".join(lines).encode())
    assert await call(tree, "read_file", path="log", limit=2) == "line 1\nline 2\n"
    assert await call(tree, "read_file", path="log", offset=765_432, limit=1) == "line 765432\n"
    assert await call(tree, "read_file", path="log", tail=2, line_numbers=True) == "".join(
        f"{number}\tline {number}\n" for number in (999_999, 1_000_000)
    )
    assert (await refusal(call, tree, "read_file", path="log", offset=1_000_001)).expected == (
        "offset of at most 1000000"
    )
    assert "with offset and limit, or with tail" in (await refusal(call, tree, "read_file", path="log")).remedy


TEXTS = [
    "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n",
    "1\r\n2\r3\n4\r\r5\r\n\r\n6\n\r7\n8\r\n9",
    "\ufeffé\n日本語\n\nö\r\n日本語日本語\r\nz",
    "\n" * 30,
    "\r" * 25 + "\n",
    "one line alone, of no end",
]


@pytest.mark.drawn(20)
@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    ("encoding", "named"),
    [("utf-8", None), ("utf-16-le", None), ("utf-16-be", "utf-16-be"), ("utf-32-le", None), ("cp500", "cp500")],
)
async def test_blocks_give_the_lines_that_the_whole_has(tree, call, monkeypatch, text, encoding, named):
    """Wherever a block ends: in a line end of several bytes, or in a character, or in a half of one."""
    text = text.replace("日本", "日😀") + "😀" * 3
    marked = "" if named or encoding == "utf-8" else "\ufeff"
    content = (marked + text).encode(encoding, "xmlcharrefreplace" if len("\n".encode(encoding)) == 1 else "strict")
    tree.put("a", content)
    large = []
    ranges = [
        *({"offset": offset, "limit": limit} for offset in range(1, 14) for limit in (None, 1, 2, 9)),
        *({"tail": tail} for tail in range(1, 40)),
    ]
    ranges += [{**one, "line_numbers": True} for one in ranges]

    async def answer(more):
        try:
            return await call(tree, "read_file", path="a", encoding=named, **more)
        except toolrt.workspace.FileProblem as problem:
            return problem.expected

    for more in ranges:
        large.append(await answer(more))
    monkeypatch.setattr("toolrt.workspace.tools._reading.SIZE_LIMIT", SIZE_LIMIT)
    assert [await answer(more) for more in ranges] == large


@pytest.mark.usefixtures("small_limits")
async def test_large_file_in_a_named_encoding(tree, call):
    """A character may have the bytes of a line end in it, elsewhere than in UTF-16 only its own."""
    tree.put("a", "日本語\nテキスト\n終わり\n".encode("shift_jis"))
    assert await call(tree, "read_file", path="a", offset=2, limit=1, encoding="shift_jis") == "テキスト\n"
    assert await call(tree, "read_file", path="a", tail=1, encoding="shift_jis") == "終わり\n"
    tree.put("b", "\ufeff\u0a0a\u0d0d\n\u0a00\u000d\u0a0a\n終わり\n".encode("utf-16-le"))
    assert await call(tree, "read_file", path="b", tail=1) == "終わり\n"
    assert await call(tree, "read_file", path="b", offset=2, limit=2) == "\u0a00\r\u0a0a\n"


@pytest.mark.usefixtures("small_limits")
async def test_large_file_that_is_no_text_is_refused(tree, call):
    """As a small one is; only the lines asked for have to be text."""
    tree.put("a", b"text\n" + b"\xff\xfe\n" * 9 + b"a\0b\n" + b"end\n")
    assert await call(tree, "read_file", path="a", limit=1) == "text\n"
    assert await call(tree, "read_file", path="a", tail=1) == "end\n"
    tree.put("b", "\ufeffone\ntwo\nthree\n".encode("utf-16-le") + b"x")
    assert await call(tree, "read_file", path="b", offset=2, limit=1) == "two\n"
    assert "not UTF-16-LE" in (await refusal(call, tree, "read_file", path="b", tail=1)).got
    assert "not UTF-8" in (await refusal(call, tree, "read_file", path="a", offset=2, limit=1)).got
    assert "binary data" in (await refusal(call, tree, "read_file", path="a", tail=2)).got


@pytest.mark.parametrize("tail", [1, 2, 9])
async def test_tail_is_the_last_lines(tree, call, tail):
    """Of a small file too."""
    tree.put("a", "1\r\n2\n3")
    lines = ["1\t1\r\n", "2\t2\n", "3\t3"]
    assert await call(tree, "read_file", path="a", tail=tail, line_numbers=True) == "".join(lines[-tail:])


@pytest.mark.parametrize("more", [{"tail": 0}, {"tail": -1}, {"tail": 1, "offset": 1}, {"tail": 1, "limit": 1}])
async def test_tail_stands_alone(tree, call, more):
    """How many lines at the end: that says all of the range."""
    tree.put("a", "1\n2\n")
    await refusal(call, tree, "read_file", path="a", **more)


def answer(text, **input):
    """The answer of a runtime whose results have at most 500 characters."""
    runtime = toolrt.Runtime(Registry(Workspace(MemoryDisk({"a": text})).tools()), max_result=500)
    return trio.run(runtime.run, [ToolCall("id", "read_file", {"path": "a", **input})], State()).results[0].content


@pytest.mark.seldom
@pytest.mark.parametrize("count", [400, 2_000_000], ids=["small", "large"])
def test_lines_that_do_not_fit_are_left_out_and_named(count):
    """A range says where to read on; the end of a file says that there are too many."""
    text = "".join(f"{number % 10_000_000:06}\n" for number in range(1, count + 1))
    assert len(text) > SIZE_LIMIT or count == 400
    notice, rest = answer(text, offset=101).split("\n", 1)
    shown = rest.splitlines()
    to = "the end" if count > 400 else f"line {count}"
    assert notice == (
        f"[a: lines 101 to {100 + len(shown)} of those asked for (to {to}), as a result may have 500 characters; "
        f"read on with offset={101 + len(shown)}.]"
    )
    assert shown == [f"{number:06}" for number in range(101, 101 + len(shown))]
    notice, rest = answer(text, tail=300).split("\n", 1)
    shown = rest.splitlines()
    assert notice.startswith(f"[a: the last {len(shown)} lines of those asked for, as a result may have 500 char")
    assert shown == [f"{number:06}" for number in range(count - len(shown) + 1, count + 1)]
    assert len(answer(text, tail=300)) <= 500


def test_memory_is_bounded_by_the_answer(monkeypatch):
    """No more is held of a large file than an answer may have, and some blocks."""
    most = 0
    text_of = _large_file.LargeFile._text

    def measured(self, content, *, cut=False):
        nonlocal most
        most = max(most, len(content))
        return text_of(self, content, cut=cut)

    monkeypatch.setattr(_large_file.LargeFile, "_text", measured)
    text = "x" * 79 + "\n"
    for more in ({"offset": 5}, {"tail": 200_000}):
        assert answer(text * 200_000, **more)
    assert 500 < most <= 2 * 1024 * 1024
