"""Approval: asked between validation and start, for each call by itself.

Exactly the arguments that were approved are executed, and on exactly the resources they meant then, where the
answer says which (``within``).  What is not clearly a yes is a no: a check that raises, or answers something else
than below, denies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from toolrt._plain import stable_text
from toolrt.model._call import ToolCall
from toolrt.model._claim import Claim
from toolrt.model._state import State
from toolrt.model._tool import Tool

#: Says why a call may not touch a resource that it found, or None where it may; see `Allow.withheld`.  It is given the
#: resource as a claim has it, and the number of names that the file has (1 or more; 1 for what is no file).
Withheld = Callable[[tuple[Any, ...], int], str | None]


@attrs.frozen
class ParentCall:
    """The call whose tool opened the sub-batch that a call belongs to."""

    #: Its batch, its place there, the id the model gave it, and its tool's name.
    batch_id: str
    call_index: int
    call_id: str
    name: str
    #: The call around it, if its batch is a sub-batch too.
    parent: ParentCall | None = None


@attrs.frozen
class ApprovalRequest:
    """One call that asks to run; its input is valid."""

    #: The id the model gave it, its tool's name, its input with defaults filled in, its place and its batch.
    call_id: str
    name: str
    input: Mapping[str, Any]
    call_index: int
    batch_id: str
    #: The state as of the call's lane's start.
    state: State
    #: What the call holds: it can touch nothing else.  One claim on everything for an exclusive call.
    claims: tuple[Claim, ...] = ()
    #: The tool that would run; None in a request built by hand.
    tool: Tool | None = attrs.field(default=None, repr=False)
    #: The call inside which it would run; None for a call of a batch that no tool opened.
    parent: ParentCall | None = None


@attrs.frozen
class Allow:
    """Run it as it is.  The same as True.

    With `within`, the call may touch only these claims; the claims that it holds must cover each of them, and
    ``ctx.claims`` then shows them instead.  So a check can see to it that a call whose input means
    something else by the time it runs does nothing, also where the call holds everything.
    """

    #: None leaves the call all that it holds.
    within: tuple[Claim, ...] | None = None
    #: What the call leaves out of that, for a tool that can (`Tool.leaves_out`): gives the reason why it may not touch
    #: a resource, or None where it may.  A tool that goes through a tree calls it in a worker thread, so it is a plain
    #: function that looks at nothing which only Trio's thread may.  None leaves out nothing.
    withheld: Withheld | None = None


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
    #: As of `Allow`.
    within: tuple[Claim, ...] | None = None
    withheld: Withheld | None = None


Answer = Allow | Deny | Rewrite | ToolCall | bool | str | Mapping[str, Any]

#: The per-call check that a runtime takes as ``approve=``: sync or async.  One that has a method ``for_lane()`` is
#: asked for the check of each lane, once, when the first call of that lane is asked for: what the check learns
#: while a lane runs can then not reach that lane's other calls, however they are timed.
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
