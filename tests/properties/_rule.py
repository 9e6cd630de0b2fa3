"""What the rules of the fields of a tool's context are held with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import attrs

from tests._profile import FULL
from toolrt import ToolCall, sim
from toolrt.invariants import require

Program = Callable[[], Any]


@attrs.frozen
class Variant:
    """The race that a rule removes."""

    rule: str
    #: While it is entered, toolrt has the race.
    apply: Callable[[], AbstractContextManager[Any]]
    #: A pattern in what the rule says of it: so it is refused for its race, and not because it no longer fits.
    said: str


def call(name: str, **input: Any) -> ToolCall:
    return ToolCall(name, name, input)


def calls_of(*named: tuple[str, dict[str, Any]]) -> list[ToolCall]:
    return [ToolCall(f"id{number}", name, input) for number, (name, input) in enumerate(named)]


def only_ending(program: Program, executions: int = 400 if FULL else 20) -> Any:
    """The one value that `program` has, whatever the schedule; each execution keeps all laws."""

    def check(execution: sim.Execution) -> list[Any]:
        assert execution.error is None, execution.error
        require(execution.trace)
        return []

    first = sim.run(program)
    assert first.error is None, first.error
    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=3), executions), check)
    assert report.verdict is sim.PASS, f"{report}\n{report.failures[0].explain() if report.failures else ''}"
    assert len(report.outcomes) == 1, "\n".join(report.outcomes)
    return first.value
