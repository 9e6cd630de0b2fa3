"""A tool that is called again where it fails: one execution, which keeps its place."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import tenacity
import trio

import toolrt
from toolrt import Claim, Mode, Outcome, Registry, Runtime, ToolCall, ToolContext, ToolOutput, sim
from toolrt.errors import DefinitionRefused
from toolrt.model import Progress

_FILE = (Claim(("file", "a"), Mode.WRITE),)


def _three(**options: Any) -> tenacity.AsyncRetrying:
    return tenacity.AsyncRetrying(
        **{"stop": tenacity.stop_after_attempt(3), "wait": tenacity.wait_random(1, 5), **options}
    )


def _busy(failures: int, retry: Any, **promises: Any) -> tuple[toolrt.Tool, list[Any]]:
    """A tool that fails so often, and notes when it was called."""
    called: list[Any] = []

    @toolrt.tool(claims=_FILE, idempotent=True, retry=retry, schema=None, **promises)
    async def busy(ctx: ToolContext) -> ToolOutput:
        called.append(trio.current_time())
        number = len(called)
        await trio.lowlevel.checkpoint()
        if number <= failures:
            raise ConnectionError(f"busy {number}")
        return ToolOutput("done", modifiers=[lambda state: state.set("by", number)])

    return busy, called


def test_retried_call_keeps_its_place_under_every_schedule() -> None:
    """Each wait is told; later calls of the file wait for the last attempt; chance comes from the execution's seed."""
    busy, called = _busy(2, _three())

    @toolrt.tool(claims=_FILE, schema=None)
    async def after(ctx: ToolContext) -> str:
        called.append("after")
        return str(ctx.state.get("by"))

    async def program() -> Any:
        called.clear()
        told = []
        calls = [ToolCall("a", "busy", {}), ToolCall("b", "after", {})]
        async with Runtime(Registry([busy, after])).open_batch() as batch:
            for call in calls:
                batch.submit(call)
            batch.seal()
            async for update in batch:
                if isinstance(update, Progress):
                    told.append((update.message["attempt"], update.message["failed"]))
        *times, last = called
        waited = all(1 <= later - earlier <= 5 for earlier, later in itertools.pairwise(times))
        return tuple(told), batch.outcome.results[0].content, batch.outcome.state["by"], last, len(times), waited

    report = sim.explore(program, sim.DPOR(), lambda execution: True)
    told = ((1, "ConnectionError: busy 1"), (2, "ConnectionError: busy 2"))
    assert list(report.outcomes) == [(told, "done", 3, "after", 3, True)]
    assert report.complete
    one = sim.run(program, sim.RandomWalk(seed=1))
    assert sim.replay(program, one.schedule.to_json()).trace.to_json() == one.trace.to_json()


def _ended(tool: toolrt.Tool, seconds: float | None = None) -> Any:
    async def program() -> Any:
        async with Runtime(Registry([tool])).open_batch() as batch:
            batch.submit(ToolCall("a", tool.name, {}))
            batch.seal()
            if seconds is not None:
                await trio.sleep(seconds)
                batch.cancel("enough")
        return batch.outcome.results[0]

    return sim.run(program).value


@pytest.mark.parametrize(
    ("failures", "retry", "timeout", "cancelled", "outcome", "text", "attempts"),
    [
        (3, _three(), None, None, Outcome.ERROR, "busy 3", 3),
        (9, _three(stop=tenacity.stop_never, wait=tenacity.wait_fixed(2)), 5, None, Outcome.TIMED_OUT, "5 s", 3),
        (9, _three(stop=tenacity.stop_after_delay(5), wait=tenacity.wait_fixed(2)), None, None, Outcome.ERROR, "4", 4),
        (9, _three(stop=tenacity.stop_never, retry=lambda _: True), None, 3, Outcome.INTERRUPTED, "enough", None),
        (1, _three(retry=tenacity.retry_if_exception_type(OSError)), None, None, Outcome.OK, "", 2),
        (1, _three(retry=tenacity.retry_if_exception_type(KeyError)), None, None, Outcome.ERROR, "busy 1", 1),
        (0, _three(retry=tenacity.retry_if_result(bool)), None, None, Outcome.ERROR, "RetryError", 3),
    ],
)
def test_retries_end_as_they_are_told_to(
    failures: int,
    retry: Any,
    timeout: float | None,
    cancelled: float | None,
    outcome: Outcome,
    text: str,
    attempts: Any,
) -> None:
    """By a number, by the call's one timeout, by a delay in the execution's time, by a cancel, and by what failed."""
    tool, called = _busy(failures, retry, timeout=timeout)
    result = _ended(tool, cancelled)
    assert result.outcome is outcome
    assert text in (result.error or "")
    assert attempts is None or len(called) == attempts


def test_retry_that_could_do_harm_is_refused() -> None:
    """What tenacity does not know, a thread, and effects that could come twice."""

    async def act(ctx: ToolContext) -> None:
        """Acts."""

    def wait(ctx: ToolContext) -> None:
        """Runs in a thread."""

    for function, promises, words in [
        (act, {"retry": _three()}, "idempotent=True"),
        (act, {"retry": 3, "pure": True}, r"tenacity\.AsyncRetrying"),
        (act, {"retry": tenacity.Retrying(), "pure": True}, r"tenacity\.AsyncRetrying"),
        (wait, {"retry": _three(), "safe": True}, "async def"),
    ]:
        with pytest.raises(DefinitionRefused, match=words):
            toolrt.tool(schema=None, **promises)(function)
