"""Constraints and texts in type hints: each is checked and shown to the model, or the definition is refused."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict

import attrs
import pytest

import toolrt
from toolrt import Registry, ToolContext
from toolrt.errors import DefinitionRefused

msgspec = pytest.importorskip("msgspec")
at = pytest.importorskip("annotated_types")
pydantic = pytest.importorskip("pydantic")

Field: Callable[..., Any] = pydantic.Field
Positive = NewType("Positive", Annotated[int, at.Gt(0)])  # type: ignore[valid-newtype]


class Point(TypedDict):
    """A place."""

    x: Annotated[int, Field(ge=1)]
    note: NotRequired[Annotated[str, "what stands there"]]


class Path(TypedDict, total=False):
    """Places."""

    points: typing.Required[list[Point]]
    label: str


def _tool(hint: Any, default: Any = ...) -> toolrt.Tool:
    """A tool with one parameter of that hint."""

    async def takes(ctx: ToolContext, x: Any = default) -> Any:
        return x

    if default is ...:
        takes.__defaults__ = None
    takes.__annotations__["x"] = hint
    return toolrt.tool(takes)


GOOD: dict[str, tuple[Any, Any, Any]] = {
    # The hint, a value that fits, and one that does not.
    "pydantic": (Annotated[int, Field(ge=1)], 1, 0),
    "pydantic, several": (Annotated[int, Field(ge=1, lt=5, multiple_of=2)], 4, 3),
    "pydantic text": (Annotated[str, Field(min_length=2, max_length=3, pattern="^a")], "ab", "ba"),
    "pydantic list": (Annotated[list[int], Field(min_length=1)], [1], []),
    "pydantic type": (pydantic.PositiveInt, 1, 0),
    "pydantic conint": (pydantic.conint(gt=1, strict=True), 2, 1),
    "pydantic constr": (Annotated[str, pydantic.StringConstraints(min_length=2, pattern=re.compile("b"))], "ab", "b"),
    "ge": (Annotated[int, at.Ge(1)], 1, 0),
    "ge of a float": (Annotated[int, at.Ge(1.0)], 1, 0),
    "interval": (Annotated[float, at.Interval(gt=0, le=1)], 0.5, 1.5),
    "length": (Annotated[str, at.Len(1, 2)], "a", "abc"),
    "stricter counts": (Annotated[int, at.Ge(5), msgspec.Meta(ge=1), at.Ge(2)], 5, 4),
    "nested annotated": (Annotated[Annotated[int, at.Ge(5)], at.Le(7)], 7, 4),
    "optional": (Annotated[int, Field(ge=1)] | None, None, 0),
    "around optional": (Annotated[int | None, Field(ge=1)], None, 0),
    "around a union": (Annotated[int | None, Field(ge=1, description="d")], 1, 0),
    "list": (list[Annotated[int, at.Ge(1)]], [1], [1, 0]),
    "dict": (dict[str, Annotated[int, at.Ge(1)]], {"a": 1}, {"a": 0}),
    "typing list": (typing.List[Annotated[int, at.Ge(1)]], [1], [0]),  # noqa: UP006
    "tuple": (tuple[Annotated[int, at.Ge(1)], ...], [1], [0]),
    "deep": (dict[str, list[Annotated[int, Field(ge=1)] | None]], {"a": [None, 1]}, {"a": [0]}),
    "literal": (Annotated[Literal["a", "b"], "which"], "a", "c"),
    "new type": (Positive, 1, 0),
    "msgspec": (Annotated[int, msgspec.Meta(ge=1)], 1, 0),
    "typed dict": (Point, {"x": 1, "note": "n"}, {"x": 0}),
    "typed dict, required": (Point, {"x": 1}, {"note": "n"}),
    "typed dict in a typed dict": (Path, {"points": [{"x": 1}]}, {"points": [{"x": 0}]}),
    "text": (Annotated[int, "text for the model"], 1, "1"),
}


@pytest.mark.parametrize("name", sorted(GOOD))
def test_constraint_is_checked(name: str) -> None:
    """A value that fits is taken, one that does not is a mismatch, and strings in place of hints make no difference."""
    hint, good, bad = GOOD[name]
    given = _tool(hint)
    Registry([given])
    assert not isinstance(given.decode({"x": good}), list), given.decode({"x": good})
    wrong = given.decode({"x": bad})
    assert isinstance(wrong, list)
    assert wrong[0].path.startswith("input.x")


DESCRIBED: dict[str, Any] = {
    "text": Annotated[int, "how many"],
    "field": Annotated[int, Field(description="how many", ge=1)],
    "doc": Annotated[int, at.doc("how many")],
    "meta": Annotated[int, msgspec.Meta(description="how many"), at.Ge(1)],
    "optional": Annotated[int | None, Field(ge=1, description="how many")],
    "literal": Annotated[Literal[1, 2], "how many"],
}


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_text_is_shown_to_the_model(name: str) -> None:
    """It is the parameter's description in the schema."""
    assert _tool(DESCRIBED[name]).schema["properties"]["x"]["description"] == "how many"


def test_schema_shows_bounds_titles_and_examples() -> None:
    """What a Field says of its value is what the model is shown."""
    hint = Annotated[int, Field(ge=1, le=9, title="N", examples=[3], json_schema_extra={"unit": "m"})]
    shown = _tool(hint).schema["properties"]["x"]
    expected = {"type": "integer", "minimum": 1, "maximum": 9, "title": "N", "examples": [3], "unit": "m"}
    assert shown == expected
    assert _tool(Path).schema["$defs"]["Point"]["properties"]["note"]["description"] == "what stands there"


@dataclasses.dataclass
class Data:
    """A field with a constraint that msgspec does not read."""

    x: Annotated[int, at.Ge(1)]


@dataclasses.dataclass
class TextData:
    """The same with a text."""

    x: Annotated[int, "text"]


@dataclasses.dataclass
class DefaultData:
    """The same with a Field as its default."""

    x: int = Field(ge=1)


@dataclasses.dataclass
class OuterData:
    """The same one level below."""

    inner: list[Data]


@attrs.frozen
class Attrs:
    """The same, of attrs."""

    x: Annotated[int, Field(ge=1)]


class Named(NamedTuple):
    """The same, a tuple."""

    x: Annotated[int, Field(ge=1)]


class Struct(msgspec.Struct):
    """The same, of msgspec."""

    x: Annotated[int, at.Ge(1)]


@dataclasses.dataclass
class GoodData:
    """What msgspec reads itself."""

    x: Annotated[int, msgspec.Meta(ge=1)]


class Model(pydantic.BaseModel):
    """A class of another library."""

    x: Annotated[int, Field(ge=1)]


class _Mine:
    """What only its author knows."""


REFUSED: dict[str, Any] = {
    "validator": Annotated[int, pydantic.AfterValidator(abs)],
    "predicate": Annotated[str, at.Predicate(str.isupper)],
    "unit": Annotated[float, at.Unit("m")],
    "own": Annotated[int, _Mine()],
    "own class": Annotated[int, _Mine],
    "own, in a list": list[Annotated[int, _Mine()]],
    "own, in a union": Annotated[int, _Mine()] | None,
    "alias": Annotated[int, Field(alias="y")],
    "default": Annotated[int, Field(default=3)],
    "strip": Annotated[str, pydantic.StringConstraints(strip_whitespace=True)],
    "lax": Annotated[int, Field(strict=False, ge=1)],
    "extra function": Annotated[int, Field(json_schema_extra=lambda schema: None)],
    "pattern with flags": Annotated[str, pydantic.StringConstraints(pattern=re.compile("a", re.IGNORECASE))],
    "broken pattern": Annotated[str, msgspec.Meta(), Field(pattern="a"), at.Ge(1)],
    "two patterns": Annotated[str, Field(pattern="a"), Field(pattern="b")],
    "bound of a text": Annotated[str, at.Ge(1)],
    "bound of two": Annotated[int | str, at.Ge(1)],
    "bound of a bool": Annotated[bool, at.Ge(1)],
    "dataclass": Data,
    "dataclass with a text": TextData,
    "dataclass with a default": DefaultData,
    "dataclass below": OuterData,
    "dataclass in a list": list[Data],
    "attrs": Attrs,
    "named tuple": Named,
    "struct": Struct,
    "model": Model,
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_not_understood_refuses_the_definition(name: str) -> None:
    """It is refused where the registry is made, and the text names the tool."""
    with pytest.raises(DefinitionRefused, match="takes"):
        Registry([_tool(REFUSED[name])])


def test_field_in_place_of_a_default_is_refused() -> None:
    """``x: int = Field(ge=1)`` would give the tool the Field itself."""
    with pytest.raises(DefinitionRefused, match="Annotated"):
        Registry([_tool(int, Field(ge=1))])


def test_classes_that_msgspec_reads_stay_what_they_are() -> None:
    """The tool is given an object of that very class, and its constraint holds."""
    given = _tool(GoodData)
    arguments = given.decode({"x": {"x": 1}})
    assert not isinstance(arguments, list)
    assert type(arguments[0][0]) is GoodData
    assert isinstance(given.decode({"x": {"x": 0}}), list)


def test_schema_of_ones_own_takes_any_hint() -> None:
    """The way out that the error names."""

    async def takes(ctx: ToolContext, x: Annotated[int, _Mine()]) -> int:
        return x

    Registry([toolrt.tool(schema=None)(takes)])
