"""Law 5 looks at the whole tree of batches: what runs inside one call may not overlap what must be alone."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import toolrt
from toolrt import invariants, sim
from toolrt.order import StateKeys
from toolrt.runtime._lease import Lease

FILE = toolrt.Claim("file", toolrt.WRITE)


def _works(name: str, seconds: float, **said: Any) -> toolrt.Tool:
    async def work(ctx: toolrt.ToolContext) -> None:
        await trio.sleep(seconds)

    return toolrt.tool(name=name, schema=None, **said)(work)


def _opens(**said: Any) -> toolrt.Tool:
    async def opens(ctx: toolrt.ToolContext) -> None:
        await ctx.run([toolrt.ToolCall("child", "child")])

    return toolrt.tool(name="opens", schema=None, **said)(opens)


def _laws(child: dict[str, Any], parent: dict[str, Any], **options: Any) -> list[str]:
    tools = [_works("child", 1, **child), _works("safe", 2, safe=True), _opens(**parent)]
    runtime = toolrt.Runtime(toolrt.Registry(tools), **options)
    calls = [toolrt.ToolCall("a", "opens"), toolrt.ToolCall("b", "safe")]
    execution = sim.run(lambda: runtime.run(calls))
    assert execution.error is None
    return [found.law for found in invariants.check(execution.trace)]


def test_child_that_declares_nothing_is_not_seen_beside_a_call_of_the_outer_batch() -> None:
    """Neither where the parent claims everything, nor where it declares nothing itself."""
    assert _laws({}, {"claims": [toolrt.EVERYTHING]}) == []
    assert _laws({}, {}) == []


def test_child_that_declares_nothing_breaks_the_law_beside_a_call_of_the_outer_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a runtime that lets a call which claims everything share its lane."""
    monkeypatch.setattr(StateKeys, "admits", lambda *args, **how: True)
    monkeypatch.setattr(Lease, "is_alone", True)
    assert "exclusive_alone" in _laws({}, {"claims": [toolrt.EVERYTHING]})


def test_child_that_says_what_it_touches_may_run_beside_calls_of_the_outer_batch() -> None:
    """It is alone among the calls of its parent; others cannot touch what its parent claims."""
    assert _laws({"claims": [FILE], "alone": True}, {"claims": [FILE]}) == []
