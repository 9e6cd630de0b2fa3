"""The kit: right executors pass, each wrong one fails in its law, and the report says what came."""

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests._profile import FULL
from tests.conformance import _executors as executors
from toolrt.cli import main
from toolrt.conformance import CAPABILITIES, LAWS, Stuck, VirtualLoop, conformance
from toolrt.conformance._kit import tried
from toolrt.conformance._plan import SampleBatch, SampleCall
from toolrt.errors import InputRefused

_EXAMPLES = 60 if FULL else 25


@pytest.mark.seldom
@pytest.mark.parametrize("adapter", [executors.Serial, executors.Toolrt], ids=lambda one: one.__name__)
def test_right_executors_hold_every_law(adapter: Any) -> None:
    """A serial one, which may be slow, and the runtime."""
    found = conformance(adapter, _EXAMPLES, laws=LAWS)
    assert [(cell.law, cell.verdict) for cell in found.cells] == [(law, "held") for law in LAWS], str(found)
    assert all(cell.examples == _EXAMPLES for cell in found.cells)


#: What each says that it can, of `CAPABILITIES`.
_CAN = {
    executors.Toolrt: list(CAPABILITIES),
    executors.DurableSerial: ["no_effect_twice", "no_effect_lost", "resumed_in_call_order", "limit_kept", "slots_kept"],
    executors.Gather: [],
}


@pytest.mark.parametrize("adapter", _CAN, ids=lambda one: one.__name__)
def test_an_executor_is_asked_what_it_says_that_it_can(adapter: Any) -> None:
    """Where it says nothing the answer is that it was not asked, and no more."""
    found = conformance(adapter, _EXAMPLES, laws=CAPABILITIES)
    verdicts = {cell.law: cell.verdict for cell in found.capabilities}
    assert verdicts == {name: "held" if name in _CAN[adapter] else "not asked" for name in CAPABILITIES}, str(found)
    assert ("not asked: the adapter has not" in str(found)) is (len(_CAN[adapter]) < len(CAPABILITIES))


@pytest.mark.parametrize(("law", "adapter"), executors.WRONG.items(), ids=lambda one: getattr(one, "__name__", ""))
def test_each_wrong_executor_fails_in_its_law(law: str, adapter: Any) -> None:
    """And the smallest batch is small."""
    found = conformance(adapter, 300, laws=[law.strip()])
    [cell] = [*found.cells, *found.capabilities]
    assert cell.verdict == "broken", str(found)
    assert cell.plan is not None
    assert len(cell.plan.calls) <= (4 if law in CAPABILITIES else 2)
    assert law.strip() in str(found)
    assert not found.conforms


def test_gather_fails_and_the_report_shows_the_smallest_batch() -> None:
    """Law, sentence, batch, what came and what a serial run gives."""
    text = str(conformance(executors.Gather, laws=["same_file_in_call_order", "failure_contained"]))
    assert "same_file_in_call_order    broken" in text
    assert "Calls that touch one file run in call order and never overlap." in text
    assert "call 1 started while call 0 ran, which it conflicts with" in text
    assert "A serial run answers:" in text
    assert "The executor answered:\n        raised ToolBroke: <0> broke" in text


def test_an_adapter_names_what_cannot_be_asked_of_it() -> None:
    """Its cell gives the reason."""

    class Uncancellable(executors.Shielded):
        not_applicable = dict.fromkeys(("cancel_truthful", "nothing_left_after_cancel"), "it has no cancel")

    found = conformance(Uncancellable, 10)
    assert found.conforms
    assert [cell.detail for cell in found.cells if cell.verdict == "not applicable"] == ["it has no cancel"] * 2


def test_an_adapter_may_cancel_in_its_own_way() -> None:
    """Its method is called before the task is cancelled."""
    seen = []

    class Own(executors.Serial):
        def cancel(self) -> None:
            seen.append("cancelled")

    found = tried(Own, SampleBatch((SampleCall("search", before=2),), cancel_at=0.5))
    assert seen == ["cancelled"]
    assert found.ended_at == pytest.approx(0.5, abs=1e-3)


def test_a_function_is_an_adapter_too() -> None:
    """Without a class."""

    async def execute(tools: Any, calls: Any) -> Any:
        return [await executors.answer(tools, call) for call in calls]

    assert conformance(execute, 5).conforms


@pytest.mark.parametrize("answers", [[("call_0", "x")], [None], 7])
def test_answers_of_another_form_break_a_law(answers: Any) -> None:
    """The executor is told what form they have."""

    async def execute(tools: Any, calls: Any) -> Any:
        return answers

    found = tried(execute, SampleBatch((SampleCall("search"),)))
    assert isinstance(found.error, TypeError)
    assert LAWS["answered_once"].broken(found) is not None


def test_what_is_no_adapter_and_no_law_is_refused() -> None:
    """The error names the form, or the laws."""
    with pytest.raises(InputRefused, match="answered_once"):
        conformance(executors.Serial, laws=["always_right"])
    with pytest.raises(InputRefused, match=r"async def execute\(self, tools, calls\)"):
        conformance(object())


# The loop


def test_timers_of_one_instant_fire_in_a_drawn_order() -> None:
    """The same seed, the same order; several seeds, several orders; what is registered by call_soon stays in turn."""

    def order(seed: int) -> tuple[list[int], list[int]]:
        fired: list[int] = []
        soon: list[int] = []

        async def main() -> None:
            loop = asyncio.get_running_loop()
            for number in range(6):
                loop.call_later(10, fired.append, number)
                loop.call_soon(soon.append, number)
            await asyncio.sleep(11)

        with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
            runner.run(main())
        return fired, soon

    orders = [order(seed) for seed in range(12)]
    assert orders == [order(seed) for seed in range(12)]
    assert len({tuple(fired) for fired, _ in orders}) > 6
    assert all(soon == list(range(6)) for _, soon in orders)


def test_virtual_hours_take_no_time_and_end_in_order() -> None:
    """What is later fires later, whatever the seed."""

    async def main() -> list[int]:
        ended: list[int] = []

        async def one(hours: int) -> None:
            await asyncio.sleep(3600 * hours)
            ended.append(hours)

        await asyncio.gather(*(one(hours) for hours in (3, 1, 2)))
        return ended

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(main()) == [1, 2, 3]
        assert runner.get_loop().time() == pytest.approx(3 * 3600)


def test_time_stands_still_while_a_thread_works() -> None:
    """A timeout of a virtual second does not fire although the loop idles between the thread's five questions."""

    async def answer() -> str:
        return "worked"

    async def main() -> str:
        loop = asyncio.get_running_loop()

        def work() -> str:
            return [asyncio.run_coroutine_threadsafe(answer(), loop).result() for _ in range(5)][-1]

        async with asyncio.timeout(1):
            return await asyncio.to_thread(work)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(main()) == "worked"


def test_a_thread_that_waits_for_the_loop_does_not_hold_its_clock() -> None:
    """Tools in threads of a pool end at their virtual instants; what a thread does between two waits races nothing."""

    async def main() -> list[tuple[str, float]]:
        loop = asyncio.get_running_loop()
        told: list[tuple[str, float]] = []

        def tool(name: str, seconds: int) -> None:
            for _ in range(2):
                asyncio.run_coroutine_threadsafe(asyncio.sleep(seconds), loop).result()
                sum(range(100_000))  # works for a while, with nothing to wait for
                told.append((name, round(loop.time())))

        def agent() -> None:
            with ThreadPoolExecutor() as pool:
                list(pool.map(tool, "abc", (3, 1, 2)))

        async with asyncio.timeout(7):
            await asyncio.to_thread(agent)
        return told

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        told = runner.run(main())
    assert sorted(told, key=lambda one: one[1]) == told
    assert sorted(told) == [("a", 3), ("a", 6), ("b", 1), ("b", 2), ("c", 2), ("c", 4)]


def test_a_program_that_can_not_go_on_is_stuck() -> None:
    """One that waits for nothing, and one that polls for ever."""

    async def waits() -> None:
        await asyncio.get_running_loop().create_future()

    async def polls() -> None:
        while True:  # noqa: ASYNC110  that is the point
            await asyncio.sleep(1)

    for program in (waits, polls):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner, pytest.raises(Stuck):
            runner.run(program())


# The command


def test_the_command_says_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0 or 1, a table, JSON and a badge."""
    badge = tmp_path / "conformance.json"
    place = "tests.conformance._executors"
    assert main(["conformance", f"{place}:Serial", "--examples", "3", "--badge", str(badge)]) == 0
    assert "held in 3 examples" in capsys.readouterr().out
    written = json.loads(badge.read_text())
    assert (written["conforms"], len(written["laws"])) == (True, len(LAWS))
    assert [one["law"] for one in written["capabilities"]] == list(CAPABILITIES)
    assert main(["conformance", f"{place}:Gather", "--examples", "20", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert not shown["conforms"]
    assert {law["law"] for law in shown["laws"]} == set(LAWS)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("tests.conformance._executors", "MODULE:ADAPTER"),
        ("no_such_module:Adapter", "cannot be imported"),
        ("tests.conformance._executors:Nothing", "has no 'Nothing'"),
        ("tests.conformance._executors:WRONG", "has no function execute"),
    ],
)
def test_the_command_refuses_what_is_no_adapter(place: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and one line."""
    assert main(["conformance", place]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_the_kit_imports_nothing_of_the_runtime() -> None:
    """A maintainer of another executor needs none of it."""
    program = (
        "import sys, toolrt.conformance; print([name for name in sys.modules if name.startswith('toolrt.runtime')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
