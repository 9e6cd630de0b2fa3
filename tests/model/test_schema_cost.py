"""Schemas that strangers wrote: what is used, and what is refused before anything is held against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrt.model import _schema_cost
from toolrt.model._schema_cost import TooMuch, bounds_of


def _doubling(times: int, keyword: str) -> dict[str, Any]:
    """Each definition is the one before, twice: 2 ** `times` checks of one value."""
    definitions: dict[str, Any] = {"d0": {"minProperties": 1}}
    for number in range(1, times + 1):
        definitions[f"d{number}"] = {keyword: [{"$ref": f"#/$defs/d{number - 1}"}] * 2}
    return {"type": "object", "$defs": definitions, "properties": {"x": {"$ref": f"#/$defs/d{times}"}}}


_ANY_JSON = {
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": {"$ref": "#/$defs/any"}},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/any"}},
    ]
}

USED = {
    "nothing said": {"type": "object"},
    "of another draft": {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#", "definitions": {}},
    "with an id of its own": {"type": "object", "$id": "https://example.org/x", "properties": {"a": {"$ref": "#"}}},
    "a list": {"type": "object", "properties": {"next": {"$ref": "#"}}},
    "a tree": {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}},
    "any JSON": {"type": "object", "$defs": {"any": _ANY_JSON}, "properties": {"x": {"$ref": "#/$defs/any"}}},
    "an anchor": {"type": "object", "$defs": {"a": {"$anchor": "here"}}, "properties": {"x": {"$ref": "#here"}}},
    "an escaped name": {"type": "object", "$defs": {"a/b~c": {}}, "properties": {"x": {"$ref": "#/$defs/a~1b~0c"}}},
    "a place in a list": {
        "type": "object",
        "allOf": [{"minProperties": 0}],
        "properties": {"x": {"$ref": "#/allOf/0"}},
    },
    "a little doubling": _doubling(5, "allOf"),
    "no schema where one may stand": {"type": "object", "properties": {"x": True, "y": False}, "not": False},
}


@pytest.mark.parametrize("schema", USED.values(), ids=USED)
def test_ordinary_schema_is_used_at_any_depth(schema: object) -> None:
    """Recursion that goes into the value costs nothing more."""
    assert bounds_of(schema)[0] == 200


REFUSED = {
    "no object": (["x"], "expected a JSON object, got list"),
    "far away": ({"type": "object", "$ref": "https://example.org/x"}, "nothing is fetched"),
    "a file": ({"type": "object", "$ref": "file:///etc/passwd"}, "nothing is fetched"),
    "beside it": ({"type": "object", "$ref": "other.json#/x"}, "nothing is fetched"),
    "no text": ({"type": "object", "$ref": 7}, "nothing is fetched"),
    "nowhere": ({"type": "object", "$ref": "#/$defs/x"}, "something that is there"),
    "no such anchor": ({"type": "object", "$ref": "#x"}, "something that is there"),
    "another base": ({"type": "object", "properties": {"x": {"$id": "http://127.0.0.1/"}}}, "an $id of its own"),
    "no such dynamic anchor": ({"type": "object", "$dynamicRef": "#x"}, "something that is there"),
    "itself": ({"type": "object", "$ref": "#"}, "refers to itself for the same value"),
    "itself, in a circle": (
        {
            "type": "object",
            "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}},
            "$ref": "#/$defs/a",
        },
        "refers to itself for the same value",
    ),
    "doubling": (_doubling(30, "allOf"), "more for an input of 1 level"),
    "doubling by choice": (_doubling(30, "oneOf"), "at most 10,000 subschemas"),
    "very many": ({"type": "object", "properties": {f"p{n}": {} for n in range(20_000)}}, "at most 10,000 subschemas"),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "said"), REFUSED.values(), ids=REFUSED)
def test_hostile_schema_is_refused_with_the_reason(schema: object, said: str) -> None:
    """Before a validator sees it."""
    with pytest.raises(TooMuch) as refused:
        bounds_of(schema)
    assert said in str(refused.value)


def test_deep_schema_is_refused() -> None:
    """Nothing that walks it recursively may fail."""
    schema: dict[str, Any] = {"type": "object"}
    inner = schema
    for _ in range(300):
        inner["properties"] = {"x": {}}
        inner = inner["properties"]["x"]
    with pytest.raises(TooMuch, match="at most 200 levels"):
        bounds_of(schema)


_INTO = {
    "properties": lambda schema: {"properties": {"x": schema, "y": {}}},
    "patternProperties": lambda schema: {"patternProperties": {"^x": schema}},
    "additionalProperties": lambda schema: {"additionalProperties": schema},
    "items": lambda schema: {"items": schema},
    "items of an old draft": lambda schema: {"items": [{}, schema]},
    "prefixItems": lambda schema: {"prefixItems": [schema, {}]},
    "contains": lambda schema: {"contains": schema},
}


@pytest.mark.parametrize("into", _INTO.values(), ids=_INTO)
@pytest.mark.parametrize("choice", ["anyOf", "oneOf", "allOf"])
def test_schema_that_grows_bounds_its_inputs(choice: str, into: Callable[[Any], Any]) -> None:
    """Three choices, each of which looks into the same part: three times the work with each level."""
    growing = {choice: [into({"$ref": "#/$defs/growing"}) for _ in range(3)]}
    schema = {"type": "object", "$defs": {"growing": growing}, "properties": {"x": {"$ref": "#/$defs/growing"}}}
    assert bounds_of(schema)[0] in (5, 6, 7)


_LEAVES = st.sampled_from([{}, True, {"type": "object"}, {"$ref": "#"}, {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}])
_SCHEMAS = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds(
            lambda key, parts: {key: parts}, st.sampled_from(["allOf", "anyOf", "oneOf"]), st.lists(inner, max_size=4)
        ),
        st.builds(lambda key, part: {key: part}, st.sampled_from(["not", "additionalProperties", "items"]), inner),
        st.builds(lambda parts: {"properties": parts}, st.dictionaries(st.sampled_from("xy"), inner, max_size=2)),
        st.builds(lambda parts: {"prefixItems": parts}, st.lists(inner, max_size=2)),
        st.builds(lambda one, two: {**_mapping(one), **_mapping(two)}, inner, inner),
    ),
    max_leaves=20,
)
_VALUES = st.recursive(
    st.none(),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)),
    max_leaves=10,
)


def _mapping(schema: object) -> dict[str, Any]:
    return dict(schema) if isinstance(schema, dict) else {}


@given(_SCHEMAS, _SCHEMAS, _SCHEMAS, _VALUES)
def test_no_part_of_a_value_is_held_against_more_than_was_counted(root: Any, a: Any, b: Any, value: Any) -> None:
    """A validator that follows everything, as often as it stands there, is bounded by the count."""
    schema = {**_mapping(root), "type": "object", "$defs": {"a": a, "b": b}}
    # A most that small schemas reach.
    with mock.patch.multiple(_schema_cost, _COST_MOST=12, _LEVELS_LEAST=0):
        try:
            allowed, cost = bounds_of(schema)
        except TooMuch:
            return
    if _levels(value) > allowed:
        return
    visits: Counter[tuple[object, ...]] = Counter()
    _hold_against(schema, schema, value, (), visits)
    assert max(visits.values()) <= cost <= 12


def _levels(value: object) -> int:
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if parts is None else 1 + max(map(_levels, parts), default=0)


def _hold_against(root: Any, schema: Any, value: Any, path: tuple[object, ...], visits: Counter[Any]) -> None:
    if not isinstance(schema, dict):
        return
    visits[path] += 1
    if "$ref" in schema:
        target = root if schema["$ref"] == "#" else root["$defs"][schema["$ref"][-1]]
        _hold_against(root, target, value, path, visits)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(keyword, ()):
            _hold_against(root, part, value, path, visits)
    _hold_against(root, schema.get("not"), value, path, visits)
    for key, part in value.items() if isinstance(value, dict) else ():
        stated = schema.get("properties", {})
        _hold_against(root, stated.get(key), part, (*path, key), visits)
        _hold_against(root, schema.get("additionalProperties"), part, (*path, key), visits)
    for place, part in enumerate(value) if isinstance(value, list) else ():
        for stated in schema.get("prefixItems", ())[place : place + 1]:
            _hold_against(root, stated, part, (*path, place), visits)
        _hold_against(root, schema.get("items"), part, (*path, place), visits)
