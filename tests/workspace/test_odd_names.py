"""Names that are no UTF-8, or that could deceive: shown on one line, unambiguously, and taken back by every tool."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from toolrt import MemoryDisk, Outcome, State, ToolCall, Workspace
from toolrt.workspace import FileProblem, Permissions, RealDisk, Rule, meant_path, shown_path

NAMES = {
    "latin-1": b"caf\xe9.txt",
    "shift_jis": "日本語.txt".encode("shift_jis"),
    "one byte": b"\xff",
    "line feed": b"a\nb.txt",
    "forged line": b"x\nsrc_app.py:1: import os",
    "forged in one line": b"src.py:10: import os",
    "forged line with quotes": b'"x\nsrc.py:10: import os',
    "return": b"a\rb",
    "escape": b"\x1b[2J\x1b[31mred",
    "bell and delete": b"\x07\x7f",
    "bidi": "evil\u202egpj.exe".encode(),
    "isolate": "a\u2066b\u2069".encode(),
    "line separator": "a\u2028b".encode(),
    "next line": "a\u0085b".encode(),
    "zero width": "a\u200bb".encode(),
    "tab": b"a\tb",
    "quoted": rb'"a\nb"',
    "half quoted": rb'"a\n',
    "quotes alone": b'""',
    "backslash": rb"a\nb",
    "octal": rb"\351",
    "note": b"(3 more are not shown)",
    "home": b"~",
    "spaces": b" a  b ",
    "mixed": "日本\n".encode() + b"\xe9" + "\u202e".encode(),
}
CONTENT = b"needle one\n"


def as_str(name: bytes) -> str:
    return os.fsdecode(name)


class Shop:
    """A workspace on either disk."""

    def __init__(self, base: Path | None, content: dict[str, bytes], rules: Any = None, **options: Any) -> None:
        if base is None:
            self.workspace = Workspace(MemoryDisk(content))
        else:
            for name, text in content.items():
                path = os.path.join(base, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                Path(path).write_bytes(text)
            self.workspace = Workspace(RealDisk(base))
        approve = None if rules is None else Permissions(self.workspace, rules, default="allow", **options)
        self.runtime = toolrt.Runtime(toolrt.Registry(self.workspace.tools()), approve=approve)
        self.state = State()

    async def result(self, name: str, **input: Any) -> toolrt.ToolResult:
        json.dumps(input, ensure_ascii=False).encode()  # as it comes from a model
        done = await self.runtime.run([ToolCall("id", name, input)], self.state)
        [result] = done.results
        self.state = done.state
        for text in (result.content, result.error):
            if text is not None:
                text.encode("utf-8")
                assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069]", text), ascii(text)
        return result

    async def batch(self, batch_id: str, *calls: tuple[str, Any]) -> list[str]:
        async with self.runtime.open_batch(batch_id=batch_id) as batch:
            for name, input in calls:
                batch.submit(ToolCall("id", name, input))
        return [result.outcome.value for result in batch.outcome.results]

    async def ok(self, name: str, **input: Any) -> str:
        result = await self.result(name, **input)
        assert result.outcome is Outcome.OK, result.error
        assert isinstance(result.content, str)
        return result.content


@pytest.fixture(params=["real", "twin"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))

    def made(content: dict[str, bytes], *more: Any, **options: Any) -> Shop:
        base = None
        if request.param == "real":
            base = tmp_path / "work"
            base.mkdir()
        return Shop(base, content, *more, **options)

    return made


every_name = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


@every_name
async def test_a_name_that_is_shown_is_taken_back_by_every_tool(shop: Any, name: bytes) -> None:
    """What glob, search and a listing show is read, edited, patched, moved and deleted by that text."""
    made = shop({f"d/{as_str(name)}": CONTENT, "d/z": b"other\n"})
    shown = (await made.ok("glob", pattern="d/**")).splitlines()
    assert len(shown) == 2
    [path] = [one for one in shown if one != "d/z"]
    listed = (await made.ok("list_dir", path="d")).splitlines()
    [part] = [line.removesuffix(f" ({len(CONTENT)} bytes)") for line in listed if not line.startswith("z (")]
    assert await made.ok("search", pattern="one") == f"{path}:1: needle one"
    for spelled in (path, f"d/{part}", f"./d/{part}", f"d/../{path}"):
        assert await made.ok("read_file", path=spelled) == CONTENT.decode()
        assert await made.ok("search", pattern="one", path=spelled) == f"{path}:1: needle one"
    assert path in await made.ok("edit_file", path=path, old="one", new="two")
    assert path in await made.ok("write_file", path=path, content="needle three\n")
    assert path in await made.ok("multi_edit", path=path, edits=[{"old": "three", "new": "four"}])
    assert await made.ok("read_file", path=path) == "needle four\n"
    assert path in await made.ok("move_path", source=path, target=f"e/{part}")
    assert await made.ok("read_file", path=f"e/{part}") == "needle four\n"
    await made.ok("move_path", source=f"e/{part}", target=path)
    assert path in await made.ok("delete_path", path=path)
    assert await made.ok("glob", pattern="d/**") == "d/z"


@every_name
async def test_a_name_can_be_made(shop: Any, name: bytes) -> None:
    """The same text names what is not there yet."""
    made = shop({"z": b"other\n"})
    path = f"./{shown_path(as_str(name))}"
    await made.ok("write_file", path=path, content="needle one\n")
    snapshot = made.workspace.snapshot()
    assert snapshot.pop("z") == b"other\n"
    assert snapshot == {as_str(name): CONTENT}


@every_name
async def test_directories_of_such_names_are_gone_through(shop: Any, name: bytes) -> None:
    """To list, to search, to work in, and to find what is below."""
    made = shop({f"{as_str(name)}/a": CONTENT})
    [line] = (await made.ok("list_dir")).splitlines()
    part = line.removesuffix("/")
    assert await made.ok("list_dir", path=f"./{part}") == f"a ({len(CONTENT)} bytes)"
    [path] = (await made.ok("glob", pattern="**")).splitlines()
    assert await made.ok("read_file", path=path) == CONTENT.decode()
    await made.ok("make_dir", path=f"./{part}/{part}")
    await made.ok("change_dir", path=f"./{part}")
    assert await made.ok("search", pattern="one") == "a:1: needle one"
    assert await made.ok("read_file", path="a") == CONTENT.decode()


@every_name
async def test_a_patch_names_it_as_git_does(shop: Any, name: bytes) -> None:
    """Quoted as a whole, with the prefix inside of the quotes."""
    made = shop({as_str(name): CONTENT})
    quoted = "".join(chr(byte) if 97 <= byte <= 122 else f"\\{byte:03o}" for byte in name)
    patch = f'--- "a/{quoted}"\n+++ "b/{quoted}"\n@@ -1 +1 @@\n-needle one\n+needle two\n'
    answer = await made.ok("apply_patch", patch=patch)
    assert len(answer.splitlines()) == 1
    assert made.workspace.snapshot() == {as_str(name): b"needle two\n"}


@every_name
async def test_errors_name_it_in_the_same_way(shop: Any, name: bytes) -> None:
    """A refusal is one line, and says the text that can be given back."""
    made = shop({f"d/{as_str(name)}": b"\0", "d/z": b"x"})
    path = (await made.ok("glob", pattern="d/**")).splitlines()
    [path] = [one for one in path if one != "d/z"]
    for call, input in (
        ("read_file", {"path": path}),
        ("edit_file", {"path": path, "old": "a", "new": "b"}),
        ("list_dir", {"path": path}),
        ("move_path", {"source": "d/z", "target": path}),
        ("write_file", {"path": f"{path}/below", "content": ""}),
    ):
        result = await made.result(call, **input)
        assert result.outcome is Outcome.ERROR
        assert path in result.error
        assert len(result.error.splitlines()) == 1


async def test_lines_of_a_search_cannot_be_forged(shop: Any) -> None:
    """Each line has one path, the first number behind it is the line's, and the path leads to that file."""
    names = {as_str(name): b"needle one\n" for name in NAMES.values()}
    made = shop(names)
    lines = (await made.ok("search", pattern="needle")).splitlines()
    assert len(lines) == len(names)
    found = []
    for line in lines:
        parsed = re.fullmatch(r"(.*?):(\d+): (.*)", line)
        assert parsed is not None
        assert (parsed[2], parsed[3]) == ("1", "needle one"), line
        assert await made.ok("read_file", path=parsed[1]) == "needle one\n"
        found.append(meant_path(parsed[1]).removeprefix("./"))
    assert sorted(found) == sorted(names)


@pytest.mark.parametrize("end", ["\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
async def test_text_in_a_file_forges_no_line_of_a_search(shop: Any, end: str) -> None:
    """What some programs take for a line's end stays within its line."""
    made = shop({"a.py": f"needle{end}b.py:1: forged needle\n".encode()})
    answer = await made.ok("search", pattern="needle")
    assert len(answer.splitlines()) == 1


async def test_rules_and_questions_show_such_names(shop: Any) -> None:
    """A denial, a question and a grant name the file as answers do."""
    asked: list[tuple[str, ...]] = []

    def ask(question: Any) -> bool:
        asked.append(question.paths)
        return False

    made = shop(
        {as_str(b"caf\xe9"): b"1", "d/a\nb": b"2"},
        [Rule("read_file", "caf*", "deny"), Rule("*", "d/**", "ask")],
        ask=ask,
    )
    denied = await made.result("read_file", path=r'"caf\351"')
    assert (denied.outcome, r'"caf\351"' in denied.error) == (Outcome.DENIED, True)
    await made.result("read_file", path=r'd/"a\nb"')
    await made.result("delete_path", path="d", recursive=True)
    assert asked == [(r'd/"a\nb"',), ("d/**",)]


async def test_history_names_them(shop: Any) -> None:
    """Versions, undo and restore take and give the same text."""
    made = shop({"d/a\nb": b"one"})
    path = r'd/"a\nb"'
    assert await made.batch("first", ("write_file", {"path": path, "content": "two"})) == ["ok"]
    history = made.workspace.history
    assert [version.path for version in await history.versions(path)] == [path]
    assert await history.changed_by("first") == (path,)
    assert (await history.undo("first")).paths == (path,)
    assert (await history.restore(path, 1)).paths == (path,)
    assert made.workspace.snapshot() == {"d/a\nb": b"two"}
    ended = await made.batch(
        "second",
        ("move_path", {"source": path, "target": r'"caf\351"'}),
        ("delete_path", {"path": r'"caf\351"'}),
    )
    assert ended == ["ok", "ok"]
    assert (await history.undo("second")).paths == (r'"caf\351"', path)
    assert made.workspace.snapshot() == {"d/a\nb": b"two"}


async def test_events_name_them_in_the_same_way(shop: Any) -> None:
    """Who listens to changes gets text that UTF-8 can encode, and that names the file."""
    made = shop({as_str(b"caf\xe9"): b"one"})
    seen: list[str] = []
    async with made.runtime.open_batch(events=True) as batch:
        batch.submit(ToolCall("0", "write_file", {"path": r'"caf\351"', "content": "two"}))
        batch.seal()
        async for update in batch:
            message = getattr(update, "message", None)
            if isinstance(message, toolrt.model.FileChanged):
                seen.append(message.path)
    assert seen == [r'"caf\351"']


@pytest.mark.parametrize("path", ["\udce9", "a\ud800b", "d/\udcff"])
async def test_half_a_surrogate_pair_from_a_model_is_refused(path: str) -> None:
    """It is not how such a name is written, and the refusal encodes."""
    workspace = Workspace(MemoryDisk({"d/a": ""}))
    problem = workspace.identify(path).problem
    assert isinstance(problem, FileProblem)
    str(problem).encode()


@pytest.mark.parametrize("path", [r'"\000"', r'"a\000b"', r'"\057etc\057passwd"', r'"..\057outside"', r'"\n"/../../x'])
async def test_a_quoted_name_leads_nowhere_else_than_a_plain_one(shop: Any, path: str) -> None:
    """Quotes are spelling: NUL, slashes and dots in them mean what they always mean."""
    made = shop({"a": b"x"})
    assert (await made.result("read_file", path=path)).outcome is Outcome.ERROR
    assert made.workspace.identify(path).key is None


def test_plain_names_are_shown_as_they_are() -> None:
    """Spaces, letters of any script, brackets and quotes inside a name do not change what a tool reads."""
    for path in (
        "a b/c.txt",
        "日本語/é.py",
        "(auth)/page.tsx",
        "[id].js",
        "it's",
        'a"b',
        r"a\b",
        "12:30:45.log",
        "a:1",
    ):
        assert shown_path(path) == path == meant_path(path)


_PART = st.one_of(
    st.text('"\\abn0123 :()~\n\x1b\u202e\udce9é', min_size=1, max_size=8),
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=6),
    st.binary(min_size=1, max_size=6).filter(lambda name: not set(name) & {0, 47}).map(os.fsdecode),
)


@given(st.lists(_PART, min_size=1, max_size=3))
def test_showing_a_name_and_taking_it_back_gives_the_name(parts: list[str]) -> None:
    """For every name there can be: one line of UTF-8, never like a note, and the same name again."""
    path = os.fsdecode(os.fsencode("/".join(parts)))
    shown = shown_path(path)
    shown.encode()
    assert len(shown.splitlines()) == 1
    assert not (shown.startswith("(") and shown.endswith(")"))
    assert re.search(r":\d+: ", shown) is None
    assert meant_path(shown) in (path, f"./{path}")
    assert meant_path("/".join(shown_path(f"x/{part}").removeprefix("x/") for part in path.split("/"))) == path


# The command line


def command(*words: object) -> subprocess.CompletedProcess[bytes]:
    arguments = [word if isinstance(word, bytes) else os.fsencode(str(word)) for word in words]
    return subprocess.run([os.fsencode(sys.executable), b"-m", b"toolrt", *arguments], capture_output=True, check=False)


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.process
def test_the_command_line_shows_and_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """run, history, undo and restore print UTF-8 without control characters, and take what the shell completes."""
    monkeypatch.setenv("TOOLRT_STATE_DIR", str(tmp_path / "state"))
    root = tmp_path / "work"
    root.mkdir()
    file = os.path.join(os.fsencode(root), b"caf\xe9\x1b[31m")
    Path(os.fsdecode(file)).write_bytes(b"one")
    shown = r'"caf\351\033[31m"'
    (tmp_path / "calls.json").write_text(
        json.dumps([{"name": "write_file", "input": {"path": shown, "content": "two"}}])
    )
    ran = command("run", tmp_path / "calls.json", "--workspace", root)
    assert ran.returncode == 0, ran.stderr
    assert shown in ran.stdout.decode()
    batch = re.search(r"toolrt undo (\S+)", ran.stdout.decode())
    assert batch is not None
    for name in (os.path.basename(file), shown):
        listed = command("history", name, "--workspace", root)
        assert b"changed by call 0" in listed.stdout, listed.stderr
        versions = json.loads(command("history", name, "--workspace", root, "--json").stdout)
        assert [version["path"] for version in versions] == [shown]
    undone = command("undo", batch[1], "--workspace", root)
    assert (undone.returncode, shown in undone.stdout.decode()) == (0, True)
    assert Path(os.fsdecode(file)).read_bytes() == b"one"
    restored = command("restore", os.path.basename(file), 1, "--workspace", root)
    assert (restored.returncode, shown in restored.stdout.decode()) == (0, True)
    for ended in (ran, undone, restored):
        assert b"\x1b" not in ended.stdout + ended.stderr
