"""What people see of a batch while it runs: on a real pseudo-terminal, as an emulator shows it."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from tests.cli._terminal import Window, window
from tests.cli.test_interrupt import WITH_SLOW_TOOLS
from toolrt import Allow, Claim, Mode, Outcome, Registry, Runtime, ToolCall, ToolOutput, tool
from toolrt.cli import watching
from toolrt.cli.commands._run import RunResult, perform
from toolrt.cli.screen import _board
from toolrt.cli.screen._screen import Screen

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are pseudo-terminals on POSIX systems")

HOSTILE = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \u202eesrever\u2066 a\rb\x08 \x1b[9A up"


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that pyte is, outside of CI; and a picture at each tick, however slow the machine is."""
    for name in ("CI", "NO_COLOR", "COLUMNS", "LINES", "XTERM_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "linux")
    monkeypatch.setattr(_board, "_SHARE", 0)


def writes(path: str) -> tuple[Claim, ...]:
    return (Claim(("file", path), Mode.WRITE),)


@attrs.define
class Shop:
    """Tools that wait until they are let go, and an approval that does."""

    go: trio.Event = attrs.field(factory=trio.Event)

    @property
    def registry(self) -> Registry:
        @tool(claims=lambda input, state: writes(input["path"]))
        async def edit(ctx: Any, path: str, says: Any = None) -> Any:
            if says is not None:
                ctx.progress(says)
            await self.go.wait()
            return ToolOutput("done", modifiers=[lambda state: state.set("edits", state.get("edits", 0) + 1)])

        @tool(safe=True)
        async def quick(ctx: Any) -> str:
            return "y" * 1_000

        @tool
        async def alone(ctx: Any) -> None:
            await self.go.wait()

        return Registry([edit, quick, alone])

    async def approve(self, request: Any) -> Any:
        """Nobody answers about secrets before it is let go."""
        if request.input.get("path") == "secret.env":
            await self.go.wait()
        return Allow()


class Seen:
    """What a window shows while a batch runs."""

    def __init__(self, window: Window) -> None:
        self.window = window

    async def rows(self, wanted: Callable[[list[str]], object]) -> list[str]:
        """The rows, once they are as `wanted`; pictures are drawn meanwhile."""
        shown: list[str] = []
        for _ in range(500):
            await trio.sleep(0.1)
            shown = self.window.shows()
            if wanted(shown):
                return shown
        raise AssertionError("\n".join(["this was never shown as wanted:", *shown]))

    async def text(self, wanted: str) -> list[str]:
        """The rows, once `wanted` is in one of them."""
        return await self.rows(lambda rows: any(wanted in row for row in rows))


def watch(
    shop: Shop,
    calls: Sequence[ToolCall],
    look: Callable[[Seen], Awaitable[None]],
    columns: int = 80,
    rows: int = 24,
    *,
    reflows: bool = False,
    **options: Any,
) -> tuple[RunResult, Window]:
    """Run a batch in a window, and look at it; what is looked at ends before the batch may."""

    async def main() -> RunResult:
        found: list[RunResult] = []
        screen = Screen(shown.stream)
        runtime = Runtime(shop.registry, **options)
        screen.say("a line above")
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def run() -> None:
                found.append(await perform(runtime, calls, screen))

            try:
                await look(Seen(shown))
            finally:
                shop.go.set()
        screen.say("a line below")
        return found[0]

    with window(columns, rows, reflows=reflows) as shown:
        done = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
        shown.shows()
    return done, shown


def calls_of(*named: tuple[str, dict[str, Any]]) -> list[ToolCall]:
    return [ToolCall(str(place), name, input) for place, (name, input) in enumerate(named)]


def timeless(rows: Sequence[str]) -> list[str]:
    """Rows without what depends on when they were drawn."""
    return [re.sub(r"\d+:\d\d", "T", re.sub(r"( ok); .*$", r"\1; SPEED", row)) for row in rows]


EVERYTHING = calls_of(
    ("quick", {}),
    ("edit", {"path": "a.py", "says": {"progress": 3, "total": 4, "message": "page 3"}}),
    ("edit", {"path": "a.py"}),
    ("edit", {"path": "secret.env"}),
    ("nothing", {}),
    ("edit", {"path": "b.py"}),
    ("edit", {"path": "c.py"}),
    ("alone", {}),
    ("edit", {"path": "d.py"}),
)


def test_picture_says_who_waits_for_a_slot_only() -> None:
    """They hold nothing back but themselves; the limit is told."""
    shop = Shop()
    seen: list[str] = []

    async def look(window: Seen) -> None:
        seen.extend(timeless(await window.text("waits for a slot")))

    watch(shop, calls_of(*[("edit", {"path": f"{place}.py"}) for place in range(4)]), look, limit=2)
    assert seen[4:] == [
        "  [0] edit 0.py  T  running",
        "  [1] edit 1.py  T  running",
        "  [2] edit 2.py  waits for a slot",
        "  [3] edit 3.py  waits for a slot",
        "2 of 2 run; 2 wait for: 2 slot",
    ]


def test_picture_says_what_runs_who_waits_for_whom_and_why() -> None:
    """Lanes, a bar that a call states, claims, an approval, a slot, a lane, counts, and nothing left of it."""
    shop = Shop()
    seen: list[str] = []

    async def look(window: Seen) -> None:
        seen.extend(timeless(await window.rows(_complete)))

    done, shown = watch(shop, EVERYTHING, look, approve=shop.approve)
    assert seen == [
        "a line above",
        "lane 0: calls 0 to 6, 2 lanes to come",
        "━━━━━━━━╸─────────────────────────────── 2 of 9 ended  T",
        "1 invalid, 1 ok; SPEED",
        "  [1] edit a.py        T  ━━━━━━━╸──  75%  page 3",
        "  [5] edit b.py        T  running",
        "  [6] edit c.py        T  running",
        "  [2] edit a.py        waits for [1] (both write a.py)",
        "  [3] edit secret.env  waits to be approved",
        "  [7] alone            waits for lane 0",
        "  [8] edit d.py        waits for lane 1",
        "3 of 10 run; 4 wait for: 1 approval, 1 calls, 2 lane",
    ]
    assert shown.rows() == ["a line above", "a line below"]
    assert [result.outcome for result in done.results].count(Outcome.OK) == 8


@pytest.mark.parametrize("columns", [40, 20, 8])
def test_picture_in_a_narrow_window_keeps_to_its_width(columns: int) -> None:
    """Nothing wraps, so what is left at the end is nothing; in 40 columns it still says who waits for whom."""
    shop = Shop()
    seen: list[str] = []

    async def look(window: Seen) -> None:
        seen.extend(
            timeless(await window.rows(_complete if columns == 40 else lambda rows: any("3 of" in row for row in rows)))
        )

    _, shown = watch(shop, EVERYTHING, look, columns, 16, approve=shop.approve)
    if columns == 40:
        assert "  [1] edit a.py        ━━━╸─  75%  page…" in seen
        assert "  [2] edit a.py        waits for [1]" in seen
        assert "3 of 10 run; 4 wait for: 1 approval" in seen
    assert "".join(shown.rows()).replace(" ", "") == "alineabovealinebelow"


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7])
def test_picture_in_a_low_window_has_fewer_lines(rows: int) -> None:
    """As many calls as fit; in the lowest one only how many have ended."""
    shop = Shop()

    async def look(window: Seen) -> None:
        await window.rows(lambda rows: any("ended" in row or "3 of 10" in row for row in rows))

    _, shown = watch(shop, EVERYTHING, look, 80, rows, approve=shop.approve)
    assert shown.rows()[-1:] == ["a line below"] or rows == 1


@pytest.mark.seldom
def test_picture_of_ten_thousand_calls_shows_what_fits() -> None:
    """The rest is counted; a third of the lines is for what waits."""
    shop = Shop()
    calls = calls_of(*[("edit", {"path": f"{place // 2}.py"}) for place in range(10_000)])
    seen: list[str] = []

    async def look(window: Seen) -> None:
        seen.extend(timeless(await window.text("1 more run and"))[1:])

    watch(shop, calls, look, 80, 14, limit=7)
    assert seen[0] == "lane 0: calls 0 to 9999"
    assert len(seen) == 13  # and the line above the picture: all rows of the window
    assert seen[-2] == "  1 more run and 9,991 more wait"
    assert [row.split()[0] for row in seen[3:11]] == ["[0]", "[2]", "[4]", "[6]", "[8]", "[10]", "[1]", "[3]"]


def test_picture_shows_how_fast_it_goes() -> None:
    """Calls and bytes, so far and in a second."""
    shop = Shop()
    calls = calls_of(*[("quick", {}) for _ in range(20)], ("edit", {"path": "a"}))
    seen: list[str] = []

    async def look(window: Seen) -> None:
        seen.extend(await window.text("kB/s"))

    watch(shop, calls, look)
    assert any(re.fullmatch(r"20 ok; [\d.]+ calls/s, 20 kB, \d+(\.\d)? k?B/s", row) for row in seen), seen


@pytest.mark.parametrize("reflows", [False, True])
def test_picture_follows_a_window_that_is_resized(reflows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the old picture is left, whether the terminal wraps its lines anew or cuts them."""
    monkeypatch.setenv("TERM", "xterm-256color" if reflows else "linux")
    shop = Shop()

    async def look(seen: Seen) -> None:
        wide = await seen.rows(_complete)
        for columns in (40, 64, 33, 80):
            seen.window.resize(columns, 24)
            rows = await seen.rows(
                lambda rows, columns=columns: len(rows) > 10 and max(map(len, rows)) <= columns and _whole(rows)
            )
            assert sum(row.startswith("lane 0") for row in rows) == 1, rows
        again = await seen.rows(lambda rows: timeless(rows) == timeless(wide))
        assert len(again) == len(wide)

    _, shown = watch(shop, EVERYTHING, look, 80, 24, reflows=reflows, approve=shop.approve)
    assert shown.rows() == ["a line above", "a line below"]


def _complete(rows: list[str]) -> bool:
    """Whether all that will be known of `EVERYTHING` before it is let go is shown."""
    return any("75%" in row for row in rows) and any("1 ok;" in row for row in rows) and rows[-1].startswith("3 of 10")


def _whole(rows: list[str]) -> bool:
    """Whether every line is there, and was made for this width: a cut one has no time at its end."""
    if re.search(r"\d:\d\d$", rows[2]) is None:
        return False
    return rows[0] == "a line above" and rows[1].startswith("lane 0") and rows[-1].startswith("3 of 10")


def test_hostile_progress_is_only_shown() -> None:
    """Escapes, titles, line tricks and reversing act on nothing; what cannot be shown is named."""

    class Nasty:
        def __str__(self) -> str:
            raise RuntimeError("no")

    shop = Shop()
    calls = calls_of(
        ("edit", {"path": "a\x1b[2J", "says": HOSTILE}), ("edit", {"path": HOSTILE, "says": {"output": HOSTILE}})
    )
    seen: list[str] = []

    async def look(window: Seen) -> None:
        seen.extend(await window.text("\\u202eesrever\\u2066"))
        assert window.window.screen.title.startswith("mark")

    _, shown = watch(shop, calls, look, 200, 24)
    assert "\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07 \\x9b2J \\u202eesrever\\u2066" in "\n".join(seen)
    assert seen[0] == "a line above"
    assert not set(shown.sent.decode()) & set("\x9b\u202e\u2066\x08")
    assert shown.rows() == ["a line above", "a line below"]

    @tool(safe=True)
    async def tell(ctx: Any) -> None:
        ctx.progress(Nasty())

    with window() as other:
        done = trio.run(perform, Runtime(Registry([tell])), calls_of(("tell", {})), Screen(other.stream))
        assert done.results[0].ok


def test_terminal_that_takes_nothing_stalls_no_tool() -> None:
    """Ctrl-S: while the terminal's output is stopped, tools go on; then the picture goes on as well."""
    shop = Shop()

    async def look(seen: Seen) -> None:
        await seen.text("[0]")
        termios.tcflow(seen.window.theirs, termios.TCOOFF)
        ticks = 0
        for _ in range(50):
            await trio.sleep(0.1)
            ticks += 1
        assert ticks == 50
        termios.tcflow(seen.window.theirs, termios.TCOON)
        await seen.text("0:05")

    _, shown = watch(shop, calls_of(("edit", {"path": "a"})), look)
    assert shown.rows() == ["a line above", "a line below"]


@pytest.mark.parametrize("name", ["NO_COLOR", "CI", "TERM"])
def test_surroundings_are_heeded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR: no colour; in CI and on a dumb terminal plain lines, without one escape."""
    monkeypatch.setenv(name, "dumb" if name == "TERM" else "1")
    shop = Shop()

    async def look(seen: Seen) -> None:
        await seen.text("[1]")

    _, shown = watch(shop, EVERYTHING, look)
    sent = re.sub(rb"\x1b\]0;[^\x07]*\x07", b"", shown.sent)
    if name == "NO_COLOR":
        assert b"\x1b[?25l" in sent
        assert not re.search(rb"\x1b\[[0-9;]*3[0-9]m", sent)
    else:
        assert not re.search(rb"\x1b\[[^m]*[A-HJKSTfhl]", sent)
        assert b"[1] edit a.py: " in sent


def test_lines_say_what_is_waited_for_after_a_silence(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing is drawn, half a minute without a line is followed by one; who reads a log knows it is alive."""
    shop = Shop()

    async def main() -> None:
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def later() -> None:
                await trio.sleep(100)
                shop.go.set()

            await perform(Runtime(shop.registry), EVERYTHING, Screen(sys.stdout))

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    said = [line for line in capsys.readouterr().out.splitlines() if "after 0:" in line or "after 1:" in line]
    assert len(said) == 3
    assert "[1] edit a.py runs (0:" in said[1]
    assert "[2] waits for [1] (both write a.py)" in said[1]


# In a process of its own


def _controls_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextlib.contextmanager
def spawned(shown: Window, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """The command, with the window as its controlling terminal: keys reach it as they reach a person's."""
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_SLOW_TOOLS, *map(str, arguments)],
        stdin=shown.theirs,
        stdout=shown.theirs,
        stderr=shown.theirs,
        start_new_session=True,
        preexec_fn=_controls_terminal,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(100)


def until(shown: Window, text: str, process: subprocess.Popen[bytes]) -> list[str]:
    """The rows, once `text` is in one of them."""
    with shown.changed:
        assert shown.changed.wait_for(lambda: any(text in row for row in shown.rows()), 100), shown.rows()
    return shown.rows()


@pytest.mark.seldom
@pytest.mark.process
def test_ctrl_c_restores_the_terminal_and_reports_what_ended(shop: Path, written: Callable[..., Path]) -> None:
    """The key, not a signal: the picture is gone, the cursor is back, every result is told, the exit code is 130."""
    calls = written(("read_file", {"path": "README.md"}), ("wait", {}), ("write_file", {"path": "new", "content": ""}))
    with window(80, 40) as shown, spawned(shown, "run", calls, "--workspace", shop, "--lanes", "by_safety") as process:
        rows = until(shown, "  ready", process)
        assert shown.cursor_is_hidden
        assert any("[2] write_file new  waits for lane 0" in row for row in rows)
        os.write(shown.ours, b"\x03")
        assert process.wait(100) == 130
        rows = shown.shows()
        assert not shown.cursor_is_hidden
        assert shown.wraps
    told = [row for row in rows if re.match(r"\[\d\] ", row)]
    assert told == ["[0] ok read_file README.md", "[1] interrupted wait", "[2] not_started write_file new"]
    assert not any("ended" in row or "lane 0" in row for row in rows), rows


@pytest.mark.process
def test_second_ctrl_c_restores_the_terminal(shop: Path, written: Callable[..., Path]) -> None:
    """Also where a call does not end, and the process does at once."""
    with window() as shown, spawned(shown, "run", written(("hang", {})), "--workspace", shop) as process:
        until(shown, "  ready", process)
        os.write(shown.ours, b"\x03")
        until(shown, "Ctrl-C again", process)
        os.write(shown.ours, b"\x03")
        assert process.wait(100) == 130
        rows = shown.shows()
        assert not shown.cursor_is_hidden
    assert "[0] hang: still running, given up; effects may have landed" in rows


@pytest.mark.seldom
@pytest.mark.process
def test_question_takes_the_picture_away_while_it_is_asked(shop: Path, written: Callable[..., Path]) -> None:
    """It stands alone until it is answered, says what else goes on, and the answer counts."""
    calls = written(("wait", {}), ("write_file", {"path": "new", "content": "x"}))
    with window(80, 40) as shown, spawned(shown, "run", calls, "--workspace", shop, "--ask", "new") as process:
        until(shown, "[n]o:", process)
        assert not shown.cursor_is_hidden
        assert not any("ended" in row for row in shown.shows())
        os.write(shown.ours, b"y\n")
        until(shown, "1 ok", process)
        assert (shop / "new").read_text() == "x"
        os.write(shown.ours, b"\x03")
        assert process.wait(100) == 130


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize("form", [(), ("--format", "json")])
def test_terminal_that_goes_away_changes_no_call(
    shop: Path, written: Callable[..., Path], form: tuple[str, ...]
) -> None:
    """A window that is closed while calls run, and no hang-up reaches the command: it ends as it would have."""
    calls = written(*[("write_file", {"path": f"{place}", "content": "x"}) for place in range(50)])
    shown = Window()
    process = subprocess.Popen(
        [sys.executable, "-m", "toolrt", "run", str(calls), "--workspace", str(shop), *form],
        stdin=subprocess.DEVNULL,
        stdout=shown.theirs,
        stderr=shown.theirs,
        start_new_session=True,
    )
    with process:
        shown.close()
        assert process.wait(100) == 0
    assert all((shop / str(place)).read_text() == "x" for place in range(50))


def test_program_watches_a_batch_of_its_own() -> None:
    """On a terminal as a picture that is gone afterwards, else as lines; an error of the block comes out as it is."""
    shop, seen, lines = Shop(), [], io.StringIO()

    async def run(stream: Any, look: Callable[[], Awaitable[None]]) -> None:
        batch = Runtime(shop.registry, approve=shop.approve).open_batch()
        async with batch, watching(batch, stream) as board:
            for call in calls_of(("quick", {}), ("edit", {"path": "a.py"}), ("edit", {"path": "a.py"})):
                batch.submit(call)
            batch.seal()
            await look()
            async for update in batch:
                board.take(update)

    async def main() -> None:
        async def look() -> None:
            seen.extend(await Seen(shown).text("waits for [1]"))
            shop.go.set()

        await run(shown.stream, look)

    async def fails() -> None:
        raise KeyError("mine")

    with window(60, 12) as shown:
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
        assert "2 of 3 run" not in "".join(shown.shows())
    assert any("[2] edit a.py" in row and "waits for [1]" in row for row in seen)
    trio.run(run, lines, trio.lowlevel.checkpoint)
    assert lines.getvalue().splitlines()[1] == "  [0] quick: ok"
    with pytest.raises(KeyError, match="mine"):
        trio.run(run, lines, fails)
