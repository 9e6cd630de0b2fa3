"""Programs of some thirty steps whose bug is far from the simplest schedules."""

from __future__ import annotations

import trio
from trio.lowlevel import checkpoint

from toolrt import sim


async def handover() -> list[str]:
    """A session hands its connection over while a request, a cancel and a ping use it: twenty steps.

    The bug needs the request to be between its two writes when the cancel comes, and the ping to read after that.
    """
    state, owner, answers = sim.Cell("open", "state"), sim.Cell("", "owner"), sim.Cell(0, "answers")
    log: list[str] = []

    async def work(name: str, steps: int) -> None:
        for _ in range(steps):
            await checkpoint()
            answers.set(answers.get() + len(name))

    async def request() -> None:
        await work("request", 4)
        if state.get() == "open":
            owner.set("request")
            await checkpoint()
            await checkpoint()
            if state.get() == "open":
                owner.set("")
            log.append("answered")

    async def cancel() -> None:
        await work("cancel", 4)
        if owner.get() == "request":
            state.set("closing")
            await checkpoint()
            state.set("closed")

    async def ping() -> None:
        await work("ping", 4)
        if state.get() == "closed" and owner.get() == "request":
            log.append("lost")

    async with trio.open_nursery() as nursery:
        for task in (request, cancel, ping):
            nursery.start_soon(task)
    return log


def answers_all(execution: sim.Execution) -> bool:
    """Say whether nothing was lost."""
    return "lost" not in execution.value
