"""What a tool is given, field by field: its rule holds under every schedule, and a broken variant is caught.

Each rule is a function that raises where it does not hold; all stand in ``_rules.py``.  It is run on the runtime as
it is, and on a variant with the race that the rule removes: there it has to raise.  The table of
``docs/explanation/tool-context.md`` names both.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from tests.properties._error_rules import first_error_in_every_trace, first_to_finish
from tests.properties._event_rules import event_order
from tests.properties._read_rules import SIZES, read_shares
from tests.properties._rule import call
from tests.properties._rules import RULES, VARIANTS
from toolrt import MemoryDisk, OutputChunk, Progress, Registry, Runtime, Services, ToolContext, Workspace
from toolrt.model import SILENT
from toolrt.testing import schedules


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", RULES)
def test_rule_holds_under_every_schedule(name: str) -> None:
    """The field's rule holds."""
    RULES[name]()


@pytest.mark.drawn(5)
@pytest.mark.parametrize("name", VARIANTS)
def test_rule_catches_the_race_it_removes(name: str) -> None:
    """The rule does not hold for the broken variant, and says what is wrong with it."""
    variant = VARIANTS[name]
    with variant.apply(), pytest.raises(AssertionError, match=variant.said):
        RULES[variant.rule]()


@given(
    batch_of=st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.1, 0.2])), min_size=1, max_size=4),
    schedule=schedules(max_size=120),
    slow=st.sampled_from([0.0, 0.15]),
)
def test_events_keep_law_8_under_every_schedule(
    batch_of: list[tuple[int, float]], schedule: list[int], slow: float
) -> None:
    """Any mix of calls, any reader, any schedule."""
    event_order(batch_of, schedule, slow)


@pytest.mark.seldom
@given(
    reads=st.lists(st.tuples(st.sampled_from(sorted(SIZES)), st.just({})), min_size=1, max_size=6),
    budget=st.sampled_from([None, 0, 9_999, 20_000, 40_000, 90_000]),
)
def test_read_budget_is_the_same_for_all_reads_of_a_batch(
    reads: list[tuple[str, dict[str, Any]]], budget: int | None
) -> None:
    """max(2000, context_budget // (5 x reads)), fixed when the batch opens."""
    read_shares(reads, budget)


def test_first_error_is_the_first_in_every_trace() -> None:
    """Exhaustively, not by sample; and the seed's way is found out the same way."""
    first_error_in_every_trace()
    with first_to_finish(), pytest.raises(AssertionError, match="FAIL"):
        first_error_in_every_trace()


# What is the same for every context


def test_copies_say_the_same_and_share_the_services() -> None:
    """A copy is the call's context too."""
    workspace = Workspace(MemoryDisk({"a": "1"}))
    given = Services(search=object(), graph=object(), lsp=object())

    @toolrt.tool(safe=True)
    async def look(ctx: ToolContext) -> str:
        copied = copy.copy(ctx)
        assert copied.state is ctx.state
        assert (copied.call_id, copied.batch_id, copied.call_index) == (ctx.call_id, ctx.batch_id, ctx.call_index)
        for name in ("files", "history", "search", "graph", "lsp", "registry"):
            assert getattr(copied, name) is getattr(ctx, name) is not None
        assert ctx.files is workspace.files
        assert ctx.history is workspace.history
        assert ctx.graph is given.graph
        copied.emit(OutputChunk(0, "from a copy"))
        return "same"

    async def program() -> Any:
        runtime = Runtime(Registry([*workspace.tools(), look]), services=given)
        async with runtime.open_batch() as batch:
            batch.submit(call("look"))
            batch.seal()
            updates = [update async for update in batch]
        return updates

    updates = trio.run(program)
    batch_id = updates[0].message.batch_id
    assert batch_id
    assert updates[0] == Progress(
        0, "look", OutputChunk(0, "from a copy", call_index=0, call_id="look", batch_id=batch_id)
    )
    assert updates[1].result.content == "same"


def test_what_is_not_there_is_none_and_telemetry_is_silent() -> None:
    """A runtime without services gives none."""

    @toolrt.tool(safe=True)
    async def look(ctx: ToolContext) -> list[Any]:
        ctx.telemetry.event("looked")
        assert ctx.telemetry is SILENT
        return [ctx.files, ctx.history, ctx.search, ctx.graph, ctx.lsp, ctx.read_budget, list(ctx.registry.names)]

    done = trio.run(Runtime(Registry([look])).run, [call("look")])
    assert done.results[0].content == [None] * 6 + [["look"]]
