"""Law 14 across processes: nothing depends on the hash seed, on addresses or on what ran before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

_ROOT = Path(__file__).parents[2]

_PROGRAM = """
from toolrt import sim
from toolrt.invariants import trace_digest
from toolrt.invariants.workloads import WORKLOADS

for mix in WORKLOADS:
    for seed in range(3):
        execution = sim.run(mix.program(), sim.RandomWalk(seed=seed))
        print(trace_digest(execution.trace), execution.schedule.short)

# OpenSSL's random numbers are its own, and are in no trace.
try:
    from tests.sim._tls import encrypted
except ModuleNotFoundError:  # no trustme
    encrypted = None
for seed in range(3) if encrypted else ():
    execution = sim.run(encrypted(partial=1), sim.RandomWalk(seed=seed))
    print(trace_digest(execution.trace), execution.schedule.short)
"""


def _bytes_of_a_process(hash_seed: str) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(_ROOT)}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, check=True)
    return done.stdout


@pytest.mark.seldom
def test_same_schedule_same_trace_in_two_processes() -> None:
    """Two processes with two hash seeds give the same bytes for every workload, and for a program that speaks TLS."""
    first, second = _bytes_of_a_process("0"), _bytes_of_a_process("1")
    assert first
    assert first == second
