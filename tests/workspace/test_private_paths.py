"""No error, event or diagnostic shows where on the machine the workspace is, or what lies around it.

Private paths are planted everywhere: above the root, in the home directory, in the targets of links, in the texts
and attributes of a tool's exceptions.  All of them have one word in them, and that word is then looked for.
"""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

import toolrt
from tests._profile import FULL
from tests.workspace._every_tool import SPELLINGS, inputs_at
from toolrt import WRITE, Claim, Registry, Runtime, State, ToolCall, ToolOutput, sim
from toolrt.workspace import Directory, HardLink, MemoryDisk, RealDisk, Special, Symlink, Workspace
from toolrt.workspace.names import _private

#: In every path that nobody may see.
WORD = "zebra"

HOME = f"/home/{WORD}"
ROOT = f"{HOME}/clients {WORD}/repo"
OUTSIDE = f"/srv/{WORD}"

CONTENT = {
    "a.txt": "one\ntwo\n",
    "b.txt": "one\n",
    "d/b.txt": "one\n",
    "d/deep/c.txt": "one\n",
    "hard.txt": HardLink("a.txt"),
    "link": Symlink("d/b.txt"),
    "chain": Symlink("way/../a.txt"),
    "way": Symlink("d"),
    "dangling": Symlink("d/new.txt"),
    "loop": Symlink("loop"),
    "out": Symlink(f"{OUTSIDE}/dir"),
    "out.txt": Symlink(f"{OUTSIDE}/secret.txt"),
    "nowhere": Symlink(f"/nowhere/{WORD}"),
    "circle": Symlink(f"{ROOT}/circle"),
    "back": Symlink(f"{OUTSIDE}/back"),
    "pipe": Special(),
    "e": Directory(),
    "binary": b"\x00\xff",
}

#: Names that lead somewhere they should not, or nowhere.
WRONG = [
    *("out", "out/x.txt", "out.txt", "nowhere", "circle", "circle/x", "back/../x", "binary", "~", "~/x", "~/../x"),
    *("{root}", "{root}/", "{root}/missing", "{root}/a.txt/x", "{root}/loop", "{root}/pipe", "{root}/../x", "{root}x"),
    *("..", "../..", "../../x", "/", "/etc/passwd", "a.txt/../../x", "x" * 300, "a\0b", "", "{root}/" + "y/" * 300),
]


def twin(**options: Any) -> MemoryDisk:
    disk = MemoryDisk(CONTENT, root=ROOT, home=HOME, **options)
    disk.put(f"{OUTSIDE}/secret.txt", "one")
    disk.put(f"{OUTSIDE}/dir/x.txt", "one")
    disk.put(f"{OUTSIDE}/back", Symlink(f"{ROOT}/d"))
    return disk


async def all_that_is_shown(workspace: Workspace, tools: list[Any], calls: list[ToolCall], **options: Any) -> str:
    """The updates, the outcome, and what the batch's records say at every moment of it."""
    shown: list[str] = []
    batch = Runtime(Registry([*workspace.tools(), *tools]), **options).open_batch(State(working_dir="d/.."))
    async with batch:
        for call in calls:
            batch.submit(call)
        batch.seal()
        async for update in batch:
            shown.append(repr(update))
            shown += [repr((call.status, call.waits_for, call.claims, call.results)) for call in batch.calls]
    shown += [repr(batch.outcome), repr(workspace.claim_table.statistics())]
    return "\n".join(shown)


def require_hidden(shown: str, what: Any) -> None:
    """Fail, with some text around it, when the word is there."""
    at = shown.find(WORD)
    assert at < 0, f"{what}: {shown[max(0, at - 200) : at + 100]!r}"


def events_of(trace: Any) -> str:
    """All events, without what the model itself has said."""
    return "\n".join(
        repr({key: value for key, value in event.fields.items() if key != "input"}) for event in trace.events
    )


def every_call(workspace: Workspace, root: str) -> list[ToolCall]:
    return [
        ToolCall("id", tool.name, input)
        for tool in workspace.tools()
        for spelling in [*SPELLINGS, *WRONG]
        for input in inputs_at(tool, spelling.replace("{root}", root), "fresh/x")
    ]


@pytest.fixture
def unscrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text is looked through: what has a private path in it shows it."""
    monkeypatch.setattr(_private, "without_private_paths", lambda root, text, *more: text)


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.usefixtures("unscrubbed")
@pytest.mark.parametrize("number", [None, errno.EIO, errno.EACCES, errno.ENOSPC, errno.EXDEV, errno.EROFS, 9999])
def test_no_answer_of_a_file_tool_shows_a_private_path(number: int | None) -> None:
    """Every tool at every name, on a disk that works and on disks that fail with texts of their own.

    What the tools say is made without such paths, so that nothing has to be taken out of it.
    """

    def fault(effect: str, path: str) -> None:
        if number is not None and effect != "read":
            raise OSError(number, f"cannot {effect} {ROOT}/{path}", f"{ROOT}/{path}", None, f"{OUTSIDE}/x")

    # Names that are refused before the disk is asked need no disk that fails.
    calls = every_call(Workspace(twin()), ROOT)
    for call in calls if number is None else calls[:: 1 if FULL else 7]:

        async def program(call: ToolCall = call) -> str:
            workspace = Workspace(twin(fault=fault))
            return await all_that_is_shown(workspace, [], [call])

        execution = sim.run(program)
        assert execution.error is None, (call, execution.error)
        require_hidden(execution.value, call)
        require_hidden(events_of(execution.trace), call)


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.usefixtures("unscrubbed")
def test_no_answer_of_a_file_tool_shows_a_private_path_of_a_real_disk(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with real errors; and nothing is logged or printed."""
    home = tmp_path.resolve() / WORD
    root = home / "repo"
    monkeypatch.setenv("HOME", str(home))
    caplog.set_level(logging.DEBUG)
    with toolrt.record() as recorder:
        for number, call in enumerate(every_call(Workspace(MemoryDisk()), str(root))):
            if number % 40 == 0:
                planted(root)
            require_hidden(trio.run(all_that_is_shown, Workspace(RealDisk(root)), [], [call]), call)
    require_hidden(events_of(recorder.trace()), "events")
    printed = capfd.readouterr()
    require_hidden(caplog.text + printed.out + printed.err, "logs")


def planted(root: Path) -> None:
    import shutil

    shutil.rmtree(root, ignore_errors=True)
    (root / "d/deep").mkdir(parents=True)
    for path in ("a.txt", "b.txt", "d/b.txt", "d/deep/c.txt"):
        (root / path).write_text("one\n")
    (root.parent / "secret.txt").write_text("one")
    for path, what in CONTENT.items():
        if isinstance(what, Symlink):
            os.symlink(what.target.replace(ROOT, str(root)).replace(OUTSIDE, str(root.parent)), root / path)
    os.mkfifo(root / "pipe")


@attrs.frozen
class Told(Exception):
    """An exception with a text of its own making."""

    text: str

    def __str__(self) -> str:
        return self.text


#: What tools raise: each has private paths in its text, in its attributes or in what it is made of.
RAISED = [
    FileNotFoundError(errno.ENOENT, "No such file or directory", f"{ROOT}/missing.txt"),
    PermissionError(errno.EACCES, "Permission denied", f"{OUTSIDE}/secret.txt"),
    OSError(errno.EXDEV, "Invalid cross-device link", f"{ROOT}/a.txt", None, f"{OUTSIDE}/b.txt"),
    OSError(errno.EIO, f"broken at {OUTSIDE}/x"),
    OSError(f"just a text with {HOME}/notes"),
    FileNotFoundError(errno.ENOENT, "No such file", f"{OUTSIDE}/x".encode()),
    NotADirectoryError(errno.ENOTDIR, "Not a directory", Path(f"{HOME}/x")),
    ValueError(f"cannot parse {ROOT}/d/b.txt: line 3"),
    ValueError(f"cannot parse '{ROOT}/a b.txt' or \"{OUTSIDE}/two words {WORD}.txt\""),
    KeyError(f"{HOME}/.config/token"),
    RuntimeError(f"file://{OUTSIDE}/x and ({HOME}) and [{ROOT}], {OUTSIDE}; {OUTSIDE}: no"),
    RuntimeError(f"command ['cat', '{OUTSIDE}/x'] failed in {ROOT}"),
    RuntimeError(f"../../{WORD}/x and ~/{WORD} and ~{WORD}/x"),
    Told(f'Traceback (most recent call last):\n  File "{HOME}/lib/x.py", line 1\n{OUTSIDE}/y'),
    ExceptionGroup(f"at {OUTSIDE}", [OSError(2, "no", f"{OUTSIDE}/x"), ValueError(f"{ROOT}/y")]),
    UnicodeDecodeError("utf-8", f"{OUTSIDE}".encode(), 0, 1, f"in {OUTSIDE}/x"),
    trio.BrokenResourceError(f"pipe {OUTSIDE}/socket"),
    StopIteration(f"{OUTSIDE}/x"),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["async", "sync", "claims", "interrupted"])
def test_no_exception_of_a_tool_shows_a_private_path(error: BaseException, where: str) -> None:
    """Whatever a tool that works on these files raises, and wherever it does."""
    workspace = Workspace(twin())

    def claims(input: Any, state: State) -> list[Claim]:
        if where == "claims":
            raise error
        return list(workspace.claims("a.txt", state, WRITE))

    if where == "sync":

        @toolrt.tool(name="broken", claims=claims, owner=workspace)
        def broken(ctx: Any) -> None:
            raise error

    else:

        @toolrt.tool(name="broken", claims=claims, owner=workspace, timeout=1 if where == "interrupted" else None)
        async def broken(ctx: Any) -> None:
            try:
                if where == "interrupted":
                    await trio.sleep(5)
            except trio.Cancelled:
                raise error from None
            raise error

    calls = [ToolCall("id", "broken"), ToolCall("id2", "read_file", {"path": "a.txt"})]
    execution = sim.run(lambda: all_that_is_shown(workspace, [broken], calls))
    assert execution.error is None
    require_hidden(execution.value, error)
    require_hidden(events_of(execution.trace), error)
    if where == "async":
        assert type(error).__name__ in execution.value or isinstance(error, ExceptionGroup)


def test_no_modifier_that_raises_shows_a_private_path() -> None:
    """A modifier is part of its tool; what it raises is told on an update."""
    workspace = Workspace(twin())

    @toolrt.tool(safe=True, owner=workspace)
    async def broken(ctx: Any) -> ToolOutput:
        def modifier(state: State) -> State:
            raise OSError(2, "No such file", f"{OUTSIDE}/x")

        return ToolOutput("ok", modifiers=[modifier])

    execution = sim.run(lambda: all_that_is_shown(workspace, [broken], [ToolCall("id", "broken")]))
    assert execution.error is None
    require_hidden(execution.value, "modifier")
    require_hidden(events_of(execution.trace), "modifier")


def test_what_is_inside_is_still_named() -> None:
    """A text that hides everything would help nobody: what lies below the root is shown relative to it."""
    workspace = Workspace(twin())
    assert workspace.describe_error(RAISED[0]) == "FileNotFoundError: No such file or directory: missing.txt"
    assert workspace.describe_error(RAISED[7]) == "ValueError: cannot parse d/b.txt: line 3"


def test_word_is_found_where_it_is() -> None:
    """What these tests stand on: a tool of nobody's shows what it raises."""

    @toolrt.tool(safe=True)
    async def broken(ctx: Any) -> None:
        raise OSError(2, "No such file", f"{OUTSIDE}/x")

    execution = sim.run(lambda: all_that_is_shown(Workspace(twin()), [broken], [ToolCall("id", "broken")]))
    for shown in (execution.value, events_of(execution.trace)):
        with pytest.raises(AssertionError, match=WORD):
            require_hidden(shown, "here")
