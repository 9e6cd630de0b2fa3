"""The reference of a room, as reStructuredText that autodoc fills in."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator

import attrs
from docstrings import as_fields
from names import Name, comment_of, names_of

__all__ = ["reference_of", "with_defaults"]

#: What a class takes from these is Python's to tell of.
_PYTHONS_OWN = (
    "object, Exception, BaseException, ImportError, Warning, UserWarning, Enum, int, str, tuple, dict, Protocol, "
    "Generic, Mapping, Sequence, AbstractContextManager, AbstractAsyncContextManager"
)


def reference_of(room: str) -> str:
    """What stands on the room's page: its own words, then its functions, classes and values."""
    return "\n".join(_lines(room))


def with_defaults(signature: str, value: object) -> str:
    """The `signature` of a class of attrs with the defaults that its fields have; ``...`` stands for one that is made.

    attrs writes the source of `__init__`, and its defaults are names there: ``attr_dict['limit'].default``.
    """
    fields = getattr(value, "__attrs_attrs__", None)
    if fields is None:
        return signature
    defaults = {field.name: field.default for field in fields}

    def shown(found: re.Match[str]) -> str:
        default = defaults.get(found[1], attrs.NOTHING)
        return "..." if isinstance(default, attrs.Factory) or default is attrs.NOTHING else repr(default)  # type: ignore[arg-type]

    return re.sub(r"attr_dict\['(\w+)'\]\.default", shown, signature).replace("= NOTHING", "= ...")


def _lines(room: str) -> Iterator[str]:
    yield from (f".. py:module:: {room}", f".. py:currentmodule:: {room}", "")
    module = importlib.import_module(room)
    yield from as_fields(inspect.cleandoc(module.__doc__ or "").splitlines())
    own, others = names_of(room)
    for title, chosen in (
        ("Functions", [one for one in own if inspect.isroutine(one.value)]),
        ("Classes", [one for one in own if inspect.isclass(one.value) and not _is_error(one)]),
        ("Errors", [one for one in own if _is_error(one)]),
        ("Values", [one for one in own if not inspect.isroutine(one.value) and not inspect.isclass(one.value)]),
    ):
        if chosen:
            yield from ("", f".. rubric:: {title}", "")
        for one in chosen:
            yield from _directive(one)
    if others:
        told = ", ".join(f":py:obj:`{one.name} <{one.path}>`" for one in others)
        yield from ("", ".. rubric:: Told of elsewhere", "", f"{told}.", "")


def _is_error(name: Name) -> bool:
    return inspect.isclass(name.value) and issubclass(name.value, BaseException)


def _directive(name: Name) -> Iterator[str]:
    if inspect.isroutine(name.value):
        yield from (f".. autofunction:: {name.path}", "")
    elif inspect.isclass(name.value):
        yield from (f".. autoclass:: {name.path}", "   :members:", f"   :inherited-members: {_PYTHONS_OWN}", "")
    else:
        yield f".. py:data:: {name.name}"
        if isinstance(name.value, (int, float, str, type(None))):
            yield f"   :value: {name.value!r}"
        comment = comment_of(name.value, name.name)
        yield from ("", *(f"   {line}" for line in as_fields(comment.splitlines())))
