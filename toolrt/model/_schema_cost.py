"""What a check against a JSON schema may cost, counted before anything is checked against it.

Rules.
    1. A schema refers to itself only (``#...``); nothing is fetched.
    2. What a check against it can cost is known before: the subschemas that one part of a value can be held against,
       with all references followed, are counted, and there is a most.  A schema that refers to itself in a way that
       grows is bounded by how deep its inputs may be nested.
    3. What is beyond is refused, with the reason, when the tool is defined.

Theory.  Validators follow ``$ref`` and applicators as often as they stand there: 22 definitions, each ``allOf`` the one
before twice, are four million checks of one value (measured with jsonschema-rs 0.60.3: 18 of them take 5.8 s to list
the errors of ``{}``).  The cost of a schema at a value nested ``d`` deep is one, and the cost at ``d`` of each
subschema that is applied to the same value, and the cost at ``d - 1`` of each that is applied to one part of it.  One
part has one name or place, so of the schemas that are stated for single names the dearest counts; and a value is an
object or an array.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from toolrt._plain import NESTING_MOST, counted, deeper_than
from toolrt.model._mismatch import clipped_repr

#: Subschemas that one value may be held against: about a second's work, where all of them fail.
_COST_MOST = 10_000

#: Subschemas that a schema may have, whatever they cost.
_NODES_MOST = 10_000

#: Levels of nesting that an input must be allowed to have; a schema that grows too fast for it is refused.
_LEVELS_LEAST = 4

#: Keywords whose value is a schema, or a list of such, for the same value.
_SAME = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
#: Keywords whose value is a map of schemas for the same value.
_SAME_MAPS = ("dependentSchemas", "dependencies")
#: Keywords whose value is a schema for each element of an array, or a list of schemas for one element each.
_ELEMENT = ("additionalItems", "contains", "items", "prefixItems", "unevaluatedItems")
#: Keywords whose value is a schema for each field of an object, or its name, or what a text holds.
_FIELD = ("additionalProperties", "contentSchema", "propertyNames", "unevaluatedProperties")

#: References whose target depends on who refers; in one document they have one.
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
#: Schemas that validators have with them: those of JSON Schema itself.
_KNOWN = ("http://json-schema.org/", "https://json-schema.org/")

#: What a pattern that may go back and forth costs, beside one that cannot.
_LOOKING_BACK = re.compile(r"\(\?[=!<>]|\\[1-9k]")
_LOOKING_BACK_COST = 1_000


class TooMuch(ValueError):
    """A schema is not used.

    Attributes:
        expected: what was expected.
        got: what it is.
    """

    def __init__(self, expected: str, got: str) -> None:
        self.expected = expected
        self.got = got
        super().__init__(f"expected {expected}, got {got}")


def bounds_of(schema: object) -> tuple[int, int]:
    """How deep inputs of this schema may be nested, and how many checks one value of them may cost, 1 or more.

    Raises:
        TooMuch: it is no object, refers to something else than itself, or may cost too much.
    """
    if not isinstance(schema, Mapping):
        raise TooMuch("a JSON object", type(schema).__name__)
    if deeper_than(schema, NESTING_MOST):
        raise TooMuch(f"at most {NESTING_MOST} levels of nesting", "more")
    graph = _Graph(schema)
    costs = [0] * len(graph.nodes)
    for level in range(NESTING_MOST + 1):
        deeper = graph.costs(costs)
        if deeper[0] > _COST_MOST:
            if level <= _LEVELS_LEAST:
                raise TooMuch(
                    f"one that holds a value against at most {_COST_MOST:,} subschemas",
                    f"more for an input of {counted(level, 'level')}",
                )
            return level - 1, costs[0]
        if deeper == costs:
            break
        costs = deeper
    return NESTING_MOST, costs[0]


class _Graph:
    """The subschemas of a schema, by number: which of them are applied to the same value, and which to parts of it."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self.nodes: list[Mapping[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._own: list[int] = []
        self._same: list[list[int]] = []
        #: For all fields of an object, and for one each.
        self._fields: list[tuple[list[int], list[int]]] = []
        #: The same for the elements of an array.
        self._elements: list[tuple[list[int], list[int]]] = []
        self._anchors: dict[str, Mapping[str, Any]] | None = None
        self._number(schema)
        done = 0
        while done < len(self.nodes):
            self._look_at(self.nodes[done], done)
            done += 1
        self._order = self._sorted()

    def costs(self, below: list[int]) -> list[int]:
        """The cost of each at one level more than where they cost `below`."""
        found: list[list[int]] = []
        for parts in (self._fields, self._elements):
            costs = [0] * len(self.nodes)
            for node in self._order:
                each, single = parts[node]
                cost = self._own[node] + sum(costs[one] for one in self._same[node]) + sum(below[one] for one in each)
                costs[node] = min(cost + max((below[one] for one in single), default=0), 2 * _COST_MOST)
            found.append(costs)
        return list(map(max, *found))

    def _number(self, schema: object) -> int | None:
        if not isinstance(schema, Mapping):
            return None  # true and false cost nothing
        number = self._numbers.get(id(schema))
        if number is None:
            number = self._numbers[id(schema)] = len(self.nodes)
            if number == _NODES_MOST:
                raise TooMuch(f"at most {_NODES_MOST:,} subschemas", "more")
            self.nodes.append(schema)
            self._own.append(_own_cost(schema))
            self._same.append([])
            self._fields.append(([], []))
            self._elements.append(([], []))
        return number

    def _look_at(self, schema: Mapping[str, Any], number: int) -> None:
        if number and isinstance(schema.get("$id"), str):
            raise TooMuch("one document", f"a part with an $id of its own: {clipped_repr(schema['$id'])}")
        for keyword in _REFERENCES:
            if keyword in schema:
                self._note(self._same[number], self._target(schema[keyword]))
        same, (each_field, one_field) = self._same[number], self._fields[number]
        for keyword in _SAME:
            value = schema.get(keyword)
            self._note(same, *(value if isinstance(value, list) else [value]))
        for keyword in _SAME_MAPS:
            self._note_map(same, schema.get(keyword))
        self._note_map(one_field, schema.get("properties"))
        self._note_map(each_field, schema.get("patternProperties"))
        self._note(each_field, *(schema.get(keyword) for keyword in _FIELD))
        for keyword in _ELEMENT:
            value = schema.get(keyword)
            if isinstance(value, list):
                self._note(self._elements[number][1], *value)
            else:
                self._note(self._elements[number][0], value)

    def _note_map(self, into: list[int], value: object) -> None:
        if isinstance(value, Mapping):
            self._note(into, *value.values())

    def _note(self, into: list[int], *schemas: object) -> None:
        into.extend(number for number in map(self._number, schemas) if number is not None)

    def _target(self, reference: object) -> object:
        if isinstance(reference, str):
            if reference.startswith(_KNOWN):
                return None
            root = self._root.get("$id")
            reference = reference.removeprefix(root.rstrip("#")) if isinstance(root, str) else reference
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise TooMuch(
                "references to itself (#...), as it refers only to itself",
                f"one to {clipped_repr(reference)}: nothing is fetched",
            )
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            if self._anchors is None:
                self._anchors = dict(_anchors(self._root))
            if pointer not in self._anchors:
                raise TooMuch("a reference to something that is there", clipped_repr(reference))
            return self._anchors[pointer]
        found: Any = self._root
        for raw in pointer.split("/")[1:]:
            key = raw.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise TooMuch("a reference to something that is there", clipped_repr(reference))
        return found

    def _sorted(self) -> list[int]:
        """The nodes, each after those that are applied to the same value as it."""
        order: list[int] = []
        state = [0] * len(self.nodes)
        for start in range(len(self.nodes)):
            if state[start]:
                continue
            state[start] = 1
            above: list[tuple[int, Iterator[int]]] = [(start, iter(self._same[start]))]
            while above:
                node, left = above[-1]
                for one in left:
                    if state[one] == 1:
                        raise TooMuch("an end", "a subschema that refers to itself for the same value")
                    if state[one] == 0:
                        state[one] = 1
                        above.append((one, iter(self._same[one])))
                        break
                else:
                    state[node] = 2
                    order.append(node)
                    above.pop()
        return order


def _own_cost(schema: Mapping[str, Any]) -> int:
    """What the keywords of `schema` cost that apply no other schema."""
    pattern, choices = schema.get("pattern"), schema.get("enum")
    looks_back = isinstance(pattern, str) and _LOOKING_BACK.search(pattern) is not None
    return (_LOOKING_BACK_COST if looks_back else 1) + (len(choices) // 100 if isinstance(choices, list) else 0)


def _anchors(value: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(one.get(keyword), str):
                    yield one[keyword], one
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
