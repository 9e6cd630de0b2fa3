"""First in, first out: the task that has been runnable for longest steps next.

This is the round-robin order of most event loops, and the only one they ever show.  Tasks that became runnable
in the same step queue by path, behind those that waited and before the task that stepped.
"""

from __future__ import annotations

from toolrt.sim.policies._policy import RunInfo


class Fifo:
    """Let the task that has been runnable for longest step next."""

    #: What steps touch decides nothing here.
    reads_accesses = False

    def __init__(self) -> None:
        self._queue: dict[str, None] = {}
        self._last: str | None = None

    def start(self, info: RunInfo) -> None:
        """Forget the queue."""
        self._queue = {}
        self._last = None

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick the task at the head of the queue."""
        queue, last = self._queue, self._last
        for name in enabled:
            if name != last:
                queue.setdefault(name)
        if last is not None and last in enabled:
            queue[last] = None
        # What is offered only at some moments is in the queue but not always enabled.
        head = self._last = next(name for name in queue if name in enabled)
        del queue[head]
        return enabled.index(head)

    def __repr__(self) -> str:
        return "Fifo()"
