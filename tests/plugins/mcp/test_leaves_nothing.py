"""A thousand calls of MCP servers, cancelled and timed out at random: nothing is left."""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from pathlib import Path

import pytest
import trio

from tests._profile import FULL

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from tests.plugins.mcp._mcp import calls_of, proper, rough
from toolrt import Outcome, Registry, Runtime
from toolrt.plugins import mcp

pytestmark = pytest.mark.process

#: How many calls: a thousand with HYPOTHESIS_PROFILE=full.
CALLS = 1_000 if FULL else 60

#: Calls on one connection, and how many of them at once.
ROUND = 20
AT_ONCE = 5

#: What a server leaves behind, each time it is started.
CHILDREN = [
    ["sleep 1000 &"],
    ["(setsid sh -c '(setsid sleep 1000 &)' &)"],
    ["setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' &"],
    [],
    [],
]


@pytest.mark.seldom
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("nothing_left")
def test_a_thousand_calls_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many processes, open files, threads and temporary files as before; every call is answered truthfully."""
    choices = random.Random(7)
    outcomes: Counter[Outcome | None] = Counter()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def one(tools: mcp.McpTools, prefix: str) -> None:
        calls = [
            (f"{prefix}nap", {"seconds": choices.choice([0.0, 0.01, 1000.0])}),
            (f"{prefix}add", {"a": 1, "b": 2}),
            (f"{prefix}die", {"status": 3}),
        ]
        if prefix == "r__":
            calls = [
                (
                    "r__echo",
                    {"seconds": choices.choice([0.0, 0.01, 1000.0]), "text": "x" * choices.choice([1, 100_000])},
                ),
                ("r__echo", {"text": "a"}),
                ("r__crash", {"half": choices.random() < 0.5}),
            ]
        call = choices.choices(calls, [10, 10, 2 if prefix == "r__" else 1])[0]
        runtime = Runtime(Registry(tools), timeout=choices.choice([0.0005, 0.01, 0.05, 0.3]))
        outcome = None
        with trio.move_on_after(choices.choice([0.0, 0.001, 0.01, 0.05, 0.2, 60])):
            async with runtime.open_batch() as batch:
                batch.submit(calls_of(call)[0])
            outcome = batch.outcome.results[0].outcome
        outcomes[outcome] += 1

    async def connection(number: int) -> None:
        configuration = {"children": choices.choice(CHILDREN), "stubborn": number % 10 == 3}
        server = proper(timeout=None) if number % 5 == 0 else rough(configuration, timeout=None, restarts=1000)
        async with mcp.connect([server]) as tools:
            for _ in range(0, ROUND, AT_ONCE):
                async with trio.open_nursery() as nursery:
                    for _ in range(AT_ONCE):
                        nursery.start_soon(one, tools, f"{server.name}__")

    async def main() -> None:
        for number in range(CALLS // ROUND):
            await connection(number)

    trio.run(main)
    assert os.listdir(tmp_path) == []
    assert sum(outcomes.values()) == CALLS
    assert outcomes[Outcome.OK]
    assert outcomes[Outcome.TIMED_OUT]
    assert set(outcomes) <= {Outcome.OK, Outcome.TIMED_OUT, Outcome.ERROR, None}
