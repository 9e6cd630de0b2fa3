"""The value that calls share and modifiers change.

A `State` is never changed: `set` and `replace` give a new one.  It holds a mapping, for what tools and callers
keep in it, beside a few typed fields, for what the runtime's own services keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

import attrs

from toolrt._plain import counted, plain
from toolrt.errors import DefinitionRefused
from toolrt.model._overlay import changed

#: A working directory as callers give it; None is the workspace's own.
WorkingDir = PurePath | str | None

#: The typed fields.
FIELDS = ("working_dir", "context_budget", "error_signatures", "hints", "long_results")


@attrs.frozen
class LongResult:
    """The text of a result that was too long for the model, which reads on by its handle (`toolrt.read_result`)."""

    #: Made of the text alone.
    handle: str
    #: All of it, or its beginning where it is longer than a state keeps.
    text: str = attrs.field(repr=lambda text: f"<{counted(len(text), 'character')}>")


def _checked_working_dir(value: object) -> PurePath | None:
    if value is None or isinstance(value, PurePath):
        return value
    if isinstance(value, str):
        return PurePath(value)
    raise DefinitionRefused("State.working_dir", "a path or None", value)


def _checked_budget(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise DefinitionRefused("State.context_budget", "a number of tokens, 0 or more, or None", value)


def _check_keys(values: Mapping[Any, Any]) -> None:
    for key in values:
        if not isinstance(key, str):
            raise DefinitionRefused("a State's key", "a string", key)


def _checked_texts(field: str, value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and all(isinstance(line, str) for line in value):
        return tuple(value)
    raise DefinitionRefused(f"State.{field}", "a sequence of strings", value)


def _checked_long_results(value: object) -> tuple[LongResult, ...]:
    if isinstance(value, list | tuple) and all(isinstance(one, LongResult) for one in value):
        return tuple(value)
    raise DefinitionRefused("State.long_results", "a sequence of LongResult", value)


class State(Mapping[str, Any]):
    """An immutable mapping with typed fields beside it.

    Two states are equal when their mappings and their fields are.  Values put into a state belong to it: change
    one in place and every snapshot of that state changes with it, so keep tuples, not lists.

    Args:
        values: the mapping's first content.
        working_dir: the directory relative paths start from; None is the workspace's own.
        context_budget: how many tokens the model's context still has room for; None is unknown.
        error_signatures: the most distinctive lines of the first failed command, or none.
        hints: what tools suggest to the model, each once, in order; what is new since the batch began is news.
        long_results: what `toolrt.read_result` reads on, the oldest first.

    Raises:
        DefinitionRefused: a key is not a string, or a field has a value of another type.
    """

    __slots__ = ("_values", "context_budget", "error_signatures", "hints", "long_results", "working_dir")

    _values: Mapping[str, Any]
    working_dir: PurePath | None
    context_budget: int | None
    error_signatures: tuple[str, ...]
    hints: tuple[str, ...]
    long_results: tuple[LongResult, ...]

    def __init__(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        working_dir: PurePath | str | None = None,
        context_budget: int | None = None,
        error_signatures: tuple[str, ...] = (),
        hints: tuple[str, ...] = (),
        long_results: tuple[LongResult, ...] = (),
    ) -> None:
        if isinstance(values, State):
            raise DefinitionRefused("State", "a mapping (a State is changed by set, update and replace)", values)
        if values is None:
            values = {}
        if not isinstance(values, Mapping):
            raise DefinitionRefused("State", "a mapping", values)
        _check_keys(values)
        write = object.__setattr__
        write(self, "_values", dict(values))
        write(self, "working_dir", _checked_working_dir(working_dir))
        write(self, "context_budget", _checked_budget(context_budget))
        write(self, "error_signatures", _checked_texts("error_signatures", error_signatures))
        write(self, "hints", _checked_texts("hints", hints))
        write(self, "long_results", _checked_long_results(long_results))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a State never changes: use replace({name}=...) or set(key, value) for a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a State never changes: use delete(key) for a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (dict(self._values), {field: getattr(self, field) for field in FIELDS})

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __bool__(self) -> bool:
        """Whether it differs from an empty state, by a key or by a field."""
        return bool(self._values) or self != State._empty()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return self._values == other._values and all(getattr(self, field) == getattr(other, field) for field in FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [repr(dict(self._values))] if self._values else []
        defaults = State._empty()
        for field in FIELDS:
            value = getattr(self, field)
            if value != getattr(defaults, field):
                parts.append(f"{field}={str(value) if field == 'working_dir' else value!r}")
        return f"State({', '.join(parts)})"

    @staticmethod
    def _empty() -> State:
        return _EMPTY

    def set(self, key: str, value: Any) -> State:
        """A state that has `value` under `key` and is otherwise equal to this one."""
        return self.update({key: value})

    def update(self, values: Mapping[str, Any]) -> State:
        """A state that has all of `values` and is otherwise equal to this one.

        Raises:
            DefinitionRefused: `values` is no mapping, or holds what a state cannot.
        """
        if not isinstance(values, Mapping):
            raise DefinitionRefused("State.update", "a mapping of keys to values", values)
        values = dict(values)
        _check_keys(values)
        return self._with(changed(self._values, values))

    def delete(self, key: str) -> State:
        """A state without `key`.

        Raises:
            KeyError: there is no such key.
        """
        values = dict(self._values)
        del values[key]
        return self._with(values)

    def replace(self, **fields: Any) -> State:
        """A state with other typed fields: ``state.replace(working_dir="src")``.

        Raises:
            DefinitionRefused: there is no such field, or the value does not fit it.
        """
        for name in fields:
            if name not in FIELDS:
                raise DefinitionRefused("State.replace", f"one of {', '.join(FIELDS)}", name)
        kept = {field: getattr(self, field) for field in FIELDS}
        return State(**(kept | fields))._with(self._values) if fields else self

    def _with(self, values: Mapping[str, Any]) -> State:
        """The same fields beside a mapping that no code changes any more."""
        state = object.__new__(State)
        object.__setattr__(state, "_values", values)
        for field in FIELDS:
            object.__setattr__(state, field, getattr(self, field))
        return state

    def to_json(self) -> dict[str, Any]:
        """The state as a JSON object; the fields stand beside the mapping, under ``"fields"``."""
        return {
            "values": plain(self._values),
            "fields": {
                "working_dir": None if self.working_dir is None else self.working_dir.as_posix(),
                "context_budget": self.context_budget,
                "error_signatures": list(self.error_signatures),
                "hints": list(self.hints),
                "long_results": {one.handle: len(one.text) for one in self.long_results},
            },
        }


def _restored(values: Mapping[str, Any], fields: Mapping[str, Any]) -> State:
    """A state out of its parts: what copying and pickling make it from."""
    return State(values, **fields)


_EMPTY = State()
