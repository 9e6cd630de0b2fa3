"""Refuses, where a tool is defined, what its calls could only answer with a failure, or by running alone."""

from __future__ import annotations

import inspect

from toolrt.errors import DefinitionRefused
from toolrt.model._callable import is_async

#: What claims are.
CLAIMS = "a list of claims such as [toolrt.Claim(resource, toolrt.WRITE)], or a function of input and state"

# What a ToolContext never is.
_OF_THE_INPUT = ("str", "int", "float", "bool", "bytes", "list", "dict", "tuple", "set")


def require_promise(what: str, value: object) -> None:
    """It is a bool, or a function of the input that answers at once."""
    if not isinstance(value, bool) and not callable(value):
        raise DefinitionRefused(what, "a bool or a function of the input", value)
    require_sync(what, value)


def require_sync(what: str, value: object) -> None:
    """It is asked while calls are submitted, where nothing can wait."""
    if is_async(value):
        raise DefinitionRefused(what, "a function that answers at once", "an async function")


def require_two(what: str, claims: object) -> None:
    """It is called with the input and the state; one that cannot be has its calls run alone, each time."""
    if callable(claims):
        try:
            signature = inspect.signature(claims)
        except (TypeError, ValueError):
            return
        try:
            signature.bind({}, None)
        except TypeError:
            raise DefinitionRefused(what, "a function of input and state", str(signature)) from None


def require_context(what: str, signature: inspect.Signature) -> None:
    """Its first parameter takes the context, and all others have names."""
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise DefinitionRefused(what, "a function whose first parameter takes the ToolContext", str(signature))
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        raise DefinitionRefused(what, "named parameters", str(signature))
    if parameters[0].name == "self":
        raise DefinitionRefused(
            what,
            "a function whose first parameter takes the ToolContext",
            f"a method, {signature}: make the tool of a method of an object, as in tool(shop.order)",
        )
    first = parameters[0].annotation
    if (first if isinstance(first, str) else getattr(first, "__name__", "")).partition("[")[0] in _OF_THE_INPUT:
        raise DefinitionRefused(
            what,
            "a function whose first parameter takes the ToolContext",
            f"{signature}; toolrt.Tool.from_callable(function) makes a tool of one without a context",
        )
