"""Holds inputs against a JSON schema, with bounded work.

Rules.
    1. What a schema may cost is counted when a tool is defined (`toolrt.model._schema_cost`), and a schema that may
       cost too much is refused.  So is one that is malformed; the refusal says where and what was expected.
    2. A call is checked where it is submitted, so a check holds up the event loop.  An input with more values than the
       schema's cost allows is refused unchecked.
    3. Saying what is wrong costs about a hundred times as much as seeing that something is.  Of an input that is too
       large for it, the first problem is told.
    4. A pattern gives up after `_BACKTRACKS` steps back; what it has not matched by then does not match.

Without the ``schema`` extra, what the schema says of types and fields is checked, and no more of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolrt._plain import deeper_than
from toolrt.errors import DefinitionRefused
from toolrt.model._mismatch import NOTHING, Mismatch, Mismatches, Words, Wrong, describe, path_of
from toolrt.model._plain_check import wrong_with
from toolrt.model._schema_cost import TooMuch, bounds_of

Schema = Mapping[str, Any]

#: Checks of one value against one subschema, about: 3 seconds' work in the worst case, far less in ordinary ones.
_CHECKS_MOST = 10_000_000
#: The same where everything that is wrong is told, or where jsonschema-rs is missing.
_TELLING_MOST = 200_000
#: Some 0.3 ms.
_BACKTRACKS = 100_000


class SchemaCheck:
    """A schema, ready to hold inputs against it.

    Args:
        schema: a JSON schema, which refers only to itself.
        what: what errors call it.
        made: makes the validator, None where there is none to be had; None: jsonschema-rs does, where it is installed.

    Raises:
        DefinitionRefused: it is malformed, or may cost too much.
    """

    def __init__(self, schema: Schema, what: str, made: Callable[[Schema, str], Any] | None = None) -> None:
        self._schema = schema
        try:
            #: How deep inputs may be nested, and what one value of them may cost.
            self.levels, self._cost = bounds_of(schema)
        except TooMuch as error:
            raise DefinitionRefused(what, error.expected, Words(error.got)) from None
        self._checker = (made or _checker)(schema, what)

    def wrong_with(self, input: Any) -> Mismatches:
        """What is wrong with `input`."""
        if deeper_than(input, self.levels):
            return Mismatches([Mismatch("input", f"at most {self.levels} levels of nesting", "more")])
        most = (_CHECKS_MOST if self._checker is not None else _TELLING_MOST) // self._cost
        if _has_more_values(input, most):
            return Mismatches([Mismatch("input", f"at most {most:,} values, by what its schema costs", "more")])
        if self._checker is None:
            return Mismatches.of(wrong_with(self._schema, input))
        try:
            if self._checker.is_valid(input):
                return Mismatches()
            if _has_more_values(input, _TELLING_MOST // self._cost):
                return Mismatches.of(_from_error(self._first(input)), "and perhaps more, in an input of this size")
            return Mismatches.of(one for error in self._checker.iter_errors(input) for one in _from_error(error))
        except ValueError as error:
            # jsonschema-rs refuses values that JSON cannot hold, such as a set or a huge nesting.
            return Mismatches([Mismatch("input", "JSON values", str(error).partition("\n")[0])])

    def _first(self, input: Any) -> Any:
        import jsonschema_rs

        try:
            self._checker.validate(input)
        except jsonschema_rs.ValidationError as error:
            return error
        raise AssertionError("it was not valid")


def _has_more_values(value: Any, most: int) -> bool:
    """Whether there are more than `most` values in `value`, itself counted."""
    left, found = [value], 1
    while left:
        one = left.pop()
        parts = one.values() if isinstance(one, Mapping) else one if isinstance(one, list | tuple) else ()
        found += len(parts)
        if found > most:
            return True
        left.extend(part for part in parts if isinstance(part, Mapping | list | tuple))
    return False


def _refuse_remote(uri: str) -> Any:
    raise ValueError(f"a tool's schema may not refer to {uri}: nothing is fetched")


def _checker(schema: Schema, what: str) -> Any:
    try:
        import jsonschema_rs
    except ImportError:
        return None
    try:
        options = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS)
        return jsonschema_rs.validator_for(dict(schema), retriever=_refuse_remote, pattern_options=options)
    except jsonschema_rs.ValidationError as error:
        where, expected, got = next(_from_error(_innermost(error), "what JSON Schema allows"))
        raise DefinitionRefused(what, f"{expected} at {path_of(where, 'schema')}", Words(describe(got))) from None
    except ValueError as error:
        first = str(error).partition("\n")[0] or "(no text)"
        raise DefinitionRefused(what, "a JSON schema that refers only to itself", first) from None


def _innermost(error: Any) -> Any:
    """Of what no choice fits, why the first that is not about the kind of the value does not."""
    while error.kind.name in ("anyOf", "oneOf"):
        reasons = [one for choice in error.kind.context for one in choice]
        told = [one for one in reasons if one.kind.name != "type"] or reasons
        if not told:
            break
        error = max(told, key=lambda one: len(one.instance_path))
    return error


def _from_error(error: Any, allowed: str = "what the schema allows") -> Iterator[Wrong]:
    where, kind = list(error.instance_path), error.kind
    if kind.name == "additionalProperties":
        for name in kind.unexpected:
            yield [*where, name], "no such field", Words(f"field {name}")
    elif kind.name == "required":
        yield [*where, kind.property], "a value (it is required)", NOTHING
    elif kind.name == "type":
        expected = kind.as_dict().get("types", error.message)
        yield where, " or ".join(expected) if isinstance(expected, list) else str(expected), error.instance
    else:
        yield where, f"{allowed} ({error.message})", error.instance
