"""What a journal has of one batch, and how its records are written and read.

Rules.  A record is a JSON list: its kind, the place of the call, and what it says.  A place is the call_index; of a
call of a sub-batch, the place of the call inside which it runs, the number of the sub-batch there, and its call_index.

===========  =========================================================================================
``batch``    the first record: codec, lanes, state, owner, and the calls that were known at the start
``call``     a call that was submitted later
``answer``   what the approval check answered
``start``    the call is about to start; what was recorded of an earlier start no longer counts
``unstart``  it did not start after all
``front``    what a tool is about to do, by which it can tell later whether it did
``return``   what the tool returned
``end``      how the call ended where the tool did not return
``over``     the last record: all results, and the state
===========  =========================================================================================
"""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from toolrt._plain import compact, plain
from toolrt.errors import JournalRefused
from toolrt.model import Outcome, State, Tool, ToolCall, ToolResult
from toolrt.store._codec import Codec

#: Where a call is: see the module's header.
CallPlace = tuple[int, ...]

_PRINTS: weakref.WeakKeyDictionary[Tool, str] = weakref.WeakKeyDictionary()


def fingerprint(tool: Tool | None) -> str | None:
    """What stands for a tool's schema in a journal; None: there is no such tool."""
    if tool is None:
        return None
    known = _PRINTS.get(tool)
    if known is None:
        known = _PRINTS[tool] = hashlib.sha256(compact(plain(tool.schema)).encode()).hexdigest()[:16]
    return known


@attrs.define(eq=False)
class KeptCall:
    """What is known of one call."""

    #: What was asked; the input as the codec has it, None: the codec does not carry it.
    call_id: str
    name: str
    input: Any
    #: The schema of its tool; None: no tool had its name.
    schema: str | None
    #: Whether it was about to start, and nothing says that it did not.
    started: bool = False
    #: What the approval check answered; None: it is not known.
    answer: list[Any] | None = None
    #: What its tool was about to do, in order.
    fronts: list[Any] = attrs.field(factory=list)
    #: What its tool returned, each time that it ran.
    returns: list[Any] = attrs.field(factory=list)
    #: How it ended where its tool did not return; None: it is not known.
    end: tuple[Outcome, str] | None = None

    @property
    def is_answered(self) -> bool:
        """Whether its result is known."""
        return bool(self.returns) or self.end is not None

    def parts(self) -> list[Any]:
        """What a record has of it."""
        return [self.call_id, self.name, self.input, self.schema]


@attrs.define(eq=False)
class KeptBatch:
    """What is known of one batch and its sub-batches."""

    batch_id: str
    #: The first record.
    header: dict[str, Any]
    #: By place.
    calls: dict[CallPlace, KeptCall] = attrs.field(factory=dict)
    #: The results and the state, as the codec has them; None: it is not over, or they follow from the rest.
    over: tuple[list[Any], Any] | None = None

    @classmethod
    def read(cls, batch_id: str, records: Iterable[str]) -> KeptBatch:
        """What `records` say."""
        kept: KeptBatch | None = None
        for text in records:
            kind, *rest = json.loads(text)
            if kept is None:
                kept = cls(batch_id, rest[0])
                for index, parts in enumerate(rest[0].get("calls", ())):
                    kept.calls[index,] = KeptCall(*parts)
                continue
            kept._take(kind, rest)
        assert kept is not None
        return kept

    def _take(self, kind: str, rest: list[Any]) -> None:
        if kind == "over":
            self.over = None if rest[0] is None else (rest[0], rest[1])
            return
        place = tuple(rest[0])
        if kind == "call":
            self.calls[place] = KeptCall(*rest[1])
            return
        call = self.calls[place]
        if kind == "start":
            call.started, call.fronts = True, []
        elif kind == "unstart":
            call.started = False
        elif kind == "answer":
            call.answer = rest[1]
        elif kind == "front":
            call.fronts.append(rest[1])
        elif kind == "return":
            call.returns.append(rest[1])
        elif kind == "end":
            call.end = Outcome(rest[1]), rest[2]

    @property
    def outermost(self) -> Sequence[KeptCall]:
        """The calls of the batch itself, in call order."""
        own = sorted(place for place in self.calls if len(place) == 1)
        return [self.calls[place] for place in own]

    def tool_calls(self, codec: Codec) -> list[ToolCall]:
        """The same as a model asked for them."""
        return [ToolCall(call.call_id, call.name, codec.decode(call.input)) for call in self.outermost]

    def outcome(self, codec: Codec) -> tuple[tuple[ToolResult, ...], State] | None:
        """All results and the state, if the batch is over and they were kept."""
        if self.over is None:
            return None
        results, state = self.over
        return tuple(codec.decode(results)), codec.decode(state)

    def refuse_other_calls(self, codec: Codec, calls: Sequence[ToolCall], *, is_over: bool) -> None:
        """Refuse to go on with other calls than the batch has; one that is not over may have been told of more.

        Args:
            codec: what the batch was kept by.
            calls: what it is to go on with.
            is_over: whether all its results are known.

        Raises:
            JournalRefused: other calls; nothing was run.
        """
        known = self.tool_calls(codec)
        given = list(calls) if is_over else list(calls)[: len(known)]
        at = next((at for at, (one, other) in enumerate(zip(known, given, strict=False)) if one != other), None)
        if at is None and len(known) == len(given):
            return
        why = f"it has {len(known)} calls, got {len(calls)}" if at is None else f"call {at} of it is {known[at]!r}"
        remedy = "Give the calls that it began with, or another batch_id."
        raise JournalRefused(f"batch {self.batch_id}", f"it was begun with other calls: {why}", remedy)

    def refuse_changed(self, codec: Codec, lanes: str, tools: Any) -> None:
        """Refuse to go on with other rules than the batch began with.

        Raises:
            JournalRefused: another codec, lane policy, tool or schema; nothing was run.
        """
        what = f"batch {self.batch_id}"
        expected = self.header["codec"], self.header["lanes"]
        if expected != (codec.name, lanes):
            why = f"it was begun with codec {expected[0]!r} and lanes={expected[1]}, got {codec.name!r} and {lanes}"
            raise JournalRefused(what, why, "Resume it with those.")
        for index, call in enumerate(self.outermost):
            tool = tools.get(call.name)
            if fingerprint(tool) == call.schema:
                continue
            if tool is None:
                why = f"call {index} asked for the tool {call.name!r}, which this registry does not have"
            elif call.schema is None:
                why = f"call {index} asked for the tool {call.name!r}, which the registry did not have then and has now"
            else:
                why = f"call {index} asked for the tool {call.name!r}, whose schema is another one now"
            raise JournalRefused(what, why, "Resume it with the registry that it was begun with.")
