"""A state that notes what is read of it.

Rules.
    1. A `WatchedState` is a `State`: equal content, the same methods.  It notes each part that is read, and nothing
       that is only written.
    2. What `set`, `update`, `delete` and `replace` give is watched by the same notes.  A part that they wrote is no
       longer a part of the state that was watched, so reading it is not noted.
    3. A watched state may be watched again: then a read is noted at each level that the part still comes from.

A part is a key's value, a key's presence, the presence of all keys, or a typed field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolrt.model._state import FIELDS, State

#: A key, for its value; ``("key", k)`` for the presence of key k; ``("field", f)``; or `ALL_KEYS`.
Part = str | tuple[str, str]

#: Which keys there are.
ALL_KEYS: Part = ("keys", "")


def parts_json(parts: Iterable[Part]) -> list[list[str]]:
    """`parts` as JSON, sorted: ``["value", key]``, ``["key", key]``, ``["field", name]`` and ``["keys", ""]``."""
    return sorted(["value", part] if isinstance(part, str) else [*part] for part in parts)


def field_part(name: str) -> Part:
    """The part that is the typed field `name`."""
    return ("field", name)


def part_name(part: Part) -> str:
    """How errors name a key or a field."""
    return repr(part) if isinstance(part, str) else part[1]


class StateReads:
    """The parts of one state that were read."""

    __slots__ = ("_first", "parts")

    def __init__(self) -> None:
        #: In no order.
        self.parts: set[Part] = set()
        self._first: WatchedState | None = None

    def watching(self, state: State) -> WatchedState:
        """`state`, watched: always the same object for one state."""
        if isinstance(state, WatchedState) and state.reads is self:
            return state
        first = self._first
        if first is None or first._base is not state:
            first = self._first = watched(state, self)
        return first

    def has_read(self, key: Part) -> bool:
        """Whether the value of a key, or a field, was read."""
        return key in self.parts

    def has_looked_for(self, key: Part) -> bool:
        """Whether it was looked at whether a key is there."""
        return ALL_KEYS in self.parts or (isinstance(key, str) and ("key", key) in self.parts)


class WatchedState(State):
    """A state that notes in its `StateReads` what is read of it.  Make one with `watched`."""

    __slots__ = ("_base", "_plain", "_reads", "_written")

    #: The state that was put under watch; it may be watched itself.
    _base: State
    #: The content.
    _plain: State
    _reads: StateReads
    #: The parts that other code than `_base` changed: keys and fields.
    _written: frozenset[Part]

    def __init__(self, plain: State, base: State, reads: StateReads, written: frozenset[Part]) -> None:
        write = object.__setattr__
        write(self, "_plain", plain)
        write(self, "_base", base)
        write(self, "_reads", reads)
        write(self, "_written", written)
        write(self, "_values", plain._values)

    @property
    def reads(self) -> StateReads:
        """Where its reads are noted."""
        return self._reads

    # Noting

    def _note(self, part: Part, of: Part) -> None:
        """Note that `part` was read, which comes from the base unless `of`, the key or field, was written."""
        if of not in self._written:
            self._reads.parts.add(part)
            if isinstance(self._base, WatchedState):
                self._base._note(part, of)

    def _note_keys(self) -> None:
        self._reads.parts.add(ALL_KEYS)
        if isinstance(self._base, WatchedState):
            self._base._note_keys()

    def note_all(self) -> None:
        """Note that all of it was read, or is handed on as it is."""
        self._note_keys()
        for key in self._values:
            self._note(key, key)
        for part in map(field_part, FIELDS):
            self._note(part, part)

    # Reading

    def __getitem__(self, key: str) -> Any:
        self._note(key, key)
        return self._values[key]

    def get(self, key: str, default: Any = None) -> Any:
        """What is under `key`, else `default`."""
        self._note(key, key)
        return self._values.get(key, default)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            self._note(("key", key), key)
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        self._note_keys()
        return iter(self._values)

    def __len__(self) -> int:
        self._note_keys()
        return len(self._values)

    def __bool__(self) -> bool:
        if len(self):
            return True
        self.note_all()
        return bool(self._plain)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        self.note_all()
        if isinstance(other, WatchedState):
            other.note_all()
        return self._plain == bare_state(other)

    __hash__ = None

    def __repr__(self) -> str:
        self.note_all()
        return repr(self._plain)

    def __copy__(self) -> WatchedState:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        self.note_all()
        return self._plain.__reduce__()

    def to_json(self) -> dict[str, Any]:
        """As of `State`."""
        self.note_all()
        return self._plain.to_json()

    # Writing

    def update(self, values: Mapping[str, Any]) -> State:
        """As of `State`."""
        return self._after(self._plain.update(values), frozenset(values))

    def delete(self, key: str) -> State:
        """As of `State`."""
        return self._after(self._plain.delete(key), frozenset((key,)))

    def replace(self, **fields: Any) -> State:
        """As of `State`."""
        return self._after(self._plain.replace(**fields), frozenset(map(field_part, fields)))

    def _after(self, plain: State, written: frozenset[Part]) -> WatchedState:
        return WatchedState(plain, self._base, self._reads, self._written | written)

    # Being taken out of watch

    def taken_from(self, reads: StateReads) -> tuple[State, frozenset[Part]] | None:
        """The state without the watch of `reads`, and what was written under it; None if those watch another one."""
        if self._reads is not reads:
            return None
        base = self._base
        if isinstance(base, WatchedState):
            return WatchedState(self._plain, base._base, base._reads, base._written | self._written), self._written
        return self._plain, self._written


def _noted_field(name: str) -> property:
    read: Callable[[State], Any] = State.__dict__[name].__get__
    part = field_part(name)

    def get(self: WatchedState) -> Any:
        self._note(part, part)
        return read(self._plain)

    return property(get, doc=f"As of `State`: {name}.")


for _name in FIELDS:
    setattr(WatchedState, _name, _noted_field(_name))


def watched(state: State, reads: StateReads) -> WatchedState:
    """The same state; what is read of it is noted in `reads`."""
    return WatchedState(bare_state(state), state, reads, frozenset())


def bare_state(state: State) -> State:
    """The same state, and nothing notes what is read of it."""
    return state._plain if isinstance(state, WatchedState) else state
