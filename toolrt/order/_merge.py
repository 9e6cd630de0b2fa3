"""Merges the modifiers of a lane into the state, in call order, and refuses stale ones.

Rules.
    1. A modifier is applied once, in (call_index, position) order.  One that raises, is interrupted by Ctrl-C, or gives
       something else than a State, changes nothing and is named; the merge goes on.
    2. A call is *stale* when it read a part of ``ctx.state``, an earlier call of its lane changed that part, and a
       modifier of the call sets it without reading it from the state that the modifier is given.  None of the modifiers
       of a stale call may apply: they would undo the earlier change.
    3. Whether a call is stale is known when all earlier calls of its lane have their results.

Theory.  This is validation of optimistic reads against the preset order (Block-STM: Gelashvili et al., PPoPP 2023), by
value: a part that was changed and changed back is as it was read.  A modifier that reads its argument works on the
merged state and needs no validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolrt._plain import at_once
from toolrt.errors import asks_to_exit, error_text
from toolrt.events import ModifierApplied, observer
from toolrt.model import Modifier, State, Tool
from toolrt.model._state import FIELDS
from toolrt.model._update import RejectedModifier, StateMerged
from toolrt.model._watched_state import (
    Part,
    StateReads,
    WatchedState,
    bare_state,
    field_part,
    parts_json,
    watched,
)
from toolrt.order._record import AppliedModifier, CallRecord, MergedCall


def applied(modifiers: Iterable[Modifier], state: State, tool: Tool | None) -> MergedCall:
    """What the `modifiers` of one call of `tool` do to `state`, one after the other."""
    before, done = state, []
    for modifier in modifiers:
        reads = StateReads()
        try:
            after = _result(modifier, watched(state, reads), tool)
        except BaseException as error:  # noqa: ASYNC103  an exit: it goes out when the batch is left
            exit_asked = asks_to_exit(error)
            if exit_asked is None:
                raise
            text = f"it was interrupted by {type(exit_asked).__name__}"
            done.append(AppliedModifier(text, frozenset(), reads, state, exit_asked))
            continue  # noqa: ASYNC104
        if isinstance(after, str):
            done.append(AppliedModifier(after, frozenset(), reads, state))
            continue
        taken = after.taken_from(reads) if isinstance(after, WatchedState) else None
        if taken is None:
            # It is made of something else than what the modifier was given, so it sets everything.
            if isinstance(after, WatchedState):
                after.note_all()
            state, sets = bare_state(after), frozenset(_parts(state, after))
        else:
            state, sets = taken
        done.append(AppliedModifier(None, sets, reads, state))
    return MergedCall(before, state, tuple(done))


def _result(modifier: Modifier, state: State, tool: Tool | None) -> State | str:
    """What a modifier gives, or why it changes nothing."""
    try:
        after = at_once(modifier(state))
    except BaseException as error:  # noqa: ASYNC103  nothing is awaited here
        if asks_to_exit(error) is not None:
            raise
        return error_text(error) if tool is None else tool.describe_error(error)  # noqa: ASYNC104
    if not isinstance(after, State):
        return f"a modifier gives a State, this one gave {type(after).__name__}"
    return after


def _parts(*states: State) -> Iterator[Part]:
    for state in states:
        yield from bare_state(state)
    yield from map(field_part, FIELDS)


def stale_part(call: MergedCall, reads: StateReads, seen: State) -> Part | None:
    """The part that makes a call stale; None: it is not.

    Args:
        call: what its modifiers did to the state that the earlier calls of its lane leave.
        reads: what the call read of its ``ctx.state``.
        seen: that state: the one its lane started with.
    """
    if not reads.parts:
        return None
    for modifier in call.modifiers:
        for part in sorted(modifier.sets, key=repr):
            if modifier.reads.has_read(part):
                continue
            if reads.has_read(part) and has_changed(part, seen, call.before):
                return part
            looked = reads.has_looked_for(part) and not modifier.reads.has_looked_for(part)
            if looked and (part in bare_state(seen)) != (part in bare_state(call.before)):
                return part
    return None


#: What stands for the value of a key that is not there.
_MISSING = object()


def _value(part: Part, state: State) -> object:
    """What a key or a field of `state` holds; the same object for every key that is not there."""
    state = bare_state(state)
    return state.get(part, _MISSING) if isinstance(part, str) else getattr(state, part[1])


def has_changed(part: Part, seen: State, now: State) -> bool:
    """Whether `part`, a key or a field, holds something else `now` than when it was `seen`."""
    old, new = _value(part, seen), _value(part, now)
    if old is new:
        return False
    if type(old) is not type(new):
        return True
    try:
        return not bool(old == new)
    except Exception:
        return True  # values that cannot be compared


def are_applied(state: State, calls: Iterable[CallRecord]) -> bool:
    """Whether the modifiers of `calls` have been applied to `state` already, so that `merged` runs none of them."""
    for call in sorted(calls, key=_call_index):
        if call.merged is None or call.merged.before is not state:
            return False
        state = call.merged.after
    return True


def merged(lane: int, state: State, calls: Iterable[CallRecord]) -> StateMerged:
    """The state of `lane` after the modifiers of `calls`, which may be given in any order.

    What the modifiers of each call did stands in its record then.

    Ordering: modifiers apply by call_index, and those of one call in the order in which it gave them.
    """
    done: list[tuple[int, int]] = []
    rejected: list[RejectedModifier] = []
    for call in sorted(calls, key=_call_index):
        known = call.merged
        mine = known if known is not None and known.before is state else applied(call.modifiers, state, call.tool)
        call.merged, state = mine, mine.after
        for position, modifier in enumerate(mine.modifiers):
            if modifier.refused is None:
                done.append((call.call_index, position))
            else:
                rejected.append(RejectedModifier(call.call_index, call.call_id, position, modifier.refused))
            if observer.records:
                ok, reads = modifier.refused is None, parts_json(modifier.reads.parts)
                sets = modifier.sets_json()
                observer.tell(ModifierApplied(call.batch_id, call.call_index, lane, position, ok, sets, reads))
    return StateMerged(lane, state, tuple(done), tuple(rejected))


def _call_index(call: CallRecord) -> int:
    return call.call_index
