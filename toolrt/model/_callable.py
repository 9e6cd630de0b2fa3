"""Any function as a tool's function: its context is added, and its docstring is read.

Rules.
    1. A first parameter that is annotated as a `ToolContext`, or is named ``ctx`` without an annotation, takes the
       context.  A function without one is not given any.
    2. The text of an argument in the docstring (Google, NumPy, reST) is the description of its field; a text in the
       annotation goes before.  The rest of the docstring is the tool's description.
    3. The schema is derived by msgspec, as for any tool.  Where an annotation has a pydantic model, pydantic makes the
       schema and the values of those parameters.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.model._schema import hint_of

#: How a function is awaited that may await asyncio; empty until there is an event loop that awaits batches.
_bridge: list[Callable[..., Awaitable[Any]]] = []


def set_bridge(awaits: Callable[..., Awaitable[Any]]) -> None:
    """Let a tool of any ``async def`` function await asyncio as well as Trio: `toolrt.aio` calls this at its import.

    Args:
        awaits: awaits a function, its first argument, with the others as the function's.
    """
    _bridge[:] = [awaits]


@attrs.frozen
class Described:
    """A function that takes the context, and what its author says of it."""

    function: Callable[..., Any]
    name: str
    description: str
    #: The schema that pydantic makes of it; None: its type hints tell.
    schema: Mapping[str, Any] | None


def is_async(function: object) -> bool:
    """Whether calling it gives a coroutine: it is an ``async def``, or an object whose call is one."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004
    )


def described(function: Callable[..., Any], derives: bool) -> Described:
    """What a tool is made of.

    Args:
        function: a function, a bound method, a ``functools.partial`` or an object that is called.
        derives: whether the schema is wanted.

    Raises:
        DefinitionRefused: it is nothing of that kind, is a generator function, or is a method without its object.
    """
    if not callable(function) or isinstance(function, type):
        raise DefinitionRefused("Tool.from_callable", "a function", function)
    whole, bound = function, set[str]()
    while isinstance(whole, functools.partial):
        bound |= whole.keywords.keys()
        whole = whole.func
    name = getattr(whole, "__name__", type(whole).__name__)
    what = f"tool {name!r}"
    if inspect.isgeneratorfunction(whole) or inspect.isasyncgenfunction(whole):
        raise DefinitionRefused(what, "a function that returns its answer", "a generator function")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise DefinitionRefused(what, "a function whose parameters Python knows", whole) from None
    parameters = list(signature.parameters.values())
    takes_context = bool(parameters) and _is_context(parameters[0])
    fields = [one for one in parameters[takes_context:] if one.name not in bound]
    if any(one.kind is one.VAR_POSITIONAL for one in fields):
        raise DefinitionRefused(what, "named parameters", str(signature))
    if fields and fields[0].name == "self":
        raise DefinitionRefused(what, "a method of an object, as in shop.order", "a method without its object")
    description, texts = _documented(inspect.getdoc(whole) or "")
    hints = {one.name: _hint(one, whole, name) for one in fields if derives and one.kind is not one.VAR_KEYWORD}
    models = {key: hint for key, hint in hints.items() if _has_model(hint)}
    first = [one.name for one in fields if one.kind is one.POSITIONAL_ONLY]
    told = [_told(one, hints.get(one.name, one.annotation), texts.get(one.name)) for one in fields]
    made = _made(function, whole, takes_context, first, models)
    context = inspect.Parameter("_context_of_call", inspect.Parameter.POSITIONAL_ONLY)
    made.__signature__ = inspect.Signature([context, *told])  # type: ignore[attr-defined]
    return Described(made, name, description, _schema_of(name, told) if models else None)


def _is_context(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return parameter.name == "ctx"
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.strip("\"'").rpartition(".")[2] == "ToolContext"


def _hint(parameter: inspect.Parameter, function: Callable[..., Any], tool: str) -> Any:
    try:
        return hint_of(parameter.annotation, function, tool)
    except DefinitionRefused:
        return parameter.annotation  # its module may define the name later: the schema asks again


def _has_model(hint: Any) -> bool:
    if isinstance(hint, type):
        return any((made.__module__, made.__name__) == ("pydantic.main", "BaseModel") for made in hint.__mro__)
    return any(map(_has_model, typing.get_args(hint)))


def _told(parameter: inspect.Parameter, hint: Any, text: str | None) -> inspect.Parameter:
    """The parameter, given by name, with the text of the docstring unless its hint has one of its own."""
    if text and not isinstance(hint, str) and not any(isinstance(one, str) for one in typing.get_args(hint)[1:]):
        hint = Annotated[hint, text]
    if parameter.kind is parameter.VAR_KEYWORD:
        return parameter
    return parameter.replace(annotation=hint, kind=parameter.KEYWORD_ONLY)


def _documented(docstring: str) -> tuple[str, Mapping[str, str]]:
    """The description, and the text of each argument."""
    try:
        import docstring_parser
    except ImportError:
        return docstring, {}
    try:
        parsed = docstring_parser.parse(docstring)
    except Exception:  # it may stumble over any text; the text itself is told then
        return docstring, {}
    texts = {one.arg_name: " ".join(one.description.split()) for one in parsed.params if one.description}
    parts = [parsed.short_description, parsed.long_description]
    if parsed.returns is not None and parsed.returns.description:
        parts.append(f"Returns: {parsed.returns.description}")
    return "\n\n".join(part for part in parts if part), texts


def _made(
    function: Callable[..., Any],
    whole: Callable[..., Any],
    takes_context: bool,
    first: Sequence[str],
    models: Mapping[str, Any],
) -> Callable[..., Any]:
    """A tool's function that calls `function`.

    Args:
        whole: the function itself, where `function` is a partial one.
        first: the names of the parameters that it takes by their place alone.
        models: the hints of the parameters whose values pydantic makes.
    """
    values: dict[str, Callable[[Any], Any]] = {}
    if models:
        import pydantic

        values = {name: pydantic.TypeAdapter(hint).validate_python for name, hint in models.items()}

    def arguments(context: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        named = {name: values[name](value) if name in values else value for name, value in named.items()}
        return [*([context] if takes_context else []), *args, *(named.pop(one) for one in first if one in named)], named

    def called(context: Any, /, *args: Any, **named: Any) -> Any:
        positional, named = arguments(context, args, named)
        return function(*positional, **named)

    async def awaited(context: Any, /, *args: Any, **named: Any) -> Any:
        positional, named = arguments(context, args, named)
        # A Trio task awaits it, or asyncio's bridge where asyncio awaits the batch.
        return await (_bridge[0](function, *positional, **named) if _bridge else function(*positional, **named))

    made = awaited if is_async(function) or is_async(whole) else called
    return functools.update_wrapper(made, function, updated=())


def _schema_of(name: str, parameters: Sequence[inspect.Parameter]) -> Mapping[str, Any]:
    import pydantic

    fields: dict[str, Any] = {
        one.name: (_texts_as_fields(one.annotation), ... if one.default is one.empty else one.default)
        for one in parameters
    }
    model = pydantic.create_model(name, __config__=pydantic.ConfigDict(extra="forbid"), **fields)
    schema: Mapping[str, Any] = model.model_json_schema()
    return schema


def _texts_as_fields(hint: Any) -> Any:
    """The hint with each text in its annotation as pydantic reads one."""
    import pydantic

    if hint is inspect.Parameter.empty:
        return Any
    metadata = getattr(hint, "__metadata__", None)
    if metadata is None:
        return hint
    told = tuple(pydantic.Field(description=one) if isinstance(one, str) else one for one in metadata)
    return Annotated[(hint.__origin__, *told)]
