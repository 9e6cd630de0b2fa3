"""From a function's type hints to the schema of its input, and a strict check against it.

Deriving needs the ``schema`` extra (msgspec, jsonschema-rs); a tool that gives its own schema, or says
``schema=None``, needs nothing.  A derived check is strict: no missing, no extra and no coerced values, at any
depth.  A schema that a tool brings along is never allowed to fetch another over the network.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import attrs

from toolrt.errors import DefinitionRefused, MissingExtra
from toolrt.model._hints import refuse_field_default, understood
from toolrt.model._mismatch import NOTHING, Mismatch, Mismatches, Wrong
from toolrt.model._schema_check import Schema, SchemaCheck, _checker

#: From so many fields on, names are looked at first: a schema's check makes a text of all that are unknown.
_FIELDS_MANY = 1_000


class Validator(Protocol):
    """Checks an input and lays it out as the function's arguments."""

    #: The JSON schema that models are shown.
    schema: Schema

    def __call__(self, input: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]] | Mismatches:
        """The positional and named arguments, or everything found wrong."""


@attrs.frozen
class _Parameters:
    """The parameters of a tool's function after its context."""

    positional: tuple[str, ...]
    named_only: tuple[str, ...]
    required: frozenset[str]
    defaults: Mapping[str, Any]
    open_ended: bool

    @classmethod
    def of(cls, signature: inspect.Signature) -> _Parameters:
        positional: list[str] = []
        named: list[str] = []
        required: set[str] = set()
        defaults: dict[str, Any] = {}
        open_ended = False
        for parameter in list(signature.parameters.values())[1:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                open_ended = True
                continue
            (named if parameter.kind is parameter.KEYWORD_ONLY else positional).append(parameter.name)
            if parameter.default is parameter.empty:
                required.add(parameter.name)
            else:
                defaults[parameter.name] = parameter.default
        return cls(tuple(positional), tuple(named), frozenset(required), defaults, open_ended)

    def mismatches(self, input: Mapping[str, Any]) -> Mismatches:
        """Missing and unknown names; says nothing about the values."""
        return Mismatches.of(self._wrong(input))

    def _wrong(self, input: Mapping[str, Any]) -> Iterator[Wrong]:
        known = (*self.positional, *self.named_only)
        for name in known:
            if name in self.required and name not in input:
                yield [name], "a value (it is required)", NOTHING
        if self.open_ended:
            return
        expected = f"no such field (the tool takes {', '.join(known) or 'no fields'})"
        names = frozenset(known)
        for name, value in input.items():
            if name not in names:
                yield [name], expected, value

    def arguments(self, input: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
        full = {name: _fresh(value) for name, value in self.defaults.items() if name not in input} | dict(input)
        positional = [full.pop(name) for name in self.positional]
        return positional, full


class BareValidator:
    """Checks names only: for a tool that says ``schema=None``."""

    def __init__(self, signature: inspect.Signature) -> None:
        self._parameters = _Parameters.of(signature)
        known = (*self._parameters.positional, *self._parameters.named_only)
        self._names = frozenset(known)
        self.schema: Schema = {
            "type": "object",
            "properties": {name: {} for name in known},
            "required": [name for name in known if name in self._parameters.required],
            "additionalProperties": self._parameters.open_ended,
        }

    def __call__(self, input: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]] | Mismatches:
        given = input.keys()
        if self._parameters.required <= given and (self._parameters.open_ended or given <= self._names):
            return self._parameters.arguments(input)
        return self._parameters.mismatches(input)


class GivenValidator:
    """Checks against a schema the tool brings along, and the names against the function.

    Without the ``schema`` extra, what the schema says of types and fields is checked, and no more of it.
    """

    def __init__(self, signature: inspect.Signature, schema: Schema, tool: str) -> None:
        self._parameters = _Parameters.of(signature)
        self.schema = schema
        self._check = SchemaCheck(schema, f"the schema of tool {tool!r}", _checker)

    def __call__(self, input: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]] | Mismatches:
        check, names = self._check.wrong_with, self._parameters.mismatches
        wrong = names(input) or check(input) if len(input) > _FIELDS_MANY else check(input) or names(input)
        return wrong or self._parameters.arguments(input)


class DerivedValidator:
    """A strict check whose schema comes from the type hints of `function`, whose first parameter is the context.

    Raises:
        MissingExtra: msgspec or jsonschema-rs is not installed.
        DefinitionRefused: a hint cannot be evaluated or has no schema.
    """

    def __init__(self, function: Callable[..., Any], tool: str) -> None:
        try:
            import msgspec
        except ImportError:
            raise MissingExtra(f"deriving the schema of tool {tool!r} from its type hints", "schema") from None
        signature = inspect.signature(function)
        self._parameters = _Parameters.of(signature)
        if self._parameters.open_ended:
            raise DefinitionRefused(
                f"tool {tool!r}", "named parameters, or a schema of its own, or schema=None", "**parameters"
            )
        self._msgspec = msgspec
        fields: list[Any] = []
        for name in (*self._parameters.positional, *self._parameters.named_only):
            where = f"parameter {name} of tool {tool!r}"
            refuse_field_default(self._parameters.defaults.get(name), where)
            hint = understood(hint_of(signature.parameters[name].annotation, function, tool), where, msgspec.Meta)
            if name in self._parameters.required:
                fields.append((name, hint))
            else:
                fields.append((name, hint, msgspec.field(default_factory=_constant(self._parameters.defaults[name]))))
        try:
            self._type = msgspec.defstruct(tool, fields, kw_only=True, forbid_unknown_fields=True)
            schema = msgspec.json.schema(self._type)
        except Exception as error:
            raise DefinitionRefused(
                f"the type hints of tool {tool!r}", "types that have a JSON schema", str(error)
            ) from None
        self.schema: Schema = _own_schema(schema, tool, self._parameters.defaults)
        self._nested = "$defs" in self.schema
        self._check: SchemaCheck | None = None
        self._tool = tool
        self._convert = msgspec.convert
        self._split = len(self._parameters.positional)
        self._astuple = msgspec.structs.astuple

    def __call__(self, input: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any]] | Mismatches:
        if len(input) > _FIELDS_MANY and (wrong := self._parameters.mismatches(input)):
            return wrong
        # msgspec ignores unknown keys of nested classes other than its own, so nested input is held
        # against the schema first.
        if self._nested and (wrong := self._held_against_schema(input)):
            return wrong
        try:
            values = self._astuple(self._convert(input, self._type, str_keys=True))
        except self._msgspec.ValidationError as error:
            return self._held_against_schema(input) or Mismatches([_from_message(str(error), input)])
        if not self._parameters.named_only:
            return values, {}
        return values[: self._split], dict(zip(self._parameters.named_only, values[self._split :], strict=True))

    def _held_against_schema(self, input: Mapping[str, Any]) -> Mismatches:
        if self._check is None:
            self._check = SchemaCheck(self.schema, f"the schema of tool {self._tool!r}", _checker)
        return self._check.wrong_with(input)


def hint_of(hint: Any, function: Callable[..., Any], tool: str) -> Any:
    """What a parameter's annotation stands for; one that is written as text is evaluated in its module.

    Only the parameters that a model fills count: the context's own may be known to type checkers alone.
    """
    if hint is inspect.Parameter.empty:
        return Any
    if not isinstance(hint, str):
        return hint
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    names = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return eval(hint, dict(names))
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise DefinitionRefused(f"the type hints of tool {tool!r}", "names that its module defines", what) from None


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: _fresh(value)


def _fresh(value: Any) -> Any:
    """A default as a call may have it for itself: what one call does to a list is not for the next."""
    return copy.copy(value) if isinstance(value, list | dict | set) else value


def _own_schema(schema: dict[str, Any], tool: str, defaults: Mapping[str, Any]) -> Schema:
    """The struct's own part on top, other types under ``$defs``, and no object open to unknown fields."""
    defs = dict(schema.get("$defs", {}))
    reference = schema.get("$ref", "")
    name = reference.rsplit("/", 1)[-1]
    own = dict(defs.pop(name, schema))
    own.pop("title", None)
    own["type"] = "object"
    own.setdefault("properties", {})
    own["additionalProperties"] = False
    for field, value in defaults.items():
        if value is None or isinstance(value, str | bool | int | float):
            own["properties"][field] = {**own["properties"].get(field, {}), "default": value}
        elif field in own["properties"]:
            own["properties"][field].pop("default", None)
    closed = {
        key: {**part, "additionalProperties": part.get("additionalProperties", False)} if "properties" in part else part
        for key, part in defs.items()
    }
    if closed:
        own["$defs"] = closed
    return own


def _from_message(message: str, input: Mapping[str, Any]) -> Mismatch:
    what, _, where = message.partition(" - at `$")
    path = "input" + where.rstrip("`")
    if what.startswith("Expected "):
        expected, _, got = what.removeprefix("Expected ").partition(", got ")
        return Mismatch(path, expected.replace("`", ""), got.replace("`", "") or "something else")
    return Mismatch(path, "what the tool's type hints say", what.replace("`", "'"))
