"""Calls, and how they end."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from toolrt._plain import plain
from toolrt.errors import DefinitionRefused
from toolrt.model._state import State

#: A pure function from the state to the next state.
Modifier = Callable[[State], State]


class Outcome(enum.StrEnum):
    """How a call ended: exactly one of these (law `answered_once`)."""

    #: The tool returned.
    OK = "ok"
    #: The tool raised, or returned a `ToolOutput` with an error.
    ERROR = "error"
    #: Unknown tool or bad input; the tool was not run.
    INVALID = "invalid"
    #: The approval check said no; the tool was not run.
    DENIED = "denied"
    #: Its own execution took longer than its timeout; effects may have landed.
    TIMED_OUT = "timed_out"
    #: It was running when the batch was cancelled; effects may have landed.
    INTERRUPTED = "interrupted"
    #: The batch was cancelled before it ran; no effect.
    NOT_STARTED = "not_started"
    #: An earlier call that stops the batch failed; no effect.
    SKIPPED = "skipped"

    def __repr__(self) -> str:
        return self.name


@attrs.frozen
class ToolCall:
    """One tool invocation, as the model asked for it.

    Nothing is checked here: whether the tool exists and the input fits is decided when the call is submitted,
    and the answer is a result, never an exception.
    """

    #: The provider's id; two calls of one batch may carry the same.
    call_id: str
    #: The tool's name.
    name: str
    #: The arguments; anything but a mapping makes the call `Outcome.INVALID`.
    input: Any = attrs.field(factory=dict)


def _modifiers(value: Iterable[Modifier]) -> tuple[Modifier, ...]:
    modifiers = tuple(value)
    for modifier in modifiers:
        if not callable(modifier):
            raise DefinitionRefused("a modifier", "a function from State to State", modifier)
    return modifiers


def _check_text(_: object, __: object, value: Any) -> None:
    if not isinstance(value, str):
        raise DefinitionRefused("ToolOutput.error", "a text or None", value)


@attrs.frozen
class ToolOutput:
    """What a tool returns when a bare value does not say it all.

    Raises:
        DefinitionRefused: a modifier is not callable.
    """

    #: The answer to the call.
    content: Any = None
    #: Applied to the state at the lane's end, in this order.
    modifiers: tuple[Modifier, ...] = attrs.field(default=(), converter=_modifiers)
    #: Set: the call ends as `Outcome.ERROR` with this text, and its modifiers still apply.
    error: str | None = attrs.field(default=None, validator=attrs.validators.optional(_check_text))


@attrs.frozen
class ToolResult:
    """The one answer to one call.

    Equality ignores how much progress was dropped: that depends on the reader, not on the call.
    """

    #: The call's id, as the model gave it.
    call_id: str
    #: The call's place in its batch, from 0; the key of its result slot.
    call_index: int
    #: The tool's name, as the model gave it.
    name: str
    #: How the call ended.
    outcome: Outcome
    #: What the tool answered; None when it did not.
    content: Any = None
    #: Why the outcome is not OK: what was refused or went wrong, and where; None when it is OK.
    error: str | None = None
    #: How many progress messages of this call no reader will see.
    progress_dropped: int = attrs.field(default=0, eq=False)

    @property
    def ok(self) -> bool:
        """Whether the outcome is `Outcome.OK`."""
        return self.outcome is Outcome.OK

    def to_json(self) -> dict[str, Any]:
        """The result as a JSON object; content that JSON cannot hold is given by its `repr`."""
        return {
            "call_id": self.call_id,
            "call_index": self.call_index,
            "name": self.name,
            "outcome": self.outcome.value,
            "content": plain(self.content),
            "error": self.error,
        }
