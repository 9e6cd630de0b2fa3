"""Finishes what an execution leaves half done, before the next one begins: callbacks and async generators.

Rules.  Callbacks are called and async generators are closed in Trio's own loop, once the execution is over and the
scheduler has stopped.  Neither may go on for ever: after so many passes a callback is dropped (by `Leftovers.sweep`),
and the task that closes a generator is ended by force.
"""

from __future__ import annotations

import trio
from trio.lowlevel import Abort, Task

from toolrt.sim._trio_internals._seam import Seam

# Callbacks that are left at the end of an execution may call for others that often.
_PASSES_FOR_CALLBACKS = 100

# Async generators that are left at the end of an execution may take so many passes to close.
_PASSES_FOR_GENERATORS = 1_000


class Closing:
    """What is closed after the executions of one Trio run."""

    def __init__(self, seam: Seam) -> None:
        self._seam = seam
        # The task that closes async generators, and the passes it may still take.
        self._closer: Task | None = None
        self._passes_left = 0

    @trio.lowlevel.enable_ki_protection
    async def call_callbacks(self) -> None:
        """Let Trio's loop call the callbacks that are left; those that never end are dropped by `Leftovers.sweep`."""
        for _ in range(_PASSES_FOR_CALLBACKS):
            if not self._seam.callbacks and not self._seam.callbacks_once:
                break
            await trio.lowlevel.cancel_shielded_checkpoint()

    async def close_async_generators(self, nursery: trio.Nursery) -> bool:
        """Close what the execution left half iterated; say whether that came to an end by itself."""
        harness = trio.lowlevel.current_task()
        ended = False

        async def close() -> None:
            nonlocal ended
            self._closer = trio.lowlevel.current_task()
            try:
                await self._seam.leftovers.close_async_generators()
                ended = True
            finally:
                self._closer = None
                self._seam.wake(harness)

        self._passes_left = _PASSES_FOR_GENERATORS
        nursery.start_soon(close)
        await trio.lowlevel.wait_task_rescheduled(lambda _: Abort.FAILED)
        return ended

    def count_pass(self, batch: list[Task]) -> None:
        """Count a pass of Trio's loop; after too many, end the closing task by force, and take it out of `batch`."""
        if self._closer is not None:
            self._passes_left -= 1
            if self._passes_left < 0:
                self.stop()
                batch[:] = [task for task in batch if task in self._seam.tasks]

    def stop(self) -> bool:
        """End by force a generator that never stops closing; say whether there is one.

        Its task wakes the harness on its way out.
        """
        if self._closer is None:
            return False
        self._seam.leftovers.kill(self._closer)
        return True
