"""A replay is exact or raises."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.lowlevel import checkpoint

from tests.sim._programs import lost_update
from toolrt import sim
from toolrt.errors import ReplayDiverged, ScheduleRefused, StepLimit


def adders(tasks: int = 3, rounds: int = 2, name: str = "x") -> Callable[[], Awaitable[int]]:
    """Give a lost-update program."""
    return functools.partial(lost_update, tasks, rounds, name)


@pytest.mark.parametrize("form", ["object", "json", "short"])
def test_replay_is_exact(form: str) -> None:
    """Each form of a schedule makes the same execution again, to the last byte of its trace."""
    for seed in range(30):
        execution = sim.run(adders(), sim.RandomWalk(seed))
        schedule = execution.schedule
        given = {"object": schedule, "json": schedule.to_json(), "short": schedule.short}[form]
        again = sim.replay(adders(), given)
        assert again.value == execution.value
        assert again.schedule == schedule
        assert again.trace.to_json() == execution.trace.to_json()


def test_schedule_json_has_a_version_and_each_step() -> None:
    """The JSON says per step who stepped, what was enabled, what was touched, and when."""
    document = json.loads(sim.run(adders(1, 1)).schedule.to_json())
    assert document["toolrt_schedule"] == 1
    assert document["steps"][1] == {
        "task": "main.0",
        "enabled": ["main.0"],
        "touched": [[["cell", "x"], False]],
        "time": 0.0,
    }


def test_short_form_counts_repetitions() -> None:
    """The short form names who steps, with a count for several steps in a row."""
    assert sim.run(adders(2, 1), sim.Choices()).schedule.short == "main main.0*2 main.1*2 main"


def test_short_form_may_name_functions() -> None:
    """A reader gets each task's function where it steps first; a replay passes over it."""

    async def clock() -> None:
        await trio.lowlevel.checkpoint()

    async def withdraw() -> None:
        await trio.lowlevel.checkpoint()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(withdraw)
            nursery.start_soon(clock)
            nursery.start_soon(withdraw)

    schedule = sim.run(program, sim.Choices([0, 0, 1])).schedule
    # "clock" is a step's own name.
    assert schedule.named == "main main.0 withdraw main.1*2 main.0 main.2 withdraw*2 main"
    assert schedule.short == "main main.0 main.1*2 main.0 main.2*2 main"
    assert sim.Schedule.of(schedule.named).tasks == schedule.tasks
    assert sim.replay(program, schedule.named).schedule == schedule
    assert sim.replay(program, schedule.named.replace("withdraw", "renamed")).schedule == schedule


@pytest.mark.parametrize(
    "program", [adders(4), adders(2), adders(3, 3), adders(3, 1)], ids=["4x2", "2x2", "3x3", "3x1"]
)
@pytest.mark.parametrize("form", ["json", "short"])
def test_replay_of_a_changed_program_diverges(program, form: str) -> None:
    """More or fewer tasks or steps raise ReplayDiverged with step, expected and got."""
    schedule = sim.run(adders(), sim.RandomWalk(3)).schedule
    with pytest.raises(ReplayDiverged) as caught:
        sim.replay(program, schedule.to_json() if form == "json" else schedule.short)
    assert 0 <= caught.value.step <= len(schedule)
    assert caught.value.expected
    assert caught.value.got


def test_replay_from_json_notices_who_else_could_run() -> None:
    """One more enabled task is a divergence at the first step that has it, not only when it has to run."""
    schedule = sim.run(adders(), sim.RandomWalk(3)).schedule
    with pytest.raises(ReplayDiverged) as caught:
        sim.replay(adders(4), schedule.to_json())
    assert caught.value.step == 1


def test_replay_notices_other_accesses() -> None:
    """A program with the same steps that touches something else diverges at that step."""
    schedule = sim.run(adders(), sim.RandomWalk(3)).schedule
    with pytest.raises(ReplayDiverged) as caught:
        sim.replay(adders(name="y"), schedule)
    assert caught.value.step == 1


def test_replay_notices_another_time() -> None:
    """A program with the same steps at other times diverges."""

    def sleeper(seconds: float):
        async def program() -> None:
            await trio.sleep(seconds)

        return program

    schedule = sim.run(sleeper(1)).schedule
    with pytest.raises(ReplayDiverged):
        sim.replay(sleeper(2), schedule)


def test_replay_of_a_schedule_that_is_too_short_diverges() -> None:
    """A schedule that ends while the program goes on is not guessed further."""
    with pytest.raises(ReplayDiverged) as caught:
        sim.replay(adders(), "main main.0")
    assert (caught.value.step, caught.value.expected) == (2, "its end")


def test_replay_of_a_schedule_that_is_too_long_diverges() -> None:
    """Steps that are left when the program has ended are a divergence."""
    schedule = sim.run(adders(1, 1)).schedule
    with pytest.raises(ReplayDiverged) as caught:
        sim.replay(adders(1, 1), schedule.short + " main")
    assert (caught.value.step, caught.value.got) == (len(schedule), "its end")


def test_divergence_is_caught_by_the_simulators_name() -> None:
    """Who replays finds the error beside `replay`: it is the one that all errors are with."""
    schedule = sim.run(checkpoint).schedule
    with pytest.raises(sim.ReplayDiverged):
        sim.replay(trio.sleep_forever, schedule)
    assert sim.ReplayDiverged is ReplayDiverged
    assert "ReplayDiverged" in sim.__all__


@pytest.mark.parametrize("form", ["json", "short"])
def test_replay_of_a_stopped_execution_stops(form: str) -> None:
    """A schedule that the step limit ended carries that with it."""

    async def spin() -> None:
        rounds = sim.Cell(0, name="rounds")
        while True:
            rounds.set(rounds.get() + 1)
            await checkpoint()

    schedule = sim.run(spin, step_limit=50).schedule
    assert schedule.short == "main*50 !"
    again = sim.replay(spin, schedule.to_json() if form == "json" else schedule.short)
    assert isinstance(again.error, StepLimit)
    assert again.schedule == schedule


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("main alpha", "token 1"),
        ("main main.0*0", "count"),
        ("main main.0*x", "count"),
        ("{", "not JSON"),
        ("{}", "toolrt_schedule"),
        ('{"toolrt_schedule":2,"steps":[]}', "toolrt_schedule"),
        ('{"toolrt_schedule":1,"steps":[{}]}', "steps[0].task"),
        ('{"toolrt_schedule":1,"steps":[{"task":"main","enabled":["main.0"]}]}', "steps[0].enabled"),
        (
            '{"toolrt_schedule":1,"steps":[{"task":"main","enabled":["main"],"touched":[1]}]}',
            "steps[0].touched",
        ),
    ],
)
def test_bad_schedule_is_refused(text: str, why: str) -> None:
    """A text that is no schedule is refused with what is wrong and where."""
    with pytest.raises(ScheduleRefused) as caught:
        sim.Replay(text)
    assert why in str(caught.value)


@given(st.lists(st.integers(-1, 4), max_size=20))
def test_any_list_of_choices_is_a_schedule_that_replays(choices: list[int]) -> None:
    """Whatever Hypothesis draws runs, and what it ran replays to the last byte."""
    execution = sim.run(adders(), sim.Choices(choices))
    assert sim.replay(adders(), execution.schedule.to_json()).trace.to_json() == execution.trace.to_json()


def test_choices_take_any_list() -> None:
    """Too large, negative and missing choices are clamped, never refused."""
    execution = sim.run(adders(), sim.Choices([9, 9, -3, 9]))
    assert execution.schedule.choices[:4] == (0, 2, 0, 2)
    assert execution.error is None


def test_fifo_is_round_robin() -> None:
    """Under Fifo, tasks that only checkpoint take turns."""
    assert sim.run(adders(2, 1), sim.Fifo()).schedule.short == "main main.0 main.1 main.0 main.1 main"


class _Raises:
    def start(self, info: sim.RunInfo) -> None:
        pass

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        if step == 3:
            raise LookupError("no choice")
        return 0


def test_policy_that_raises_is_raised_after_the_run() -> None:
    """What a policy raises reaches the caller as it is; the program is unwound first."""
    unwound = []

    async def program() -> None:
        try:
            for _ in range(100):
                await checkpoint()
        finally:
            unwound.append(True)

    with pytest.raises(LookupError, match="no choice"):
        sim.run(program, _Raises())
    assert unwound == [True]


def test_policy_that_raises_leaves_nothing_behind() -> None:
    """After a policy has raised, the next simulation is as good as any."""
    with pytest.raises(LookupError):
        sim.run(adders(), _Raises())
    assert sim.run(adders()).value == 2
