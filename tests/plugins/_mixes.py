"""Mixes of calls on the twin, held against every law."""

from __future__ import annotations

from typing import Any

from toolrt import BatchOutcome, Workspace, by_claims, by_safety, parallel, serial, sim
from toolrt.invariants import require

POLICIES = {policy.__name__: policy for policy in (by_claims, parallel, by_safety, serial)}


def ends(done: BatchOutcome, workspace: Workspace) -> dict[str, Any]:
    """How a batch ended, as law 7 compares it."""
    return {
        "results": [result.to_json() for result in done.results],
        "state": done.state.to_json(),
        "files": workspace.snapshot(),
    }


def require_laws(execution: sim.Execution, workspace: Workspace, oracle: dict[str, Any], context: str) -> None:
    """Every law holds; the workspace is the one it ran in, and the oracle ended as `ends` says."""
    assert execution.error is None, (context, execution.error)
    notes = execution.trace.notes
    notes["oracle"], notes["files"] = oracle, workspace.snapshot()
    notes["temp_files"] = [name for name in notes["files"] if ".toolrt" in name]
    notes["claims_left"] = ["in the table"] * workspace.claim_table.statistics()["groups"]
    require(execution.trace, context=context)
