"""The judges of histories, against brute force and on histories written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tests._profile import FULL
from tests.sim._histories import CALLS, Queue, Register, brute_force, cut, random_history
from toolrt import sim
from toolrt.errors import DefinitionRefused
from toolrt.sim import Operation, OperationEnd
from toolrt.sim.judging import _judges, _model, _search

# Random histories of each kind of model.
_COUNT = 4_000 if FULL else 120

_QUEUE_ONLY = {OperationEnd.STUCK, OperationEnd.RAISED}

_MODELS = pytest.mark.parametrize("model", [Register, Queue])


def _op(name: str, *args: Any, gives: Any = None, by: str = "main", at: tuple[int, int | None] = (0, 1)) -> Operation:
    ended = OperationEnd.RETURNED if at[1] is not None else OperationEnd.PENDING
    return Operation(name, args, gives, by, at[0], at[1], ended=ended)


def _differences(model: type, count: int, *, ordered: bool = True, cancelled: str = "either") -> list[int]:
    """Give the seeds of the random histories that the judge and brute force do not agree on."""
    judge = sim.linearizable if ordered else sim.serializable
    found = []
    for seed in range(count):
        history = random_history(model, seed)
        if bool(judge(history, model, cancelled=cancelled)) != brute_force(
            history, model, ordered=ordered, cancelled=cancelled
        ):
            found.append(seed)
    return found


@_MODELS
@pytest.mark.parametrize("cancelled", ["either", "ever after", "nothing"])
def test_linearizable_is_what_all_orders_say(model: type, cancelled: str) -> None:
    """Brute force over all orders gives the same verdict."""
    assert _differences(model, _COUNT, cancelled=cancelled) == []


@_MODELS
def test_serializable_is_what_all_orders_say(model: type) -> None:
    """The same without order in time."""
    assert _differences(model, _COUNT, ordered=False) == []


@_MODELS
def test_random_histories_have_both_verdicts(model: type) -> None:
    """Neither verdict is rare among them, nor are operations that were cancelled, pending or stuck."""
    histories = [random_history(model, seed) for seed in range(100)]
    right = sum(bool(sim.linearizable(history, model)) for history in histories)
    assert 20 < right < 80
    kinds = {one.ended for history in histories for one in history}
    assert kinds >= {OperationEnd.RETURNED, OperationEnd.CANCELLED} | (
        {OperationEnd.STUCK, OperationEnd.RAISED} if model is Queue else set()
    )


@_MODELS
def test_prefix_is_the_shortest_that_fails(model: type) -> None:
    """The marked prefix has no order, and without its last event it has one."""
    checked = 0
    for seed in range(_COUNT):
        history = random_history(model, seed)
        judgement = sim.linearizable(history, model)
        if judgement.prefix is None:
            continue
        checked += 1
        assert not brute_force(cut(history, judgement.prefix), model, ordered=True)
        assert brute_force(cut(history, judgement.prefix - 1), model, ordered=True)
    assert checked > _COUNT // 10


def _without_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = _judges.intervals_of
    monkeypatch.setattr(
        _judges, "intervals_of", lambda states, ops, end, ordered, cancelled: inner(states, ops, end, False, cancelled)
    )


def _forgetting_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = _judges.search

    def only_completed(states: Any, intervals: Any, *rest: Any) -> Any:
        return inner(states, [one for one in intervals if one.must], *rest)

    monkeypatch.setattr(_judges, "search", only_completed)


def _pending_must_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = _judges.search

    def all_must(states: Any, intervals: Any, *rest: Any) -> Any:
        return inner(states, [attrs.evolve(one, must=True) for one in intervals], *rest)

    monkeypatch.setattr(_judges, "search", all_must)


def _key_without_state(monkeypatch: pytest.MonkeyPatch) -> None:
    class Blind(set[Any]):
        def __contains__(self, key: object) -> bool:
            return super().__contains__(key[:3])  # type: ignore[index]

        def add(self, key: Any) -> None:
            super().add(key[:3])

    monkeypatch.setattr(_search, "_seen_from", lambda key: Blind([key[:3]]))


def _deaf_to_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_model, "_equal", lambda one, other: True)


def _never_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = _judges.search
    monkeypatch.setattr(_judges, "search", lambda states, intervals, stuck, *rest: inner(states, intervals, (), *rest))


def _cancelled_ever_after(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = _judges.intervals_of
    monkeypatch.setattr(_judges, "intervals_of", lambda *given: inner(*given[:-1], "ever after"))


@pytest.mark.parametrize(
    "mutant",
    [
        _cancelled_ever_after,
        _without_real_time,
        _forgetting_pending,
        _pending_must_happen,
        _key_without_state,
        _deaf_to_results,
        _never_stuck,
    ],
)
def test_wrong_judge_is_found(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The random histories tell a judge with this mistake from a right one."""
    mutant(monkeypatch)
    for model in CALLS:
        try:
            if _differences(model, 400):
                return
        except Exception:
            # So wrong that it contradicts itself.
            return
    pytest.fail("the random histories do not tell it from a right one")


# ---------------------------------------------------------------------- by hand


def test_failing_history_is_drawn_with_its_shortest_prefix() -> None:
    """The picture has a line for each task, marks the return that has no order, and the text says why."""
    history = [
        _op("put", 1, by="main.0", at=(0, 2)),
        _op("put", 2, by="main.1", at=(1, 3)),
        _op("get", gives=2, by="main.0", at=(4, 6)),
        _op("get", gives=2, by="main.1", at=(5, 7)),
        _op("put", 7, by="main.0", at=(8, 9)),
    ]
    judgement = sim.linearizable(history, Queue)
    assert judgement.verdict is sim.FAIL
    assert judgement.prefix == 8
    assert judgement.unplaced == (history[3],)
    assert str(judgement) == "\n".join(
        [
            "not linearizable: no order explains get() -> 2 of main.1",
            "",
            "main.0  | put(1) -> None |                 | get() -> 2 |",
            "main.1   | put(2) -> None |                 | get() -> 2 |",
            " " * 57 + "^ up to here some order explains it, with this return none",
            "(1 later operations are not shown)",
            "",
            "The longest order found: put(2), put(1), get()",
            "  there main.1: get() -> 2 cannot follow: the model gives 1",
        ]
    )


def test_stuck_operation_must_have_to_wait() -> None:
    """A `get` that waits for ever beside an item is wrong, one on an empty queue is not."""
    put = _op("put", 1)
    stuck = Operation("get", task="main.1", called=2, ended=OperationEnd.STUCK)
    taken = _op("get", gives=1, at=(3, 4))
    assert sim.linearizable([put, stuck, taken], Queue)
    judgement = sim.linearizable([put, stuck], Queue)
    assert judgement.verdict is sim.FAIL
    assert str(judgement).startswith("not linearizable: get() of main.1 waits for ever")


def test_cancelled_operation_may_have_happened_unless_it_must_not() -> None:
    """A cancelled `get` explains a lost item, but not under Trio's promise."""
    history = [
        _op("put", 1, at=(0, 1)),
        Operation("get", task="main.1", called=2, ended=OperationEnd.CANCELLED),
        Operation("get_nowait", error=IndexError(), called=3, returned=4, ended=OperationEnd.RAISED),
    ]
    assert sim.linearizable(history, Queue)
    assert sim.linearizable(history, Queue, cancelled="nothing").unplaced == (history[2],)


def test_cancelled_operation_takes_effect_until_its_cancel_was_seen() -> None:
    """A `write` that was cancelled before a `read` was called explains that read, and no later one alone."""
    write = Operation("write", (1,), task="main.0", called=0, returned=1, ended=OperationEnd.CANCELLED)
    early = _op("read", gives=0, at=(2, 3))
    late = _op("read", gives=1, at=(4, 5))
    assert sim.linearizable([write, attrs.evolve(late, called=2, returned=3)], Register)
    assert sim.linearizable([write, early, late], Register).unplaced == (late,)
    assert sim.linearizable([write, early, late], Register, cancelled="ever after")
    # Nothing says when its cancel was seen.
    assert sim.linearizable([attrs.evolve(write, returned=None), early, late], Register)


def test_budget_that_is_spent_decides_nothing() -> None:
    """Neither true nor a violation: an execution judged so is undecided."""
    history = [_op("write", number, by=f"main.{number}", at=(number, 20 + number)) for number in range(8)]
    history.append(_op("read", gives=9, at=(40, 41)))
    judgement = sim.linearizable(history, Register, budget=10)
    assert judgement.verdict is sim.INCONCLUSIVE
    assert not judgement
    assert judgement.violations == ()

    async def program() -> None:
        pass

    report = sim.explore(program, sim.Exhaustive(), check=lambda _: judgement)
    assert report.verdict is sim.INCONCLUSIVE
    assert report.undecided == 1


def test_partition_judges_each_key_apart() -> None:
    """Operations of two keys never stand in one search; what fails names its key."""

    class Store(Register):
        @staticmethod
        def partition(operation: Operation) -> Any:
            return operation.task

    history = [
        _op("write", 1, by="a", at=(0, 1)),
        _op("read", gives=1, by="a", at=(2, 3)),
        _op("read", gives=0, by="b", at=(4, 5)),
    ]
    assert not sim.linearizable(history, Register)
    assert sim.linearizable(history, Store)
    wrong = [*history, _op("read", gives=5, by="b", at=(6, 7))]
    assert "not linearizable of 'b'" in str(sim.linearizable(wrong, Store))
    assert sim.linearizable(wrong, Register, partition=lambda operation: operation.args).verdict is sim.FAIL


def test_model_with_step_sees_the_task() -> None:
    """A lock's model needs to know who releases it."""

    class Lock:
        owner: str | None = None

        def step(self, operation: Operation) -> None:
            if operation.name == "acquire":
                if self.owner is not None:
                    raise sim.Blocked
                self.owner = operation.task
            elif self.owner != operation.task:
                raise RuntimeError
            else:
                self.owner = None

    both = [_op("acquire", by="a", at=(0, 1)), _op("release", by="b", at=(2, 3))]
    assert "the model raises RuntimeError" in str(sim.linearizable(both, Lock))
    assert sim.linearizable([both[0], attrs.evolve(both[1], task="a")], Lock)


def test_async_model_waits_by_waiting() -> None:
    """An async method that returns is an answer, one that waits is no answer yet."""
    import trio

    class Later:
        def __init__(self) -> None:
            self.items: list[int] = []

        async def put(self, item: int) -> None:
            self.items.append(item)

        async def get(self) -> int:
            while not self.items:
                await trio.sleep_forever()
            return self.items.pop(0)

    history = [_op("get", gives=1, by="a", at=(0, 3)), _op("put", 1, by="b", at=(1, 2))]
    assert sim.linearizable(history, Later)
    assert not sim.linearizable(history[:1], Later)


def test_serial_order_need_not_be_the_order_in_time() -> None:
    """What is serializable need not be strictly so."""
    history = [_op("write", 1, at=(0, 1)), _op("read", gives=0, at=(2, 3))]
    assert sim.serializable(history, Register)
    assert not sim.serializable(history, Register, strict=True)
    assert not sim.serializable(history, Register, final=lambda model: model.value == 0)


def test_arguments_that_equal_only_themselves_are_not_copied() -> None:
    """A queue of plain objects gives back the same objects."""
    first, second = object(), object()
    history = [_op("put", first, at=(0, 1)), _op("put", second, at=(2, 3)), _op("get", gives=first, at=(4, 5))]
    assert sim.linearizable(history, Queue)
    assert not sim.linearizable([*history[:2], attrs.evolve(history[2], result=second)], Queue)


def test_large_history_is_judged() -> None:
    """Two thousand operations of four tasks, and the same with one wrong result."""
    history = []
    for number in range(0, 2_000, 4):
        for task in range(4):
            start = 2 * number + task
            name, args, gives = ("write", (task,), None) if task < 3 else ("read", (), 2)
            history.append(Operation(name, args, gives, f"main.{task}", start, start + 4))
    assert sim.linearizable(history, Register)
    wrong = [*history[:-1], attrs.evolve(history[-1], result=99)]
    assert sim.linearizable(wrong, Register).unplaced[0] == wrong[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"history": 3},
        {"history": [3]},
        {"history": [_op("write", 1, at=(3, 3))]},
        {"history": [_op("launch")]},
        {"history": [], "cancelled": "perhaps"},
        {"history": [], "budget": 0},
    ],
)
def test_mistakes_are_refused(arguments: dict[str, Any]) -> None:
    """Each with the argument's name."""
    with pytest.raises(DefinitionRefused):
        sim.linearizable(arguments.pop("history"), Register, **arguments)
