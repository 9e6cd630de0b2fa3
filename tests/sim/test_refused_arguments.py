"""Arguments that are not what they must be are refused before anything runs, in words that say what is expected."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.errors import DefinitionRefused, ScheduleRefused


class _OutOfRange(sim.Fifo):
    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        return len(enabled)


class _NotANumber(sim.Fifo):
    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        return "main"  # type: ignore[return-value]


class _Account:
    pass


async def _no_app(*arguments: Any) -> None:
    raise AssertionError("nothing was called")


def _without_source() -> Any:
    space: dict[str, Any] = {}
    exec("async def program():\n    pass\n", space)
    return space["program"]


def _option(name: str) -> Callable[[Any], object]:
    return lambda value: sim.explore(checkpoint, **{name: value})


def _option_of_all(name: str) -> Callable[[Any], object]:
    """A word or a number that is an option of all three is refused by all."""

    def asked(value: Any) -> None:
        for call in (sim.run, sim.estimate):
            with pytest.raises(DefinitionRefused, match=name):
                call(checkpoint, **{name: value})
        _option(name)(value)

    return asked


def _cancelled_at(value: Any) -> None:
    with sim.scope(value):
        pass


#: What takes an argument, values that it cannot be, and what the refusal says.
REFUSED: list[tuple[Callable[[Any], object], list[Any], str]] = [
    (sim.run, [None, 3, "main"], "a program"),
    (sim.run, [lambda: 3], "async function"),
    (lambda policy: sim.run(checkpoint, policy), [sim.Fifo, "fifo", 3], "policy"),
    (lambda policy: sim.run(checkpoint, policy), [_OutOfRange(), _NotANumber()], "choose"),
    (_option_of_all("step_limit"), [0, -1], "step_limit"),
    (_option_of_all("clock"), ["wall", True, "now"], "clock"),
    (_option_of_all("clock_moves"), [0, True], "clock_moves"),
    (_option_of_all("cancel_at"), [1, ""], "cancel_at"),
    (_option_of_all("order"), ["fifo"], "order"),
    (_option("jobs"), [0, True, "2", Executor, None], "a number of processes, 1 or more, an Executor, or a dask"),
    (_option("seconds"), [0], "seconds"),
    (_option("progress"), [3], "a function of an ExplorationProgress"),
    (_option("max_executions"), [0, 1.5], "a number of executions, 1 or more, or None"),
    (_option("check"), [3], "a function of an execution"),
    (_option("strategy"), [3, sim.Random], "a strategy, such as"),
    (_option("outcomes"), [set(), "ab", 3, {1: 2}], "outcomes"),
    (_option("track"), [["no_such_module_at_all"]], "can be imported"),
    (_option("track"), [3], "names of modules"),
    (lambda bug: sim.compare(checkpoint, checkpoint, bug=bug), [1, "lost", {1: "lost"}], "a set, or a list, of outcom"),
    (lambda policy: sim.Random(policy, 10), [3, sim.Fifo], "Random"),
    (lambda number: sim.Random(sim.Fifo(), number), [0, True], "Random"),
    (lambda seed: sim.PCT(2, seed), ["1", 1.0, True, None], "seed"),
    *((policy, ["1", 1.0, True, None], "seed") for policy in (sim.POS, sim.URW, sim.RandomWalk)),
    (lambda depth: sim.PCT(depth, 0), [0, True, 1.5], "depth"),
    (sim.Bounded, [-1, True, 1.5, None], "preemptions"),
    (sim.Portfolio, [0, True, 1.5], "Portfolio"),
    (lambda seed: sim.Portfolio(seed=seed), ["a", None], "Portfolio"),
    (sim.Hybrid, [0], "Hybrid"),
    (lambda seed: sim.Hybrid(seed=seed), ["1"], "Hybrid"),
    (sim.Guided, [0], "Guided"),
    (lambda seed: sim.Guided(seed=seed), [None], "Guided"),
    (sim.DPOR, ["guessed"], "reported"),
    (lambda branches: sim.DPOR(branches=branches), ["breadth-first"], "branches"),
    (lambda seed: sim.DPOR(seed=seed), [1.5], "seed"),
    (lambda jobs: sim.estimate(checkpoint, jobs=jobs), [0], "jobs"),
    (lambda samples: sim.estimate(checkpoint, samples), [0, True, 1.5], "samples"),
    (sim.always, [1], "always"),
    (lambda jobs: sim.explore(checkpoint, None, sim.reachable(lambda: True), jobs=jobs), [2], "jobs with sim.always"),
    (lambda name: sim.Cell(0, name=name), [3], "name"),
    (sim.watch, [1, "text", (1, 2), None, _Account, len, frozenset()], "can change"),
    # Trio's final classes report for themselves.
    (lambda _: sim.watch(trio.Event()), [None], "admits a subclass"),
    (sim.tracked, [_without_source()], "source"),
    (sim.tracked, [3], "a function or a class"),
    (_cancelled_at, ["any", "", 3], "scope"),
    (sim.choose, [0, -1, True, 1.5], "choose"),
    (lambda errors: sim.faults(*errors), [(), ("full",)], "faults"),
    (lambda most: sim.faults(OSError, at_most=most), [0], "faults"),
    (sim.asgi, [1], "app"),
    (lambda number: sim.asgi(_no_app, disconnects=number), [-1], "disconnects"),
    (lambda hosts: sim.Network(hosts=hosts), [[], "one", ["A"]], "hosts"),
    (lambda buffer: sim.Network(buffer=buffer), [0], "buffer"),
    (lambda seconds: sim.Network(latency=seconds), [-1], "latency"),
    (lambda number: sim.Network(loss=number), [-1], "loss"),
    (lambda seconds: sim.Network(delay=seconds), ["x"], "delay"),
    (lambda name: sim.Network(hosts=["one"]).host(name).__enter__(), ["two"], "host"),
]

#: Texts and values that are no schedule, and what the refusal says.
NO_SCHEDULE: list[tuple[Callable[[Any], object], list[Any], str]] = [
    (lambda schedule: sim.replay(checkpoint, schedule), [7], "schedule"),
    (sim.Schedule.from_json, [{}, None, 5, b"{}"], "expected a text, got a"),
    (sim.Schedule.from_short, [{}, None, 5, b"{}"], "expected a text, got a"),
    # A function's name stands behind a path, which has no count of its own; the program's has none.
    (
        sim.Schedule.of,
        ["withdraw", "main withdraw", "main.0*2 withdraw", "main.0 withdraw withdraw"],
        "is not a task path",
    ),
    (sim.Schedule.from_short, ["chance=x main", "chance= main", "chance=-1 main", "chance=3"], "chance"),
    (sim.Schedule.from_json, ['{"toolrt_schedule": 1, "order": "fifo", "steps": []}'], "order"),
    (sim.Follow, ["nobody"], "token 0"),
]


def _rows(table: list[tuple[Callable[[Any], object], list[Any], str]]) -> list[Any]:
    return [pytest.param(call, value, says, id=says) for call, values, says in table for value in values]


@pytest.mark.parametrize(("call", "value", "says"), _rows(REFUSED))
def test_argument_is_refused(call: Callable[[Any], object], value: Any, says: str) -> None:
    """The error says which argument it is, or what it must be."""
    with pytest.raises(DefinitionRefused, match=says):
        call(value)


@pytest.mark.parametrize(("call", "value", "says"), _rows(NO_SCHEDULE))
def test_what_is_no_schedule_is_refused(call: Callable[[Any], object], value: Any, says: str) -> None:
    """It is never guessed what was meant."""
    with pytest.raises(ScheduleRefused, match=says):
        call(value)
