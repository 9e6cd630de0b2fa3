"""Approval: asked between validation and start, for each call by itself.

Exactly the arguments that were approved are executed.  What is not clearly a yes is a no: a check that raises,
or answers something else than below, denies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from toolrt._plain import stable_text
from toolrt.model import State, ToolCall

__all__ = ["Allow", "ApprovalRequest", "Approve", "Deny", "Rewrite", "decision"]


@attrs.frozen
class ApprovalRequest:
    """One call that asks to run; its input is valid."""

    call_id: str
    name: str
    input: Mapping[str, Any]
    call_index: int
    batch_id: str
    #: The state as of the call's lane's start.
    state: State


@attrs.frozen
class Allow:
    """Run it as it is.  The same as True."""


@attrs.frozen
class Deny:
    """Do not run it.  The same as False, or as the reason alone."""

    reason: str = "the approval check said no"


@attrs.frozen
class Rewrite:
    """Run it with this input instead.  The same as the mapping alone, or a call that has it.

    The new input is validated again, and what it claims must be covered by what the call holds.
    """

    input: Mapping[str, Any]


Answer = Allow | Deny | Rewrite | ToolCall | bool | str | Mapping[str, Any]

#: The per-call check that a runtime takes as ``approve=``: sync or async.
Approve = Callable[[ApprovalRequest], Answer | Awaitable[Answer]]


def decision(answer: object) -> Allow | Deny | Rewrite:
    """What an answer means; everything unclear is a `Deny` that says so."""
    if isinstance(answer, Allow | Deny | Rewrite):
        return answer
    if answer is True:
        return Allow()
    if answer is False:
        return Deny()
    if isinstance(answer, str):
        return Deny(answer)
    if isinstance(answer, Mapping):
        return Rewrite(answer)
    if isinstance(answer, ToolCall):
        return Rewrite(answer.input)
    shown = stable_text(answer)
    return Deny(f"the approval check answered {shown}, which is neither True, False, a reason nor a new input")
