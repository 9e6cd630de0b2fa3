"""What a step costs does not depend on how many tasks can run beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.sim.engine._roster import Actor, Roster


def _beside(tasks: int, checkpoints: int) -> Callable[[], Awaitable[None]]:
    """So many tasks that pass so many checkpoints each."""

    async def program() -> None:
        async def one() -> None:
            for _ in range(checkpoints):
                await checkpoint()

        async with trio.open_nursery() as nursery:
            for _ in range(tasks):
                nursery.start_soon(one)

    return program


def test_a_task_that_passes_a_checkpoint_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks enter the sorted list when they are spawned or woken, and at no other step."""
    entered: list[str] = []
    insert = Roster.insert

    def counting(roster: Roster, actor: Actor) -> int:
        entered.append(actor.name)
        return insert(roster, actor)

    monkeypatch.setattr(Roster, "insert", counting)
    execution = sim.run(_beside(20, 10), sim.RandomWalk(1))
    assert len(execution.choices) > 200
    # The first task is spawned, and woken at the end of its nursery.
    assert len(entered) == len(set(entered)) + 1 == 22
