"""Laws 7 and 14: every schedule ends like the oracle, and one schedule has one trace.

Both need something from outside the trace, kept in its notes: ``notes["oracle"]`` (what one call at a time gives:
``results``, ``state``, ``files``, the ``versions`` each file ever had, and whether the plan is ``exact``),
``notes["files"]`` (the files as this execution left them), ``notes["replay_digest"]`` (the digest of another
execution of the same schedule).  Without them these laws are not checked.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from toolrt._plain import counted
from toolrt.invariants.predicates._law import told
from toolrt.invariants.predicates._story import BatchStory, Breach, TraceStory
from toolrt.trace import Trace, TraceEvent, plain

#: How a call ended that neither a cancel nor the clock cut short.
_FINISHED = ("ok", "error", "denied", "invalid")


def _has_oracle(trace: Trace) -> bool:
    return isinstance(trace.notes.get("oracle"), Mapping)


@told(7, "same_as_oracle", "Every schedule ends like the oracle: same results, same state, same files.", _has_oracle)
def same_as_oracle(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """The oracle is the same plan, one call at a time."""
    oracle = trace.notes.get("oracle")
    if not isinstance(oracle, Mapping):
        return
    batch = next((batch for batch in story.batches if batch.left is not None and batch.parent is None), None)
    if batch is None or batch.left is None:
        return
    exact = bool(oracle.get("exact", True)) and not batch.is_cut
    if oracle.get("results") is not None:
        # Where a cancel kept earlier calls from changing what these set, they are not stale, and others may be by them.
        stale = () if exact else oracle.get("stale", ())
        refused = (call.index for call in batch.calls.values() if call.refused is not None)
        left_out = {*stale, *(index for index in refused if any(earlier < index for earlier in stale))}
        wanted = [want for want in plain(oracle["results"]) if want["call_index"] < batch.cut_at]
        expected = [want for want in wanted if want["call_index"] not in left_out]
        yield from compared_results(batch, batch.left, expected, exact, "the oracle")
    if exact and "state" in oracle and batch.left.fields["state"] != plain(oracle["state"]):
        text = f"state: expected {plain(oracle['state'])!r}, got {batch.left.fields['state']!r}"
        yield batch.breach(text, batch.left)
    files = trace.notes.get("files")
    if isinstance(files, Mapping) and batch.cut_at == math.inf:
        yield from _files(batch, files, oracle, exact)


def compared_results(batch: BatchStory, left: TraceEvent, expected: Any, exact: bool, who: str) -> Iterator[Breach]:
    """Where the results in `left` are not those `expected` by `who`; unless `exact`, of finished calls alone."""
    got = {result["call_index"]: result for result in left.fields["results"]}
    for want in plain(expected):
        index = want["call_index"]
        result = got.get(index)
        if result is None:
            if exact:
                yield Breach(f"expected a result as {who} has, got none", batch.id, index, left.seq)
            continue
        if not exact and not {result["outcome"], want["outcome"]} <= set(_FINISHED):
            continue
        # The texts of the runtime's own errors are not the oracle's; those of tools are.
        fields = ("outcome", "content", "error") if want["outcome"] == "error" else ("outcome", "content")
        for field in fields:
            if result[field] != want[field]:
                text = f"{field}: expected {want[field]!r}, got {result[field]!r}"
                yield Breach(text, batch.id, index, left.seq)
                break


def _files(batch: BatchStory, files: Mapping[str, Any], oracle: Mapping[str, Any], exact: bool) -> Iterator[Breach]:
    expected = oracle.get("files", {})
    versions = oracle.get("versions", {})
    for file in sorted({*files, *expected}):
        got, want = files.get(file), expected.get(file)
        if exact and got != want:
            yield batch.breach(f"{file}: expected {want!r}, got {got!r}")
        elif not exact and got not in [want, *versions.get(file, ())]:
            text = (
                f"{file}: expected one of the oracle's {counted(len(versions.get(file, ())), 'version')}, got {got!r}"
            )
            yield batch.breach(text)


def _has_digest(trace: Trace) -> bool:
    return trace.notes.get("replay_digest") is not None


@told(14, "same_schedule_same_trace", "Same schedule, same trace: byte for byte, in every process.", _has_digest)
def same_schedule_same_trace(story: TraceStory, trace: Trace) -> Iterator[Breach]:
    """The trace equals that of another execution of its schedule, whose digest is in the notes."""
    expected = trace.notes.get("replay_digest")
    if expected is not None:
        got = trace_digest(trace)
        if got != expected:
            yield Breach(f"expected a trace with digest {expected}, got {got}")


def trace_digest(trace: Trace) -> str:
    """A digest of everything in the trace but its notes: equal traces, equal digests, in every process.

    ``trace.notes["replay_digest"]`` is this of another execution.
    """
    bare = Trace([_raw(event) for event in trace.events], trace.steps, {}, {})
    return hashlib.sha256(bare.to_json().encode()).hexdigest()[:16]


def _raw(event: TraceEvent) -> tuple[int | None, float, str, str, Mapping[str, Any]]:
    return event.step, event.time, event.task, event.kind, event.fields
