"""Telemetry: who is told what a runtime does, and where it goes from there.

``toolrt.Runtime(registry, telemetry=Telemetry(sinks...))`` tells the sinks of every batch, lane, call and wait, in
production and in a simulation alike.
"""

from toolrt.plugins.otel._counts import Counts, Distribution
from toolrt.plugins.otel._json_lines import JsonLines
from toolrt.plugins.otel._otel import OtelMetrics, OtelSpans
from toolrt.plugins.otel._telemetry import Telemetry

__all__ = ["Counts", "Distribution", "JsonLines", "OtelMetrics", "OtelSpans", "Telemetry"]
