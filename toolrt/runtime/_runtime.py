"""The way in: a registry, a lane policy, a limit."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from toolrt.errors import DefinitionRefused
from toolrt.model import Approve, BatchOutcome, Registry, State, ToolCall
from toolrt.order import ClaimTable, LanePolicy, by_claims
from toolrt.runtime._batch import Batch

__all__ = ["Runtime"]


class Runtime:
    """Runs batches of tool calls on Trio, by rules that hold under every schedule.

    Args:
        registry: the tools.
        lanes: which calls may share a lane: `by_claims` (the default), `by_safety`, `parallel`, `serial`, or a
            function ``(tool, input) -> bool`` of your own.
        limit: how many calls of one batch run at once, 1 or more; None is no limit.
        approve: asked for each valid call before it starts, sync or async; it allows, denies or rewrites.
        timeout: seconds of its own execution, above 0, for calls of tools that name none; None is no limit.

    Raises:
        DefinitionRefused: something here cannot work; the text says what.
    """

    def __init__(
        self,
        registry: Registry,
        lanes: LanePolicy = by_claims,
        limit: int | None = 10,
        approve: Approve | None = None,
        timeout: float | None = None,
    ) -> None:
        if not isinstance(registry, Registry):
            raise DefinitionRefused("Runtime(registry)", "a toolrt.Registry", registry)
        if not callable(lanes):
            raise DefinitionRefused("Runtime(lanes)", "a lane policy such as toolrt.by_claims", lanes)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise DefinitionRefused("Runtime(limit)", "a whole number, 1 or more, or None", limit)
        if approve is not None and not callable(approve):
            raise DefinitionRefused("Runtime(approve)", "a function of an ApprovalRequest", approve)
        if isinstance(timeout, bool) or (timeout is not None and not _is_a_time(timeout)):
            raise DefinitionRefused("Runtime(timeout)", "seconds above 0, or None", timeout)
        self.registry = registry
        self.lanes = lanes
        self.limit = limit
        self.approve = approve
        self.timeout = timeout
        #: The claim tables on which calls take tickets: those of the tools' owners, else one of its own.
        self.tables: tuple[ClaimTable, ...] = tuple(
            {id(owner.claim_table): owner.claim_table for owner in registry.owners}.values()
        ) or (ClaimTable("runtime"),)
        self._batches = 0

    async def run(self, calls: Sequence[ToolCall], state: State | None = None) -> BatchOutcome:
        """Run `calls` as one batch and give one result for each, in call order, and the state they leave.

        Raises:
            trio.Cancelled: an enclosing scope was cancelled; whoever needs the outcome then uses `open_batch`.
            DefinitionRefused: something in `calls` is no `ToolCall`, or `state` no `State`; nothing was run.

        Checkpoint: always.
        """
        calls = list(calls)
        batch = self._new_batch(state, None, max(1, len(calls)), read=False)
        return await batch.run(calls)

    def open_batch(self, state: State | None = None, batch_id: str | None = None, expected_reads: int = 1) -> Batch:
        """A batch that takes calls while it runs and is read while it runs.

        Args:
            state: the state the first lane starts from; the empty one by default.
            batch_id: names the batch; by default a counter of this runtime.  Give one where several runtimes are
                recorded in one trace, or their batches share names there.
            expected_reads: how many reads will share the read budget, 1 or more.

        Example::

            async with runtime.open_batch(state) as batch:
                batch.submit(call)
                batch.seal()
                async for update in batch:
                    ...
            batch.outcome
        """
        if not isinstance(expected_reads, int) or isinstance(expected_reads, bool) or expected_reads < 1:
            raise DefinitionRefused("open_batch(expected_reads)", "a whole number, 1 or more", expected_reads)
        return self._new_batch(state, batch_id, expected_reads, read=True)

    def _new_batch(self, state: State | None, batch_id: str | None, expected_reads: int, read: bool) -> Batch:
        if state is None:
            state = State()
        if not isinstance(state, State):
            raise DefinitionRefused("a batch's state", "a toolrt.State", state)
        if batch_id is not None and not isinstance(batch_id, str):
            raise DefinitionRefused("a batch's id", "a string", batch_id)
        self._batches += 1
        return Batch(self, state, batch_id or f"batch-{self._batches}", expected_reads, read)

    def __repr__(self) -> str:
        policy = getattr(self.lanes, "__name__", repr(self.lanes))
        return f"Runtime({self.registry!r}, lanes={policy}, limit={self.limit})"


def _is_a_time(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0 < seconds <= sys.float_info.max
