"""What a call waits for, and when that ends: telemetry measures it, and traces do not hold it."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from toolrt.events._base import BatchEvent, CallEvent


def _type_name(value: Any) -> Any:
    return type(value).__name__ if isinstance(value, BaseException) else value


_TYPE = {"convert": _type_name}


@attrs.frozen(slots=False)
class LaneAwaited(CallEvent):
    """The call's lane has to wait for those before it."""

    kind: ClassVar[str] = "lane.awaited"
    traced: ClassVar[bool] = False


@attrs.frozen(slots=False)
class ApprovalAwaited(CallEvent):
    """The approval check takes its time; told in the task of the check."""

    kind: ClassVar[str] = "approval.awaited"
    traced: ClassVar[bool] = False


@attrs.frozen(slots=False)
class TicketGranted(CallEvent):
    """A ticket of the call is first in line."""

    kind: ClassVar[str] = "ticket.granted"
    traced: ClassVar[bool] = False


@attrs.frozen(slots=False)
class WaitsForUndeclared(CallEvent):
    """The call waits for call `other_call` of `other_batch`: the tool of one of them declares nothing; told once."""

    kind: ClassVar[str] = "call.waits_for_undeclared"
    traced: ClassVar[bool] = False
    other_batch: str
    other_call: int


@attrs.frozen(slots=False)
class CallReady(CallEvent):
    """The call waits for nothing but a slot."""

    kind: ClassVar[str] = "call.ready"
    traced: ClassVar[bool] = False


@attrs.frozen(slots=False)
class SlotsGiven(BatchEvent):
    """The slots there are have been given away."""

    kind: ClassVar[str] = "slots.given"
    traced: ClassVar[bool] = False


@attrs.frozen(slots=False)
class CallFailed(CallEvent):
    """The tool raised `error`, which is written as its type; its result is about to be fixed."""

    kind: ClassVar[str] = "call.failed"
    traced: ClassVar[bool] = False
    error: Any = attrs.field(metadata=_TYPE)


@attrs.frozen(slots=False)
class ReleaseBegan(CallEvent):
    """A call that has ended gives back what it kept until its result was fixed."""

    kind: ClassVar[str] = "release.began"
    traced: ClassVar[bool] = False


@attrs.frozen(slots=False)
class ReleaseEnded(BatchEvent):
    """The calls that could start in place of one that ended have started."""

    kind: ClassVar[str] = "release.ended"
    traced: ClassVar[bool] = False
