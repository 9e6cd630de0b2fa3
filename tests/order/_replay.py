"""What the shell tells a batch's machine in a real run, recorded; and a fresh machine that is told the same.

A record is a list of steps in the order in which they happen:

    facts      what the shell wrote into records since the machine last ran: plain values by call_index
    event      a method of the machine, with its values; `end` when it has returned
    do         an instruction or a question, with its values; `done` when the shell has carried it out, with its answer

Calls, lanes and tools stand in it as numbers and plain facts.  `replay` drives a machine that knows no Trio by the
events and the facts, and compares each instruction and each state on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import attrs

from tests.order._step import PlainTool
from toolrt import probe
from toolrt.invariants.mutants._mutant import patched
from toolrt.model import ToolCall
from toolrt.order import CallRecord, ClaimTable, LaneRecord, Machine
from toolrt.runtime._questions import ToolQuestions
from toolrt.runtime._run import BatchRun

EVENTS = (
    "place seal begin pass_over granted allowed dispatch failed returned decide merged finish cancel stop answer_late "
    "answer_not_started"
)
INSTRUCTIONS = {
    BatchRun: "spawn approve answer fix_result interrupt interrupt_children interrupt_lane wake",
    ToolQuestions: "looks_at claims stale applied prefer",
}

#: What the shell writes into the record of a call, and the machine reads.
_FACTS = ("state", "stops", "asks_again", "undecided", "modifiers", "reads", "merged", "result")


@attrs.frozen
class Place:
    """Stands for a call or a lane of the batch."""

    kind: str
    index: int


def plain(value: Any, machine: Machine) -> Any:
    """The value, with a number in place of each call and lane."""
    if isinstance(value, CallRecord):
        return Place("call", value.call_index)
    if isinstance(value, LaneRecord):
        return Place("lane", value.index)
    if isinstance(value, list):
        return [plain(one, machine) for one in value]
    return value


def _facts(machine: Machine) -> tuple[dict[tuple[int, str], Any], dict[int, list[int]]]:
    of_calls = {(call.call_index, name): getattr(call, name) for call in machine.calls for name in _FACTS}
    of_lanes = {lane.index: [call.call_index for call in lane.modified] for lane in machine.lanes}
    return of_calls, of_lanes


def _told_of(tool: Any) -> PlainTool:
    names = [field.name for field in attrs.fields(PlainTool)]
    return PlainTool(**{name: getattr(tool, name) for name in names})


@attrs.define
class Record:
    """What one machine was told, and what it said."""

    #: What the machine was made with.
    batch_id: str
    limit: float
    approves: bool
    apart: bool
    prefers: bool
    tables: list[ClaimTable]
    machine: Machine
    steps: list[tuple[Any, ...]] = attrs.field(factory=list)
    #: Whether the machine runs, not the shell.
    inside: bool = False
    _seen: Any = attrs.field(factory=lambda: ({}, {}))
    _calls: int = 0

    def leave(self) -> None:
        """The shell goes on."""
        self.inside, self._seen = False, _facts(self.machine)

    def enter(self) -> None:
        """The machine goes on: note what the shell wrote meanwhile."""
        self.inside = True
        calls, lanes = _facts(self.machine)
        new = [
            (one.call.call_id, one.call.name, _told_of(one.tool) if one.tool else None)
            for one in self.machine.calls[self._calls :]
        ]
        written = {key: (self._seen[0].get(key), value) for key, value in calls.items()
                   if self._seen[0].get(key) is not value}  # fmt: skip
        modified = {index: value for index, value in lanes.items() if self._seen[1].get(index) != value}
        self.steps.append(("facts", new, written, modified))
        self._calls = len(self.machine.calls)


@contextmanager
def recording(batch_id: str) -> Iterator[list[Record]]:
    """Record the machine of the batch with that id, in the order in which machines are made."""
    found: list[Record] = []

    def of(machine: Any) -> Record | None:
        return next((one for one in found if one.machine is machine), None)

    def made(init: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Machine, name: str, verbs: Any, questions: Any, tables: Any, limit: float, approves: bool,
                    apart: bool, lent: Any, path: Any, prefers: bool, **shared: Any) -> None:  # fmt: skip
            init(self, name, verbs, questions, tables, limit, approves, apart, lent, path, prefers, **shared)
            if name == batch_id:
                found.append(Record(name, limit, approves, apart, prefers, list(tables), self))

        return wrapped

    def event(name: str) -> Callable[..., Any]:
        def make(method: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(self: Any, *values: Any) -> Any:
                record = of(self)
                if record is None or record.inside:
                    return method(self, *values)
                record.enter()
                told = [plain(value, record.machine) for value in values]
                record.steps.append(("event", name, told))
                try:
                    return method(self, *values)
                finally:
                    record.steps.append(("end",))
                    record.leave()

            return wrapped

        return make

    def instruction(name: str) -> Callable[..., Any]:
        def make(method: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(self: Any, *values: Any, **named: Any) -> Any:
                record = of(self.machine if isinstance(self, BatchRun) else self._engine.machine)
                if record is None or not record.inside:
                    return method(self, *values, **named)
                record.steps.append(("do", name, [plain(value, record.machine) for value in values]))
                record.leave()
                answer = None
                try:
                    answer = method(self, *values, **named)
                finally:
                    record.enter()
                    record.steps.append(("done", plain(answer, record.machine)))
                return answer

            return wrapped

        return make

    with ExitStack() as stack:
        stack.enter_context(patched(Machine, "__init__", made))
        for name in EVENTS.split():
            stack.enter_context(patched(Machine, name, event(name)))
        for owner, names in INSTRUCTIONS.items():
            for name in names.split():
                stack.enter_context(patched(owner, name, instruction(name)))
        yield found


class Replay:
    """A fresh machine, its verbs and its questions: each compares what the machine says with the record."""

    def __init__(self, record: Record) -> None:
        self._steps = iter(record.steps)
        tables = tuple(ClaimTable(table.name) for table in record.tables)
        self.machine = Machine(
            record.batch_id, self, self, tables, record.limit, record.approves, record.apart, None, (), record.prefers
        )
        #: How many instructions were the same.
        self.followed = 0

    def run(self) -> Replay:
        """Go through the whole record.

        Raises:
            AssertionError: the machine says something else than in the record.
        """
        with probe.observed_by(None, inline=True):  # as in a simulation, where no thread outlives its call
            for step in self._steps:
                self._happens(step)
        return self

    def _happens(self, step: tuple[Any, ...]) -> None:
        if step[0] == "facts":
            self._write(*step[1:])
            return
        assert step[0] == "event", f"the machine says no more, the record has {step}"
        _, name, values = step
        getattr(self.machine, name)(*map(self._own, values))
        assert next(self._steps) == ("end",), f"after {name} the record has more instructions"

    def _write(self, new: Any, written: Any, modified: Any) -> None:
        calls, lanes = self.machine.calls, self.machine.lanes
        for call_id, name, tool in new:
            call = CallRecord(ToolCall(call_id, name, {}), len(calls), self.machine.batch_id, 0.0, calls)
            call.tool = tool
            calls.append(call)
        for (index, name), (before, after) in written.items():
            if name == "state" and before is not None:
                assert calls[index].state is before, f"call {index} is {calls[index].state}, the record has {before}"
            setattr(calls[index], name, after)
        for index, calls_of_lane in modified.items():
            lanes[index].modified = [calls[one] for one in calls_of_lane]

    def _own(self, value: Any) -> Any:
        if isinstance(value, Place):
            return self.machine.calls[value.index] if value.kind == "call" else self.machine.lanes[value.index]
        return [self._own(one) for one in value] if isinstance(value, list) else value

    def _said(self, name: str, *values: Any) -> Any:
        told = [plain(value, self.machine) for value in values]
        step = next(self._steps, None)
        assert step == ("do", name, told), f"the machine says {name} {told}, the record has {step}"
        self.followed += 1
        while (step := next(self._steps))[0] != "done":
            self._happens(step)
        return self._own(step[1])

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or not any(name in names.split() for names in INSTRUCTIONS.values()):
            raise AttributeError(name)
        return lambda *values: self._said(name, *values)
