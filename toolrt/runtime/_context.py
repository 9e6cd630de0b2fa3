"""What a tool is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolrt.model import Claim, State
from toolrt.order import TrackedCall

__all__ = ["ToolContext"]


class ToolContext:
    """One call's view of its batch.

    It belongs to the call: what it says stays the same while the call runs.
    """

    __slots__ = ("_call", "_send", "state")

    #: The state as of the call's lane's start.
    state: State

    def __init__(self, call: TrackedCall, state: State, send: Callable[[TrackedCall, Any], None]) -> None:
        self._call = call
        self._send = send
        self.state = state

    @property
    def call_id(self) -> str:
        """The id the model gave the call; two calls of one batch may carry the same."""
        return self._call.call_id

    @property
    def batch_id(self) -> str:
        """The batch's id."""
        return self._call.batch_id

    @property
    def call_index(self) -> int:
        """The call's place in its batch, from 0."""
        return self._call.call_index

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What the call may touch while it runs: what it holds, or what its approval left of that.

        One claim on everything for an exclusive call that nobody narrowed.
        """
        call = self._call
        return call.claims if call.allowed is None else call.allowed

    def progress(self, message: Any) -> None:
        """Say what the call is doing, to whoever reads the batch's updates.

        Never blocks and never fails: what cannot be kept is dropped and counted on the call's result.  May be
        called from the worker thread of a sync tool.

        Checkpoint: never.  Ordering: messages of one call arrive in order and before its result.
        """
        self._send(self._call, message)

    def __repr__(self) -> str:
        return f"<ToolContext of {self._call.story()}>"
