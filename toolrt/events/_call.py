"""What happens to a call, from its submission to its end."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from toolrt.events._base import AS_PLAIN, AS_TEXT, CallEvent


@attrs.frozen(slots=False)
class CallSubmitted(CallEvent):
    """`submit()` has fixed the result slot; `call_id`, `name` and `input` are the model's."""

    kind: ClassVar[str] = "call.submitted"
    call_id: Any = attrs.field(metadata=AS_TEXT)
    name: Any = attrs.field(metadata=AS_TEXT)
    input: Any = attrs.field(metadata=AS_PLAIN)


@attrs.frozen(slots=False)
class ClaimsAwaited(CallEvent):
    """An earlier call may still change what the claims of this call look at.

    The call, which is in `lane`, holds tickets for that alone (`after`), and takes the others when these are granted.
    """

    kind: ClassVar[str] = "claims.awaited"
    lane: int
    after: list[list[Any]]


@attrs.frozen(slots=False)
class TicketTaken(CallEvent):
    """The call's place in the order is fixed, in `lane`; `shared` is false for an exclusive call.

    `claims` are `[mode, [part, ...], subtree]`, with a fourth value for the `slots` of one that takes a place; `after`
    is what they look at, as declared. `stops`: its failure skips what follows. `reads_only`: it has no effects.
    `touches`: what an exclusive call of a sub-batch touches of what its parent holds, where its tool says so. `rates`:
    `[name, per_second]` of each rate that it claims; it is left out where there is none.
    """

    kind: ClassVar[str] = "ticket.taken"
    lane: int
    shared: bool
    claims: list[list[Any]]
    stops: bool
    reads_only: bool
    after: list[list[Any]] | None = None
    touches: list[list[Any]] | None = None
    rates: list[list[Any]] | None = None


@attrs.frozen(slots=False)
class ClaimsStale(CallEvent):
    """The call would claim by now what it does not hold (`claims`, in words; `holds` is what it holds).

    It is not run (`refused`), or it starts all the same, which only an observer sees. `looked_at` are the resources
    that its claims read.
    """

    kind: ClassVar[str] = "claims.stale"
    refused: bool
    holds: list[str]
    claims: list[str]
    looked_at: list[list[Any]]


@attrs.frozen(slots=False)
class ApprovalAsked(CallEvent):
    """The approval check was asked."""

    kind: ClassVar[str] = "approval.asked"


@attrs.frozen(slots=False)
class ApprovalAnswered(CallEvent):
    """The approval check has answered: `answer` is `allow`, `deny` or `rewrite`."""

    kind: ClassVar[str] = "approval.answered"
    answer: str


@attrs.frozen(slots=False)
class CallStarted(CallEvent):
    """The tool's first step is about to run, in `lane`.

    `thread`: it runs in a worker thread. `timeout`: seconds of its own execution, or null. `interrupt`: `cancel`, or
    `finish` where a cancel waits for it. `replayed`: a journal knows how the call ended before the process crashed, and
    the tool is not called. `idempotent`: after a crash the tool may do once more what it did. Both are left out where
    they are false.
    """

    kind: ClassVar[str] = "call.started"
    lane: int
    thread: bool
    timeout: float | None
    interrupt: str | None = None
    replayed: bool | None = None
    idempotent: bool | None = None


@attrs.frozen(slots=False)
class CallStartedAgain(CallEvent):
    """A call of a pure tool was stale, and runs once more in its `lane`.

    A second `call.ended` follows if it had ended.
    """

    kind: ClassVar[str] = "call.again"
    lane: int


@attrs.frozen(slots=False)
class ProgressSent(CallEvent):
    """The tool reported progress.

    `number` counts from 0 within the call; `accepted` is false when it was dropped.
    """

    kind: ClassVar[str] = "progress.sent"
    number: int
    accepted: bool


@attrs.frozen(slots=False)
class CallSettled(CallEvent):
    """The call's result is fixed: its `outcome`, and its `content` or `error`.

    `modifiers` is how many it returned, `reads` what it read of the state, where that is known. A second one for a call
    can only say `skipped`: what follows a stop is discarded.
    """

    kind: ClassVar[str] = "call.settled"
    outcome: str
    content: Any = attrs.field(metadata=AS_PLAIN)
    error: str | None
    modifiers: int | None = None
    reads: list[list[str]] | None = None


@attrs.frozen(slots=False)
class CallCancelled(CallEvent):
    """A cancel of this call alone was asked and came in time; `reason` says why."""

    kind: ClassVar[str] = "call.cancelled"
    reason: str


@attrs.frozen(slots=False)
class CallEnded(CallEvent):
    """The call's execution is over and its tickets and slot are free.

    Also for calls that never started, if they had a ticket.
    """

    kind: ClassVar[str] = "call.ended"
