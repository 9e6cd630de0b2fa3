"""A search finds what stands in a file, or says which files it did not read."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolrt
from toolrt import MemoryDisk, Outcome, ToolCall, Workspace
from toolrt.workspace import SIZE_LIMIT, RealDisk
from toolrt.workspace.finding import _ripgrep

MIB = 1024 * 1024
NOT_UTF_8 = "not UTF-8 (name the encoding with encoding=)"

#: So many small files that ripgrep is asked, where there is one.
MANY = 260


async def searched(workspace: Workspace, **input: Any) -> str:
    runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
    [result] = (await runtime.run([ToolCall("id", "search", input)])).results
    assert result.outcome is Outcome.OK, result.error
    assert isinstance(result.content, str)
    return result.content


@pytest.fixture(params=["twin", "real", "ripgrep"])
def planted(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a workspace of files: in memory, on the disk without ripgrep, and with it."""
    rg = next((path for path in map(_rg_in, os.environ["PATH"].split(os.pathsep)) if path is not None), None)
    if request.param == "ripgrep" and rg is None:
        pytest.skip("ripgrep is not installed")
    # As where it is not installed: no program of the name, and what is already known of it forgotten.
    from toolrt.workspace.finding import _ripgrep

    monkeypatch.setattr(_ripgrep, "program", lambda: rg if request.param == "ripgrep" else None)

    def made(content: dict[str, bytes]) -> Workspace:
        content = {**{f"a/{number:03}.txt": b"nothing\n" for number in range(MANY)}, **content}
        if request.param == "twin":
            return Workspace(MemoryDisk(content))
        for name, text in content.items():
            path = tmp_path / "work" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        return Workspace(RealDisk(tmp_path / "work"))

    return made


def _rg_in(directory: str) -> str | None:
    path = os.path.join(directory, "rg")
    return path if os.access(path, os.X_OK) else None


UNREAD = {
    "latin-1": "café needle\n".encode("latin-1"),
    "cp1252": "“needle”\n".encode("cp1252"),
    "shift_jis": "日本語 needle\n".encode("shift_jis"),
    "euc_jp": "日本語 needle\n".encode("euc_jp"),
    "gb18030": "中文 needle\n".encode("gb18030"),
}


@pytest.mark.parametrize("encoding", UNREAD)
@pytest.mark.parametrize("literal", [True, False])
async def test_a_file_that_is_not_utf_8_is_named(planted: Any, encoding: str, literal: bool) -> None:
    """The answer does not say that the text stands nowhere, it says which file it could not read."""
    workspace = planted({"z/old.log": UNREAD[encoding]})
    answer = await searched(workspace, pattern="needle", literal=literal)
    assert answer == f"no line matches\n(1 file was not searched, {NOT_UTF_8}: z/old.log)"


@pytest.mark.parametrize("encoding", UNREAD)
@pytest.mark.parametrize("pattern", ["needle", "."])
async def test_a_file_is_searched_in_the_encoding_that_is_named(planted: Any, encoding: str, pattern: str) -> None:
    """What the note asks for can be done; files in UTF-8 are still read as UTF-8."""
    workspace = planted({"z/old.log": UNREAD[encoding], "z/new.log": "é needle\n".encode()})
    text = UNREAD[encoding].decode(encoding).strip()
    answer = await searched(workspace, pattern=pattern, path="z", encoding=encoding)
    assert answer == f"z/new.log:1: é needle\nz/old.log:1: {text}"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
async def test_utf_16_without_its_mark_is_named_and_with_it_found(planted: Any, encoding: str) -> None:
    """Without the mark it looks like binary data, and nothing is guessed."""
    text = "needle\n"
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE, "utf-32-le": codecs.BOM_UTF32_LE}
    workspace = planted({"z/bare": text.encode(encoding), "z/marked": mark[encoding] + text.encode(encoding)})
    found = "z/marked:1: needle"
    assert await searched(workspace, pattern="needle") == f"{found}\n(1 file was not searched, binary data: z/bare)"
    assert await searched(workspace, pattern="needle", encoding=encoding) == f"z/bare:1: needle\n{found}"


async def test_files_that_are_not_read_are_counted_by_reason(planted: Any) -> None:
    """The first names of each reason are given, and how many more there are."""
    pictures = {f"z/p{number}.png": b"\x89PNG\0\xff" for number in range(8)}
    workspace = planted({**pictures, "z/latin": b"caf\xe9", "z/text": b"needle"})
    assert (await searched(workspace, pattern="needle")).splitlines() == [
        "z/text:1: needle",
        f"(1 file was not searched, {NOT_UTF_8}: z/latin)",
        "(8 files were not searched, binary data: z/p0.png, z/p1.png, z/p2.png, z/p3.png, z/p4.png and 3 more)",
    ]


async def test_what_no_search_looks_for_is_not_counted(planted: Any) -> None:
    """A note is about the files of this search, not about those that its glob leaves out."""
    workspace = planted({"z/p.png": b"\0", "z/text": b"needle"})
    assert await searched(workspace, pattern="needle", glob="text") == "z/text:1: needle"


# Large files


def log(size: int, *, needle_at: int, line: bytes = b"2026-11-22 something ordinary happened\n") -> bytes:
    """A log of about `size` bytes, with the needle in a line that begins near `needle_at`."""
    before = needle_at // len(line)
    return line * before + b"the needle\n" + line * ((size - needle_at) // len(line))


@pytest.mark.drawn(4)
@pytest.mark.parametrize("literal", [True, False])
@pytest.mark.parametrize("at", [MIB - 5, 11 * MIB - 100])
async def test_a_large_file_is_searched(planted: Any, at: int, literal: bool) -> None:
    """Wherever the line is, its number and its text are those of the whole file."""
    content = log(11 * MIB, needle_at=at)
    workspace = planted({"z/big.log": content})
    number = content[: content.index(b"the needle")].count(b"\n") + 1
    for path in (".", "z/big.log"):
        answer = await searched(workspace, pattern="needle", literal=literal, path=path)
        assert answer == f"z/big.log:{number}: the needle"


@pytest.mark.drawn(4)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-be"])
async def test_a_large_file_is_read_in_the_encoding_of_its_mark(planted: Any, encoding: str) -> None:
    """Characters and line ends that stand at the edge of a block are whole."""
    text = "\ufeff" + "日本é\r\nab\r" * (11 * MIB // 12) + "the needle"
    workspace = planted({"z/big": text.encode(encoding)})
    size = len(text.encode(encoding))
    assert size > SIZE_LIMIT
    lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    assert await searched(workspace, pattern="needle") == f"z/big:{lines}: the needle"


async def test_a_large_file_is_searched_up_to_what_is_no_text(planted: Any) -> None:
    """Lines before that are found, and the answer says from where on it did not read."""
    content = log(11 * MIB, needle_at=100) + b"caf\xe9 the needle\n"
    workspace = planted({"z/big.log": content})
    at = content.index(b"\xe9")
    note = f"(1 file was not searched, {NOT_UTF_8}: z/big.log (from byte {at} on))"
    assert await searched(workspace, pattern="needle") == f"z/big.log:3: the needle\n{note}"
    again = (await searched(workspace, pattern="needle", encoding="latin-1")).splitlines()
    assert again[0] == "z/big.log:3: the needle"
    assert again[1].endswith(": café the needle")


async def test_a_large_binary_file_is_named(planted: Any) -> None:
    """It is not read to its end to find that out."""
    workspace = planted({"z/disk.img": bytes(12 * MIB), "z/text": b"needle"})
    answer = await searched(workspace, pattern="needle")
    assert answer == "z/text:1: needle\n(1 file was not searched, binary data: z/disk.img)"


async def test_a_large_file_of_one_line_is_bounded(planted: Any) -> None:
    """The answer names a file whose one line does not fit into memory as not searched."""
    workspace = planted({"z/one.json": b"x" * (13 * MIB)})
    answer = await searched(workspace, pattern="needle")
    assert answer.startswith(
        "no line matches\n(1 file was not searched, a line of more than 10485760 characters: z/one"
    )


async def test_a_sparse_file_costs_a_block(tmp_path: Path) -> None:
    """A file of 64 GiB that holds nothing is binary data after its first block."""
    (tmp_path / "sparse").touch()
    try:
        os.truncate(tmp_path / "sparse", 64 * 1024 * MIB)
    except OSError:
        pytest.skip("this file system holds no file of 64 GiB")
    answer = await searched(Workspace(RealDisk(tmp_path)), pattern="needle")
    assert answer == "no line matches\n(1 file was not searched, binary data: sparse)"


async def test_large_files_show_no_more_lines_than_are_wanted(planted: Any) -> None:
    """The limit is for all files together."""
    workspace = planted({"z/1.log": b"needle\n" * (2 * MIB), "z/2.log": b"needle\n"})
    answer = await searched(workspace, pattern="needle", limit=3)
    assert answer.splitlines()[:3] == [f"z/1.log:{number}: needle" for number in (1, 2, 3)]
    assert "only the first 3 lines are shown" in answer


# What cannot be read


async def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    """Permission is a reason like any other."""
    for name in ("a", "b"):
        (tmp_path / name).write_text("needle")
    os.chmod(tmp_path / "b", 0)
    if os.access(tmp_path / "b", os.R_OK):
        pytest.skip("this user may read every file")
    answer = await searched(Workspace(RealDisk(tmp_path)), pattern="needle")
    os.chmod(tmp_path / "b", stat.S_IRUSR)
    assert answer == "a:1: needle\n(1 file was not searched, cannot be read: b)"


@pytest.mark.parametrize("size", [10, 11 * MIB])
async def test_a_file_that_the_disk_refuses_is_named(size: int) -> None:
    """A broken disk is no reason to say that a text stands nowhere."""

    def fault(operation: str, path: str) -> None:
        if (operation, path) == ("read", "b"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    workspace = Workspace(MemoryDisk({"a": "needle", "b": b"needle" * size}, fault=fault))
    answer = await searched(workspace, pattern="needle")
    assert answer == "a:1: needle\n(1 file was not searched, cannot be read: b)"


@settings(max_examples=60)
@given(st.binary(max_size=40), st.sampled_from(["a", "é", "needle", "日"]), st.booleans())
async def test_a_search_finds_or_names(content: bytes, wanted: str, literal: bool) -> None:
    """Whatever a file has: where its bytes hold what is sought, in UTF-8, it is found or the file is named."""
    content = content + wanted.encode() + b"\n"
    answer = await searched(Workspace(MemoryDisk({"f": content})), pattern=wanted, literal=literal)
    assert answer.startswith("f:") or "not searched" in answer


@pytest.mark.drawn(6)
@pytest.mark.parametrize("size", [0, 2 * SIZE_LIMIT], ids=["small", "large"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
async def test_a_line_begins_behind_the_byte_order_mark(planted: Any, encoding: str, size: int) -> None:
    """The first line is found by what it begins with, and is shown without the mark."""
    workspace = planted({"marked": ("first\nsecond\n" + ("x" * 99 + "\n") * (size // 100)).encode(encoding)})
    assert await searched(workspace, pattern="^first$") == "marked:1: first"
    assert await searched(workspace, pattern="^second$", path="marked") == "marked:2: second"


@pytest.mark.parametrize("pattern", ["^.irst$", "(?i)^F", "^[[:alpha:]]+$", "^[^f]"])
@pytest.mark.parametrize("ripgrep", [True, False])
async def test_a_search_takes_no_mark_for_a_character(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, ripgrep: bool
) -> None:
    """A pattern for the first characters is held against those behind the byte order mark, both ways."""
    if not ripgrep:
        monkeypatch.setattr(_ripgrep, "program", lambda: None)
    (tmp_path / "marked").write_bytes("first\n".encode("utf-8-sig"))
    found = "no line" if pattern == "^[^f]" else "marked:1: first"
    assert (await searched(Workspace(tmp_path), pattern=pattern)).startswith(found)
