"""What a tool says of its work, as a host is told it: a text that a person reads, and how far the call is.

Rules.  A text stands as it is, and so does what a command writes.  How far a call is, is what it states: ``progress``
of ``total``, ``done`` of ``of`` or of ``total``, or ``progress`` alone.  Whatever else a tool says is written as JSON.
Nothing here raises.

Theory.  The protocol asks that the number of a call's progress grows with each message.  A call that states no numbers
has its messages counted.  One that has stated some, and then says something without a number, or with one that is no
greater, is as far as it was: the number grows by the least that a float can.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, TypeGuard

import attrs

from toolrt._plain import plain
from toolrt.model import Event, OutputChunk

#: Characters of one message.
_TEXT_MOST = 2_000

#: Names of how much is done, and of how much there is.
_PAIRS = (("progress", "total"), ("done", "of"), ("done", "total"))

#: No number of a tool is greater: it is sent as JSON, where a reader may take it for a float.
_NUMBER_MOST = 1e15


@attrs.frozen
class Said:
    """One message of a tool."""

    #: For a person; None: it has numbers alone.
    text: str | None
    #: How much is done; None: it does not say.
    done: float | None = None
    #: Of how much; None: it does not say.
    total: float | None = None


@attrs.define
class ProgressOfCall:
    """The numbers that a host was told of one call."""

    #: The last number.
    _number: float = attrs.field(default=0, init=False)
    #: The last total that the tool stated.
    _total: float | None = attrs.field(default=None, init=False)
    #: Whether the last number is one that the tool stated.
    _stated: bool = attrs.field(default=False, init=False)

    def told(self, message: object) -> dict[str, Any]:
        """What a notification of `message` has beside its token."""
        said = said_in(message)
        if said.done is not None and said.done > self._number:
            self._number, self._stated = said.done, True
        elif self._stated or said.done is not None:
            self._number, self._stated = math.nextafter(self._number, math.inf), True
        else:
            self._number += 1
        if said.total is not None:
            self._total = said.total
        told: dict[str, Any] = {"progress": self._number}
        if self._total is not None:
            told["total"] = self._total
        if said.text is not None:
            told["message"] = said.text
        return told


def said_in(message: object) -> Said:
    """What `message` says, whatever it is."""
    said = _read(message)
    if said.text is None or len(said.text) <= _TEXT_MOST:
        return said
    return attrs.evolve(said, text=said.text[:_TEXT_MOST] + " ...")


def _read(message: object) -> Said:
    if isinstance(message, OutputChunk):
        return Said(message.text)
    if isinstance(message, Event):
        return Said(_in_json({"event": type(message).__name__, **_fields_of(message)}))
    value = plain(message, str)
    if isinstance(value, str):
        return Said(value)
    if not isinstance(message, Mapping) or not isinstance(value, dict):
        return Said(_in_json(value))
    return _read_fields(value)


def _read_fields(fields: dict[str, Any]) -> Said:
    output = fields.get("output")
    if isinstance(output, str) and fields.keys() <= {"offset", "output"}:
        return Said(output)
    if fields.keys() == {"path", "message"} and isinstance(fields["path"], str):
        return Said(f"{fields['path']}: {_in_words(_read(fields['message']))}")
    done, total, used = _numbers(fields)
    said = fields.get("message")
    if isinstance(said, str):
        return Said(said, done, total)
    rest = {name: part for name, part in fields.items() if name not in used}
    return Said(_in_json(rest) if rest or not used else None, done, total)


def _in_words(part: Said) -> str:
    """What a part of the call says; how far a part is, is not how far the call is."""
    if part.text is not None:
        return part.text
    return f"{part.done:g}" if part.total is None else f"{part.done:g} of {part.total:g}"


def _numbers(fields: Mapping[str, Any]) -> tuple[float | None, float | None, tuple[str, ...]]:
    """How much is done of how much, as far as that is stated, and the names of what states it."""
    for part, whole in _PAIRS:
        done, total = fields.get(part), fields.get(whole)
        if _is_number(done) and _is_number(total):
            return done, total, (part, whole)
    done = fields.get("progress")
    if not _is_number(done):
        return None, None, ()
    return done, None, ("progress",) if fields.get("total") is not None else ("progress", "total")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _NUMBER_MOST


def _fields_of(event: Event) -> dict[str, Any]:
    """What the event says beside the identity of its call, which the token of a host stands for."""
    identity = {field.name for field in attrs.fields(Event)}
    return {field.name: getattr(event, field.name) for field in attrs.fields(type(event)) if field.name not in identity}


def _in_json(value: object) -> str:
    try:
        return json.dumps(plain(value, str), ensure_ascii=False)
    except ValueError:  # a whole number of more digits than Python writes
        return f"({type(value).__name__})"
