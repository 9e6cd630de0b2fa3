"""Type hints with constraints and texts: each is understood, or the definition is refused.

Rules.
    1. Metadata of ``Annotated`` is understood where it stands in a parameter's hint, at any depth, and in a
       ``TypedDict``: `msgspec.Meta`, a text or a ``Doc`` (the description), the constraints of ``annotated_types``, and
       ``pydantic.Field`` with constraints, texts and a dictionary as ``json_schema_extra``.
    2. Everything else there is refused: a check that is not made and a text that no model is shown must not look made.
    3. In the fields of other classes msgspec reads its own metadata alone, so any other kind is refused there.

Theory.  Metadata is recognised by the name and the module of its class, so that neither library has to be installed.
Of two bounds of one kind the stricter counts.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from toolrt.errors import DefinitionRefused

#: What `annotated_types` calls its bounds, and msgspec's name for each.
_BOUNDS: Mapping[str, str] = {
    "Ge": "ge", "Gt": "gt", "Le": "le", "Lt": "lt",
    "MultipleOf": "multiple_of", "MinLen": "min_length", "MaxLen": "max_length",
}  # fmt: skip
#: Of two values of one kind, the one that counts.
_STRICTER: Mapping[str, Callable[[Any, Any], Any]] = {
    "ge": max, "gt": max, "le": min, "lt": min, "min_length": max, "max_length": min,
    "description": lambda one, other: f"{one} {other}",
}  # fmt: skip
_META = ("ge", "gt", "le", "lt", "multiple_of", "pattern", "min_length", "max_length", "tz")
_TOLD = ("title", "description", "examples", "extra_json_schema", "extra")
#: What of a ``pydantic.Field`` is in its own metadata, or is so anyway: input is never coerced.
_FIELD_BOUNDS = {*_META, "strict", "annotation"}

_EXPECTED = "constraints and texts that the schema can hold (msgspec.Meta, annotated_types, pydantic.Field, a text)"


def understood(hint: Any, where: str, meta: type) -> Any:
    """The `hint` with all its metadata as `meta`, the class that msgspec reads.

    Args:
        where: names the hint in errors.

    Raises:
        DefinitionRefused: something in it would be dropped.
    """
    return _Hints(where, meta).translated(hint)


def refuse_field_default(default: Any, where: str) -> None:
    """Refuse a ``pydantic.Field`` in the place of a default.

    Raises:
        DefinitionRefused: `default` is one.
    """
    if _is_field(default):
        raise DefinitionRefused(where, "a default; a Field belongs into Annotated[..., Field(...)]", default)


def _named(value: object, room: str) -> set[str]:
    """The names of the classes of `value` that are made in the package `room`."""
    return {made.__name__ for made in type(value).__mro__ if made.__module__.split(".")[0] == room}


def _is_field(value: object) -> bool:
    return "FieldInfo" in _named(value, "pydantic")


class _Hints:
    """The translation of one parameter's hint."""

    def __init__(self, where: str, meta: type) -> None:
        self._where = where
        self._meta: Any = meta
        #: The types whose fields are being looked at, so that one which refers to itself is looked at once.
        self._looking: list[Any] = []

    def translated(self, hint: Any) -> Any:
        value = getattr(hint, "__value__", None)
        if value is not None and type(hint).__name__ == "TypeAliasType":
            return self.translated(value)
        if isinstance(hint, typing.NewType):
            inner = self.translated(hint.__supertype__)
            return hint if inner is hint.__supertype__ else inner
        origin = get_origin(hint)
        if origin is None:
            return self._of_class(hint)
        if origin is Annotated:
            return self._annotated(*get_args(hint))
        if origin is typing.Literal:
            return hint
        args = get_args(hint)
        new = tuple(self.translated(arg) if _is_hint(arg) else arg for arg in args)
        if isinstance(origin, type):
            self._of_class(origin)
        if all(one is other for one, other in zip(args, new, strict=True)):
            return hint
        if origin in (Union, types.UnionType):
            return Union[new]  # noqa: UP007  made of values
        return hint.copy_with(new) if hasattr(hint, "copy_with") else origin[new if len(new) > 1 else new[0]]

    def _annotated(self, base: Any, *metadata: Any) -> Any:
        inner = self.translated(base)
        found: dict[str, Any] = {}
        for one in metadata:
            for key, value in self._parts(one):
                if key not in found or found[key] == value:
                    found[key] = value
                elif key in _STRICTER:
                    found[key] = _STRICTER[key](found[key], value)
                else:
                    self._refuse(f"{key} twice: {found[key]!r} and {value!r}")
        if not found:
            return inner
        bounds = {key: value for key, value in found.items() if key in _META}
        members = [arg for arg in get_args(inner) if arg is not type(None)]
        if bounds and get_origin(inner) in (Union, types.UnionType) and len(members) == 1:
            # The bound is one of the value, where there is one.
            inner = Union[self._annotated(members[0], self._made(bounds)), None]  # noqa: UP007  made of values
            found = {key: value for key, value in found.items() if key in _TOLD}
        if int in (inner, get_origin(inner), *get_args(inner)[:1]):
            found |= {
                key: int(value) for key, value in found.items() if isinstance(value, float) and value.is_integer()
            }
        return Annotated[inner, self._made(found)] if found else inner

    def _made(self, found: Mapping[str, Any]) -> Any:
        try:
            return self._meta(**found)
        except Exception as error:
            raise DefinitionRefused(self._where, _EXPECTED, f"{dict(found)!r} ({error})") from None

    def _parts(self, one: Any) -> Iterator[tuple[str, Any]]:
        """What a piece of metadata says, in msgspec's words."""
        if one is None:
            return
        documentation = getattr(one, "documentation", None)
        if isinstance(one, str):
            yield "description", one
        elif isinstance(one, self._meta):
            yield from ((key, getattr(one, key)) for key in (*_META, *_TOLD) if getattr(one, key) is not None)
        elif isinstance(documentation, str):
            yield "description", documentation
        elif _is_field(one):
            yield from self._field(one)
        elif getattr(type(one), "__is_annotated_types_grouped_metadata__", False):
            for part in one:
                yield from self._parts(part)
        elif bounds := _named(one, "annotated_types") & set(_BOUNDS):
            key = _BOUNDS[bounds.pop()]
            yield key, getattr(one, key)
        elif _named(one, "pydantic") & {"Strict", "_PydanticGeneralMetadata"}:
            for key, value in vars(one).items():
                if key == "pattern":
                    yield key, self._pattern(value)
                elif value is not None and not (key == "strict" and value is True):
                    self._refuse(f"{key}={value!r}")
        else:
            self._refuse(repr(one))

    def _field(self, field: Any) -> Iterator[tuple[str, Any]]:
        given = getattr(field, "_attributes_set", None)
        if not isinstance(given, Mapping):
            self._refuse(f"{field!r}, of a pydantic that is not known here")
        for key, value in typing.cast("Mapping[str, Any]", given).items():
            if key == "json_schema_extra" and isinstance(value, Mapping):
                yield "extra_json_schema", dict(value)
            elif key in ("title", "description", "examples"):
                if value is not None:
                    yield key, value
            elif key not in _FIELD_BOUNDS or (key == "strict" and value is False):
                self._refuse(f"Field({key}={value!r})")
        for one in field.metadata:
            yield from self._parts(one)

    def _pattern(self, value: Any) -> str:
        if isinstance(value, re.Pattern):
            if value.flags & ~re.UNICODE:
                self._refuse(f"a pattern with flags, {value!r}")
            value = value.pattern
        return typing.cast(str, value)

    def _refuse(self, what: str) -> None:
        raise DefinitionRefused(
            self._where, _EXPECTED, f"{what}, which would be dropped: give the tool a schema= of its own"
        )

    # Classes with fields

    def _of_class(self, made: Any) -> Any:
        fields = _fields(made)
        if not fields:
            return made
        if made in self._looking:
            return made
        self._looking.append(made)
        if not typing.is_typeddict(made):
            for name, hint in fields.items():
                if foreign := next(self._foreign(hint), None):
                    what = f"{foreign!r} at field {name} of {made.__name__}"
                    raise DefinitionRefused(
                        self._where, "msgspec.Meta in the fields of a class", f"{what}, which is dropped"
                    )
            for name, field in getattr(made, "__dataclass_fields__", {}).items():
                refuse_field_default(field.default, f"{self._where}, field {name} of {made.__name__}")
            return made
        new = {name: self.translated(_bare(hint)) for name, hint in fields.items()}
        self._looking.pop()
        if all(new[name] is _bare(hint) for name, hint in fields.items()):
            return made
        optional: Any = typing.NotRequired
        total = {name: hint if _is_required(made, name, fields[name]) else optional[hint] for name, hint in new.items()}
        make: Any = typing.TypedDict
        rebuilt = make(made.__name__, total)
        rebuilt.__doc__ = made.__doc__
        return rebuilt

    def _foreign(self, hint: Any) -> Iterator[Any]:
        """The metadata in a field's hint that msgspec does not read."""
        if get_origin(hint) is Annotated:
            yield from (one for one in get_args(hint)[1:] if one is not None and not isinstance(one, self._meta))
            hint = get_args(hint)[0]
        if isinstance(hint, typing.NewType):
            yield from self._foreign(hint.__supertype__)
        if get_origin(hint) is not typing.Literal:
            for arg in get_args(hint):
                if _is_hint(arg):
                    yield from self._foreign(arg)
        self._of_class(get_origin(hint) or hint)


def _is_hint(value: Any) -> bool:
    return value is not ... and not isinstance(value, list | str)


def _bare(hint: Any) -> Any:
    """A field's hint without ``Required`` and ``NotRequired``."""
    while get_origin(hint) in (typing.Required, typing.NotRequired):
        (hint,) = get_args(hint)
    return hint


def _is_required(made: Any, name: str, hint: Any) -> bool:
    """Whether a TypedDict must have the field; its own list does not see marks in hints that are written as text."""
    mark = get_origin(hint)
    return mark is typing.Required or (mark is not typing.NotRequired and name in made.__required_keys__)


def _fields(made: Any) -> Mapping[str, Any]:
    """The hints of a class that has fields: a TypedDict, a dataclass, one of attrs, a NamedTuple or a Struct."""
    if not isinstance(made, type):
        return {}
    marks = ("__dataclass_fields__", "__attrs_attrs__", "__struct_fields__", "_fields", "__required_keys__")
    if not any(hasattr(made, mark) for mark in marks):
        return {}
    try:
        return typing.get_type_hints(made, include_extras=True)
    except Exception:
        return {}  # names that cannot be found: msgspec says so
