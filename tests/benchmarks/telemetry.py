"""What telemetry costs per call, on and off, as ratios in one process.

Run it as ``python tests/benchmarks/telemetry.py``.  Each row pairs a batch of no-op calls that are observed with the
same batch unobserved, in turn, many times, and gives medians, in processor time of the thread that runs Trio.  The row
"off" pairs the runtime, with nobody observing, with a copy of it from whose source every ``if observer.listens`` was
taken out.  ``--quick`` takes fewer rounds, ``--json`` prints the rows as JSON lines.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import toolrt
from toolrt.plugins.otel import Counts, JsonLines, OtelSpans, Telemetry

Timed = Callable[[], Awaitable[float]]


@toolrt.tool(safe=True)
async def noop(ctx: toolrt.ToolContext) -> None:
    """Nothing at all."""


REGISTRY = toolrt.Registry([noop])


class Deaf:
    """An observer that does nothing: what is left is the telling."""

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Do nothing."""


class _Stripped(ast.NodeTransformer):
    """Takes out what is done only where somebody observes."""

    def __init__(self) -> None:
        self.found = 0

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        test = node.test.values[0] if isinstance(node.test, ast.BoolOp) else node.test
        if (
            isinstance(test, ast.Attribute)
            and isinstance(test.value, ast.Name)
            and test.value.id == "observer"
            and test.attr in ("listens", "measures", "records")
        ):
            self.found += 1
            return node.orelse or ast.Pass()
        return node


@contextmanager
def stripped_runtime() -> Iterator[Any]:
    """The runtime's class from a copy of its source that tells nobody anything."""
    source = Path(toolrt.__file__).parent / "runtime"
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "stripped_runtime"
        copy.mkdir()
        stripped = _Stripped()
        for path in sorted(source.glob("*.py")):
            tree = ast.fix_missing_locations(stripped.visit(ast.parse(path.read_text())))
            (copy / path.name).write_text(ast.unparse(tree).replace("toolrt.runtime", "stripped_runtime"))
        if stripped.found < 20:
            raise SystemExit(f"only {stripped.found} places were found where the runtime tells: look at _Stripped")
        sys.path.insert(0, place)
        try:
            yield importlib.import_module("stripped_runtime").Runtime
        finally:
            sys.path.remove(place)


def batch(runtime: Any, n: int) -> Timed:
    """A batch of `n` calls."""
    calls = [toolrt.ToolCall(str(i), "noop", {}) for i in range(n)]
    state = toolrt.State()

    async def timed() -> float:
        began = time.thread_time()
        done = await runtime.run(calls, state)
        took = time.thread_time() - began
        assert all(result.ok for result in done.results)
        return took

    return timed


async def paired(ours: Timed, theirs: Timed, rounds: int) -> tuple[float, float, float]:
    """Medians of both, and of the ratio, taken in turn: who goes first changes."""
    mine, bare = [], []
    for turn in range(rounds + 5):
        for timed, kept in ((ours, mine), (theirs, bare)) if turn % 2 else ((theirs, bare), (ours, mine)):
            kept.append(await timed())
    mine, bare = mine[5:], bare[5:]
    ratios = [a / b for a, b in zip(mine, bare, strict=True)]
    return statistics.median(mine), statistics.median(bare), statistics.median(ratios)


async def measure(n: int, rounds: int, emit: Callable[[dict[str, Any]], None]) -> None:
    """Every row."""
    plain = toolrt.Runtime(REGISTRY)
    provider = TracerProvider(shutdown_on_exit=False)
    exporter = InMemorySpanExporter()
    processor = BatchSpanProcessor(exporter, max_queue_size=1_000_000)
    provider.add_span_processor(processor)
    lines = JsonLines(os.devnull, bound=10_000_000)
    with stripped_runtime() as runtime:
        rows: list[tuple[str, Any, Any]] = [
            ("off, against itself", plain, toolrt.Runtime(REGISTRY)),
            ("off", plain, runtime(REGISTRY)),
        ]
        for name, sink in (
            ("told, and nothing done", Deaf()),
            ("told through Telemetry", Telemetry(Deaf())),
            ("Counts", Telemetry(Counts())),
            ("JsonLines", Telemetry(lines)),
            ("OtelSpans, API alone", Telemetry(OtelSpans())),
            ("OtelSpans, SDK", Telemetry(OtelSpans(provider))),
        ):
            rows.append((name, toolrt.Runtime(REGISTRY, telemetry=sink), plain))
        for name, ours, theirs in rows:
            mine, bare, ratio = await paired(batch(ours, n), batch(theirs, n), rounds)
            emit(
                {"row": name, "n": n, "us_more": (mine - bare) / n * 1e6, "us_without": bare / n * 1e6, "ratio": ratio}
            )
    lines.close(30)
    processor.shutdown()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print rows as JSON lines")
    parser.add_argument("--quick", action="store_true", help="a quarter of the rounds")
    parser.add_argument("--calls", type=int, default=100, help="calls in a batch")
    options = parser.parse_args()
    rounds = max(10, 40_000 // options.calls // (4 if options.quick else 1))

    def emit(row: dict[str, Any]) -> None:
        if options.json:
            print(json.dumps(row), flush=True)
        else:
            print(f"{row['row']:24} {row['us_without']:>9.1f} {row['us_more']:>9.1f} {row['ratio']:>7.3f}", flush=True)

    if not options.json:
        print(f"{'telemetry':24} {'us/call':>9} {'us more':>9} {'ratio':>7}")
    trio.run(measure, options.calls, rounds, emit)


if __name__ == "__main__":
    main()
