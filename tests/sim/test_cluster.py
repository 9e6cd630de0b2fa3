"""Explorations on a real cluster of two processes; the nox session `campaigns` runs these tests."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trio.lowlevel import checkpoint

from tests._profile import FULL
from tests.sim._campaigns import fine, four_arrivals, keeps_all, lost_update
from tests.sim._divided import reduced, shown
from toolrt import sim
from toolrt.cli import main
from toolrt.errors import DefinitionRefused

pytestmark = [
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.skipif(not FULL, reason="a cluster takes 8 s to start: profile nightly"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # The threads of a worker that was killed.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason='the extra "cluster" is not installed')
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR(), sim.Portfolio(200)], ids=str)
def test_cluster_shows_what_one_process_shows(client: Any, strategy: sim.Strategy) -> None:
    """The same verdict, claim, counts and outcomes."""
    report = sim.explore(lost_update, strategy, keeps_all, jobs=client)
    assert reduced(report) == reduced(sim.explore(lost_update, strategy, keeps_all))


def test_cluster_takes_what_has_no_import_path(client: Any) -> None:
    """A closure, as in a notebook: cloudpickle sends it by value."""
    tasks = 3

    async def local() -> int:
        await checkpoint()
        return tasks + await lost_update()

    assert sim.explore(local, sim.DPOR(), jobs=client).claim == "exhaustive(traces=762)"


def test_cluster_refuses_what_cannot_be_sent(client: Any) -> None:
    """The message says what can."""
    lock = threading.Lock()

    async def local() -> bool:
        return lock.locked()

    with pytest.raises(DefinitionRefused, match="reach the workers"):
        sim.explore(local, sim.Exhaustive(), jobs=client)


def test_part_of_a_killed_worker_is_run_again(client: Any, tmp_path: Path) -> None:
    """The same verdict, claim and counts as one process, in three sittings."""
    pids = list(client.run(os.getpid).values())
    killed = False

    def kill(progress: sim.ExplorationProgress) -> None:
        nonlocal killed
        if not killed and 1 < progress.executions < 2520:
            killed = True
            os.kill(pids[0], signal.SIGKILL)

    path, sittings = tmp_path / "search", 0
    while not sittings or path.exists():
        report = sim.explore(four_arrivals, sim.Exhaustive(), fine, 1000, client, checkpoint=path, progress=kill)
        sittings += 1
    assert (killed, sittings) == (True, 3)
    assert shown(report) == shown(sim.explore(four_arrivals, sim.Exhaustive(), fine))


def test_commands_take_a_cluster(client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each shows what it shows without one."""
    address = client.scheduler.address
    (tmp_path / "a.txt").write_text("one\n")
    response = tmp_path / "response.json"
    calls = [{"id": f"c{n}", "name": "read_file", "input": {"path": "a.txt"}} for n in range(2)]
    response.write_text(json.dumps({"calls": calls}))
    batch = ["explore", str(response), "--workspace", str(tmp_path), "--executions", "60", "--json"]
    commands = [
        batch,
        ["laws", "--strategy", "dpor", "--calls", "1", "--json"],
        ["litmus", "lost_update_3x2", "--verify", "--json"],
    ]
    for command in commands:
        shown = []
        for more in ([], ["--cluster", address]):
            assert main([*command, *more]) == 0
            shown.append(json.loads(capsys.readouterr().out))
        for document in shown:
            for name in ("seconds", "executions_per_second", "run_twice"):
                document.pop(name, None)
        assert shown[0] == shown[1]
