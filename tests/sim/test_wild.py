"""Defects that the explorer found in released versions of other libraries: the programs of docs/examples/wild."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import trio

from toolrt import sim

WILD = Path(__file__).parents[2] / "docs" / "examples" / "wild"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"wild_{name}", WILD / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The connection that the pool lost is never closed: that is the defect.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_httpcore_loses_a_slot_of_its_pool() -> None:
    """It is found within ten executions, and plain Trio with real sockets shows it without a simulator."""
    httpcore = pytest.importorskip("httpcore")
    pytest.importorskip("socksio")
    if httpcore.__version__ != "1.0.9":
        pytest.skip("the defect was looked for in httpcore 1.0.9 alone")
    pool = loaded("httpcore_pool")

    async def in_memory() -> None:
        await pool.lost_slot(pool.Network(), "socks5://proxy:1080")

    report = sim.explore(in_memory, sim.Random(sim.RandomWalk(seed=1), 10))
    assert report.verdict is sim.FAIL
    assert "the slot is lost" in str(report.failures[0].error)
    trio.run(pool.on_sockets)


def test_a_request_that_is_not_cancelled_gives_its_slot_back() -> None:
    """So the program does not fail for a reason of its own."""
    pytest.importorskip("httpcore")
    pytest.importorskip("socksio")
    pool = loaded("httpcore_pool")

    async def twice() -> None:
        async with pool.httpcore.AsyncSOCKSProxy(
            "socks5://proxy:1080", max_connections=1, network_backend=pool.Network()
        ) as connections:
            for _ in range(2):
                answer = await connections.request("GET", "http://host/", extensions={"timeout": {"pool": 1.0}})
                assert answer.content == b"ok"

    assert not sim.explore(twice, sim.Random(sim.RandomWalk(seed=1), 10)).failures
