"""Reports, between two lanes, what the first one changed to the services that keep up with the files.

Rules.
    1. Each service is called when a lane's calls have all ended and its modifiers are merged, before the next lane
       starts, one service after the other; none is called where nothing can have changed.
    2. The report lists changes by call_index, whatever the timing was.
    3. Telemetry and the trace record what a service raises; it decides nothing.  A cancel ends the services; then, and
       where the lane itself was cancelled, each gets as far as its first checkpoint, so that a change that it notes
       before that is never lost.

Theory.  A service that looked at the files while a lane changes them would see what timing shows it.  Between two lanes
nothing of the batch runs, so it sees what the calls in call order left.

Limits.  Another batch on the same files may run meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

import trio

from toolrt.errors import asks_to_exit
from toolrt.events import ServiceFailed, ServicesHeard, ServicesTold, observer
from toolrt.model import WRITE, AfterLane, FileChanged, LaneChanges
from toolrt.order import CallRecord, LaneRecord
from toolrt.runtime._cancellation import split_cancelled
from toolrt.runtime._execution import asked, awaited
from toolrt.runtime._telemetry import BatchTelemetry


class ServiceHost(Protocol):
    """The part of a batch's engine that `tell_services` needs."""

    batch_id: str
    telemetry: BatchTelemetry | None
    #: The cancel scope of the service that runs now; None: none runs.
    hook_scope: trio.CancelScope | None

    #: Which services hear what a lane changed, and the owner whose tools' calls count; None means all.
    hooks: tuple[tuple[Any, AfterLane], ...]

    @property
    def cancel_reason(self) -> str | None:
        """Why the batch was cancelled; None while it is not."""

    def abort(self, error: BaseException) -> None:
        """Cancel the batch, and let `error` out when it is left."""


def changes_of(batch_id: str, lane: LaneRecord, owner: Any = None) -> LaneChanges | None:
    """What the lane's calls changed; None where nothing can have changed.

    Args:
        owner: only calls of tools with this owner or without one count; None: all do.
    """
    paths: dict[str, None] = {}
    changes: list[FileChanged] = []
    unknown = False
    for call in lane.calls:
        if not call.has_started or (owner is not None and getattr(call.tool, "owner", None) not in (None, owner)):
            continue
        if call.changes is None:
            claimed = _claimed(call)
            unknown = unknown or claimed is None
            paths.update(dict.fromkeys(claimed or ()))
            continue
        for change in call.changes:
            changes.append(change)
            paths.update(dict.fromkeys(change.paths))
    if not (paths or unknown):
        return None
    return LaneChanges(batch_id, lane.index, tuple(paths), tuple(changes), unknown)


def _claimed(call: CallRecord) -> list[str] | None:
    """The files that a call may have changed which said nothing; None: any."""
    found = []
    for claim in call.claims if call.allowed is None else call.allowed:
        if claim.mode is WRITE:
            if not claim.resource:
                return None
            if claim.resource[0] == "file":
                found.append("/".join(map(str, claim.resource[1:])) or ".")
    return found


async def tell_services(batch: ServiceHost, lane: LaneRecord) -> None:
    """Tell every service of the runtime that wants it what the lane changed.

    Raises:
        trio.Cancelled: an enclosing scope was cancelled.

    Checkpoint: as the services do; never where nothing changed.
    """
    due: BaseException | None = None
    for owner, hook in batch.hooks:
        changes = changes_of(batch.batch_id, lane, owner)
        if changes is not None:
            due = await _tell(batch, hook, changes) or due
    if due is not None:
        raise due


async def _tell(batch: ServiceHost, hook: AfterLane, changes: LaneChanges) -> BaseException | None:
    """Tell one service; gives the cancellation that is due, for when all have been told."""
    if observer.records:
        observer.tell(ServicesTold(batch.batch_id, changes.lane, list(changes.paths), changes.unknown))
    cut = batch.cancel_reason is not None
    try:
        awaitable = asked(hook, changes)
        if isinstance(awaitable, Awaitable):
            # Shielded when it is cut short: else a scope further out would claim the Cancelled for itself.
            with trio.CancelScope(shield=cut) as batch.hook_scope:
                if cut:
                    batch.hook_scope.cancel()
                await awaited(awaitable)
    except BaseException as error:  # noqa: ASYNC103  a Cancelled that is due is re-raised
        if isinstance(error, GeneratorExit):
            raise
        cancelled, rest = split_cancelled(error)
        exit_asked = asks_to_exit(rest)
        if exit_asked is not None:
            batch.abort(exit_asked)
        elif rest is not None:
            _report(batch, hook, changes, rest)
        if cancelled is not None and trio.current_effective_deadline() == -float("inf"):
            return cancelled  # noqa: ASYNC104  it is raised once the others have been told
    finally:
        batch.hook_scope = None
        if observer.records:
            observer.tell(ServicesHeard(batch.batch_id, changes.lane))
    return None


def _report(batch: ServiceHost, hook: AfterLane, changes: LaneChanges, error: BaseException) -> None:
    if observer.listens:
        name = getattr(hook, "__qualname__", type(hook).__qualname__)
        observer.tell(ServiceFailed(batch.batch_id, changes.lane, name, error), batch.telemetry)
