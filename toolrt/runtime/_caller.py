"""Finds the Trio run and the call that the running code belongs to, and refuses what they may not do with a batch.

Rules.
    1. A batch belongs to the run that it was made in.
    2. While a batch is open, the claim tables of its runtime belong to its run (`toolrt.order.enter_tables`); a batch
       of another run, in another thread, is refused.
    3. A tool may not ask its own batch for what waits for the tool's call.

Theory.  The code that grants a ticket starts the call that waited for it, synchronously, and Trio's objects work in
their own run alone.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Sequence

import trio

from toolrt.errors import BatchClosed
from toolrt.order import CallRecord, Status

#: Held while a batch enters or leaves its claim tables, never while anything waits.
TABLES_LOCK = threading.Lock()

#: The call whose tool the running code belongs to.
RUNNING_CALL: contextvars.ContextVar[CallRecord | None] = contextvars.ContextVar("toolrt running call", default=None)


def refuse_other_run(token: trio.lowlevel.TrioToken, batch_id: str, action: str) -> None:
    """Refuse what is asked of a batch outside its own Trio run.

    Raises:
        BatchClosed: `token`, of the batch's run, is not that of this run.
    """
    if not trio.lowlevel.in_trio_run() or trio.lowlevel.current_trio_token() is not token:
        why = (
            "it belongs to another Trio run: from a worker thread use trio.from_thread.run_sync or trio.from_thread.run"
        )
        raise BatchClosed(batch_id, action, why)


def refuse_own_tools(records: Sequence[CallRecord], batch_id: str, action: str) -> None:
    """Refuse what would wait for the very call that asks for it.

    Raises:
        BatchClosed: the running code belongs to a tool of the batch with these `records`.
    """
    call = RUNNING_CALL.get()
    while call is not None:
        if call.siblings is records and call.status is Status.EXECUTING:
            why = f"call {call.call_index} ({call.name}) asks for it, and it waits for that call to end"
            raise BatchClosed(batch_id, action, f"{why}: do it outside the batch's own tools")
        call = call.parent


def refuse_shared_table(batch_id: str, table: str) -> None:
    """Refuse a batch on a claim `table`, given by its name, that belongs to another Trio run.

    Raises:
        BatchClosed: always.
    """
    why = f"another Trio run, in another thread, has a batch open on the same claim table ({table!r})"
    remedy = "give each thread a Workspace and a Runtime of its own, or use toolrt.run_sync in both"
    raise BatchClosed(batch_id, "be opened", f"{why}: {remedy}")


def is_over(token: trio.lowlevel.TrioToken) -> bool:
    """Whether the Trio run of `token` has ended."""
    try:
        token.run_sync_soon(_nothing)
    except (trio.RunFinishedError, OSError):  # OSError: it broke down, and what wakes it is closed
        return True
    return False


def _nothing() -> None:
    """Stands for something to do."""
