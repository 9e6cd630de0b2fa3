"""Parallel stateful tests find planted bugs, and are quiet about what is right."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import Phase, settings
from hypothesis import strategies as st

from tests._profile import FULL
from tests.sim import _subjects
from toolrt import sim, testing
from toolrt.errors import DefinitionRefused
from toolrt.testing import ParallelCall, ParallelCommands


class _Buffer(testing.ParallelMachine):
    subject = _subjects.ConditionBuffer
    model = _subjects.BufferModel
    executions = 20
    most_calls = 2
    cancelled = "nothing"
    put = testing.command(st.integers(0, 3))
    get = testing.command(cancellable=True)


class _LosingBuffer(_Buffer):
    subject = _subjects.LosingBuffer


class _Counter(testing.ParallelMachine):
    subject = _subjects.Counter
    model = _subjects.CounterModel
    executions = 20
    most_calls = 2
    add = testing.command()


class _RacingCounter(_Counter):
    subject = _subjects.RacingCounter


class _Cache(testing.ParallelMachine):
    subject = _subjects.Cache
    model = _subjects.CacheModel
    executions = 20
    most_calls = 2
    fetch = testing.command()


class _TwiceCache(_Cache):
    subject = _subjects.TwiceCache


class _Semaphore(testing.ParallelMachine):
    model = _subjects.SemaphoreModel
    executions = 20
    most_calls = 2
    cancelled = "nothing"
    acquire = testing.command(cancellable=True)
    acquire_nowait = testing.command()
    release = testing.command()

    def subject(self) -> trio.Semaphore:
        return trio.Semaphore(1)


def _settings(examples: int) -> settings:
    return settings(max_examples=examples, database=None, deadline=None, print_blob=False)


@pytest.mark.parametrize("machine", [_Buffer, _Counter, _Cache, _Semaphore])
def test_right_object_passes(machine: type[testing.ParallelMachine]) -> None:
    """No example of what is right fails."""
    testing.run_parallel(machine, _settings(1_000 if FULL else 8))


@pytest.mark.seldom
@pytest.mark.parametrize("machine", [_LosingBuffer, _RacingCounter, _TwiceCache])
def test_planted_bug_is_found_within_a_hundred_examples(machine: type[testing.ParallelMachine]) -> None:
    """The text has the history and a program that shows the failure again."""
    with pytest.raises(testing.Wrong, match="not linearizable") as caught:
        testing.run_parallel(machine, _settings(100))
    text = str(caught.value)
    program = text.split("Run it again:\n")[1]
    found: dict[str, Any] = {}
    lines = [line[4:] for line in program.splitlines()]
    source = "\n".join(lines).replace("print(", "judgement = (")
    exec(source, {machine.__name__: machine}, found)
    assert found["judgement"].verdict is sim.FAIL
    if machine is not _LosingBuffer:
        # Two tasks that do it once are the smallest program that fails.
        assert program.count("ParallelCall('") == 2


def test_machine_is_a_unittest_case() -> None:
    """As a state machine of Hypothesis is."""
    case = _RacingCounter.TestCase
    case.settings = settings(_settings(100), phases=[Phase.generate])  # type: ignore[attr-defined]
    result = case().run()
    assert result is not None
    assert "not linearizable" in result.failures[0][1]


def test_commands_are_a_value() -> None:
    """They run without Hypothesis, and their text makes them again."""
    commands = ParallelCommands([ParallelCall("put", (1,))], [[ParallelCall("get")], [ParallelCall("get")]])
    assert eval(repr(commands)) == commands
    _Buffer.check(commands)
    report = sim.explore(commands.program(_subjects.ConditionBuffer), sim.Exhaustive())
    assert report.complete
    assert all("stuck" in str(history) for history in report.outcomes)


def test_machine_without_parts_is_refused() -> None:
    """It needs a subject, a model and a command."""

    class Empty(testing.ParallelMachine):
        pass

    with pytest.raises(DefinitionRefused, match=r"Empty\.subject"):
        testing.run_parallel(Empty)
    with pytest.raises(DefinitionRefused, match="a command"):
        testing.parallel_commands(Empty)
