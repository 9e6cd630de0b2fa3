"""The laws hold for batches that asyncio awaits, whatever the order in which the calls complete."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.aio._mixes import on_asyncio
from toolrt.invariants import LAWS, check
from toolrt.testing import Mix, completion_orders, tool_mixes

#: Law 14 is about schedules of the simulator; the oracle of its own is asked by the others.
OF_A_TRACE = {name: law for name, law in LAWS.items() if name != "same_schedule_same_trace"}

_EXAMPLES = max(4, settings.default.max_examples // 10)


@pytest.mark.parametrize("asyncio_tools", [False, True], ids=["trio", "asyncio"])
@settings(max_examples=_EXAMPLES)
@given(data=st.data(), mix=tool_mixes() | tool_mixes(cancel=True), turns=st.lists(st.integers(0, 4), min_size=1))
def test_laws_hold_on_asyncio(asyncio_tools: bool, data: Any, mix: Mix, turns: list[int]) -> None:
    """All of them, in each example, with tools of either kind."""
    order = data.draw(st.none() | completion_orders(mix), label="completion order")
    if order is not None:
        mix = mix.with_completion_order(order)
    execution = on_asyncio(mix, turns, asyncio_tools)
    assert check(execution.trace, OF_A_TRACE) == []
