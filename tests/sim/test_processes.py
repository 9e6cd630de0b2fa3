"""What a process of its own shows: the same bytes whatever its hash seed, and Ctrl-C wherever it strikes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

_SCRIPT = """
{before}
import trio
from toolrt import probe, sim

async def program():
    cells = {{name: sim.Cell(0, name=name) for name in {{"a", "b", "c", "d"}}}}
    free = sim.Cell(0)
    event = trio.Event()
    async def work(index):
        with trio.move_on_after(1 + index % 3):
            for name in ("a", "b", "c", "d"):
                cells[name].set(cells[name].get() + index)
                free.set(index)
                probe.event("worked", index=index, names={{"z", "y"}}, odd=object())
                await trio.lowlevel.checkpoint()
            await (event.wait() if index % 2 else trio.sleep_forever())
    async with trio.open_nursery() as nursery:
        for index in range(8):
            nursery.start_soon(work, index)
        await trio.sleep(1.5)
        event.set()
    return [cell.get() for cell in cells.values()]

for seed in range(5):
    execution = sim.run(program, sim.RandomWalk(seed))
    print(execution.schedule.to_json())
    print(execution.trace.to_json())
"""


def _in_process(script: str, hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.seldom
def test_same_schedule_same_bytes_in_two_processes() -> None:
    """Two processes with two hash seeds, addresses randomised, print the same schedules and traces."""
    first, second = (_in_process(_SCRIPT.format(before=""), seed) for seed in ("1", "2"))
    assert first
    assert first == second


@pytest.mark.seldom
def test_same_with_and_without_hypothesis() -> None:
    """Whether Hypothesis was imported, before or not at all, changes nothing; the simulator never imports it."""
    without = _in_process(_SCRIPT.format(before="import sys") + "\nassert 'hypothesis' not in sys.modules\n", "1")
    assert without == _in_process(_SCRIPT.format(before="import hypothesis"), "1")


@pytest.mark.seldom
def test_hypothesis_imported_by_the_program_meets_the_real_trio() -> None:
    """When the program imports Hypothesis, Trio's real generator is registered with it afterwards."""
    script = """
import trio
from toolrt import sim

async def program():
    import hypothesis
    from hypothesis.internal import entropy

sim.run(program)
import hypothesis
assert trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING
assert type(trio._core._run._r).__name__ == "Random"
"""
    _in_process(script, "1")


_INTERRUPTS = """
import signal
import trio
from toolrt import sim

# A shell that starts this in the background has made it ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
real = trio._core._run._r

async def spin():
    for step in range(10**9):
        if {in_program} and step == 2500:
            signal.raise_signal(signal.SIGINT)
        await trio.lowlevel.checkpoint()

class Policy(sim.Choices):
    def choose(self, enabled, step):
        if {in_policy} and step == 2500:
            signal.raise_signal(signal.SIGINT)
        return 0

def check(execution):
    if {in_check}:
        signal.raise_signal(signal.SIGINT)
    return True

for _ in range(2):
    try:
        sim.explore(spin, sim.Random(Policy(), 10**6), check, step_limit=20 if {in_check} else 10**9)
    except KeyboardInterrupt:
        print("interrupted")
assert trio._core._run._r is real
assert sim.run(trio.lowlevel.checkpoint).error is None
"""


@pytest.mark.parametrize("where", ["in_program", "in_policy", "in_check"])
def test_interrupt_ends_a_long_exploration(where: str) -> None:
    """Ctrl-C reaches the caller wherever it strikes, and nothing stays replaced."""
    places = dict.fromkeys(["in_program", "in_policy", "in_check"], False) | {where: True}
    assert _in_process(_INTERRUPTS.format(**places), "1") == "interrupted\n" * 2
