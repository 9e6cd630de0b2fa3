"""What every record of an event has: its kind, its fields as JSON, and the way back.

Rules.
    1. A record is built where the thing happens and holds the runtime's own values.  `EventRecord.to_json` gives JSON
       values; a listener that keeps an event copies those at once, because a value may change afterwards.
    2. A field without a default is always written.  A field whose default is None is left out while it is None.
    3. A field that this version does not know is ignored in a file, so that a newer file can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar

import attrs

from toolrt._plain import plain, stable_text
from toolrt.errors import InputRefused

#: The version of the events' fields; written into every trace.
SCHEMA = 1

_REMEDY = "Give the kind and the fields that EventRecord.to_json() wrote, unchanged."


@attrs.frozen(slots=False)
class EventRecord:
    """Something happened: one class for each kind of event, frozen."""

    #: What happened, as dotted words: ``call.started``.
    kind: ClassVar[str] = ""
    #: Whether traces hold it.  Telemetry alone listens to the others.
    traced: ClassVar[bool] = True

    #: The fields that are converted, and how; and those that are left out while they are None.
    _converted: ClassVar[tuple[tuple[str, Callable[[Any], Any]], ...]] = ()
    _optional: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def __attrs_init_subclass__(cls) -> None:
        fields = attrs.fields(cls)
        cls._converted = tuple((one.name, one.metadata["convert"]) for one in fields if "convert" in one.metadata)
        cls._optional = tuple(one.name for one in fields if one.default is None)

    def to_json(self) -> dict[str, Any]:
        """Give the fields as JSON values, in the order of the class.  Checkpoint: never."""
        fields = self.__dict__.copy()
        for name, convert in self._converted:
            fields[name] = convert(fields[name])
        for name in self._optional:
            if fields[name] is None:
                del fields[name]
        return fields

    def kept(self) -> EventRecord | dict[str, Any]:
        """Give what a recorder keeps: the record, or the JSON of one whose values may change.  Checkpoint: never."""
        return self if not self._converted else self.to_json()


@attrs.frozen(slots=False)
class BatchEvent(EventRecord):
    """Something happened in a batch."""

    #: The batch's id.
    batch: str


@attrs.frozen(slots=False)
class CallEvent(BatchEvent):
    """Something happened to a call."""

    #: Its call_index.
    call: int


@attrs.frozen(slots=False)
class LaneEvent(BatchEvent):
    """Something happened to a lane."""

    #: Its index in the batch.
    lane: int


def _own(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_own(item) for item in value]
    convert = getattr(value, "to_json", None)
    return value if convert is None else convert()


#: How a field is written that is not JSON already; each gives a JSON value back as it is.  Values of toolrt's own, by
#: their ``to_json``; any value at all; any value as text.
AS_JSON: Mapping[str, Any] = {"convert": _own}
AS_PLAIN: Mapping[str, Any] = {"convert": plain}
AS_TEXT: Mapping[str, Any] = {"convert": lambda value: stable_text(value, str)}


@cache
def kinds() -> Mapping[str, type[EventRecord]]:
    """Give every class of records by its kind, in the order in which they are written down."""
    found: list[type[EventRecord]] = [EventRecord]
    for one in found:
        found += one.__subclasses__()
    return {one.kind: one for one in found if one.kind}


#: What is checked of a field that is read, by its annotation; others are taken as they are.
_READ_AS: Mapping[object, type] = {"bool": bool, "int": int, "str": str}


def from_json(kind: str, fields: Mapping[str, Any]) -> EventRecord:
    """Give the record of this `kind` with these `fields`, as `EventRecord.to_json` wrote them.

    Raises:
        InputRefused: there is no such kind, or a field is missing or of another type.
    """
    record = kinds().get(kind)
    if record is None:
        raise InputRefused("event", f"expected a kind of event that toolrt knows, got {kind!r:.60}", _REMEDY)
    for one in attrs.fields(record):
        expected = _READ_AS.get(one.type)
        if one.name not in fields:
            if one.default is attrs.NOTHING:
                raise InputRefused("event", f"{kind}: the field {one.name} is missing", _REMEDY)
        elif expected and not (
            isinstance(got := fields[one.name], expected) and isinstance(got, bool) is (expected is bool)
        ):
            raise InputRefused("event", f"{kind}.{one.name}: expected {expected.__name__}, got {got!r:.60}", _REMEDY)
    return record(**{one.name: fields[one.name] for one in attrs.fields(record) if one.name in fields})
