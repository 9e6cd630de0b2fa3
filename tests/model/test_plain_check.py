"""The check against plain JSON schemas that needs no library."""

from __future__ import annotations

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrt.model._plain_check import NOTHING, wrong_with

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 3}, {"type": "null"}]},
        "kind": {"enum": ["a", "b", None]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
        "any": {},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {
        "Part": {
            "type": "object",
            "properties": {"on": {"type": ["boolean", "number"]}, "part": {"$ref": "#/$defs/Part"}},
            "required": ["on"],
        }
    },
}


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({"name": "x"}, []),
        ({}, [(("name",), "a value (it is required)", NOTHING)]),
        ({"name": 1}, [(("name",), "string", 1)]),
        ({"name": "x", "count": "1"}, [(("count",), "integer or null", "1")]),
        ({"name": "x", "count": 0}, [(("count",), "at least 1 or null", 0)]),
        ({"name": "x", "kind": "c"}, [(("kind",), "one of 'a', 'b', None", "c")]),
        ({"name": "x", "parts": [{}, 1]}, [
            (("parts", 0, "on"), "a value (it is required)", NOTHING), (("parts", 1), "object", 1)
        ]),
        ({"name": "x", "more": 1}, [(("more",), "no such field", 1)]),
        ([], [((), "object", [])]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(value, wrong):
    """Where, what was expected, and what was there."""
    assert list(wrong_with(SCHEMA, value)) == wrong


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 4) | st.sampled_from([0.5, 2.5]) | st.sampled_from(["a", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from([*SCHEMA["properties"], "on", "part", "more"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(
    value=JSON
    | JSON.map(lambda value: {"name": "x", "parts": [value]})
    | JSON.map(lambda value: {"name": "x", "count": value})
)
def test_plain_check_agrees_with_the_full_one(value):
    """For what derived schemas are made of."""
    assert (list(wrong_with(SCHEMA, value)) == []) is jsonschema_rs.is_valid(SCHEMA, value)


def test_schema_that_refers_to_itself_ends():
    """References are followed to a depth."""
    value = {"on": True}
    for _ in range(500):
        value = {"on": True, "part": value}
    assert list(wrong_with(SCHEMA, {"name": "x", "parts": [value]})) == []
    assert list(wrong_with({"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}}, 1)) == []
