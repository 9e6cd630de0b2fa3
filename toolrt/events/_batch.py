"""What happens to a batch, its lanes, its state and its reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

from toolrt.errors import error_text
from toolrt.events._base import AS_JSON, BatchEvent, CallEvent, LaneEvent


def _as_pairs(value: Any) -> list[list[Any]]:
    return [list(pair) for pair in value]


def _as_text(value: Any) -> Any:
    return error_text(value) if isinstance(value, BaseException) else value


_PAIRS = {"convert": _as_pairs}
_ERROR = {"convert": _as_text}


@attrs.frozen(slots=False)
class BatchOpened(BatchEvent):
    """A batch exists.

    `policy` is the lane policy's name, `limit` how many calls run at once (that of the outermost batch; null is any
    number), `state` the first state as JSON. `parent` is null, or `[batch, call]` of the call that a sub-batch runs
    inside. `gives_up` has the laws that the lane policy gives up; it is left out where the policy is a function that
    declares nothing. `slots` is the slot policy's name; it is left out where ready calls take slots in call order.
    `owner` names whose batch it is; it is left out where the batch has no owner, or runs inside a tool. `limits` is the
    name of what it shares with other batches, and `[[tool, ...], number]` for each limit, without tools that of all; it
    is left out where the batch shares none. `deadline` is the seconds from now on until the batch is cancelled; it is
    left out where there is none.
    """

    kind: ClassVar[str] = "batch.opened"
    policy: str
    limit: int | None
    parent: list[Any] | None
    state: Any = attrs.field(metadata=AS_JSON)
    gives_up: Sequence[str] | None = attrs.field(default=None, metadata=AS_JSON)
    slots: str | None = None
    owner: str | None = None
    limits: Any = attrs.field(default=None, metadata=AS_JSON)
    deadline: float | None = None


@attrs.frozen(slots=False)
class BatchSealed(BatchEvent):
    """No further calls will come."""

    kind: ClassVar[str] = "batch.sealed"


@attrs.frozen(slots=False)
class BatchCancelled(BatchEvent):
    """A cancel was asked, by `batch.cancel` or (`outside`) by an enclosing scope; `reason` says why."""

    kind: ClassVar[str] = "batch.cancelled"
    reason: str
    outside: bool


@attrs.frozen(slots=False)
class BatchStopped(BatchEvent):
    """Call `by` failed and its tool stops the batch."""

    kind: ClassVar[str] = "batch.stopped"
    by: int


@attrs.frozen(slots=False)
class BatchLeft(BatchEvent):
    """The batch is over.

    `results` are as `ToolResult.to_json()`, `state` is the last one. `left` counts what is still there: `tasks`,
    `tickets` of this batch, `slots`, `progress`. `dropped` lists each call's `progress_dropped`.
    """

    kind: ClassVar[str] = "batch.left"
    results: Any = attrs.field(metadata=AS_JSON)
    state: Any = attrs.field(metadata=AS_JSON)
    left: dict[str, int]
    dropped: list[int] | None = None


@attrs.frozen(slots=False)
class LaneStarted(LaneEvent):
    """The lane's start state is known; `shared` is false for an exclusive call; `calls` are those it has so far."""

    kind: ClassVar[str] = "lane.started"
    shared: bool
    calls: list[int]
    state: Any = attrs.field(metadata=AS_JSON)


@attrs.frozen(slots=False)
class LaneMerged(LaneEvent):
    """The lane has ended, with this `state`; `applied` and `rejected` list `[call, position]`."""

    kind: ClassVar[str] = "lane.merged"
    state: Any = attrs.field(metadata=AS_JSON)
    applied: Any = attrs.field(metadata=_PAIRS)
    rejected: Any = attrs.field(metadata=_PAIRS)


@attrs.frozen(slots=False)
class ModifierApplied(CallEvent):
    """A modifier was applied (`ok`) or raised and changed nothing.

    `position` is its place among those of its call, from 0; `lane` is the call's. `sets` is what it set of the state,
    with the values, and `reads` what it read.
    """

    kind: ClassVar[str] = "state.applied"
    lane: int
    position: int
    ok: bool
    sets: list[list[Any]] | None = None
    reads: list[list[str]] | None = None


@attrs.frozen(slots=False)
class ModifiersRefused(CallEvent):
    """The modifiers of a call are refused: one sets `part` of the state from an old value.

    `lane` is the call's; `sets` are all parts that the modifiers set.
    """

    kind: ClassVar[str] = "state.refused"
    lane: int
    part: list[str]
    sets: list[list[str]]


@attrs.frozen(slots=False)
class ServicesTold(LaneEvent):
    """A service (`Services.after_lane`) is about to hear what the lane changed.

    `paths` are the files, relative to the workspace; `unknown`: there may be more.
    """

    kind: ClassVar[str] = "services.told"
    paths: list[str]
    unknown: bool


@attrs.frozen(slots=False)
class ServicesHeard(LaneEvent):
    """The service has heard it, or failed."""

    kind: ClassVar[str] = "services.heard"


@attrs.frozen(slots=False)
class ServiceFailed(LaneEvent):
    """The service raised, which changes nothing; `service` is the function's name, `error` the type and the text."""

    kind: ClassVar[str] = "service.failed"
    service: str
    error: Any = attrs.field(metadata=_ERROR)


@attrs.frozen(slots=False)
class ReaderAsked(BatchEvent):
    """The reader asked for the next update."""

    kind: ClassVar[str] = "reader.asked"


@attrs.frozen(slots=False)
class ProgressDelivered(CallEvent):
    """The reader was handed a `Progress`: `number`, from 0 within the call."""

    kind: ClassVar[str] = "progress.delivered"
    number: int


@attrs.frozen(slots=False)
class ResultDelivered(CallEvent):
    """The reader was handed a `ResultReady` with this `outcome`."""

    kind: ClassVar[str] = "result.delivered"
    outcome: str


@attrs.frozen(slots=False)
class MergeDelivered(LaneEvent):
    """The reader was handed a `StateMerged`."""

    kind: ClassVar[str] = "merge.delivered"
