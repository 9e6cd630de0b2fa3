"""What the form of the machine's instructions costs: verbs that act at once, or a list that a shell goes through.

Run it as ``python -m tests.benchmarks.machine``.  Both forms drive the same machine through the same batches, in turn,
and do the same with each instruction; medians of the time of a call, and of the ratio.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks._rows import Rows
from tests.order._step import STATE, PlainTool, Recording, Steps
from toolrt.model import Outcome
from toolrt.order import CallMove, CallRecord, LaneRecord

SAFE = PlainTool(claims=lambda: ())


class Acting(Recording):
    """Verbs that carry out each instruction where it is given."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._machine = steps.machine
        self.tasks: list[CallRecord] = []

    def ask(self, lane: LaneRecord, call: CallRecord) -> None:
        self._machine.admission.claimed(lane, call, (), None)

    def spawn(self, lane: LaneRecord, call: CallRecord) -> None:
        self.tasks.append(call)

    def wake(self) -> None:
        pass


def by_verbs(n: int) -> None:
    """The batch, by verbs bound once."""
    steps = Steps(10)
    machine = steps.machine
    verbs = machine.verbs = machine.admission._questions = Acting(steps)
    for _ in range(n):
        machine.place(steps.new_call(SAFE), True)
    machine.seal()
    machine.begin(STATE)
    lane = machine.lanes[0]
    while verbs.tasks:
        call = verbs.tasks.pop()
        call.happen(CallMove.START)
        verbs.answer(call, Outcome.OK, "", CallMove.SETTLE)
        machine.finish(lane, call)
    machine.merged(lane, STATE)


def by_lists(n: int) -> None:
    """The same batch, by a list of instructions for each event."""
    steps = Steps(10)
    machine = steps.machine
    tasks: list[CallRecord] = []

    def follow(told: list[tuple[str, int]]) -> None:
        for verb, index in told:
            if verb == "ask":
                call = machine.calls[index]
                follow_all.append(steps.step("claimed", machine.lanes[0], call, (), None))
            elif verb == "spawn":
                tasks.append(machine.calls[index])

    follow_all: list[list[tuple[str, int]]] = []

    def step(event: str, *values: Any) -> None:
        follow_all.append(steps.step(event, *values))
        while follow_all:
            follow(follow_all.pop())

    for _ in range(n):
        step("place", steps.new_call(SAFE), True)
    step("seal")
    step("begin", STATE)
    lane = machine.lanes[0]
    while tasks:
        call = tasks.pop()
        call.happen(CallMove.START)
        steps.settle(call, Outcome.OK)
        step("finish", lane, call)
    step("merged", lane, STATE)


def timed(form: Callable[[int], None], n: int) -> float:
    """Microseconds of processor time for each call."""
    began = time.process_time()
    form(n)
    return (time.process_time() - began) / n * 1e6


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", action="store_true", help="print each row as a JSON object")
    options = parser.parse_args()
    rounds, rows = options.rounds, Rows(options.json)
    rows.begin("machine", {"calls": ">6", "verbs, us": ">10.1f", "lists, us": ">10.1f", "lists/verbs": ">12.2f"})
    for n in (1, 10, 100, 1000):
        repeats = max(1, 200 // n)
        pairs = []
        for _ in range(rounds):
            verbs = min(timed(by_verbs, n) for _ in range(repeats)) if n < 100 else timed(by_verbs, n)
            lists = min(timed(by_lists, n) for _ in range(repeats)) if n < 100 else timed(by_lists, n)
            pairs.append((verbs, lists))
        ratio = statistics.median(lists / verbs for verbs, lists in pairs)
        one, two = (statistics.median(column) for column in zip(*pairs, strict=True))
        rows.add(n, one, two, ratio)


if __name__ == "__main__":
    main()
