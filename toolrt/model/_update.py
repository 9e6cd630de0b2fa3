"""What a batch yields while it runs, and what it leaves."""

from __future__ import annotations

from typing import Any

import attrs

from toolrt.model._call import Modifier, ToolResult
from toolrt.model._state import State


@attrs.frozen
class Progress:
    """A call says what it is doing."""

    #: Which call.
    call_index: int
    #: The id the model gave it.
    call_id: str
    #: What the tool passed to ``ctx.progress``.
    message: Any


@attrs.frozen
class ResultReady:
    """A call's result, in call order."""

    result: ToolResult


@attrs.frozen
class RejectedModifier:
    """A modifier that changed nothing, because it raised or gave something else than a State."""

    #: The call that returned it.
    call_index: int
    #: The id the model gave that call.
    call_id: str
    #: Its place among the call's modifiers, from 0.
    position: int
    #: What went wrong.
    error: str


@attrs.frozen
class StateMerged:
    """A lane has ended and its modifiers are applied; one for every lane, also when nothing changed."""

    #: The lane's index.
    lane: int
    #: The state after it.
    state: State
    #: The modifiers that were applied, as (call_index, position), in that order.
    applied: tuple[tuple[int, int], ...] = ()
    #: Those that were not.
    rejected: tuple[RejectedModifier, ...] = ()


#: What the reader of a batch is handed.
Update = Progress | ResultReady | StateMerged


@attrs.frozen
class BatchOutcome:
    """How a batch ended: one result for each call, in call order, and the state after the last lane."""

    #: One for each call, in call order, and what they leave.
    results: tuple[ToolResult, ...]
    state: State
    #: Of a sub-batch: the modifiers that were applied, in order, for a parent that hands them on
    #: (``ToolOutput(..., modifiers=outcome.modifiers)``); empty for any other batch.
    modifiers: tuple[Modifier, ...] = attrs.field(default=(), eq=False, repr=False)
    #: The batch's id, as history and traces have it.
    batch_id: str = attrs.field(default="", eq=False, repr=False)
