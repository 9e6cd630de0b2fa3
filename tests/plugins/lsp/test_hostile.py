"""Language servers that misbehave in every way: the answer says so, no call fails, and nothing is left."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

pytest.importorskip("lsprotocol", reason="the lsp extra is not installed")

from tests.services._shells import Left
from toolrt import BatchOutcome, Outcome, Registry, Runtime, Services, ToolCall, Workspace
from toolrt.plugins.lsp import LanguageServer, LanguageServers, ServerStatus

HOSTILE = Path(__file__).parent / "servers" / "hostile.py"

#: Seconds that are waited for what never comes.
SHORT = 0.3


def descriptors() -> list[str]:
    """What is open in this process, but for the workspace's own history."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return sorted(place for place in found if not place.endswith(".log"))


@pytest.fixture(autouse=True)
def nothing_left(left: Left) -> Iterator[None]:
    """No process and no open file is left after the test."""
    before = descriptors()
    yield
    assert left() == []
    assert descriptors() == before


@pytest.fixture
def hostile(tmp_path: Path) -> Callable[..., LanguageServer]:
    """A server that behaves in one way."""

    def hostile(how: str, **options: Any) -> LanguageServer:
        command = [sys.executable, "-I", "-S", str(HOSTILE), how, str(tmp_path / "starts")]
        wanted = {"suffixes": [".py"], "reads": "file", "restarts": 1, "wait": 60.0, **options}
        return LanguageServer("hostile", command, **wanted)

    return hostile


def asked(workspace: Workspace, server: LanguageServer, *calls: Any) -> tuple[BatchOutcome, ServerStatus]:
    """What the calls come to, and how the server then was."""

    async def main() -> tuple[BatchOutcome, ServerStatus]:
        async with LanguageServers(workspace, [server]) as lsp:
            runtime = Runtime(
                Registry([*workspace.tools(), *lsp.tools()]), services=Services(lsp=lsp, after_lane=[lsp.after_lane])
            )
            named = [ToolCall(f"{number}", name, input) for number, (name, input) in enumerate(calls)]
            return await runtime.run(named), lsp.status["hostile"]

    return trio.run(main)


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110  nobody tells of it
        await trio.lowlevel.checkpoint()


QUESTION = ("diagnostics", {"path": "a.py"})
FOUND = "a.py:2:3: warning 7 bad"


@pytest.fixture
def workspace(root: Path) -> Workspace:
    (root / "a.py").write_text("# é\n# bad\n")
    return Workspace(root, state_dir=root.parent / "outside")


@pytest.mark.parametrize("how", ["asked", "published", "unversioned", "lies"])
def test_findings_are_those_of_the_text_asked_about(
    workspace: Workspace, hostile: Callable[..., LanguageServer], how: str
) -> None:
    """However a server tells its findings, and whatever it tells beside them."""
    edit = ("edit_file", {"path": "a.py", "old": "# é\n", "new": ""})
    again = ("edit_file", {"path": "a.py", "old": "bad", "new": "good"})
    done, status = asked(workspace, hostile(how), QUESTION, edit, QUESTION, again, QUESTION)
    answers = [result.content for result in done.results[::2]]
    assert answers == [FOUND, "a.py:1:3: warning 7 bad", "a.py: nothing found by hostile"]
    assert status.dropped >= (30 if how == "lies" else 0)


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("text", "it wrote what is no message of the protocol to its standard output"),
        ("negative", "it wrote what is no message of the protocol to its standard output"),
        ("oversized", "it announced a message of more than 16,777,216 bytes"),
        ("no json", "it sent more than 100 messages in a row that are no JSON objects"),
        ("half always", "it was ended by SIGKILL"),
        ("flood", "it sent more than 50,000 messages that no request asked for"),
        ("asks for ever", "it sent more than 50,000 messages that no request asked for"),
        ("cannot", "it did not say what it can do"),
    ],
)
def test_server_that_is_lost_each_time_is_given_up(
    workspace: Workspace, hostile: Callable[..., LanguageServer], how: str, why: str
) -> None:
    """It is started as often as it may be; then every answer says why, at once."""
    done, status = asked(workspace, hostile(how), QUESTION, QUESTION)
    said = f"[not known from hostile: it was lost 2 times in a row and is given up, the last time: {why}]"
    assert [(result.outcome, result.content) for result in done.results] == [(Outcome.OK, said)] * 2
    assert status.starts == 2


def test_server_that_dies_in_the_middle_of_a_message_is_started_anew(
    workspace: Workspace, hostile: Callable[..., LanguageServer]
) -> None:
    """The question that waits is asked again."""
    done, status = asked(workspace, hostile("half"), QUESTION)
    assert done.results[0].content == FOUND
    assert status.starts == 2


def test_content_that_is_too_deep_is_dropped(workspace: Workspace, hostile: Callable[..., LanguageServer]) -> None:
    """A million brackets are no message."""
    done, status = asked(workspace, hostile("deep"), QUESTION)
    assert done.results[0].content == FOUND
    assert status.dropped == 3


@pytest.mark.parametrize("how", ["hang", "mute", "deaf", "silent"])
def test_server_that_says_nothing_is_not_waited_for_longer_than_stated(
    workspace: Workspace, hostile: Callable[..., LanguageServer], how: str
) -> None:
    """The answer says that findings are not there."""
    done, _ = asked(workspace, hostile("silent first" if how == "silent" else how, wait=SHORT), QUESTION)
    assert done.results[0].outcome is Outcome.OK
    assert done.results[0].content == f"[not known from hostile: it gave no findings within {SHORT} s]"


def test_server_that_does_not_start_in_time_is_lost(
    workspace: Workspace, hostile: Callable[..., LanguageServer]
) -> None:
    """Also while a question waits longer than that."""
    done, status = asked(workspace, hostile("hang", start_timeout=SHORT, restarts=0), QUESTION)
    assert f"the last time: it was not ready within {SHORT} s" in str(done.results[0].content)
    assert status.starts == 1


def test_server_without_versions_that_was_silent_is_started_anew(
    workspace: Workspace, hostile: Callable[..., LanguageServer]
) -> None:
    """What it published late would be taken for an answer to the next text."""
    server = hostile("silent first", wait=SHORT)

    async def main() -> None:
        async with LanguageServers(workspace, [server]) as lsp:
            assert (await lsp.diagnostics("a.py")).problems
            while (checked := await lsp.diagnostics("a.py")).problems:
                pass
            assert [finding.message for finding in checked.findings] == ["bad"]
            assert lsp.status["hostile"].starts == 2

    trio.run(main)


@pytest.mark.seldom
def test_server_that_reads_nothing_is_lost_before_memory_is(
    workspace: Workspace, hostile: Callable[..., LanguageServer]
) -> None:
    """What it is to be told is bounded, and nobody waits for it."""

    async def main() -> None:
        async with LanguageServers(workspace, [hostile("deaf", wait=SHORT)]) as lsp:
            await lsp.diagnostics("a.py")
            # On a busy machine it starts later than the question waits; before that it is sent nothing.
            await until(lambda: lsp.status["hostile"].running)
            for number in range(20):
                lsp.notify_file_changed("a.py", f"{number:0>4000000}")
            await until(lambda: not lsp.status["hostile"].running)
            await until(lambda: lsp.status["hostile"].ended is not None)
            assert lsp.status["hostile"].ended == "it does not read what it is sent"

    trio.run(main)


def test_requests_of_the_server_are_answered(workspace: Workspace, hostile: Callable[..., LanguageServer]) -> None:
    """Each as the protocol says; an edit of files is refused."""
    done, status = asked(workspace, hostile("asks", settings={"one": {"two": 3}}), QUESTION)
    line = str(done.results[0].content)
    assert line.startswith("a.py:1:1: error ")
    for part in (
        '"client/registerCapability": null',
        '"window/workDoneProgress/create": null',
        '"workspace/applyEdit": {"applied": false, "failureReason": "files are changed by tools only"}',
        '"workspace/configuration": [{"two": 3}, null, {"one": {"two": 3}}, {"one": {"two": 3}}]',
        '"no/such/method": {"code": -32601, "message": "not supported"}',
    ):
        assert part in line
    assert status.asked == 6


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("again", "it said 20 times in a row to ask again, or the file does not come to rest"),
        ("refuses", "it answered with error -32603"),
        ("nonsense", "it answered with what are no findings"),
    ],
)
def test_server_that_does_not_say_keeps_its_connection(
    workspace: Workspace, hostile: Callable[..., LanguageServer], how: str, why: str
) -> None:
    """The answer says why; nothing that the server wrote is shown."""
    done, status = asked(workspace, hostile(how), QUESTION, QUESTION)
    assert [result.content for result in done.results] == [f"[not known from hostile: {why}]"] * 2
    assert (status.starts, status.running) == (1, True)


def test_findings_that_cannot_be_read_are_counted(workspace: Workspace, hostile: Callable[..., LanguageServer]) -> None:
    """The others are shown, each in one line and without paths of the machine."""
    done, _ = asked(workspace, hostile("odd findings"), QUESTION)
    assert str(done.results[0].content).splitlines() == [
        FOUND,
        "a.py:2:3: warning 7 see the path: two lines",
        "[not known from hostile: 5 of its findings are not shown]",
    ]


def test_server_that_never_ends_is_ended(workspace: Workspace, hostile: Callable[..., LanguageServer]) -> None:
    """With all it started, be it in sessions of their own and deaf to TERM; the batch does not wait for that."""
    done, status = asked(workspace, hostile("stubborn"), QUESTION)
    assert done.results[0].content == FOUND
    assert status.running


def test_server_that_is_not_there_fails_no_call(workspace: Workspace) -> None:
    """The answer says that there is no such program, and no path of the machine."""
    missing = LanguageServer("hostile", ["/no/such/server"], suffixes=[".py"], restarts=0)
    done, _ = asked(workspace, missing, QUESTION)
    assert done.results[0].outcome is Outcome.OK
    assert "there is no program 'server'" in str(done.results[0].content)


def test_cancel_leaves_nothing(workspace: Workspace, hostile: Callable[..., LanguageServer]) -> None:
    """The block is cancelled while a server starts that never will."""

    async def main() -> None:
        with trio.CancelScope() as scope:
            async with LanguageServers(workspace, [hostile("hang")]) as lsp, trio.open_nursery() as nursery:
                nursery.start_soon(lsp.diagnostics, "a.py")
                await until(lambda: lsp.status["hostile"].starts)
                scope.cancel()

    trio.run(main)
