"""What runs and waits in a runtime at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from toolrt.model import Claim
from toolrt.order import Siblings, Status


@attrs.frozen
class RuntimeStatistics:
    """What runs and waits in a runtime at one moment; calls are named ``"batch_id#call_index"``."""

    #: How many batches are open, sub-batches included.
    batches: int
    #: How many of their calls wait, and how many run.
    queued: int
    running: int
    #: What each call that waits is waiting for: calls whose tickets are in the way, ``"approval"``, ``"slot"``, or
    #: ``"lane"`` before its lane has begun.
    waits_for: Mapping[str, tuple[str, ...]]
    #: What each call that runs claims; nothing for one that is declared safe.
    held: Mapping[str, tuple[Claim, ...]]


def statistics_of(batches: Iterable[tuple[str, Siblings]]) -> RuntimeStatistics:
    """What runs and waits in these open batches, each an id and its calls.  Checkpoint: never."""
    waits_for: dict[str, tuple[str, ...]] = {}
    held: dict[str, tuple[Claim, ...]] = {}
    count = 0
    for batch_id, calls in batches:
        count += 1
        for call in calls:
            name = f"{batch_id}#{call.call_index}"
            if call.status is Status.QUEUED:
                waits = (f"{batch_id}#{one}" if isinstance(one, int) else one for one in call.waits_for)
                waits_for[name] = tuple(waits)
            elif call.status is Status.EXECUTING:
                held[name] = call.claims
    return RuntimeStatistics(count, len(waits_for), len(held), waits_for, held)
