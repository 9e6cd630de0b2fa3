"""Looks for an order of the operations of a history that explains them.

Rules.  An operation can come next when no other one that is not yet placed returned before it was called.  Completed
operations must all be placed; one that was cancelled or never returned may be, the former before all that was called
when its cancel had been seen.  What the model does with each must be
what the operation came to.  In the end every stuck operation must have to wait.

Theory.  Wing and Gong, *Testing and verifying concurrent objects* (1993): depth-first search over such orders.  Lowe,
*Testing for linearizability* (2017): a state that was reached with the same operations placed is not looked at twice.
Line-Up (Burckhardt et al., PLDI 2010): operations that wait for ever must wait in the model, too.

Limits.  The problem is NP-complete; the search ends after `budget` states, and then decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import inf
from typing import Any

import attrs

from toolrt.sim.judging._history import Operation, OperationEnd
from toolrt.sim.judging._model import ModelAnswer, ModelStates


@attrs.define
class Interval:
    """One operation as the search sees it."""

    #: The operation.
    operation: Operation
    #: When it was called.
    called: float
    #: When it returned or its cancel was seen: all called later comes after it; infinite when neither was.
    returned: float
    #: What tells it apart for the model.
    signature: Hashable
    #: True when it must be placed; False when it may have taken effect or not.
    must: bool


@attrs.frozen
class SearchedOrder:
    """What a search found."""

    #: True: there is an order; False: there is none; None: the budget ended before.
    found: bool | None
    #: The order that was found, or the longest that explains as many operations as any that was tried.
    order: tuple[Operation, ...]
    #: The state of the model behind that order.
    state: int
    #: How many states were looked at.
    looked_at: int


def search(
    states: ModelStates,
    intervals: Sequence[Interval],
    stuck: Sequence[tuple[Hashable, Operation]],
    final: Callable[[Any], Any] | None,
    budget: int,
) -> SearchedOrder:
    """Look for an order of `intervals`.

    Args:
        states: the model.
        intervals: the operations, sorted by call.
        stuck: the operations that must wait in the end.
        final: what the model must fulfil in the end; None: nothing.
        budget: how many states are looked at, at most.
    """
    must = [interval for interval in intervals if interval.must]
    may = [interval for interval in intervals if not interval.must]
    total = len(must)

    def is_end(state: int) -> bool:
        if any(states.answer(state, *one).state >= 0 for one in stuck):
            return False
        return final is None or bool(final(states.object(state)))

    def next_ones(first: int, placed: int, maybe: int) -> list[tuple[int, bool]]:
        """Give what can come next, the likely ones last: the completed ones by return behind those that may be."""
        limit = inf
        completed = []
        index = first
        rest = placed
        while index < total:
            interval = must[index]
            if interval.called > limit:
                break
            if not rest & 1:
                completed.append((interval.returned, index))
                if interval.returned < limit:
                    limit = interval.returned
            rest >>= 1
            index += 1
        completed.sort(reverse=True)
        ready = [(index, True) for _, index in completed if must[index].called <= limit]
        if not may:
            return ready
        # What is placed has been called up to here: an operation whose cancel was seen before comes no more.
        reached = must[first + placed.bit_length() - 1].called if first or placed else -inf
        if maybe:
            reached = max(reached, may[maybe.bit_length() - 1].called)
        alike: dict[Hashable, float] = {}
        chosen = []
        for index, interval in enumerate(may):
            if interval.called > limit:
                break
            if maybe >> index & 1 or interval.returned < reached:
                continue
            # Of those that are alike the first stands for all that can come no earlier than it must.
            if interval.returned < alike.get(interval.signature, inf) or interval.signature not in alike:
                alike[interval.signature] = interval.returned
                chosen.append((index, False))
        return chosen[::-1] + ready

    # Placed are all completed operations before `first`, and those after it that `placed` has a bit for.
    first = placed = maybe = 0
    state = states.first
    done = 0
    path: list[Operation] = []
    best: tuple[int, tuple[Operation, ...], int] = (-1, (), state)
    seen = _seen_from((first, placed, maybe, state))
    frames: list[tuple[int, int, int, int, list[tuple[int, bool]]]] = []
    ahead = next_ones(first, placed, maybe)
    looked_at = 1
    found: bool | None = False
    while True:
        if done == total and is_end(state):
            found = True
            break
        moved = False
        while ahead:
            index, is_must = ahead.pop()
            interval = must[index] if is_must else may[index]
            answer: ModelAnswer = states.answer(state, interval.signature, interval.operation)
            if answer.state < 0 or not (answer.explains(interval.operation) if is_must else answer.state != state):
                continue
            new_first, new_placed, new_maybe = first, placed, maybe
            if is_must:
                new_placed |= 1 << (index - first)
                while new_placed & 1:
                    new_placed >>= 1
                    new_first += 1
            else:
                new_maybe |= 1 << index
            key = (new_first, new_placed, new_maybe, answer.state)
            if key in seen:
                continue
            seen.add(key)
            frames.append((first, placed, maybe, state, ahead))
            first, placed, maybe, state = key
            path.append(interval.operation)
            done += is_must
            ahead = next_ones(first, placed, maybe)
            looked_at += 1
            moved = True
            break
        if moved:
            if looked_at > budget:
                found = None
                break
            continue
        if done > best[0]:
            best = (done, tuple(path), state)
        if not frames:
            break
        was = done
        first, placed, maybe, state, ahead = frames.pop()
        path.pop()
        done = first + placed.bit_count()
        assert was - done in (0, 1)
    if found or done > best[0]:
        best = (done, tuple(path), state)
    return SearchedOrder(found, best[1], best[2], looked_at)


def _seen_from(key: tuple[int, int, int, int]) -> set[tuple[int, int, int, int]]:
    """Begin the memory of a search: what was placed, and the model's state."""
    return {key}


def intervals_of(
    states: ModelStates, operations: Sequence[Operation], end: float, ordered: bool, cancelled: str
) -> tuple[list[Interval], list[tuple[Hashable, Operation]]]:
    """Give the operations as the search takes them, and those that are stuck.

    Args:
        states: the model.
        operations: the history.
        end: only what happened up to this position counts: an operation that returned later may have taken effect.
        ordered: whether what returned first must come first; else any order will do.
        cancelled: what a cancelled operation may have done, as `toolrt.sim.linearizable` takes it.
    """
    intervals = []
    stuck = []
    for operation in operations:
        if operation.called > end or (operation.ended is OperationEnd.CANCELLED and cancelled == "nothing"):
            continue
        signature = states.signature(operation)
        if operation.ended is OperationEnd.STUCK:
            stuck.append((signature, operation))
            continue
        has_ended = operation.has_answered
        returned = inf if operation.returned is None else float(operation.returned)
        if operation.ended is OperationEnd.CANCELLED and cancelled == "ever after":
            returned = inf
        if returned > end:
            # What it came to is not known yet.
            operation = attrs.evolve(operation, ended=OperationEnd.PENDING, returned=None, result=None, error=None)
            returned, has_ended = inf, False
        if ordered:
            intervals.append(Interval(operation, operation.called, returned, signature, has_ended))
        else:
            intervals.append(Interval(operation, 0.0, inf, signature, has_ended))
    if ordered:
        intervals.sort(key=lambda interval: interval.called)
    return intervals, stuck
