"""A batch while it runs, for people to watch.

Rules.  A board looks at the batch and never touches it.  On a terminal it is a picture that fits the window and is
drawn again while calls run; elsewhere it is lines, each printed once, in the order things became known, and where
nothing became known for a while a line that says what it waits for.  What drawing takes is measured, and it is drawn
less often where that is much, so a picture takes a small share of the time however large the batch is.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from toolrt._plain import counted
from toolrt.cli.screen._census import CallStage, Census
from toolrt.cli.screen._escape import on_one_line, shown_lines
from toolrt.cli.screen._picture import Glyphs, GrowthRate, Speeds, Window, clock, lane_bounds, picture, waits_in_words
from toolrt.cli.screen._plan import in_words
from toolrt.cli.screen._said import CallMessage, output_in, said_in, size_of
from toolrt.cli.screen._screen import Screen
from toolrt.cli.screen._styles import STYLES
from toolrt.model import Progress, ResultReady, StateMerged, Update
from toolrt.order import TrackedCall
from toolrt.runtime import Batch

#: Seconds between two pictures, at least.
_TICK = 0.1

#: The same where lines are printed.
_TICK_OF_LINES = 1.0

#: Drawing may take one part in so many of the time.
_SHARE = 20

#: Seconds without a line after which one says what is waited for.
_SILENCE = 30.0

#: Lines of one piece of a command's output.
_LINES = 20

#: Of the calls that run and of those that wait, so many are named then.
_NAMED = 3


class BatchBoard:
    """Shows one batch.

    Args:
        screen: where.
        batch: which; read only.
    """

    def __init__(self, screen: Screen, batch: Batch) -> None:
        self._screen = screen
        self._batch = batch
        self._census = Census(batch.calls)
        self._glyphs = Glyphs.for_encoding(screen.encoding)
        self._lane: int | None = None
        #: What each call that has not ended said last.
        self._said: dict[int, CallMessage] = {}
        #: Bytes that calls said and answered.
        self._bytes = 0
        self._call_rate, self._byte_rate = GrowthRate(), GrowthRate()
        self._began = self._spoke = trio.current_time()

    def take(self, update: Update) -> None:
        """Show what the batch has just yielded.

        Checkpoint: never.
        """
        if isinstance(update, Progress):
            self._said[update.call_index] = said_in(update.message)
            self._bytes += size_of(update.message)
        elif isinstance(update, ResultReady):
            self._said.pop(update.result.call_index, None)
            self._bytes += size_of(update.result.content)
            self._census.handed_over(update.result)
        if not self._screen.is_live:
            self._spoke = trio.current_time()
            self._print(update)

    async def keep_showing(self) -> None:
        """Show the batch as it is, again and again, until this is cancelled.

        Checkpoint: always.
        """
        while True:
            began = time.perf_counter()
            self.tick()
            pause = _TICK if self._screen.is_live else _TICK_OF_LINES
            await trio.sleep(max(pause, (time.perf_counter() - began) * _SHARE))

    def tick(self) -> None:
        """Show the batch as it is now.

        Checkpoint: never.
        """
        now = trio.current_time()
        if self._screen.is_live:
            self._screen.draw(self._picture(now))
        elif now - self._spoke >= _SILENCE:
            self._spoke = now
            self._say_what_is_waited_for(now)

    def close(self) -> None:
        """Take the picture away."""
        self._screen.wipe()

    def _picture(self, now: float) -> list[list[tuple[str, str]]]:
        self._census.look(now)
        window = Window(self._screen.width, self._screen.height - 1, self._glyphs)
        ended = self._census.counts[CallStage.ENDED]
        speeds = Speeds(
            self._call_rate.per_second(now, ended), self._byte_rate.per_second(now, self._bytes), self._bytes
        )
        return picture(self._batch, self._census, self._said, window, now, self._began, speeds)

    # Lines

    def _print(self, update: Update) -> None:
        if isinstance(update, StateMerged):
            self._print_merge(update)
            return
        index = update.call_index if isinstance(update, Progress) else update.result.call_index
        call = self._batch.calls[index]
        if call.lane is not None and call.lane != self._lane:
            self._lane = call.lane
            self._screen.say(self._lane_title(call, call.lane), "bold")
        name = f"[{index}] {in_words(call.call)}"
        if isinstance(update, Progress):
            self._print_said(name, update)
        else:
            outcome = update.result.outcome
            self._screen.say_parts((f"  {name}: ", ""), (outcome.value, STYLES[outcome]))

    def _print_said(self, name: str, progress: Progress) -> None:
        output = output_in(progress.message)
        lines, left_out = ([self._said[progress.call_index].text], 0) if output is None else shown_lines(output, _LINES)
        for line in lines:
            self._screen.say(f"{name}: {line}", "dim", indent=2)
        if left_out:
            self._screen.say(f"{name}: ... {counted(left_out, 'more line')}", "dim", indent=2)

    def _print_merge(self, merge: StateMerged) -> None:
        for rejected in merge.rejected:
            text = f"[{rejected.call_index}] modifier {rejected.position} changed nothing: "
            self._screen.say(text + on_one_line(rejected.error), "yellow", indent=2)
        if merge.applied:
            count = len(merge.applied)
            self._screen.say(f"lane {merge.lane} merged {counted(count, 'modifier')}", "dim", indent=2)

    def _lane_title(self, call: TrackedCall, lane: int) -> str:
        begin, end = lane_bounds(self._batch.calls, call.call_index, lane)
        count = sum(self._batch.calls[place].lane == lane for place in range(begin, end))
        return f"lane {lane}: {counted(count, 'call')}"

    def _say_what_is_waited_for(self, now: float) -> None:
        census = self._census
        census.look(now)
        parts = []
        for call in census.first_running(_NAMED):
            since = clock(now - census.running[call.call_index])
            parts.append(f"[{call.call_index}] {in_words(call.call)} runs ({since})")
        parts += [f"[{call.call_index}] {waits_in_words(call, self._batch)}" for call in census.first_waiting(_NAMED)]
        more = census.counts[CallStage.RUNNING] + census.waiting - len(parts)
        text = "; ".join(parts) + (f"; and {more:,} more" if more > 0 else "")
        self._screen.say(on_one_line(f"after {clock(now - self._began)}: {text or 'every call has ended'}"), "dim", 2)


@asynccontextmanager
async def watching(screen: Screen, batch: Batch) -> AsyncIterator[BatchBoard]:
    """A board of `batch` that is shown until the block is left; an error of the block comes out as it is.

    Checkpoint: always, when it is left.
    """
    board = BatchBoard(screen, batch)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(board.keep_showing)
            try:
                yield board
            finally:
                board.close()
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        [error] = group.exceptions
        raise error from error.__cause__
