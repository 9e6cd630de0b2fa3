"""Merges against their rules, for modifiers made of small steps: who applies, what is left, and what is stale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import given, settings

from tests.order._choices import Choices, choices
from toolrt.model import State, ToolCall
from toolrt.model._state import FIELDS
from toolrt.model._watched_state import StateReads, field_part, watched
from toolrt.order import CallRecord, has_changed, merged, stale_part
from toolrt.order._merge import applied

KEYS = "kj"
BUDGET = field_part("context_budget")


class Uncomparable:
    """A value that cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise TypeError("no")

    __hash__ = None  # type: ignore[assignment]


ODD = Uncomparable()
VALUES: tuple[Any, ...] = (0, False, 1, "a", ODD, 2)

#: A step of a modifier: what it does, and to which key.
Step = tuple[str, str, Any]
STEPS = ("set", "read", "set", "look", "delete", "count", "budget", "read budget", "raise", "fresh", "bad")


def some_steps(choices: Choices) -> list[Step]:
    def one() -> Step:
        return choices.one_of(STEPS), choices.one_of(KEYS), choices.one_of(VALUES)

    return [one() for _ in range(1 + choices.below(3))]


def modifier(steps: list[Step]) -> Callable[[State], Any]:
    def modify(state: State) -> Any:
        for what, key, value in steps:
            if what == "set":
                state = state.set(key, value)
            elif what == "delete":
                state = state.delete(key)
            elif what == "budget":
                state = state.replace(context_budget=7)
            elif what == "fresh":
                state = State({key: value})
            elif what == "raise":
                raise ValueError("no")
            elif what == "bad":
                return None
            else:
                look(state, what, key)
        return state

    return modify


def look(state: State, what: str, key: str) -> None:
    if what == "read":
        state.get(key)
    elif what == "look":
        _ = key in state
    elif what == "count":
        len(state)
    else:
        _ = state.context_budget


@attrs.define
class Did:
    """What a modifier did, as the rules have it."""

    after: State
    #: None: it was refused.
    sets: set[Any] | None = None
    read: set[Any] = attrs.field(factory=set)
    looked: set[Any] = attrs.field(factory=set)


def did(steps: list[Step], before: State) -> Did:
    """Do the steps one by one; what the modifier has set itself is its own, and no read."""
    found, sets, fresh = Did(before), set[Any](), False
    for what, key, value in steps:
        part = BUDGET if "budget" in what else key
        if what in ("raise", "bad") or (what == "delete" and key not in found.after):
            return Did(before, None)
        if what == "fresh":
            found.after, fresh = State({key: value}), True
        elif what == "set":
            found.after = found.after.set(key, value)
            sets.add(key)
        elif what == "delete":
            found.after = found.after.delete(key)
            sets.add(key)
        elif what == "budget":
            found.after = found.after.replace(context_budget=7)
            sets.add(part)
        elif not fresh and what == "count":
            found.looked |= set(KEYS)  # which keys there are is one part
        elif not fresh and part not in sets:
            (found.looked if what == "look" else found.read).add(part)
    found.sets = {*found.after, *before, *map(field_part, FIELDS)} if fresh else sets
    return found


def value_of(part: Any, state: State) -> tuple[Any, ...]:
    if part == BUDGET:
        return (state.context_budget,)
    return (type(state[part]), state[part]) if part in state else ()


def changed(part: Any, seen: State, now: State) -> bool:
    old, new = value_of(part, seen), value_of(part, now)
    if any(one is ODD for one in (*old, *new)):
        return not (old and new and old[-1] is new[-1])
    return old != new


def same(some: State, other: State) -> bool:
    return set(some) == set(other) and not any(changed(part, some, other) for part in (*KEYS, BUDGET))


@settings(max_examples=4 * settings.default.max_examples)
@given(choices=choices(90))
def test_modifiers_apply_in_call_order_and_refused_ones_change_nothing(choices: Choices) -> None:
    """Whatever order the calls are given in, and whether what they did is known already."""
    start = now = State({key: choices.one_of(VALUES) for key in KEYS[: choices.below(3)]})
    done, rejected, calls = [], [], []
    for index in range(choices.below(4)):
        call = CallRecord(ToolCall(str(index), "tool", {}), index, "batch", 0.0)
        every = [some_steps(choices) for _ in range(choices.below(3))]
        call.modifiers = tuple(map(modifier, every))
        if choices.one_in(2):
            call.merged = applied(call.modifiers, choices.one_of((start, State({"k": 5}))), None)
        for position, steps in enumerate(every):
            found = did(steps, now)
            now = found.after
            (rejected if found.sets is None else done).append((index, position))
        calls.append(call)
    told = merged(3, start, calls[::-1] if choices.one_in(2) else calls)
    assert told.lane == 3
    assert same(told.state, now)
    assert list(told.applied) == done
    assert [(one.call_index, one.position) for one in told.rejected] == rejected


@settings(max_examples=8 * settings.default.max_examples)
@given(choices=choices(60))
def test_call_is_stale_where_a_modifier_sets_from_an_old_value(choices: Choices) -> None:
    """It read a part that has changed, and a modifier that does not look at it again sets it."""
    seen = State({key: choices.one_of(VALUES) for key in KEYS[: choices.below(3)]})
    before = seen
    for _ in range(choices.below(3)):
        before = did(some_steps(choices), before).after
    reads = StateReads()
    read, looked = set[Any](), set[Any]()
    for what in choices.some_of(("read", "look", "count", "read budget"), 3):
        key = choices.one_of(KEYS)
        look(watched(seen, reads), what, key)
        if what in ("read", "read budget"):
            read.add(BUDGET if "budget" in what else key)
        else:
            looked |= set(KEYS) if what == "count" else {key}
    every = [some_steps(choices) for _ in range(1 + choices.below(2))]
    now, stale = before, set()
    for steps in every:
        found = did(steps, now)
        now = found.after
        for part in (found.sets or set()) - found.read:
            gone = part in looked and part not in found.looked and (part in seen) != (part in before)
            if gone or (part in read and changed(part, seen, before)):
                stale.add(part)
    merge = applied(map(modifier, every), before, None)
    for one in merge.modifiers:
        kinds = {"value": {key: one.after[key] for key in one.after}, "field": {BUDGET[1]: one.after.context_budget}}
        for kind, name, *value in one.sets_json():
            there = name in kinds[kind]
            assert len(value) == there or kind == "field"
            assert not there or value[0] is kinds[kind][name] or kinds[kind][name] is ODD
        assert len(one.sets_json()) == len(one.sets)
    part = stale_part(merge, reads, seen)
    assert (part is None) == (not stale)
    assert part is None or part in stale


@given(choices=choices(2))
def test_value_has_changed_where_it_is_not_the_same(choices: Choices) -> None:
    """An equal value of another type is another one, and so is one that cannot be compared."""
    old, new = choices.one_of(VALUES), choices.one_of(VALUES)
    differs = old is not new and (type(old) is not type(new) or bool(old != new))
    assert has_changed("k", State({"k": old}), State({"k": new})) == differs
    assert has_changed("k", State({"k": ODD}), State({"k": Uncomparable()}))
    assert has_changed("k", State(), State({"k": old}))
