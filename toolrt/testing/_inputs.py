"""Inputs that fit a JSON schema, as a Hypothesis strategy; calls of one batch often have the same values in them.

Rules.
    1. Fields of one schema draw from one pool of one to three values, whatever they are called and whichever tool has
       them: so two calls often name the same resource.
    2. What the caller gives for a field's name outranks the schema.
    3. A keyword that is not looked at here is checked by the tool itself: an input that it refuses is drawn again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

Schema = Mapping[str, Any]
Strategy = st.SearchStrategy[Any]

# What says nothing about which values fit.
_TITLES = ("title", "description", "default", "examples", "deprecated", "$defs", "definitions")
_POOL = 3
_ITEMS = 3


def inputs(schema: Schema, values: Mapping[str, Strategy], fits: Callable[[Any], bool]) -> Strategy:
    """Give a strategy of inputs.

    Args:
        schema: a JSON schema of an object; references in it are local.
        values: strategies by the names of fields, at any depth.
        fits: says whether the tool takes an input.
    """
    return _Schemas(schema, values).of(schema).filter(fits)


class _Schemas:
    """The strategies of one schema's parts."""

    def __init__(self, root: Schema, values: Mapping[str, Strategy]) -> None:
        self._root = root
        self._values = values
        self._named: dict[str, Strategy] = {}

    def of(self, schema: Any) -> Strategy:
        """Give the strategy of one part."""
        if schema is False:
            return st.nothing()
        if schema is True or not schema:
            return _ANYTHING
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return _pooled(schema, st.sampled_from(list(schema["enum"])))
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return st.one_of([self.of({**_rest(schema, several), **part}) for part in schema[several]])
        if "allOf" in schema:
            merged = _rest(schema, "allOf")
            for part in schema["allOf"]:
                merged = _merged(merged, self._resolved(part))
            return self.of(merged)
        kinds = schema.get("type", _kind_of(schema))
        if isinstance(kinds, list):
            return st.one_of([self.of({**schema, "type": kind}) for kind in kinds])
        if kinds == "object":
            return self._object(schema)
        if kinds == "array":
            return self._array(schema)
        return _pooled(schema, _leaf(kinds, schema))

    def _reference(self, reference: str) -> Strategy:
        if reference not in self._named:
            # A schema may hold itself: it is looked up when it is drawn from.
            self._named[reference] = st.deferred(lambda: self.of(self._resolved({"$ref": reference})))
        return self._named[reference]

    def _resolved(self, schema: Schema) -> Schema:
        if "$ref" not in schema:
            return schema
        found: Any = self._root
        for part in schema["$ref"].lstrip("#/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")]
        return {**found, **_rest(schema, "$ref")}

    def _object(self, schema: Schema) -> Strategy:
        needed = schema.get("required", ())
        parts = {**dict.fromkeys(needed, True), **schema.get("properties", {})}
        fields = {name: self._values[name] if name in self._values else self.of(part) for name, part in parts.items()}
        known = st.fixed_dictionaries(
            {name: fields[name] for name in needed}, optional={n: fields[n] for n in fields if n not in needed}
        )
        others = schema.get("additionalProperties")
        least = schema.get("minProperties", 0)
        if not isinstance(others, Mapping) and not (others is True and not fields):
            return known
        keys = _pooled({"type": "string"}, _leaf("string", {})).filter(lambda name: name not in fields)
        more = st.dictionaries(keys, self.of(others), min_size=max(0, least - len(fields)), max_size=_ITEMS)
        return st.builds(lambda first, second: {**second, **first}, known, more)

    def _array(self, schema: Schema) -> Strategy:
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        first = [self.of(part) for part in schema.get("prefixItems", ())]
        items = schema.get("items", not first)
        if items is False:
            return st.tuples(*first).map(list)
        rest = st.lists(
            self.of(items),
            min_size=max(0, least - len(first)),
            max_size=int(min(most - len(first), max(_ITEMS, least))),
            unique_by=_as_text if schema.get("uniqueItems") else None,
        )
        return st.builds(lambda head, tail: [*head, *tail], st.tuples(*first), rest)


def _leaf(kind: str | None, schema: Schema) -> Strategy:
    if kind == "string":
        return _text(schema)
    if kind == "integer":
        return _whole(schema)
    if kind == "number":
        step = schema.get("multipleOf")
        if step is not None:
            return _whole(schema, step).map(lambda times: times * step)
        return st.floats(
            schema.get("minimum", schema.get("exclusiveMinimum")),
            schema.get("maximum", schema.get("exclusiveMaximum")),
            exclude_min="exclusiveMinimum" in schema and "minimum" not in schema,
            exclude_max="exclusiveMaximum" in schema and "maximum" not in schema,
            allow_nan=False,
            allow_infinity=False,
        )
    return {"boolean": st.booleans(), "null": st.none()}.get(kind or "", _ANYTHING)


def _whole(schema: Schema, step: float | None = None) -> Strategy:
    step = step or schema.get("multipleOf", 1)
    least, most = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        least = max(schema["exclusiveMinimum"] + 1, -math.inf if least is None else least)
    if "exclusiveMaximum" in schema:
        most = min(schema["exclusiveMaximum"] - 1, math.inf if most is None else most)
    times = st.integers(
        None if least is None else math.ceil(least / step), None if most is None else math.floor(most / step)
    )
    return times if isinstance(step, float) else times.map(lambda number: number * step)


def _text(schema: Schema) -> Strategy:
    made: Strategy | None = _FORMATS.get(schema.get("format", ""))
    if made is None and "pattern" in schema:
        made = st.from_regex(schema["pattern"])
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if made is None:
        return st.text(min_size=least, max_size=most if most is not None else least + 5)
    return made.filter(lambda text: least <= len(text) <= (math.inf if most is None else most))


_FORMATS: dict[str, Strategy] = {
    "date-time": st.datetimes().map(lambda moment: f"{moment.isoformat()}Z"),
    "date": st.dates().map(lambda day: day.isoformat()),
    "time": st.times().map(lambda moment: f"{moment.isoformat()}Z"),
    "uuid": st.uuids().map(str),
    "email": st.emails(),
}

_ANYTHING: Strategy = st.shared(
    st.lists(st.integers(0, 9) | st.text("ab", min_size=1, max_size=2), min_size=1, max_size=_POOL),
    key="toolrt.testing.batches: anything",
).flatmap(st.sampled_from)


def _pooled(schema: Schema, leaf: Strategy) -> Strategy:
    """Values of `leaf`; one example has few different ones."""
    key: Hashable = f"toolrt.testing.batches: {_as_text({k: v for k, v in schema.items() if k not in _TITLES})}"
    pool: st.SearchStrategy[Sequence[Any]] = st.lists(leaf, min_size=1, max_size=_POOL)
    return st.shared(pool, key=key).flatmap(st.sampled_from)


def _kind_of(schema: Schema) -> str | None:
    """The type that a schema means which names none."""
    for kind, words in (
        ("object", ("properties", "required", "additionalProperties")),
        ("array", ("items", "prefixItems", "minItems")),
        ("string", ("pattern", "format", "minLength", "maxLength")),
        ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
    ):
        if any(word in schema for word in words):
            return kind
    return None


def _rest(schema: Schema, word: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != word and name not in _TITLES}


def _merged(one: Schema, other: Schema) -> dict[str, Any]:
    both = {**one, **other}
    if "properties" in one and "properties" in other:
        both["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        both["required"] = [*dict.fromkeys([*one["required"], *other["required"]])]
    return both


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
