"""Telemetry: passes on what a runtime does to sinks such as OpenTelemetry, counts and JSON lines.

``toolrt.Runtime(registry, telemetry=Telemetry(sinks...))`` tells the sinks of every batch, lane, call and wait, in
production and in a simulation alike.
"""

from toolrt.plugins.otel._counts import Counts, Distribution
from toolrt.plugins.otel._json_lines import JsonLines
from toolrt.plugins.otel._otel import OtelMetrics, OtelSpans
from toolrt.plugins.otel._slow_calls import SlowCall, SlowCalls
from toolrt.plugins.otel._telemetry import Telemetry

__all__ = ["Counts", "Distribution", "JsonLines", "OtelMetrics", "OtelSpans", "SlowCall", "SlowCalls", "Telemetry"]
