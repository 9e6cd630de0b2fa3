"""A check against the plain part of JSON Schema, for when jsonschema-rs is not installed.

Known are ``type``, ``enum``, ``anyOf``, ``properties``, ``required``, ``additionalProperties: false``, ``items``,
``minimum``, ``maximum`` and references below ``$defs``: what derived schemas are made of.  Anything else in a schema is
passed over: here a check may accept what the full one refuses.  The other way round only ``1.0`` is no integer here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolrt.model._mismatch import NOTHING, Wrong

#: How deep references and values are followed.
_DEEPEST = 50


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "number": lambda value: _is_integer(value) or isinstance(value, float),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list | tuple),
    "object": lambda value: isinstance(value, Mapping),
}


def wrong_with(schema: Mapping[str, Any], value: Any) -> Iterator[Wrong]:
    """All that is wrong with `value`, by the part of `schema` that is known here; looked for as it is asked for."""
    return _wrong(schema, value, (), schema, 0)


def _wrong(
    schema: Any, value: Any, where: tuple[str | int, ...], root: Mapping[str, Any], depth: int
) -> Iterator[Wrong]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        schema = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})
    kinds = schema.get("type")
    known = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds or []) if kind in _TYPES]
    if known and not any(_TYPES[kind](value) for kind in known):
        yield where, " or ".join(known), value
        return
    if "enum" in schema and value not in schema["enum"]:
        yield where, "one of " + ", ".join(map(repr, schema["enum"])), value
    choices = schema.get("anyOf")
    if choices:
        answers = [list(_wrong(choice, value, where, root, depth + 1)) for choice in choices]
        if all(answers):
            # What is wrong inside the only choice of the value's own kind says more than that none fits.
            inner = [answer for answer in answers if any(place != where for place, _, _ in answer)]
            if len(inner) == 1:
                yield from inner[0]
            else:
                yield where, " or ".join(dict.fromkeys(answer[0][1] for answer in answers)), value
    if _TYPES["number"](value):
        if value < schema.get("minimum", value):
            yield where, f"at least {schema['minimum']}", value
        if value > schema.get("maximum", value):
            yield where, f"at most {schema['maximum']}", value
    if isinstance(value, Mapping):
        yield from _wrong_object(schema, value, where, root, depth)
    elif isinstance(value, list | tuple) and "items" in schema:
        for index, item in enumerate(value):
            yield from _wrong(schema["items"], item, (*where, index), root, depth + 1)


def _wrong_object(
    schema: Mapping[str, Any],
    value: Mapping[Any, Any],
    where: tuple[str | int, ...],
    root: Mapping[str, Any],
    depth: int,
) -> Iterator[Wrong]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield (*where, name), "a value (it is required)", NOTHING
    for name, item in value.items():
        if name in properties:
            yield from _wrong(properties[name], item, (*where, name), root, depth + 1)
        elif schema.get("additionalProperties") is False:
            yield (*where, str(name)), "no such field", item
