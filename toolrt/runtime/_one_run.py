"""One Trio run at a time: whose batches take tickets on a claim table.

Rules.
    1. While a batch is open, the tables of its runtime belong to its Trio run; a batch of another run, in another
       thread, is refused.  A table is free again when the last batch on it has been left.
    2. A batch belongs to the run that it was made in.
    3. What a run that is over has left in a table is thrown away: nothing of it can go on.

Theory.  The code that grants a ticket starts the call that waited for it, synchronously, and Trio's objects work in
their own run alone.

Limits.  A sub-batch has tables of its own; it runs in its parent's run.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import attrs
import trio

from toolrt.errors import BatchClosed
from toolrt.order import ClaimTable

__all__ = ["enter_tables", "leave_tables", "refuse_other_run"]


@attrs.define(eq=False)
class _Tenure:
    """The run that a table belongs to, and how many of its batches are open."""

    token: trio.lowlevel.TrioToken
    batches: int = 0


#: Held for a look at the tables of one batch, never while anything waits.
_looking = threading.Lock()


def enter_tables(tables: Sequence[ClaimTable], batch_id: str) -> None:
    """Let the `tables` belong to this run until `leave_tables`.

    Raises:
        BatchClosed: one belongs to another run; nothing was changed.
    """
    token = trio.lowlevel.current_trio_token()
    with _looking:
        for table in tables:
            tenure: _Tenure | None = table.tenure
            if tenure is not None and tenure.token is not token and not _is_over(tenure.token):
                why = f"another Trio run, in another thread, has a batch open on the same claim table ({table.name!r})"
                remedy = "give each thread a Workspace and a Runtime of its own, or use toolrt.run_sync in both"
                raise BatchClosed(batch_id, "be opened", f"{why}: {remedy}")
        for table in tables:
            tenure = table.tenure
            if tenure is None or tenure.token is not token:
                if tenure is not None:
                    table.clear()
                tenure = table.tenure = _Tenure(token)
            tenure.batches += 1


def leave_tables(tables: Sequence[ClaimTable], token: trio.lowlevel.TrioToken) -> None:
    """Give back what `enter_tables` took, in the run of `token`."""
    with _looking:
        for table in tables:
            tenure: _Tenure | None = table.tenure
            if tenure is not None and tenure.token is token:
                tenure.batches -= 1
                if tenure.batches == 0:
                    table.tenure = None


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


def _is_over(token: trio.lowlevel.TrioToken) -> bool:
    try:
        token.run_sync_soon(_nothing)
    except (trio.RunFinishedError, OSError):  # OSError: it broke down, and what wakes it is closed
        return True
    return False


def _nothing() -> None:
    """Stands for something to do."""
