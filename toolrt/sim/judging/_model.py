"""Sequential models: what an object does when its operations come one after the other.

Rules.  A model is a plain Python object with methods of the operations' names, made anew by a factory.  Each operation
runs on a copy, so a state never changes.  A method that raises `toolrt.errors.Blocked`, or an async one that waits for
anything, cannot be done in that state: in a history it comes later.  What else a method raises is its answer.

States are numbered, and what an operation does in a state is computed once: thousands of histories of one model cost
little more than one.  Two states are one when their attributes are equal, type by type, with the same sharing; the
order of a dict counts.  An object with an `__eq__` and a `__hash__` of its own is compared by these.

Limits.  A state that cannot be looked into (a generator, a lock of C code) equals no other: judging is then correct,
and slow.
"""

from __future__ import annotations

import copy
import inspect
from collections import deque
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

import attrs

from toolrt.errors import Blocked, DefinitionRefused
from toolrt.sim.judging._history import Operation, OperationEnd
from toolrt.trace import stable_text

# A model with more states, or arguments that are no plain values, is forgotten: its states are numbered anew.
_MOST_STATES, _MOST_ATOMS = 20_000, 200

_SIMPLE = (int, str, bytes, type(None))
_LEAVES = (bool, float, complex, range)
_PLAIN = (*_SIMPLE, *_LEAVES, list, tuple, dict, set, frozenset, deque, bytearray)


@attrs.frozen
class ModelAnswer:
    """What a model does with an operation in one state."""

    #: What it returns.
    value: Any = None
    #: What it raises; None: it returns.
    error: BaseException | None = None
    #: The number of the state it is in afterwards; -1: the operation cannot be done in this state.
    state: int = -1

    def explains(self, operation: Operation) -> bool:
        """Say whether `operation` came to the same; one that did not end may have come to anything."""
        if operation.ended is OperationEnd.RETURNED:
            return self.error is None and _equal(self.value, operation.result)
        if operation.ended is OperationEnd.RAISED:
            return self.error is not None and isinstance(operation.error, type(self.error))
        return True

    def __str__(self) -> str:
        if self.state < 0:
            return "waits"
        return stable_text(self.value) if self.error is None else f"raises {type(self.error).__name__}"


#: The answer of a model that has to wait.
BLOCKED = ModelAnswer()


class ModelStates:
    """The states of one model, numbered from 0, and what operations do in them.

    Args:
        model: makes the model in its first state: a class, or a function without arguments.  Or such a model itself.

    Raises:
        DefinitionRefused: it makes nothing that has operations.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._objects: list[Any] = []
        self._numbers: dict[Hashable, int] = {}
        self._answers: dict[tuple[int, Hashable], ModelAnswer] = {}
        # Arguments and results that are not plain values: they are never copied, or none would equal itself.
        # By id: each, and whether it equals itself only.
        self._atoms: dict[int, tuple[Any, bool]] = {}
        self.first = self._number(self._made())

    def _made(self) -> Any:
        is_factory = isinstance(self._model, type) or inspect.isroutine(self._model)
        if not is_factory and not (callable(self._model) and not hasattr(self._model, "step")):
            return copy.deepcopy(self._model)
        made = self._model()
        if inspect.iscoroutine(made):
            made.close()
            raise DefinitionRefused("model", "a class or a sync function that makes a sequential object", self._model)
        return made

    def full(self) -> bool:
        """Say whether there are so many states that it is time to begin anew."""
        return len(self._objects) > _MOST_STATES or len(self._atoms) > _MOST_ATOMS

    def signature(self, operation: Operation) -> Hashable:
        """Give what tells operations apart for the model."""
        self._keep((operation.args, operation.kwargs))
        given = (operation.name, operation.args, operation.kwargs)
        if hasattr(self._objects[0], operation.name):
            return self._key(given)
        return self._key((operation.task, given, operation.result, operation.answer))

    def answer(self, state: int, signature: Hashable, operation: Operation) -> ModelAnswer:
        """Say what `operation` does in `state`.

        Raises:
            DefinitionRefused: the model has neither a method of its name nor a method `step`.
        """
        known = self._answers.get((state, signature))
        if known is None:
            known = self._answers[state, signature] = self._done(state, operation)
        return known

    def object(self, state: int) -> Any:
        """Give a copy of the model in `state`.

        Raises:
            DefinitionRefused: it cannot be copied.
        """
        try:
            return copy.deepcopy(self._objects[state], {each: kept[0] for each, kept in self._atoms.items()})
        except Exception as error:
            expected = f"an object that copy.deepcopy copies ({type(error).__name__}: {error})"
            raise DefinitionRefused("model", expected, self._model) from error

    def _done(self, state: int, operation: Operation) -> ModelAnswer:
        model = self.object(state)
        try:
            value = self._called(model, operation)
        except Blocked:
            return BLOCKED
        except DefinitionRefused:
            raise
        except Exception as error:
            return ModelAnswer(error=error.with_traceback(None), state=self._number(model))
        return ModelAnswer(value, None, self._number(model))

    def _called(self, model: Any, operation: Operation) -> Any:
        method = getattr(model, operation.name, None)
        if method is not None:
            return _finished(method(*operation.args, **operation.kwargs))
        step = getattr(model, "step", None)
        if step is None:
            expected = f"a method {operation.name!r}, or a method step(operation)"
            raise DefinitionRefused(f"the model of a history with {operation.call}", expected, type(model))
        return _finished(step(operation))

    def _number(self, model: Any) -> int:
        number = self._numbers.setdefault(self._key(model), len(self._objects))
        if number == len(self._objects):
            self._objects.append(model)
        return number

    def _key(self, value: Any) -> Hashable:
        """Give what two values have in common only when they are equal all the way down."""
        # Arguments without an equality of their own are equal when they are the same.
        seen = (
            {each: -1 - place for place, each in enumerate(self._atoms) if self._atoms[each][1]} if self._atoms else {}
        )
        return _key(value, seen)

    def _keep(self, value: Any) -> None:
        if type(value) in (tuple, list, set, frozenset, deque):
            for item in value:
                self._keep(item)
        elif type(value) is dict:
            self._keep(tuple(value.values()))
        elif type(value) not in _PLAIN:
            self._atoms[id(value)] = (value, not _has_own_equality(type(value)))


def _finished(value: Any) -> Any:
    """Run a coroutine of a model to its end.

    Raises:
        Blocked: it waits for something.
    """
    if not inspect.iscoroutine(value):
        return value
    try:
        value.send(None)
    except StopIteration as stop:
        return stop.value
    value.close()
    raise Blocked("the model waits")


def _equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    try:
        return bool(one == other)
    except Exception:
        # What cannot be compared is compared by its text.
        return stable_text(one) == stable_text(other)


def _has_own_equality(kind: type) -> bool:
    own: Any = kind.__eq__
    return own is not object.__eq__ and kind.__hash__ is not None


def _key(value: Any, seen: dict[int, int]) -> Hashable:
    kind = type(value)
    if kind in _SIMPLE:
        return value  # type: ignore[no-any-return]
    if kind in _LEAVES:
        # True equals 1, and 0.0 equals -0.0.
        return kind, repr(value)
    if kind is tuple:
        return kind, tuple([_key(item, seen) for item in value])
    if isinstance(value, BaseException | type) or inspect.isroutine(value):
        return value
    if id(value) in seen:
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)
    if kind in (list, deque):
        return kind, tuple([_key(item, seen) for item in value])
    if kind in (set, frozenset):
        return kind, frozenset(_key(item, seen) for item in value)
    if isinstance(value, dict):
        own = _attributes(value, seen)
        return kind, tuple([(_key(name, seen), _key(item, seen)) for name, item in value.items()]), own
    if kind is bytearray:
        return kind, bytes(value)
    if _has_own_equality(kind):
        with suppress(TypeError):
            hash(value)
            return value  # type: ignore[no-any-return]
    if isinstance(value, list | deque | set):
        return kind, tuple([_key(item, seen) for item in value]), _attributes(value, seen)
    own = _attributes(value, seen)
    # An object without attributes that are seen equals itself only.
    return (kind, own) if own is not None else value


def _attributes(value: Any, seen: dict[int, int]) -> Hashable:
    """Give the key of an object's attributes; None: it has no place for any that can be seen."""
    found = attributes_of(value)
    return None if found is None else tuple([(name, _key(found[name], seen)) for name in sorted(found)])


def attributes_of(value: Any) -> dict[str, Any] | None:
    """Give an object's attributes, those in slots, too, by name; None: it has no place for any that can be seen."""
    found = dict(getattr(value, "__dict__", {}))
    has_slots = False
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name in ("__dict__", "__weakref__"):
                continue
            has_slots = True
            is_private = name.startswith("__") and not name.endswith("__")
            full = f"_{base.__name__.lstrip('_')}{name}" if is_private else name
            if hasattr(value, full):
                found[full] = getattr(value, full)
    if not has_slots and not hasattr(value, "__dict__"):
        return None
    return found
