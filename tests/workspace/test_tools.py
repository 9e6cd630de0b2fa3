"""read_file, write_file, edit_file, alike on the real disk and on the twin."""

from __future__ import annotations

import base64
import hashlib
import json
import os

import pytest
import trio

from tests.workspace._called import Told, refusal
from toolrt import probe
from toolrt.model import EVERYTHING, READ, WRITE, Claim, Image, Registry, State
from toolrt.order import ClaimTable
from toolrt.workspace import SIZE_LIMIT, Directory, FileProblem, HardLink, Special, Symlink


@pytest.fixture
def events():
    """The events of the test, while it runs."""
    told = Told()
    with probe.observed_by(told):
        yield told.events


def version(content):
    return hashlib.sha256(content).hexdigest()[:12]


def test_tools_are_twelve(tree):
    """The tools of a workspace, each owned by it, make a registry."""
    tools = tree.workspace.tools()
    assert " ".join(tool.name for tool in tools) == (
        "read_file write_file edit_file multi_edit apply_patch list_dir glob search make_dir move_path delete_path "
        "change_dir"
    )
    assert all(tool.owner is tree.workspace for tool in tools)
    assert Registry(tools)


def test_tools_are_the_same_each_time(tree):
    """Two registries of one workspace share their tools."""
    assert all(one is other for one, other in zip(tree.workspace.tools(), tree.workspace.tools(), strict=True))


def test_claim_table_is_the_workspaces(tree):
    """All who use a workspace share one table."""
    assert isinstance(tree.workspace.claim_table, ClaimTable)
    assert tree.workspace.claim_table is tree.workspace.claim_table


@pytest.mark.parametrize(("name", "safe"), [("read_file", True), ("write_file", False), ("edit_file", False)])
def test_tool_is_safe_if_it_only_reads(tree, name, safe):
    """Under by_safety only reads share a lane."""
    tool = next(tool for tool in tree.workspace.tools() if tool.name == name)
    assert tool.is_safe({"path": "a"}) is safe
    assert tool.claims_for({"path": "a"}, State()) == (Claim(("file", "a"), READ if safe else WRITE),)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("read_file", {"path": "a", "offset": 1}, {"path": "a", "offset": "1"}),
        ("write_file", {"path": "a", "content": ""}, {"path": "a"}),
        (
            "edit_file",
            {"path": "a", "old": "x", "new": "y", "all": True},
            {"path": "a", "old": "x", "new": "y", "more": 1},
        ),
    ],
)
def test_schema_is_derived(tree, name, good, bad):
    """Input is checked strictly against the type hints."""
    tool = next(tool for tool in tree.workspace.tools() if tool.name == name)
    assert not isinstance(tool.decode(good), list)
    assert isinstance(tool.decode(bad), list)


# read_file


@pytest.mark.parametrize("text", ["", "one", "one\ntwo\n", "one\r\ntwo\rthree\n", "\u2028\x0b\x85x\n", "日本語"])
async def test_read_returns_the_text_exactly(tree, call, text):
    """Line ends and last newline are all there."""
    tree.put("a", text)
    assert await call(tree, "read_file", path="a") == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32-be"])
async def test_byte_order_mark_is_kept_and_not_shown(tree, call, encoding):
    """What a reader was shown and writes again leaves the file as it was."""
    tree.put("a", "\ufeffone\n".encode(encoding))
    assert await call(tree, "read_file", path="a") == await call(tree, "read_file", path="a", limit=1) == "one\n"
    assert await call(tree, "read_file", path="a", line_numbers=True) == "1\tone\n"
    await call(tree, "write_file", path="a", content="two\n")
    await call(tree, "edit_file", path="a", old="two", new="three")
    assert tree.workspace.snapshot()["a"] == "\ufeffthree\n".encode(encoding)
    await call(tree, "write_file", path="a", content="\ufefffour\n")
    assert tree.workspace.snapshot()["a"] == "\ufefffour\n".encode(encoding)


@pytest.mark.parametrize(
    ("offset", "limit", "lines"),
    [(1, None, "1\r\n2\n3\r4"), (2, None, "2\n3\r4"), (2, 2, "2\n3\r"), (None, 1, "1\r\n"), (4, 9, "4")],
)
async def test_read_returns_the_lines_asked_for(tree, call, offset, limit, lines):
    """Lines are counted from 1 and keep their ends."""
    tree.put("a", "1\r\n2\n3\r4")
    assert await call(tree, "read_file", path="a", offset=offset, limit=limit) == lines


async def test_read_shows_a_notebook_as_its_cells(tree, call):
    """What they printed and drew; a range, and what is no notebook, as text.  The budget counts what is shown."""
    drawn = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["one\n", "two"]},
        {"output_type": "display_data", "data": {"image/png": drawn, "text/plain": "<Figure>"}},
        {"output_type": "execute_result", "data": {"text/html": "<b>7</b>", "text/plain": ["7"]}},
        {"output_type": "error", "traceback": ["\x1b[31mValueError\x1b[0m", "no"]},
    ]
    code = {"cell_type": "code", "source": ["a = 1\n", "a"], "outputs": outputs, "metadata": {}}
    text = json.dumps({"cells": [{"cell_type": "markdown", "source": "# Why"}, code], "nbformat": 4})
    tree.put("a.ipynb", text)
    assert await call(tree, "read_file", path="a.ipynb") == [
        "[A notebook of 2 cells; offset=1 shows the text of its file.]\n\n[1: markdown]\n# Why\n\n[2: code]\na = 1\na\n"
        "[2: stdout]\none\ntwo\n[2: output]\n",
        Image(b"\x89PNG\r\n\x1a\n"),
        "[2: output]\n7\n[2: error]\nValueError\nno\n",
    ]
    assert await call(tree, "read_file", path="a.ipynb", offset=1) == text
    for other in ("{", "[]", '{"cells": [{"source": 1}]}', '{"cells": 1}'):
        tree.put("b.ipynb", other)
        assert await call(tree, "read_file", path="b.ipynb") == other


async def test_read_of_line_one_of_an_empty_file_is_empty(tree, call):
    """An empty file has no line, and its start may be asked for."""
    tree.put("a", "")
    assert await call(tree, "read_file", path="a", offset=1, limit=5) == ""


@pytest.mark.parametrize(("offset", "limit"), [(0, None), (-1, None), (1, 0), (3, None)])
async def test_read_refuses_absurd_ranges(tree, call, offset, limit):
    """A range that means nothing is not answered with nothing."""
    tree.put("a", "1\n2\n")
    await refusal(call, tree, "read_file", path="a", offset=offset, limit=limit)


async def test_read_of_a_missing_file_is_refused(tree, call):
    """The text says what to do."""
    problem = await refusal(call, tree, "read_file", path="d/a")
    assert str(problem) == (
        "d/a: expected a file, got none: nothing of that name, or a directory. "
        "Check the name, list the directory, or create the file with write_file."
    )


@pytest.mark.parametrize("name", ["read_file", "edit_file"])
@pytest.mark.parametrize("content", [b"a\x00b", b"\xff\xfea", b"a\xc3"], ids=["nul", "half_utf16", "cut_short"])
async def test_binary_files_are_refused_with_their_size(tree, call, name, content):
    """What is not UTF-8 text is never guessed at."""
    tree.put("a", content)
    more = {"old": "a", "new": "b"} if name == "edit_file" else {}
    assert f"{len(content)} bytes" in (await refusal(call, tree, name, path="a", **more)).got


@pytest.mark.parametrize("name", ["read_file", "edit_file"])
async def test_over_limit_files_are_refused_with_their_size(tree, call, name):
    """The limit is 10 MiB."""
    tree.put("a", b"x" * (SIZE_LIMIT + 1))
    more = {"old": "a", "new": "b"} if name == "edit_file" else {}
    problem = await refusal(call, tree, name, path="a", **more)
    assert (problem.expected, problem.got) == ("at most 10485760 bytes", "10485761 bytes")


async def test_over_limit_results_are_refused(tree, call):
    """No tool makes a file that it could not read again."""
    tree.put("a", b"x" * SIZE_LIMIT)
    await refusal(call, tree, "edit_file", path="a", old="x", new="yy", all=True)
    await refusal(call, tree, "write_file", path="a", content="é" * (SIZE_LIMIT // 2 + 1))


async def test_file_of_exactly_the_limit_is_edited(tree, call):
    """The limit itself is reached."""
    tree.put("a", b"x" * (SIZE_LIMIT - 1) + b"y")
    await call(tree, "edit_file", path="a", old="y", new="z")
    assert len(await call(tree, "read_file", path="a")) == SIZE_LIMIT


# write_file


async def test_write_creates_a_file(tree, call):
    """A missing file is created, and the answer says so."""
    assert await call(tree, "write_file", path="a", content="né\r\n") == "created a (5 bytes)"
    assert tree.workspace.snapshot() == {"a": "né\r\n".encode()}


async def test_write_creates_missing_directories(tree, call):
    """Parents inside the workspace are made."""
    await call(tree, "write_file", path="x/y/a", content="new")
    assert tree.workspace.snapshot() == {"x/y/a": b"new"}


async def test_write_replaces_a_file(tree, call, mode_of):
    """The whole content is replaced; the mode stays."""
    tree.put("a", "a longer content", mode=0o755)
    assert await call(tree, "write_file", path="a", content="new") == "replaced a (3 bytes)"
    assert tree.workspace.snapshot() == {"a": b"new"}
    assert mode_of(tree, "a") == 0o755


async def test_write_replaces_a_links_target_not_the_link(tree, call):
    """A link stays a link."""
    tree.put("d/a", "old")
    tree.put("link", Symlink("d/a"))
    await call(tree, "write_file", path="link", content="new")
    assert tree.workspace.snapshot() == {"d/a": b"new", "link": "-> d/a"}


async def test_write_through_a_dangling_link_creates_its_target(tree, call):
    """As the system does, and with the directories too."""
    tree.put("link", Symlink("d/a"))
    await call(tree, "write_file", path="link", content="new")
    assert tree.workspace.snapshot() == {"d/a": b"new", "link": "-> d/a"}


async def test_write_keeps_hard_links_one_file(tree, call):
    """Every name shows what was written under one."""
    tree.put("a", "old")
    tree.put("b", HardLink("a"))
    await call(tree, "write_file", path="b", content="new")
    assert tree.workspace.snapshot() == {"a": b"new", "b": b"new"}


async def test_write_of_what_was_read_changes_nothing(tree, call):
    """Reading and writing keep every byte."""
    content = b"\xef\xbb\xbfone\r\ntwo\rthree\n\x0bfour"
    tree.put("a", content)
    await call(tree, "write_file", path="a", content=await call(tree, "read_file", path="a"))
    assert tree.workspace.snapshot() == {"a": content}


@pytest.mark.parametrize("content", ["a\0b", "\ud800"])
async def test_write_of_what_could_not_be_read_is_refused(tree, call, content):
    """Neither half a surrogate pair nor a NUL is text."""
    await refusal(call, tree, "write_file", path="a", content=content)


@pytest.mark.parametrize("new", ["a\0b", "\ud800"])
async def test_edit_to_what_could_not_be_read_is_refused(tree, call, events, new):
    """The refusal comes before the file is touched."""
    tree.put("a", "s")
    assert (await refusal(call, tree, "edit_file", path="a", old="s", new=new)).expected.endswith("text as new")
    assert events == []


@pytest.mark.parametrize(("old", "new", "got"), [("", "new", "an empty one"), ("s", "s", "the old one")])
async def test_edit_that_says_nothing_is_refused(tree, call, events, old, new, got):
    """An empty old text and a new text like the old one are refused before the file is touched."""
    tree.put("a", "s")
    assert (await refusal(call, tree, "edit_file", path="a", old=old, new=new)).got == got
    assert events == []


# All three


INPUTS = {
    "read_file": {},
    "write_file": {"content": "new"},
    "edit_file": {"old": "s", "new": "t"},
}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize(
    "path", ["{outside}/secret", "../outside/secret", "out/secret", "straight", "~/outside/secret", "/etc/passwd"]
)
async def test_outside_is_refused_by_every_tool(tree, call, name, path):
    """Nothing outside is read or written, and the text shows nothing of it."""
    tree.put(f"{tree.outside}/secret", "secret")
    tree.put("out", Symlink(tree.outside))
    tree.put("straight", Symlink(f"{tree.outside}/secret"))
    problem = await refusal(call, tree, name, path=path.format(outside=tree.outside), **INPUTS[name])
    assert "secret" not in str(problem)
    assert tree.disk.lstat(f"{tree.outside}/secret").size == 6


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("path", ["", "a\0b", "x" * 300, "loop", "directory", "pipe", "file/x", "file/", "\ud800"])
async def test_names_of_no_file_are_refused_by_every_tool(tree, call, name, path):
    """No name makes a tool hang or fail in another way."""
    tree.put("loop", Symlink("loop"))
    tree.put("directory", Directory())
    tree.put("pipe", Special())
    tree.put("file", "s")
    with trio.fail_after(5):
        problem = await refusal(call, tree, name, path=path, **INPUTS[name])
    assert not problem.retryable


@pytest.mark.parametrize("name", INPUTS)
async def test_a_name_that_means_another_file_by_now_is_a_retryable_error(tree, call, name):
    """RULE 18: nothing is touched, neither what the name meant nor what it means."""
    tree.put("first", "s")
    tree.put("second", "s")
    tree.put("link", Symlink("first"))
    with pytest.raises(FileProblem) as caught:
        await call(tree, name, path="link", between=lambda: tree.put("link", Symlink("second")), **INPUTS[name])
    assert caught.value.retryable
    assert tree.workspace.snapshot() == {"first": b"s", "second": b"s", "link": "-> second"}


@pytest.mark.parametrize("name", ["write_file", "edit_file"])
async def test_a_file_that_became_a_link_is_a_retryable_error(tree, call, name):
    """A file that was swapped for a link is not followed: the other file's claim is not held."""
    tree.put("a", "s")
    tree.put("b", "s")
    with pytest.raises(FileProblem) as caught:
        await call(tree, name, path="a", between=lambda: tree.put("a", Symlink("b")), **INPUTS[name])
    assert caught.value.retryable
    assert tree.workspace.snapshot() == {"a": "-> b", "b": b"s"}


@pytest.mark.parametrize("name", INPUTS)
async def test_a_file_that_became_a_link_to_outside_is_refused(tree, call, name):
    """Sending it again would not help, and nothing outside is touched."""
    tree.put(f"{tree.outside}/secret", "s")
    tree.put("a", "s")

    def swap():
        tree.put("a", Symlink(f"{tree.outside}/secret"))

    with pytest.raises(FileProblem, match="leads outside") as caught:
        await call(tree, name, path="a", between=swap, **INPUTS[name])
    assert not caught.value.retryable
    assert tree.disk.lstat(f"{tree.outside}/secret").size == 1


async def test_a_file_that_got_another_name_is_a_retryable_error(tree, call):
    """A call that did not claim the file's other names must not write through one."""
    tree.put("a", "s")
    with pytest.raises(FileProblem) as caught:
        await call(tree, "write_file", path="a", content="t", between=lambda: tree.put("b", HardLink("a")))
    assert caught.value.retryable


async def test_a_name_that_became_outside_is_refused(tree, call):
    """The refusal of what leads outside shows nothing, also when it did not at first."""
    tree.put("d/a", "s")
    tree.put("way", Symlink("d"))
    with pytest.raises(FileProblem) as caught:
        await call(tree, "read_file", path="way/a", between=lambda: tree.put("way", Symlink(tree.outside)))
    assert tree.outside not in str(caught.value)


async def test_a_file_created_meanwhile_is_no_other_file(tree, call):
    """Creation changes no key: the write goes on, and replaces."""
    answer = await call(tree, "write_file", path="x/a", content="new", between=lambda: tree.put("x/a", "old"))
    assert answer == "replaced x/a (3 bytes)"


async def test_who_holds_everything_may_touch_what_the_name_means(tree):
    """An exclusive call's claim covers all, so no file is another one."""
    tree.put("a", "s")
    read_file = tree.workspace.tools()[0]

    class Exclusive:
        batch_id, call_index, state, claims = "b", 0, State(), (EVERYTHING,)

    assert await read_file.function(Exclusive(), path="a") == "s"


async def test_files_are_found_from_the_states_working_directory(tree, call, monkeypatch, tmp_path_factory):
    """The process's own directory decides nothing."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    tree.put("d/a", "s")
    assert await call(tree, "read_file", path="a", state=State(working_dir="d")) == "s"
    await call(tree, "write_file", path="b", content="t", state=State(working_dir="d"))
    assert tree.workspace.snapshot() == {"d/a": b"s", "d/b": b"t"}
    assert os.listdir() == []


# Events


async def test_read_reports_what_was_read(tree, call, events):
    """The event has the file's key and the content's version."""
    tree.put("d/a", "text")
    tree.put("link", Symlink("d/a"))
    await call(tree, "read_file", path="link")
    assert events == [("file.read", {"batch": "batch", "call": 0, "file": "d/a", "version": version(b"text")})]


@pytest.mark.parametrize(("name", "content"), [("write_file", b"new"), ("edit_file", b"ttt")])
async def test_mutation_reports_begin_and_end(tree, call, events, name, content):
    """The end has the version that landed."""
    tree.put("a", "sss")
    await call(tree, name, path="a", **{**INPUTS[name], **({"all": True} if name == "edit_file" else {})})
    where = {"batch": "batch", "call": 0, "file": "a"}
    assert events == [
        ("file.mutation_began", where),
        ("file.mutation_ended", {**where, "version": version(content), "ok": True}),
    ]


async def test_failed_mutation_reports_its_end(tree, call, events):
    """A mutation that failed says so, with the version that is still there."""
    tree.put("a", "text")
    await refusal(call, tree, "edit_file", path="a", old="nothing", new="x")
    assert events[-1] == (
        "file.mutation_ended",
        {"batch": "batch", "call": 0, "file": "a", "version": version(b"text"), "ok": False},
    )


async def test_refused_mutation_reports_nothing(tree, call, events):
    """Who touched nothing began nothing."""
    await refusal(call, tree, "write_file", path=f"{tree.outside}/a", content="x")
    assert events == []


async def test_events_show_no_machine_path(tree, call, events):
    """Events name files relative to the workspace, however they were spelled."""
    await call(tree, "write_file", path=f"{tree.root}/d/a", content="x")
    assert {fields["file"] for _, fields in events} == {"d/a"}
