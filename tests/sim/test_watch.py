"""Plain objects whose accesses are seen."""

from __future__ import annotations

import copy
import pickle
from collections import deque
from typing import Any

import attrs
import pytest
import trio

from toolrt import probe, sim
from toolrt.errors import DefinitionRefused


class Account:
    """What a user's class may look like."""

    bank = "ours"

    def __init__(self) -> None:
        self.balance = 0
        self.history: list[int] = []

    def pay(self, amount: int) -> None:
        """Pay in."""
        self.balance += amount
        self.history.append(amount)

    @property
    def rich(self) -> bool:
        """Say whether there is much."""
        return self.balance > 100


@attrs.define
class Slotted:
    """A class without a ``__dict__``."""

    value: int = 0
    items: dict[str, int] = attrs.Factory(dict)


class Listener:
    """Keeps accesses as text."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def event(self, kind: str, fields: Any) -> None:
        pass

    def access(self, resource: Any, write: bool) -> None:
        self.heard.append(f"{'writes' if write else 'reads'} {' '.join(map(str, resource))}")


def heard(act) -> list[str]:
    """Give what `act` reports."""
    listener = Listener()
    with probe.observed_by(listener):
        act()
    return listener.heard


def test_attributes_are_resources() -> None:
    """Reading and writing an attribute are accesses of that attribute; methods and properties are not data."""
    account = sim.watch(Account(), "account")
    assert heard(lambda: account.rich) == ["reads watched account balance"]
    assert heard(lambda: account.pay(5)) == [
        "reads watched account balance",
        "writes watched account balance",
        "reads watched account history",
        "writes watched account history",
    ]
    assert heard(lambda: account.bank) == ["reads watched account bank"]


def test_watched_object_is_the_same_object() -> None:
    """It is watched in place, and is still an instance of its class."""
    account = Account()
    assert sim.watch(account) is account
    assert sim.watch(account) is account
    assert isinstance(account, Account)
    assert type(account).__name__ == "Account"
    assert account.history == []


def test_slotted_objects_are_watched() -> None:
    """A class with slots is as good as any."""
    thing = sim.watch(Slotted(), "thing")
    assert heard(lambda: setattr(thing, "value", 3)) == ["writes watched thing value"]
    thing.items["a"] = 1
    assert heard(lambda: thing.items.get("a")) == ["reads watched thing items", "reads watched thing items key a"]


def test_deleted_attributes_are_written() -> None:
    """Deleting is a write."""
    account = sim.watch(Account(), "account")
    assert heard(lambda: delattr(account, "balance")) == ["writes watched account balance"]


def test_assigned_containers_are_watched() -> None:
    """A list that an attribute is set to later is seen too."""
    account = sim.watch(Account(), "account")
    account.history = [1]
    assert heard(lambda: account.history.append(2))[-1] == "writes watched account history"


@pytest.mark.parametrize(
    ("made", "reads", "writes"),
    [
        ([3, 1], [len, list, lambda x: x[0], lambda x: 1 in x], [lambda x: x.append(1), lambda x: x.sort()]),
        ({3, 1}, [len, sorted, lambda x: 1 in x, lambda x: x | {2}], [lambda x: x.add(5), lambda x: x.discard(9)]),
        (deque([3, 1], 2), [len, list, lambda x: x[0]], [lambda x: x.append(1), lambda x: x.rotate()]),
    ],
)
def test_containers_are_one_resource(made, reads, writes) -> None:
    """Operations that look read it, operations that change write it."""
    watched = sim.watch(made, "it")
    assert watched is not made
    assert watched == made
    for act in reads:
        assert set(heard(lambda act=act: act(watched))) == {"reads watched it"}
    for act in writes:
        assert set(heard(lambda act=act: act(watched))) == {"writes watched it"}


def test_deque_keeps_its_length() -> None:
    """The copy is as long as the original may become."""
    assert sim.watch(deque([1], 3)).maxlen == 3


def test_keys_are_resources() -> None:
    """Writing a key that is there leaves the keys alone; adding and removing one writes them."""
    stock = sim.watch({"a": 1}, "stock")
    assert heard(lambda: stock["a"]) == ["reads watched stock key a"]
    assert heard(lambda: stock.update(a=2)) == ["writes watched stock key a", "reads watched stock"]
    assert heard(lambda: stock.update(b=2)) == ["writes watched stock key b", "writes watched stock"]
    assert heard(lambda: stock.pop("b")) == ["writes watched stock key b", "writes watched stock"]
    assert heard(lambda: stock.pop("c", None)) == ["reads watched stock key c", "reads watched stock"]
    assert heard(lambda: stock.setdefault("a", 5)) == ["reads watched stock key a"]
    assert heard(lambda: list(stock.items())) == ["reads watched stock", "reads watched stock key a"]
    assert stock == {"a": 2}


@pytest.mark.parametrize("thing", [[1], {1}, deque([1]), {"a": 1}])
def test_copies_are_not_watched(thing) -> None:
    """What is copied or pickled is the plain thing again."""
    watched = sim.watch(thing)
    for other in (copy.copy(watched), pickle.loads(pickle.dumps(watched))):
        assert other == thing
        assert type(other) is type(thing) or isinstance(other, type(thing))


def test_names_are_strings() -> None:
    """A name is what its accesses are called."""
    with pytest.raises(DefinitionRefused, match="string"):
        sim.watch([], 3)  # type: ignore[arg-type]


def test_reduction_lets_different_keys_commute() -> None:
    """Two tasks that write keys that are there are one trace; two that add keys are two."""

    def program(start: dict[str, int]):
        async def run() -> str:
            stock = sim.watch(dict(start))

            async def put(key: str) -> None:
                stock[key] = 1

            async with trio.open_nursery() as nursery:
                nursery.start_soon(put, "a")
                nursery.start_soon(put, "b")
            return "".join(stock)

        return run

    there = sim.explore(program({"a": 0, "b": 0}), sim.DPOR())
    added = sim.explore(program({}), sim.DPOR())
    assert (there.executions, set(there.outcomes)) == (1, {"ab"})
    assert (added.executions, set(added.outcomes)) == (2, {"ab", "ba"})


def test_names_are_the_same_in_every_schedule() -> None:
    """A watched thing is called after the task that watched it."""

    async def program() -> None:
        async def work() -> None:
            sim.watch([]).append(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            nursery.start_soon(work)

    for policy in (sim.Fifo(), sim.RandomWalk(3)):
        steps = sim.run(program, policy).trace.steps
        assert {access.resource for step in steps for access in step.accesses} == {
            ("watched", "main.0", 0),
            ("watched", "main.1", 0),
        }
