"""A call that runs long or waits long gives one warning while it does; in virtual time."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio

from toolrt import WRITE, Claim, Registry, Runtime, ToolCall, sim, tool
from toolrt.errors import DefinitionRefused
from toolrt.plugins.otel import SlowCall, SlowCalls


@tool(claims=[Claim("file", WRITE)])
async def write(ctx: Any, seconds: int) -> None:
    await trio.sleep(seconds)


@tool(safe=True)
async def read(ctx: Any, seconds: int) -> None:
    await trio.sleep(seconds)


def told(calls: list[tuple[str, int]], limit: int | None = None, **options: Any) -> list[SlowCall]:
    """What is told of a batch, the same in five orders of its steps."""
    found = []
    for seed in range(5):
        slow: list[SlowCall] = []
        watching = SlowCalls(tell=slow.append, **options)
        runtime = Runtime(Registry([write, read]), limit=limit, telemetry=watching)
        batch = [ToolCall(str(at), name, {"seconds": seconds}) for at, (name, seconds) in enumerate(calls)]
        execution = sim.run(lambda: runtime.run(batch, batch_id="b"), policy=sim.RandomWalk(seed=seed))  # noqa: B023
        assert execution.error is None
        assert runtime.telemetry_failures == 0
        assert not watching._tools
        assert not any(watching._begun.values())
        found.append(sorted(slow, key=lambda call: (call.seconds, call.call_index)))
    assert all(one == found[0] for one in found)
    return found[0]


def test_calls_that_run_or_wait_long_are_told_while_they_do() -> None:
    """The first event after the bound tells of them, whatever call it is of; what is quick is not told."""
    assert told([("write", 40), ("write", 1), ("read", 31), ("read", 29)]) == [
        SlowCall("b", 0, "write", None, 31.0),
        SlowCall("b", 1, "write", "claims", 31.0, (0,)),
        SlowCall("b", 2, "read", None, 31.0),
    ]


def test_wait_for_a_slot_is_told_and_a_bound_of_none_tells_nothing() -> None:
    """Each kind has its own bound."""
    calls = [("read", 9), ("read", 1)]
    assert told(calls, limit=1, running=None, waiting=5) == [SlowCall("b", 1, "read", "slot", 9.0)]
    assert told(calls, limit=1, running=5, waiting=None) == [SlowCall("b", 0, "read", None, 9.0)]


def test_a_logger_warns_of_what_a_check_finds(caplog: pytest.LogCaptureFixture) -> None:
    """Without any further event; once."""
    watching = SlowCalls(running=1)
    at = {"number": 1, "batch": "b", "call": 0, "time": 0}
    for kind in ("batch.opened", "call.submitted", "call.started"):
        watching.event(kind, {**at, "tool": "read"})
    with caplog.at_level(logging.WARNING, logger="toolrt"):
        watching.check()
        watching.check()
    [record] = caplog.records
    assert record.getMessage().startswith("call 0 (read) of batch b has run for ")


@pytest.mark.parametrize("options", [{"running": 0}, {"waiting": "1"}, {"running": True}, {"tell": 1}])
def test_bound_that_is_no_time_is_refused(options: dict[str, Any]) -> None:
    """Where it is given."""
    with pytest.raises(DefinitionRefused, match="SlowCalls"):
        SlowCalls(**options)
