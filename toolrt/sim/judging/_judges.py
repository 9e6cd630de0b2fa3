"""Judges a history of concurrent operations by what a sequential model does.

Rules.  A history is *linearizable* when each operation can take effect at one moment between its call and its return,
so that the model comes to the same results (Herlihy and Wing, 1990).  It is *serializable* when some order of the whole
operations explains the results, whatever the order in time.  An operation that was cancelled or never returned may have
taken effect or not.  Where the model names a key for each operation, the operations of each key are judged apart
(Horn and Kroening, 2015): linearizability of the parts is that of the whole.

A history that is not linearizable has a shortest prefix that is not: linearizability is kept by every prefix, so
bisection finds it.  Its last event is the return of the operation that cannot be placed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

import attrs

from toolrt._plain import counted
from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._execution import Execution
from toolrt.sim.exploring._report import Verdict
from toolrt.sim.judging._history import Operation, OperationEnd, history_behind
from toolrt.sim.judging._model import ModelStates
from toolrt.sim.judging._search import SearchedOrder, intervals_of, search
from toolrt.sim.judging._timeline import draw
from toolrt.trace import stable_text

# So many models keep their states from one history to the next.
_MOST_MODELS = 16

# So many operations that cannot be placed are explained one by one, and an order longer than this is shown by its end.
_MOST_EXPLAINED, _MOST_IN_ORDER = 8, 20

_models: dict[Any, ModelStates] = {}


class HistoryViolation(str):
    """What is wrong with a history, for people; the first line says it in one sentence."""

    __slots__ = ()

    @property
    def law(self) -> str:
        """The property that the history lacks: "linearizable" or "serializable"."""
        return "serializable" if "serializable" in self.partition("\n")[0] else "linearizable"


@attrs.frozen(repr=False)
class HistoryJudgement:
    """What a judge says of a history: true when the verdict is PASS, and `str()` of it is for people.

    A check of `toolrt.sim.explore` may return it: its items are the violations, and one that ran out of its budget
    makes the execution decide nothing.
    """

    #: "linearizable" or "serializable", as it was asked.
    asked: str
    #: `Verdict.PASS`, `FAIL`, or INCONCLUSIVE: the budget was spent.
    verdict: Verdict
    #: The operations, by call.
    operations: tuple[Operation, ...]
    #: An order that explains them; after a FAIL the longest that was found for the shortest prefix that fails.
    order: tuple[Operation, ...]
    #: The operations that cannot be placed.
    unplaced: tuple[Operation, ...] = ()
    #: How many events (calls and returns) the shortest prefix has that is not linearizable; None: it passes, or the
    #: question was serializability, where no prefix decides.
    prefix: int | None = None
    #: The text for people; "" when it passes.
    story: str = ""
    #: How many states the search looked at.
    looked_at: int = 0

    @property
    def undecided(self) -> bool:
        """True when the budget was spent."""
        return self.verdict is Verdict.INCONCLUSIVE

    @property
    def violations(self) -> tuple[HistoryViolation, ...]:
        """The story, when the verdict is FAIL."""
        return (HistoryViolation(self.story),) if self.verdict is Verdict.FAIL else ()

    def __bool__(self) -> bool:
        return self.verdict is Verdict.PASS

    def __iter__(self) -> Iterator[HistoryViolation]:
        return iter(self.violations)

    def __str__(self) -> str:
        if self.verdict is Verdict.FAIL:
            return self.story
        if self.undecided:
            return f"INCONCLUSIVE: {self.looked_at} states were looked at and decide nothing; budget=... allows more"
        return f"{self.asked}: {_in_order(self.order)}"

    def __repr__(self) -> str:
        return f"<HistoryJudgement {self.asked} {self.verdict.name}, {counted(len(self.operations), 'operation')}>"


def linearizable(
    history: Any,
    model: Any,
    *,
    partition: Callable[[Operation], Hashable] | None = None,
    cancelled: str = "either",
    final: Callable[[Any], Any] | None = None,
    budget: int = 500_000,
) -> HistoryJudgement:
    """Say whether each operation can have taken effect at one moment between its call and its return.

    Args:
        history: a `History`, a stand-in that `recorded` made, an execution that has one as its value, or operations:
            each an `Operation` or a mapping of its fields, with positions.  Of an execution that ended with an error
            there is nothing to judge: the error is the failure.
        model: makes a sequential object with methods of the operations' names: a class, or a function without
            arguments.  A method raises `toolrt.errors.Blocked` where the operation has to wait; an async one just
            waits.  What else it raises is its answer, and matches an operation that raised that type or one below it.
            Instead of methods it may have one, ``step(operation)``, which sees the task and the result too: it returns
            or raises what the operation must come to.  It is copied with `copy.deepcopy`.
        partition: gives the key that an operation is about; operations of two keys must not affect each other, and each
            key has a model of its own.  None: the model's own `partition`, if it has one.
        cancelled: "either": a cancelled operation may have taken effect until its cancel was seen, or not at all;
            "ever after": also at any time after, as a thread does that was abandoned; "nothing": it must not have,
            which is what Trio promises of its own calls.
        final: a function of the model, true for a state that it may be in after all operations; it changes nothing.
        budget: how many states the search looks at before it gives up, 1 or more.

    Returns:
        The judgement.  It is true when the verdict is PASS, and a check may return it:
        ``check=lambda execution: sim.linearizable(execution, Queue)``.

    Raises:
        DefinitionRefused: there is no history, a position is missing, or the model does not have an operation.

    Checkpoint: never (it is not async).

    Herlihy and Wing, *Linearizability: a correctness condition for concurrent objects* (1990).

    Example:
        >>> from toolrt import sim
        >>> class Register:
        ...     value = 0
        ...     def write(self, value):
        ...         self.value = value
        ...     def read(self):
        ...         return self.value
        >>> write = sim.Operation("write", (1,), task="a", called=0, returned=3)
        >>> early = sim.Operation("read", (), 1, task="b", called=1, returned=2)
        >>> late = sim.Operation("read", (), 0, task="b", called=4, returned=5)
        >>> bool(sim.linearizable([write, early], Register))
        True
        >>> sim.linearizable([write, early, late], Register).unplaced == (late,)
        True
    """
    return _judged("linearizable", history, model, partition, cancelled, final, budget, ordered=True)


def serializable(
    history: Any,
    model: Any,
    *,
    strict: bool = False,
    partition: Callable[[Operation], Hashable] | None = None,
    cancelled: str = "either",
    final: Callable[[Any], Any] | None = None,
    budget: int = 500_000,
) -> HistoryJudgement:
    """Say whether some order of the whole operations explains their results.

    An operation is a transaction: it may read and write as much as it likes.  When they were called and returned does
    not matter, unless `strict`.

    Args:
        history: as `linearizable` takes it; without `strict` positions are not needed, and an operation may be a tuple
            ``(name, args, result)``.
        model: as `linearizable` takes it.
        strict: an operation that returned before another was called comes before it: strict serializability, which is
            linearizability of the transactions.
        partition: as `linearizable` takes it.
        cancelled: the same.
        final: the same; with it the state that the operations left behind is judged, too.
        budget: the same.

    Returns:
        The judgement, as `linearizable` gives it.

    Raises:
        DefinitionRefused: as `linearizable`.

    Checkpoint: never (it is not async).

    Papadimitriou, *The serializability of concurrent database updates* (1979).

    Example:
        >>> from toolrt import sim
        >>> class Account:
        ...     balance = 0
        ...     def deposit(self, amount):
        ...         self.balance += amount
        ...         return self.balance
        >>> bool(sim.serializable([("deposit", (5,), 8), ("deposit", (3,), 3)], Account))
        True
        >>> print(sim.serializable([("deposit", (5,), 5), ("deposit", (3,), 3)], Account).verdict)
        FAIL
    """
    if not isinstance(strict, bool):
        raise DefinitionRefused("serializable(strict)", "True or False", strict)
    return _judged("serializable", history, model, partition, cancelled, final, budget, ordered=strict)


def _judged(
    asked: str,
    history: Any,
    model: Any,
    partition: Callable[[Operation], Hashable] | None,
    cancelled: str,
    final: Callable[[Any], Any] | None,
    budget: int,
    *,
    ordered: bool,
) -> HistoryJudgement:
    if cancelled not in ("either", "ever after", "nothing"):
        raise DefinitionRefused(f"{asked}(cancelled)", '"either", "ever after" or "nothing"', cancelled)
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 1:
        raise DefinitionRefused(f"{asked}(budget)", "a number of states, 1 or more", budget)
    operations = _operations(asked, history, ordered)
    key_of = getattr(model, "partition", None) if partition is None else partition
    parts: dict[Hashable, list[Operation]] = {}
    for operation in operations:
        parts.setdefault(None if key_of is None else key_of(operation), []).append(operation)
    states = _states(model)
    looked_at = 0
    orders: list[Operation] = []
    doubt = False
    for key, part in parts.items() or [(None, list[Operation]())]:
        judge = _Judge(states, part, ordered, cancelled, final, budget)
        result = judge.ask()
        looked_at += result.looked_at
        orders += result.order
        if result.found is False:
            about = "" if key_of is None else f" of {stable_text(key)}"
            return attrs.evolve(judge.failure(asked, about, result), operations=operations, looked_at=looked_at)
        doubt |= result.found is None
    verdict = Verdict.INCONCLUSIVE if doubt else Verdict.PASS
    order = () if doubt else tuple(orders) if len(parts) < 2 else ()
    return HistoryJudgement(asked, verdict, operations, order, looked_at=looked_at)


def _states(model: Any) -> ModelStates:
    """Give the states of `model`, those that are known from earlier histories among them."""
    try:
        known = _models.pop(model, None)
    except TypeError:
        return ModelStates(model)
    if known is None or known.full():
        known = ModelStates(model)
    # The models that were used last stay.
    _models[model] = known
    if len(_models) > _MOST_MODELS:
        del _models[next(iter(_models))]
    return known


@attrs.frozen
class _Judge:
    """One question about the operations of one key."""

    states: ModelStates
    operations: Sequence[Operation]
    ordered: bool
    #: As `linearizable` takes it.
    cancelled: str
    final: Callable[[Any], Any] | None
    budget: int

    def ask(self, end: float = inf, at_the_end: bool = True) -> SearchedOrder:
        """Look for an order; `at_the_end` asks, too, what must hold in the end."""
        intervals, stuck = intervals_of(self.states, self.operations, end, self.ordered, self.cancelled)
        if not at_the_end:
            return search(self.states, intervals, (), None, self.budget)
        return search(self.states, intervals, stuck, self.final, self.budget)

    def failure(self, asked: str, about: str, result: SearchedOrder) -> HistoryJudgement:
        """Tell what is wrong with a history for which there is no order."""
        end = inf
        stuck: tuple[Operation, ...] = ()
        whole = self.ask(at_the_end=False)
        if whole.found:
            result = whole
            stuck = tuple(one for one in self.operations if one.ended is OperationEnd.STUCK)
        elif self.ordered:
            end, result = self._shortest(result)
        placed = {(one.task, one.name, one.called) for one in result.order} if self.ordered else None
        if placed is not None:
            left = [
                one
                for one in self.operations
                if one.has_answered and _end_of(one) <= end and (one.task, one.name, one.called) not in placed
            ]
        else:
            rest = list(result.order)
            left = []
            for one in self.operations:
                if one in rest:
                    rest.remove(one)
                elif one.has_answered:
                    left.append(one)
        last = next((one for one in self.operations if one.returned == end), None)
        if last is not None and last in left:
            left = [last, *(one for one in left if one is not last)]
        events = None if end == inf else self._events_to(end)
        unplaced = tuple(left) if left else stuck
        story = self._story(asked, about, result, end, last, unplaced)
        return HistoryJudgement(asked, Verdict.FAIL, (), result.order, unplaced, events, story)

    def _shortest(self, found: SearchedOrder) -> tuple[float, SearchedOrder]:
        """Give the return that ends the shortest prefix that fails, and the search of that prefix."""
        ends = sorted(float(one.returned) for one in self.operations if one.returned is not None)
        placed = {one.called for one in found.order}
        # Everything that returned before the first that is not placed has an order, so it is probably near.
        first = min((_end_of(one) for one in self.operations if one.called not in placed), default=inf)
        low, high, step = ends.index(first) if first in ends else 0, len(ends) - 1, 0
        while low < high:
            middle = min(low + step, (low + high) // 2)
            step = 2 * step + 1
            result = self.ask(ends[middle], at_the_end=False)
            if result.found is False:
                high, found = middle, result
            else:
                low = middle + 1
        return ends[high], found

    def _events_to(self, end: float) -> int:
        calls = sum(one.called <= end for one in self.operations)
        return calls + sum(one.returned is not None and one.returned <= end for one in self.operations)

    def _story(
        self,
        asked: str,
        about: str,
        result: SearchedOrder,
        end: float,
        last: Operation | None,
        unplaced: Sequence[Operation],
    ) -> str:
        if last is not None:
            head = f"not {asked}{about}: no order explains {last.call} -> {last.answer} of {last.task}"
        elif unplaced and unplaced[0].ended is OperationEnd.STUCK:
            head = f"not {asked}{about}: {unplaced[0].call} of {unplaced[0].task} waits for ever"
        elif unplaced:
            head = f"not {asked}{about}: no order explains {', '.join(map(str, unplaced[:_MOST_EXPLAINED]))}"
        else:
            head = f"not {asked}{about}: every order leaves the model in a state that it must not end in"
        lines = [head]
        if any(one.task for one in self.operations) and self.ordered:
            lines += ["", *draw(self.operations, end)]
        lines += ["", f"The longest order found: {_in_order(result.order)}"]
        for one in unplaced[:_MOST_EXPLAINED]:
            answer = self.states.answer(result.state, self.states.signature(one), one)
            does = (
                f"the model {answer}" if answer.state < 0 or answer.error is not None else f"the model gives {answer}"
            )
            is_left = answer.explains(one) and answer.state >= 0 and one.has_answered
            cannot = f"{one.task + ': ' if one.task else ''}{one}"
            lines.append(
                f"  there {cannot} cannot follow: {does}{', and what is left cannot follow that' if is_left else ''}"
            )
        if len(unplaced) > _MOST_EXPLAINED:
            lines.append(f"  and {len(unplaced) - _MOST_EXPLAINED} more")
        return "\n".join(lines)


def _end_of(operation: Operation) -> float:
    return inf if operation.returned is None else operation.returned


def _in_order(order: Sequence[Operation]) -> str:
    if not order:
        return "(none)"
    shown = [one.call for one in order[-_MOST_IN_ORDER:]]
    return ", ".join([f"({len(order) - len(shown)} before)", *shown] if len(shown) < len(order) else shown)


def _operations(asked: str, history: Any, ordered: bool) -> tuple[Operation, ...]:
    """Give the operations of `history`, by call."""
    if isinstance(history, Execution):
        if history.error is not None:
            # The check's answer is empty, and the error is the failure.
            return ()
        history = history.value
    known = history_behind(history)
    if known is not None:
        return known.operations
    if isinstance(history, str | bytes | Mapping) or not isinstance(history, Iterable):
        raise DefinitionRefused(f"{asked}(history)", "a sim.History, or operations", history)
    operations = tuple(_operation(asked, one, ordered) for one in history)
    return tuple(sorted(operations, key=lambda one: one.called)) if ordered else operations


def _operation(asked: str, one: Any, ordered: bool) -> Operation:
    if isinstance(one, Mapping):
        one = Operation(**one)
    elif isinstance(one, tuple) and len(one) == 3 and not ordered:
        name, args, result = one
        one = Operation(name, args if isinstance(args, tuple | list) else (args,), result)
    if not isinstance(one, Operation):
        raise DefinitionRefused(f"{asked}(history)", "operations: sim.Operation(name, args, result, ...)", one)
    if ordered and one.has_answered and (one.returned is None or one.returned <= one.called):
        raise DefinitionRefused(f"{asked}(history)", "a return position behind the call's", one)
    return one
