"""OpenTelemetry: what a runtime tells, as spans and as metrics.

Rules.
    1. A span for each batch, lane, call and wait, and for each block of a tool's own (``ctx.telemetry.span``).  A batch
       is a child of the span that was current where it was opened; its lanes are its children, calls those of their
       lane, waits those of their call; a wait for a lane, and a call that no lane took, are the batch's.
    2. While a tool runs its call's span is the current one, so every span that the tool makes itself, through whatever
       library, is a child of it: in nurseries and in the threads that Trio starts, too.  So it is with the wait for an
       approval, while an async check runs.
    3. Times are those of the runtime: virtual in a simulation, so that the same schedule gives the same spans in the
       same order.  (Their ids are the provider's: give it a generator with a seed.)
    4. A call's span ends when its lane has: only then can its outcome change no more.  The time it bears is that of the
       call's own end.

Limits.  Only the API is used: without a provider of the SDK's nothing is kept.  A span that a tool makes through
another library has times of its own, real ones.

Source.  Names and attributes of a call's span follow OpenTelemetry's semantic conventions for generative AI
(``execute_tool``); those that begin with ``toolrt.`` are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from toolrt.errors import MissingExtra
from toolrt.plugins.otel._counts import BOUNDS
from toolrt.plugins.otel._measures import COUNTERS, HISTOGRAMS, UNKNOWN_TOOL, Labels, Measures

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

_EXTRA = "otel"

#: Outcomes that a span's status calls an error.
_ERRORS = ("error", "invalid", "denied", "timed_out")


@attrs.define
class _CallSpans:
    """One call as far as it was told."""

    tool: str
    attributes: dict[str, Any]
    submitted: int
    #: What its span says at the end.
    result: dict[str, Any] = attrs.field(factory=dict)
    span: Span | None = None
    ended: int | None = None
    settled: int | None = None
    waits: dict[str, Span] = attrs.field(factory=dict)
    #: The blocks of its tool that are open: each with what leads back out of its context, and that context.
    blocks: dict[int, tuple[Span, Any, Context]] = attrs.field(factory=dict)


@attrs.define
class _Lane:
    """One lane while it is open."""

    span: Span
    context: Context
    calls: list[int] = attrs.field(factory=list)


@attrs.define
class _BatchSpans:
    """One batch as far as it was told."""

    span: Span
    context: Context
    calls: dict[int, _CallSpans] = attrs.field(factory=dict)
    lanes: dict[int, _Lane] = attrs.field(factory=dict)
    progress: dict[str, int] = attrs.field(factory=dict)


class OtelSpans:
    """A sink that makes spans.

    Args:
        tracer_provider: where spans go; the global one by default.

    Raises:
        MissingExtra: OpenTelemetry's API is not installed.
    """

    def __init__(self, tracer_provider: TracerProvider | None = None) -> None:
        try:
            from opentelemetry import context, trace
        except ImportError:
            raise MissingExtra("a sink that makes OpenTelemetry spans", _EXTRA) from None
        self._trace = trace
        self._context = context
        self._tracer = trace.get_tracer("toolrt", tracer_provider=tracer_provider)
        self._batches: dict[int, _BatchSpans] = {}
        # Blocks of tools that run outside a batch.
        self._alone: dict[int, dict[int, tuple[Span, Any, Context]]] = {}
        self._errors = trace.Status(trace.StatusCode.ERROR)

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Begin or end what `kind` begins or ends."""
        number = fields.get("number")
        if kind == "batch.opened":
            self._opened(fields)
            return
        batch = self._batches.get(number) if isinstance(number, int) else None
        react = _REACTIONS.get(kind)
        if batch is None:
            self._outside(kind, fields)
        elif react is not None:
            react(self, batch, fields)
        elif "call" in fields:
            call = batch.calls[fields["call"]]
            if call.span is not None:
                call.span.add_event(kind, _attributes(fields), fields["time"])
        else:
            batch.span.add_event(kind, _attributes(fields), fields["time"])

    def _start(self, name: str, parent: Context | None, time: int, attributes: Mapping[str, Any], **more: Any) -> Span:
        return self._tracer.start_span(name, parent, attributes=_shown(attributes), start_time=time, **more)

    # Batches and lanes

    def _opened(self, fields: Mapping[str, Any]) -> None:
        above = self._context.get_current()
        attributes = {"toolrt.batch.id": fields["batch"], "toolrt.policy": fields["policy"]}
        attributes["toolrt.limit"] = fields["limit"]
        span = self._start("toolrt.batch", above, fields["time"], attributes)
        self._batches[fields["number"]] = _BatchSpans(span, self._trace.set_span_in_context(span, above))

    def _batch_ended(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        for _, call in sorted(batch.calls.items()):
            self._end_call(batch, call)
        batch.span.set_attribute("toolrt.calls", fields["calls"])
        for outcome, count in sorted(fields["outcomes"].items()):
            batch.span.set_attribute(f"toolrt.calls.{outcome}", count)
        for what, count in sorted(batch.progress.items()):
            batch.span.set_attribute(f"toolrt.progress.{what}", count)
        batch.span.end(fields["time"])
        del self._batches[fields["number"]]

    def _lane_began(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        attributes = {"toolrt.lane": fields["lane"], "toolrt.lane.shared": fields["shared"]}
        span = self._start("toolrt.lane", batch.context, fields["time"], attributes)
        batch.lanes[fields["lane"]] = _Lane(span, self._trace.set_span_in_context(span, batch.context))

    def _merged(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        lane = batch.lanes.get(fields["lane"])
        if lane is not None:
            lane.span.set_attribute("toolrt.modifiers.applied", fields["applied"])
            lane.span.set_attribute("toolrt.modifiers.rejected", fields["rejected"])

    def _lane_ended(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        lane = batch.lanes.pop(fields["lane"])
        for index in sorted(lane.calls):
            self._end_call(batch, batch.calls[index])
        lane.span.end(fields["time"])

    # Calls

    def _submitted(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        tool = fields["tool"] or UNKNOWN_TOOL
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        attributes |= {"gen_ai.tool.call.id": fields["call_id"], "toolrt.call": fields["call"]}
        batch.calls[fields["call"]] = _CallSpans(tool, attributes, fields["time"])

    def _joined(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        call = batch.calls[fields["call"]]
        lane = batch.lanes[fields["lane"]]
        lane.calls.append(fields["call"])
        counts = {"toolrt.claims.reads": fields["reads"], "toolrt.claims.writes": fields["writes"]}
        call.span = self._call_span(call, lane.context, fields["time"], counts)

    def _call_span(self, call: _CallSpans, parent: Context, time: int, more: Mapping[str, Any]) -> Span:
        return self._start(f"execute_tool {call.tool}", parent, time, {**call.attributes, **more})

    def _started(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        call = batch.calls[fields["call"]]
        if call.span is not None:
            call.span.add_event("call.started", {"toolrt.thread": fields["thread"]}, fields["time"])
            # This is the tool's own task, and ends with it: what is attached here is never detached.
            self._context.attach(self._trace.set_span_in_context(call.span))

    def _settled(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        call = batch.calls[fields["call"]]
        call.settled = fields["time"]
        found = {"toolrt.outcome": fields["outcome"], "toolrt.content.type": fields["content"]}
        found |= {"toolrt.content.size": fields["size"], "toolrt.error.size": fields["error_size"]}
        found |= {"error.type": fields["error"] or (fields["outcome"] if fields["outcome"] in _ERRORS else None)}
        # A skip replaces what was known before.
        call.result = found

    def _ended(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        batch.calls[fields["call"]].ended = fields["time"]

    def _end_call(self, batch: _BatchSpans, call: _CallSpans) -> None:
        if call.settled is None:
            return
        end = call.settled if call.ended is None else call.ended
        if call.span is None:
            call.span = self._call_span(call, batch.context, call.submitted, {})
        call.span.set_attributes(_shown(call.result))
        if call.result["toolrt.outcome"] in _ERRORS:
            call.span.set_status(self._errors)
        call.span.end(end)
        call.settled = None

    def _wait_began(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        call = batch.calls[fields["call"]]
        parent = batch.context if call.span is None else self._trace.set_span_in_context(call.span, batch.context)
        blockers = [batch.calls.get(one) for one in fields.get("blocked_by", ()) if isinstance(one, int)]
        links = [self._trace.Link(one.span.get_span_context()) for one in blockers if one is not None and one.span]
        attributes = {"toolrt.call": fields["call"], "toolrt.wait": fields["why"]}
        name = f"toolrt.wait {fields['why']}"
        span = call.waits[fields["why"]] = self._start(name, parent, fields["time"], attributes, links=links)
        if fields["why"] == "approval":
            # As for a tool: this is the task of the check, and ends with it.
            self._context.attach(self._trace.set_span_in_context(span))

    def _wait_ended(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        batch.calls[fields["call"]].waits.pop(fields["why"]).end(fields["time"])

    def _progress(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        for what in ("sent", "dropped"):
            batch.progress[what] = batch.progress.get(what, 0) + fields[what]

    # What tools tell

    def _began(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        call = batch.calls[fields["call"]]
        if call.span is None:
            return
        above = self._context.get_current()
        current = self._trace.get_current_span(above).get_span_context()
        if current.trace_id != call.span.get_span_context().trace_id:
            # A task that does not come from the tool's: its context knows nothing of the call.
            above = self._trace.set_span_in_context(call.span, above)
        self._enter(call.blocks, above, fields)

    def _enter(self, blocks: dict[int, tuple[Span, Any, Context]], above: Context, fields: Mapping[str, Any]) -> None:
        span = self._start(fields["name"], above, fields["time"], fields["fields"])
        inside = self._trace.set_span_in_context(span, above)
        blocks[fields["span"]] = span, self._context.attach(inside), inside

    def _block_ended(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        self._leave(batch.calls[fields["call"]].blocks, fields)

    def _leave(self, blocks: dict[int, tuple[Span, Any, Context]], fields: Mapping[str, Any]) -> None:
        found = blocks.pop(fields["span"], None)
        if found is None:
            return
        span, token, inside = found
        if self._context.get_current() is inside:
            self._context.detach(token)
        if fields["error"] is not None:
            span.set_attribute("error.type", fields["error"])
            span.set_status(self._errors)
        if fields["left_open"]:
            span.set_attribute("toolrt.left_open", True)
        span.end(fields["time"])

    def _own_event(self, batch: _BatchSpans, fields: Mapping[str, Any]) -> None:
        call = batch.calls[fields["call"]]
        block = call.blocks.get(fields["span"])
        span = call.span if block is None else block[0]
        if span is not None:
            span.add_event(fields["name"], _shown(fields["fields"]), fields["time"])

    def _outside(self, kind: str, fields: Mapping[str, Any]) -> None:
        """What a tool tells that runs outside a batch."""
        if kind == "tool.event":
            self._trace.get_current_span().add_event(fields["name"], _shown(fields["fields"]), fields["time"])
        elif kind == "span.began":
            blocks = self._alone.setdefault(fields["number"], {})
            self._enter(blocks, self._context.get_current(), fields)
        elif kind == "span.ended":
            blocks = self._alone.get(fields["number"], {})
            self._leave(blocks, fields)
            if not blocks:
                self._alone.pop(fields["number"], None)


_REACTIONS: Mapping[str, Callable[[OtelSpans, _BatchSpans, Mapping[str, Any]], None]] = {
    "batch.ended": OtelSpans._batch_ended,
    "lane.began": OtelSpans._lane_began,
    "state.merged": OtelSpans._merged,
    "lane.ended": OtelSpans._lane_ended,
    "call.submitted": OtelSpans._submitted,
    "call.joined": OtelSpans._joined,
    "call.started": OtelSpans._started,
    "call.settled": OtelSpans._settled,
    "call.ended": OtelSpans._ended,
    "wait.began": OtelSpans._wait_began,
    "wait.ended": OtelSpans._wait_ended,
    "progress.counted": OtelSpans._progress,
    "span.began": OtelSpans._began,
    "span.ended": OtelSpans._block_ended,
    "tool.event": OtelSpans._own_event,
}

#: Fields that say where something happened, not what.
_PLACE = ("time", "batch", "number", "call")


def _attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    return _shown({f"toolrt.{name}": value for name, value in fields.items() if name not in _PLACE})


def _shown(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What OpenTelemetry takes for an attribute: no None, no mapping."""
    return {name: value for name, value in attributes.items() if isinstance(value, str | bool | int | float)}


class OtelMetrics(Measures):
    """A sink that counts and measures through OpenTelemetry's metrics API, under the names that `Counts` has.

    Args:
        meter_provider: where numbers go; the global one by default.

    Raises:
        MissingExtra: OpenTelemetry's API is not installed.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        super().__init__()
        try:
            from opentelemetry import metrics
        except ImportError:
            raise MissingExtra("a sink that counts through OpenTelemetry", _EXTRA) from None
        meter = metrics.get_meter("toolrt", meter_provider=meter_provider)
        self._counters = {name: meter.create_counter(name, *words) for name, words in COUNTERS.items()}
        self._histograms = {
            name: meter.create_histogram(name, "s", words, explicit_bucket_boundaries_advisory=BOUNDS)
            for name, words in HISTOGRAMS.items()
        }

    def _count(self, name: str, amount: int, labels: Labels) -> None:
        self._counters[name].add(amount, _labelled(labels))

    def _measure(self, name: str, nanoseconds: int, labels: Labels) -> None:
        self._histograms[name].record(nanoseconds / 1e9, _labelled(labels))


def _labelled(labels: Labels) -> dict[str, str | bool]:
    """Labels under the names that OpenTelemetry has for them."""
    return {_NAMES[name]: value for name, value in labels}


_NAMES = {
    "tool": "gen_ai.tool.name",
    "outcome": "toolrt.outcome",
    "shared": "toolrt.lane.shared",
    "why": "toolrt.wait",
}
