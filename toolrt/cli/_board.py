"""A batch while it runs, for people to watch.

Rules.  A board looks at the batch and never touches it.  On a terminal it is a picture that fits the window and is
drawn again while calls run; elsewhere it is lines, each printed once, in the order things became known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from toolrt.cli._escape import on_one_line
from toolrt.cli._plan import in_words
from toolrt.cli._screen import Screen
from toolrt.model import Outcome, Progress, ResultReady, StateMerged, Update
from toolrt.order import Status, TrackedCall
from toolrt.runtime import Batch

__all__ = ["STYLES", "Board"]

#: How outcomes look.
STYLES = {
    Outcome.OK: "green",
    Outcome.ERROR: "red",
    Outcome.INVALID: "red",
    Outcome.DENIED: "yellow",
    Outcome.TIMED_OUT: "red",
    Outcome.INTERRUPTED: "yellow",
    Outcome.NOT_STARTED: "yellow",
    Outcome.SKIPPED: "yellow",
}

#: Of what a waiting call waits for, so much is named.
_NAMED = 3

#: Lines of a picture that are not calls.
_FRAME = 4


class Board:
    """Shows one batch.

    Args:
        screen: where.
        batch: which; read only.
    """

    def __init__(self, screen: Screen, batch: Batch) -> None:
        self._screen = screen
        self._batch = batch
        self._lane: int | None = None
        self._said: dict[int, str] = {}
        self._handed_over = 0

    @property
    def wants_ticks(self) -> bool:
        """Whether it has to be drawn again now and then."""
        return self._screen.is_live

    def take(self, update: Update) -> None:
        """Show what the batch has just yielded."""
        if isinstance(update, Progress):
            self._said[update.call_index] = on_one_line(_said(update.message), 200)
        elif isinstance(update, ResultReady):
            self._handed_over += 1
        if not self._screen.is_live:
            self._print(update)

    def tick(self) -> None:
        """Draw the batch as it is now."""
        if self._screen.is_live:
            self._screen.draw(self._picture())

    def close(self) -> None:
        """Take the picture away."""
        self._screen.wipe()

    # Lines

    def _print(self, update: Update) -> None:
        if isinstance(update, StateMerged):
            self._print_merge(update)
            return
        index = update.call_index if isinstance(update, Progress) else update.result.call_index
        call = self._batch.calls[index]
        if call.lane is not None and call.lane != self._lane:
            self._lane = call.lane
            self._screen.say(self._lane_title(call.lane), "bold")
        name = f"[{index}] {in_words(call.call)}"
        if isinstance(update, Progress):
            self._screen.say(f"{name}: {self._said[index]}", "dim", indent=2)
        else:
            outcome = update.result.outcome
            self._screen.say_parts((f"  {name}: ", ""), (outcome.value, STYLES[outcome]))

    def _print_merge(self, merge: StateMerged) -> None:
        for rejected in merge.rejected:
            text = f"[{rejected.call_index}] modifier {rejected.position} changed nothing: "
            self._screen.say(text + on_one_line(rejected.error), "yellow", indent=2)
        if merge.applied:
            count = len(merge.applied)
            self._screen.say(f"lane {merge.lane} merged {count} modifier{'' if count == 1 else 's'}", "dim", indent=2)

    def _lane_title(self, lane: int) -> str:
        count = sum(call.lane == lane for call in self._batch.calls)
        return f"lane {lane}: {count:,} call{'' if count == 1 else 's'}"

    # Picture

    def _picture(self) -> Group:
        calls = self._batch.calls
        counts = Counter(call.status for call in calls)
        running = [call for call in calls if call.status is Status.EXECUTING]
        lane = next((call.lane for call in running), None)
        outcomes = Counter(call.result.outcome for call in calls if call.result is not None)
        title = Text(no_wrap=True, overflow="ellipsis", style="bold")
        title.append("waiting for the first lane" if lane is None else self._lane_title(lane))
        if self._batch.is_cancelled:
            title.append(", cancelled", style="yellow")
        ended = Text(no_wrap=True, overflow="ellipsis")
        ended.append(f"{counts[Status.EXECUTING]:,} running, {counts[Status.QUEUED]:,} waiting")
        for outcome, count in outcomes.items():
            ended.append(f", {count:,} {outcome.value}", style=STYLES[outcome])
        room = max(1, self._screen.height - _FRAME)
        shown = running[:room]
        if len(shown) < room:
            waiting = (call for call in calls if call.status is Status.QUEUED)
            shown += [call for call, _ in zip(waiting, range(room - len(shown)), strict=False)]
        return Group(title, *map(self._row, shown), ended)

    def _row(self, call: TrackedCall) -> Text:
        row = Text(no_wrap=True, overflow="ellipsis")
        row.append(f"  [{call.call_index}] {in_words(call.call)}")
        if call.status is Status.EXECUTING:
            said = self._said.get(call.call_index)
            row.append(f"  {said}" if said else "  running", style="cyan")
        else:
            waits = call.waits_for
            named = ", ".join(map(str, waits[:_NAMED])) + (", ..." if len(waits) > _NAMED else "")
            row.append(f"  waits for {named}", style="dim")
        return row


def _said(message: Any) -> str:
    """A progress message in words: of a command what it wrote."""
    output = message.get("output") if isinstance(message, Mapping) else None
    return output.strip("\n") if isinstance(output, str) else str(message)
