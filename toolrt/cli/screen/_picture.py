"""The picture of a running batch: lanes, who runs and how far, who waits for whom and why, how fast it goes.

Rules.  A picture has at most as many lines as it may have, and is a function of what it is given.  What runs comes
before what waits, each in call order; at least a third of the lines, if there is need, is for what waits.  All that
comes from outside is escaped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import attrs
from rich.cells import cell_len

from toolrt._plain import counted
from toolrt.cli.screen._census import CallStage, Census
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._painter import fitted
from toolrt.cli.screen._plan import in_words, resource_in_words, subject_of
from toolrt.cli.screen._said import CallMessage, in_bytes
from toolrt.cli.screen._styles import STYLES
from toolrt.order import TrackedCall
from toolrt.runtime import Batch

#: Of what a waiting call waits for, so much is named.
_NAMED = 3

#: Seconds that a rate is taken over.
_RATE_OVER = 5.0

#: A call is named by so many columns at most, and so large a share of them; more of few.
_NAME_MOST = 60
_NAME_SHARE = 0.42
_NAME_SHARE_OF_FEW = 0.55

#: In fewer columns words are left out.
_NARROW = 64


@attrs.frozen
class Glyphs:
    """What a bar is made of."""

    full: str
    part: str
    empty: str

    @classmethod
    def for_encoding(cls, encoding: str) -> Glyphs:
        """Lines, where the encoding has them."""
        try:
            "━╸─…".encode(encoding)
        except (UnicodeEncodeError, LookupError):
            return cls("#", "-", ".")
        return cls("━", "╸", "─")

    def bar(self, share: float, columns: int) -> list[tuple[str, str]]:
        """A bar of `columns`, as far as `share`."""
        halves = int(share * columns * 2 + 1e-9)
        full, half = divmod(halves, 2)
        done = self.full * full + self.part * half
        return [(done, "cyan"), (self.empty * (columns - full - half), "dim")]


class GrowthRate:
    """How fast a number grows."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()

    def per_second(self, now: float, value: float) -> float | None:
        """By how much it grew each second lately; None: it is too early to say."""
        seen = self._seen
        seen.append((now, value))
        while len(seen) > 2 and seen[1][0] <= now - _RATE_OVER:
            seen.popleft()
        began, first = seen[0]
        return (value - first) / (now - began) if now - began >= 1 else None


@attrs.frozen
class Window:
    """Where a picture has to fit."""

    columns: int
    #: The most lines it may have.
    lines: int
    glyphs: Glyphs


@attrs.frozen
class Speeds:
    """How fast a batch goes; None where it is too early to say."""

    calls: float | None
    bytes: float | None
    #: What calls said and answered so far.
    bytes_so_far: int


Line = list[tuple[str, str]]


def picture(
    batch: Batch,
    census: Census,
    said: Mapping[int, CallMessage],
    window: Window,
    now: float,
    began: float,
    speeds: Speeds,
) -> list[Line]:
    """The lines, at least one."""
    last = _standing(batch, census, window)
    if window.lines < 3:
        return [_progress(batch, census, window, now - began), last][: max(1, window.lines)]
    head = [_lane(batch, census, window), _progress(batch, census, window, now - began)]
    if window.lines > 6:
        head.append(_outcomes(census, speeds))
    room = window.lines - len(head) - 1
    runs, waits = census.counts[CallStage.RUNNING], census.waiting
    # One line says how many more there are.
    more = runs + waits > room
    room -= more
    for_waiting = min(waits, max(room // 3, room - runs))
    running = census.first_running(max(0, room - for_waiting))
    waiting = census.first_waiting(for_waiting)
    width = max([_name_width(call) for call in (*running, *waiting)], default=0)
    share = _NAME_SHARE_OF_FEW if window.columns < _NARROW else _NAME_SHARE
    width = min(width, _NAME_MOST, int(window.columns * share))
    rows = [_running(call, width, census, said, window, now) for call in running]
    rows += [_waiting(call, width, batch, census, window) for call in waiting]
    if more:
        left = [(runs - len(running), "run"), (waits - len(waiting), "wait")]
        text = " and ".join(f"{count:,} more {verb}" for count, verb in left if count > 0)
        rows.append([(f"  {text}", "dim")])
    return [*head, *rows, last]


def _lane(batch: Batch, census: Census, window: Window) -> Line:
    first = next(iter(census.first_running(1)), None) or census.first_left
    lane = None if first is None else first.lane
    line: Line
    if first is None or lane is None:
        line = [("all calls have ended" if first is None else "waiting for the first lane", "bold")]
    else:
        begin, end = lane_bounds(batch.calls, first.call_index, lane)
        count = end - begin
        behind = _last_lane(batch.calls) - lane
        line = [(f"lane {lane}", "bold")]
        if count == 1:
            line.append((f": call {begin} alone" if not first.safe else f": call {begin}", ""))
        else:
            line.append((f": calls {begin} to {end - 1}", ""))
        if behind > 0:
            line.append((f", {counted(behind, 'lane')} to come", "dim"))
    if batch.is_cancelled:
        line.insert(0, ("cancelled: ", "yellow"))
    return line


def lane_bounds(calls: Sequence[TrackedCall], index: int, lane: int) -> tuple[int, int]:
    """Where the calls of the lane of call `index` begin and end; in O(log n), as lanes are in call order."""

    def lane_at(place: int, step: int) -> int:
        # Calls that belong to no lane lie between others; at the ends there is nothing.
        while 0 <= place < len(calls):
            found = calls[place].lane
            if found is not None:
                return found
            place += step
        return -1 if place < 0 else len(calls)

    low, high = 0, index
    while low < high:
        middle = (low + high) // 2
        if lane_at(middle, 1) < lane:
            low = middle + 1
        else:
            high = middle
    begin = low
    low, high = index, len(calls) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if lane_at(middle, -1) > lane:
            high = middle - 1
        else:
            low = middle
    return begin, low + 1


def _last_lane(calls: Sequence[TrackedCall]) -> int:
    return next((call.lane for call in reversed(calls) if call.lane is not None), 0)


def _progress(batch: Batch, census: Census, window: Window, seconds: float) -> Line:
    total = len(batch.calls)
    ended = census.counts[CallStage.ENDED]
    text = f" {ended:,} of {total:,} ended  {clock(seconds)}"
    columns = max(0, min(40, window.columns - len(text) - 1))
    return [*window.glyphs.bar(ended / max(1, total), columns), (text, "")]


def _outcomes(census: Census, speeds: Speeds) -> Line:
    line: Line = []
    for outcome, count in census.outcomes.items():
        if count:
            line.append((f"{', ' if line else ''}{count:,} {outcome.value}", STYLES[outcome]))
    parts = [] if line else ["nothing has ended"]
    if speeds.calls is not None:
        parts.append(f"{speeds.calls:,.0f} calls/s" if speeds.calls >= 10 else f"{speeds.calls:.1f} calls/s")
    if speeds.bytes_so_far:
        parts.append(in_bytes(speeds.bytes_so_far))
        if speeds.bytes is not None:
            parts.append(f"{in_bytes(speeds.bytes)}/s")
    separated = "; " if line and parts else ""
    return [*line, (separated + ", ".join(parts), "dim")]


def _standing(batch: Batch, census: Census, window: Window) -> Line:
    """How many run of how many that may, and for what the others wait."""
    counts, limit = census.counts, batch.limit
    of = "" if limit is None else f" of {limit:,}"
    line: Line = [(f"{counts[CallStage.RUNNING]:,}{of} run", "")]
    if census.waiting:
        line.append((f"; {census.waiting:,} wait", ""))
    words = {
        CallStage.APPROVAL: ("approval", "yellow"),
        CallStage.CLAIMS: ("calls", ""),
        CallStage.SLOT: ("slot", ""),
        CallStage.LANE: ("lane", ""),
    }
    before = " for: "
    for standing, (text, style) in words.items():
        if counts[standing] and (standing is CallStage.APPROVAL or window.columns >= _NARROW):
            line += [(before, ""), (f"{counts[standing]:,} {text}", style)]
            before = ", "
    return line


def _running(
    call: TrackedCall,
    width: int,
    census: Census,
    said: Mapping[int, CallMessage],
    window: Window,
    now: float,
) -> Line:
    line = _named(call, width)
    since = now - census.running.get(call.call_index, now)
    told = said.get(call.call_index)
    if since >= 1 or window.columns >= _NARROW:
        line.append((f"  {clock(since)}", ""))
    if told is not None and told.share is not None:
        columns = max(5, min(20, window.columns // 8))
        line += [("  ", ""), *window.glyphs.bar(told.share, columns), (f" {told.share:4.0%}", "cyan")]
    if told is not None and told.written is not None and window.columns >= _NARROW:
        line.append((f"  {in_bytes(told.written)}", "dim"))
    text = "running" if told is None else told.text
    return [*line, (f"  {text}", "cyan" if told is not None else "dim")]


def _waiting(call: TrackedCall, width: int, batch: Batch, census: Census, window: Window) -> Line:
    style = "yellow" if census.standing(call) is CallStage.APPROVAL else "dim"
    return [*_named(call, width), (f"  {waits_in_words(call, batch, window.columns - width - 4)}", style)]


def _name_width(call: TrackedCall) -> int:
    return cell_len(f"[{call.call_index}] {in_words(call.call)}")


def _named(call: TrackedCall, width: int) -> Line:
    """The call in exactly `width` columns, and two before them; of a path its end is kept."""
    name, about = subject_of(call.call)
    name = f"[{call.call_index}] {name}"
    room = width - cell_len(name) - 1
    if about and cell_len(about) > room >= 5 and "/" in about:
        about = _end_of(about, room)
    shown = "".join(part for part, _ in fitted([(f"{name} {about}" if about else name, "")], width))
    return [("  ", ""), (shown + " " * (width - cell_len(shown)), "")]


def _end_of(text: str, columns: int) -> str:
    """The end of a text that is wider than `columns`."""
    while cell_len(text) > columns - 1:
        text = text[1:]
    return f"…{text}"


def waits_in_words(call: TrackedCall, batch: Batch, width: int = 120) -> str:
    """For whom or what a call waits, and why, in about `width` columns."""
    waits = call.waits_for
    if not waits:
        return "starts"
    if waits == ["lane"]:
        return f"waits for lane {call.lane - 1}" if call.lane else "waits for its lane"
    if waits == ["slot"]:
        return "waits for a slot"
    others = [one for one in waits if one != "approval"]
    parts = []
    if len(others) < len(waits):
        parts.append("waits to be approved")
    if others:
        named = ", ".join(map(_shown, others[:_NAMED]))
        more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
        text = f"waits for {named}{more}"
        parts.append(text + _reason(call, others[0], batch, width - len(text)))
    return " and ".join(parts)


def _shown(blocker: object) -> str:
    """A call of this batch by its place, one of another batch by its name."""
    return f"[{blocker}]" if isinstance(blocker, int) else on_one_line(str(blocker), 40)


def _reason(call: TrackedCall, blocker: object, batch: Batch, width: int) -> str:
    """What the two calls both claim."""
    if not isinstance(blocker, int) or not 0 <= blocker < len(batch.calls):
        return ""
    theirs = batch.calls[blocker].claims
    for mine in call.claims:
        for other in theirs:
            if mine.conflicts_with(other):
                # The narrower of the two says what it is about.
                what = resource_in_words(max(mine, other, key=lambda one: len(one.resource)), 120)
                what = what.removeprefix("file/")
                text = " (both write " if mine.mode is other.mode else f" (it {other.mode.value}s "
                room = width - len(text) - 1
                if room < 8:
                    return ""
                return f"{text}{what if cell_len(what) <= room else _end_of(what, room)})"
    return ""


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds: 0:07, 12:30, 1:02:03."""
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
