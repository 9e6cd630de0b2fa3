"""Histories for the judges' tests: models, a generator of random histories, and the judges by brute force."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from itertools import chain, combinations, permutations
from typing import Any

import attrs

from toolrt import sim
from toolrt.sim import Operation, OperationEnd


class Register:
    """Holds one value."""

    def __init__(self) -> None:
        self.value = 0

    def write(self, value: int) -> None:
        """Set it."""
        self.value = value

    def read(self) -> int:
        """Give it."""
        return self.value

    def swap(self, old: int, new: int) -> bool:
        """Set it if it is `old`."""
        if self.value != old:
            return False
        self.value = new
        return True


class Queue:
    """First in, first out; `get` waits."""

    def __init__(self) -> None:
        self.items: deque[int] = deque()

    def put(self, item: int) -> None:
        """Add at the end."""
        self.items.append(item)

    def get(self) -> int:
        """Take from the front."""
        if not self.items:
            raise sim.Blocked("the queue is empty")
        return self.items.popleft()

    def get_nowait(self) -> int:
        """Take from the front, or raise."""
        if not self.items:
            raise IndexError("the queue is empty")
        return self.items.popleft()


CALLS: dict[type, Any] = {
    Register: lambda chance: chance.choice(
        [("write", (chance.randrange(3),)), ("read", ()), ("swap", (chance.randrange(2), chance.randrange(3)))]
    ),
    Queue: lambda chance: chance.choice([("put", (chance.randrange(3),)), ("get", ()), ("get_nowait", ())]),
}


def random_history(model: type, seed: int, most: int = 6, wrong: float = 0.5, cancels: float = 0.2) -> list[Operation]:
    """Make a history of up to `most` operations by up to three tasks; some results are wrong, as `wrong` says."""
    chance = random.Random(seed)
    cancels = chance.choice([0.0, cancels])
    subject = model()
    running: dict[str, Any] = {}
    history: list[Operation] = []
    position = begun = 0
    count = chance.randint(2, most)
    for _ in range(20 * count):
        task = f"main.{chance.randrange(3)}"
        if task not in running:
            if begun < count:
                name, args = CALLS[model](chance)
                running[task] = [name, args, position, None]
                position, begun = position + 1, begun + 1
            continue
        name, args, called, done = running[task]
        if done == "stuck":
            continue
        if done is None:
            if name == "get" and chance.random() < wrong / 10:
                running[task][3] = "stuck"
                continue
            if chance.random() < cancels:
                if chance.random() < 0.5:
                    _try(subject, name, args)
                cancelled = Operation(
                    name, args, task=task, called=called, returned=position, ended=OperationEnd.CANCELLED
                )
                history.append(cancelled)
                position += 1
                del running[task]
                continue
            running[task][3] = _try(subject, name, args)
            continue
        result, error = done
        if chance.random() < wrong / 2:
            result, error = chance.choice([(0, None), (1, None), (2, None), (None, IndexError())])
        ended = OperationEnd.RETURNED if error is None else OperationEnd.RAISED
        history.append(Operation(name, args, result, task, called, position, error, ended))
        position += 1
        del running[task]
    for task, (name, args, called, done) in running.items():
        # Not always rightly: some wait beside an item.
        stuck = done == "stuck" or (done is None and name == "get" and not subject.items)
        ended = OperationEnd.STUCK if stuck else OperationEnd.PENDING
        history.append(Operation(name, args, task=task, called=called, ended=ended))
    return sorted(history, key=lambda one: one.called)


def _try(subject: Any, name: str, args: tuple[Any, ...]) -> tuple[Any, Exception | None] | None:
    try:
        return getattr(subject, name)(*args), None
    except sim.Blocked:
        return None
    except Exception as error:
        return None, error


def brute_force(history: Sequence[Operation], model: Any, *, ordered: bool, cancelled: str = "either") -> bool:
    """Judge by trying every order of every subset of what may have taken effect."""
    must = [one for one in history if one.ended in (OperationEnd.RETURNED, OperationEnd.RAISED)]
    may = [one for one in history if one.ended is OperationEnd.PENDING]
    if cancelled != "nothing":
        seen = {"returned": None} if cancelled == "ever after" else {}
        may += [attrs.evolve(one, **seen) for one in history if one.ended is OperationEnd.CANCELLED]
    stuck = [one for one in history if one.ended is OperationEnd.STUCK]
    subsets = chain.from_iterable(combinations(may, size) for size in range(len(may) + 1))
    return any(_explains(order, stuck, model, ordered) for some in subsets for order in permutations([*must, *some]))


def _explains(order: Sequence[Operation], stuck: Sequence[Operation], model: Any, ordered: bool) -> bool:
    if ordered:
        for place, one in enumerate(order):
            if any(later.returned is not None and later.returned < one.called for later in order[place + 1 :]):
                return False
    subject = model()
    for one in order:
        done = _try(subject, one.name, one.args)
        if done is None:
            return False
        result, error = done
        if one.ended is OperationEnd.RETURNED and (error is not None or result != one.result):
            return False
        if one.ended is OperationEnd.RAISED and not (error is not None and isinstance(one.error, type(error))):
            return False
    # Those that wait change nothing.
    return all(_try(subject, one.name, one.args) is None for one in stuck)


def cut(history: Sequence[Operation], events: int) -> list[Operation]:
    """Give the first `events` calls and returns of a history: what had not returned may have taken effect."""
    positions = sorted([one.called for one in history] + [one.returned for one in history if one.returned is not None])
    end = positions[events - 1]
    kept = []
    for one in history:
        if one.called > end:
            continue
        if one.returned is not None and one.returned > end:
            one = attrs.evolve(one, ended=OperationEnd.PENDING, returned=None, result=None, error=None)
        if one.ended is OperationEnd.STUCK:
            continue
        kept.append(one)
    return kept
