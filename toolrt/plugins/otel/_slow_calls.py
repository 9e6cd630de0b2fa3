"""Warns of calls that run long or wait long, while they do.

Rules.
    1. An observer has no timer.  So each event tells what time it is, of whatever call it is, and a program in which
       nothing else happens calls `SlowCalls.check` from a timer of its own.
    2. A call has one warning for running, and one for each thing that it waits for.
    3. A wait for an approval is never told: a person takes their time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.plugins.otel._measures import UNKNOWN_TOOL

_LOGGER = logging.getLogger("toolrt")


@attrs.frozen
class SlowCall:
    """A call that has run, or waited, for longer than it was to."""

    #: The id of its batch.
    batch_id: str
    #: Its place there.
    call_index: int
    #: Its tool; of one that is not there, a word for that.
    tool: str
    #: What it waits for: "lane", "claims" or "slot"; None: it runs.
    waits_for: str | None
    #: How long it has, so far.
    seconds: float
    #: Where it waits for claims, the calls that were in the way when the wait began: indexes in its batch, or texts.
    blocked_by: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        who = f"call {self.call_index} ({self.tool}) of batch {self.batch_id}"
        if self.waits_for is None:
            return f"{who} has run for {self.seconds:.1f} s"
        behind = f", behind {', '.join(map(str, self.blocked_by))}" if self.blocked_by else ""
        return f"{who} has waited {self.seconds:.1f} s for its {self.waits_for}{behind}"


class SlowCalls:
    """A sink that warns of calls which run long or wait long, while they still do.

    Args:
        running: seconds of its own execution after which a call is slow, above 0; None: none is.
        waiting: seconds of one wait after which a call is slow; None: none is.
        tell: is given each `SlowCall`, in the task or thread in which something happened, and must not block; by
            default the logger ``toolrt`` warns of it.

    Raises:
        DefinitionRefused: an argument is not what it must be.

    Checkpoint: never, in all it does.

    Example::

        runtime = toolrt.Runtime(registry, telemetry=Telemetry(Counts(), SlowCalls(running=10)))
    """

    def __init__(
        self,
        running: float | None = 30.0,
        waiting: float | None = 30.0,
        tell: Callable[[SlowCall], object] | None = None,
    ) -> None:
        for name, seconds in (("running", running), ("waiting", waiting)):
            is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if seconds is not None and not (is_number and seconds > 0):
                raise DefinitionRefused(f"SlowCalls({name})", "seconds above 0, or None", seconds)
        if tell is not None and not callable(tell):
            raise DefinitionRefused("SlowCalls(tell)", "a function of a SlowCall, or None", tell)
        self._most = {True: running, False: waiting}
        self._tell = _warn if tell is None else tell
        self._lock = threading.Lock()
        #: The tools of calls, by batch and call.
        self._tools: dict[int, dict[int, str]] = {}
        #: What has begun, not ended and not been told, the oldest first: calls that run, and waits.
        self._begun: dict[bool, dict[tuple[Any, ...], tuple[int, SlowCall]]] = {True: {}, False: {}}

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Take note of what happened, and tell of the calls that are slow by now."""
        with self._lock:
            slow = self._slow(fields["time"])  # first: what ends now may have been slow
            self._note(kind, fields)
        for call in slow:
            self._tell(call)

    def check(self) -> None:
        """Tell of the calls that are slow by now.  Call it from a timer where long nothing else may happen."""
        with self._lock:
            slow = self._slow(time.time_ns())
        for call in slow:
            self._tell(call)

    def _note(self, kind: str, fields: Mapping[str, Any]) -> None:
        number, call = fields.get("number"), fields.get("call")
        if kind == "batch.opened":
            self._tools[fields["number"]] = {}
        elif kind == "batch.ended":
            self._tools.pop(fields["number"], None)
        elif number not in self._tools:
            return
        elif kind == "call.submitted":
            self._tools[number][fields["call"]] = fields["tool"] or UNKNOWN_TOOL
        elif kind == "call.started" or (kind == "wait.began" and fields["why"] != "approval"):
            why = fields.get("why")
            blocked = tuple(fields.get("blocked_by") or ())
            begun = SlowCall(fields["batch"], fields["call"], self._tools[number][fields["call"]], why, 0.0, blocked)
            self._begun[why is None][number, call, why] = fields["time"], begun
        elif kind == "call.ended" or kind == "wait.ended":
            why = fields.get("why")
            self._begun[why is None].pop((number, call, why), None)

    def _slow(self, now: int) -> list[SlowCall]:
        found = []
        for runs, most in self._most.items():
            begun = self._begun[runs]
            while begun and most is not None:
                key, (since, call) = next(iter(begun.items()))
                seconds = (now - since) / 1e9
                if seconds < most:
                    break
                del begun[key]
                found.append(attrs.evolve(call, seconds=seconds))
        return found

    def __repr__(self) -> str:
        return f"SlowCalls(running={self._most[True]}, waiting={self._most[False]})"


def _warn(call: SlowCall) -> None:
    _LOGGER.warning("%s", call)
