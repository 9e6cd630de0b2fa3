"""What a test suite needs: mixes of scripted calls, schedules, one simulated run, a check of a tool's promises.

::

    from hypothesis import given
    from toolrt import invariants, testing

    @given(mix=testing.tool_mixes(), schedule=testing.schedules())
    def test_laws(mix, schedule):
        execution = testing.simulate(mix, schedule)
        assert invariants.check(execution.trace) == []

The pytest plugin (loaded by itself once toolrt is installed) adds ``@pytest.mark.explore`` for any async test.
"""

from toolrt.errors import MissingExtra

try:
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401
except ImportError as _error:
    raise MissingExtra("toolrt.testing", "testing") from _error

from toolrt.invariants import Mix, MixEnding, script, simulate
from toolrt.invariants.script import Scripted
from toolrt.testing._batches import BatchExample, batches
from toolrt.testing._explored import NotShown, Wrong, explored
from toolrt.testing._mutation_score import Catch, MutantScore, MutationScore, mutation_score, shipped_examples
from toolrt.testing._parallel import (
    ParallelCall,
    ParallelCommand,
    ParallelCommands,
    ParallelMachine,
    command,
    parallel_commands,
    run_parallel,
)
from toolrt.testing._promises import BrokenPromise, check_tool, check_tools
from toolrt.testing._proposals import ProposedClaims, TouchedRows, propose_claims
from toolrt.testing._stores import Store
from toolrt.testing._strategies import completion_orders, schedules, tool_mixes

__all__ = [
    "BatchExample",
    "BrokenPromise",
    "Catch",
    "Mix",
    "MixEnding",
    "MutantScore",
    "MutationScore",
    "NotShown",
    "ParallelCall",
    "ParallelCommand",
    "ParallelCommands",
    "ParallelMachine",
    "ProposedClaims",
    "Scripted",
    "Store",
    "TouchedRows",
    "Wrong",
    "batches",
    "check_tool",
    "check_tools",
    "command",
    "completion_orders",
    "explored",
    "mutation_score",
    "parallel_commands",
    "propose_claims",
    "run_parallel",
    "schedules",
    "script",
    "shipped_examples",
    "simulate",
    "tool_mixes",
]
