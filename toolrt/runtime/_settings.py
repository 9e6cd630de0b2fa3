"""What a runtime gives each of its batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from toolrt.model import AfterLane, Approve, Registry, Services, Tool
from toolrt.order import CallRecord, ClaimTable, LanePolicy, Limits, Siblings, SlotPolicy
from toolrt.runtime._batch import Batch
from toolrt.runtime._telemetry import BatchTelemetry


@attrs.frozen
class Settings:
    """What a runtime gives each of its batches."""

    registry: Registry
    policy: LanePolicy
    #: Which ready call takes the next slot; None: the lowest call_index.
    slots: SlotPolicy | None
    #: Whether one of the two is more than a function of tool and input.
    asks_policies: bool
    #: How many calls of one batch run at once; None is any number.
    limit: int | None
    #: The limits that all who have them share; None: there are none.
    limits: Limits | None
    approve: Approve | None
    #: Seconds of its own execution for a call whose tool names none; None is no limit.
    timeout: float | None
    #: Characters of a result of a tool that names no bound; None is no limit.  A tool reads its sub-batch's whole.
    max_result: int | None
    #: The claim tables on which calls take tickets.
    tables: tuple[ClaimTable, ...]
    #: Which services hear what a lane changed, and the owner whose tools' calls count; None means all.
    hooks: tuple[tuple[Any, AfterLane], ...]
    #: What calls of a tool are given.
    services_of: Callable[[Tool | None], Services]
    #: The telemetry of a new batch, by its id and its calls; None: nothing observes the runtime.
    telemetry: Callable[[str, Sequence[CallRecord]], BatchTelemetry] | None
    #: Makes a batch inside a call.
    sub_batch: Callable[..., Batch]
    #: The id and the calls of each batch that is open, by its identity.
    open_batches: dict[int, tuple[str, Siblings]]
