"""What a tool's context needs of the batch of its call (the host), and the host of a call without a batch."""

from __future__ import annotations

from typing import Any, Protocol

import attrs
import trio

from toolrt.errors import BatchClosed
from toolrt.model import Outcome, Registry, Services, State, Tool, ToolCall, ToolOutput
from toolrt.order import CallRecord
from toolrt.runtime._batch import Batch
from toolrt.runtime._telemetry import BatchTelemetry


class FixesResults(Protocol):
    """What fixes the results of a batch's calls, and ends the batch."""

    def settle(self, call: CallRecord, outcome: Outcome, content: Any, error: str | None) -> None:
        """Fix the call's result."""

    def fix_result(self, call: CallRecord, output: ToolOutput) -> None:
        """Fix the result of a call that returned `output`."""

    def abort(self, error: BaseException) -> None:
        """Cancel the batch, and let `error` out when it is left."""

    def exit_or_raise(self, error: BaseException) -> None:
        """The same, where `error` is Ctrl-C or asks to exit; else raise it."""

    def now(self) -> float:
        """The time on Trio's clock."""

    #: The Trio run that the batch belongs to.
    token: trio.lowlevel.TrioToken


class CallHost(Protocol):
    """What a tool's context needs of the batch that its call belongs to."""

    @property
    def registry(self) -> Registry | None:
        """The tools that may be called."""

    @property
    def read_budget(self) -> int | None:
        """How many tokens one read may answer; None is any number."""

    @property
    def events(self) -> bool:
        """Whether the reader wants the events of toolrt's own tools."""

    @property
    def telemetry(self) -> BatchTelemetry | None:
        """The telemetry of the batch; None where it has none."""

    def services_of(self, tool: Tool | None) -> Services:
        """What calls of `tool` are given."""

    def send(self, call: CallRecord, message: Any) -> None:
        """Hand on a call's progress, or drop and count it."""

    def sub_batch(
        self,
        call: CallRecord,
        state: State,
        registry: Registry | None,
        batch_id: str | None,
        reads: int | list[ToolCall],
        events: bool | None,
    ) -> Batch:
        """A batch inside the call.

        Args:
            reads: how many reads share its budget, or the calls among which those are.
            events: whether its reader wants the events of toolrt's own tools; None: it has no reader.

        Raises:
            BatchClosed: the call is not running.
        """


#: The least tokens that a read is allowed, however little the context has left.
_LEAST_SHARE = 2000


def share_of(context_budget: int | None, reads: int) -> int | None:
    """How many tokens each of `reads` reads may answer: a fifth of what is left, in equal parts, at least 2,000.

    None where it is not known what is left.
    """
    return None if context_budget is None else max(_LEAST_SHARE, context_budget // (5 * max(1, reads)))


@attrs.frozen
class NoBatch:
    """The host of a tool that runs outside a batch."""

    registry: Registry | None
    _services: Services
    read_budget: int | None
    telemetry: BatchTelemetry | None = None
    events: bool = False

    def services_of(self, tool: Tool | None) -> Services:
        return self._services

    def send(self, call: CallRecord, message: Any) -> None:
        call.progress_dropped += 1
        call.progress_count += 1

    def sub_batch(self, call: CallRecord, *options: Any) -> Batch:
        why = f"call {call.call_index} is not running: only a tool that runs opens batches inside its call"
        raise BatchClosed(call.batch_id, "lend its claims to a sub-batch", why)


@attrs.frozen
class BudgetedHost:
    """The host of an isolated part of a call's work, which has a read budget of its own."""

    _host: CallHost
    read_budget: int | None

    @property
    def registry(self) -> Registry | None:
        return self._host.registry

    @property
    def events(self) -> bool:
        return self._host.events

    @property
    def telemetry(self) -> BatchTelemetry | None:
        return self._host.telemetry

    def services_of(self, tool: Tool | None) -> Services:
        return self._host.services_of(tool)

    def send(self, call: CallRecord, message: Any) -> None:
        self._host.send(call, message)

    def sub_batch(self, call: CallRecord, *options: Any) -> Batch:
        return self._host.sub_batch(call, *options)
