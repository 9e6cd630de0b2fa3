"""Claims that the fields of a call's input name: rows of a database's tables, things behind an API.

Rules.
    1. ``claims={Row("orders", "order_id"): WRITE}`` claims the resource ``("orders", <the value of order_id>)``.
       ``claims={"order_id": WRITE}`` is short for ``Row("order_id", "order_id")``.
    2. A list claims each of its elements.
    3. Where a field names no key, the claim grows to all that the key could have been: for a missing field, a null, an
       empty list, and a value that is neither a text nor a whole number, it is the whole table.
    4. ``Row("orders")`` is the whole table.  It conflicts with every row of it.

Theory.  A table is a resource and its rows are the resources below it, as files are below their directory.  So a whole
table is a claim with ``subtree=True``.

Limits.  A claim sees the input only.  A row that is found through another row needs a function: see
``docs/how-to/databases.md``.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.model._claim import Claim, Mode
from toolrt.model._state import State

#: The first part of the resources that are keys of the batch's state.
_STATE = "state"
#: A part of a key: a text or a whole number.
KeyPart = str | int


@attrs.frozen(init=False)
class Row:
    """The rows of a table that the fields of a call's input name: a key of a tool's ``claims``.

    Args:
        table: the name of the table, or of any kind of thing: the first part of the resource.
        fields: the fields of the input that have the key, one for each part of it; none is the whole table.
        key: makes one spelling of the spellings of a key part, such as ``str.lower``; None takes it as it is.
        subtree: whether the claim also covers all that is below the row: ``Row("items", "order_id", subtree=True)``
            covers ``Row("items", "order_id", "item_id")``.

    Raises:
        DefinitionRefused: an argument is not what it must be.

    Example::

        @toolrt.tool(claims={toolrt.Row("orders", "order_id"): toolrt.WRITE, toolrt.Row("products"): toolrt.READ})
        async def exchange(ctx: toolrt.ToolContext, order_id: str, item_ids: list[str]) -> str: ...
    """

    #: The name of the table.
    table: str
    #: The fields of the input that have the key; empty: the whole table.
    fields: tuple[str, ...]
    #: Makes one spelling of a key part; None: as it is.
    key: Callable[[Any], KeyPart] | None
    #: Whether everything below the row is meant too.
    subtree: bool

    def __init__(
        self,
        table: str,
        *fields: str,
        key: Callable[[Any], KeyPart] | None = None,
        subtree: bool = False,
    ) -> None:
        for what, name in (("Row(table)", table), *(("Row(field)", field) for field in fields)):
            if not isinstance(name, str) or not name:
                raise DefinitionRefused(what, "a name that is not empty", name)
        if key is not None and (not callable(key) or inspect.iscoroutinefunction(key)):
            raise DefinitionRefused("Row(key)", "a function of a text or a whole number, or None", key)
        if not isinstance(subtree, bool):
            raise DefinitionRefused("Row(subtree)", "True or False", subtree)
        self.__attrs_init__(table, fields, key, subtree)

    def claims(self, input: Mapping[str, Any], mode: Mode) -> list[Claim]:
        """The claims of a call with this `input`, each with this `mode`: one for each row that it names.

        A function of your own may call it with a mapping that it has made, such as ``{"user_id": order.user_id}``.

        Raises:
            DefinitionRefused: `key` gave neither a text nor a whole number.
        """
        parts: list[list[Any]] = []
        for field in self.fields:
            named = self._parts(input.get(field))
            if named is None:
                # The rows cannot be told apart from here on.
                return [Claim((self.table, *path), mode, subtree=True) for path in product(*parts)]
            parts.append(named)
        below = self.subtree or not self.fields
        return [Claim((self.table, *path), mode, subtree=below) for path in product(*parts)]

    def _parts(self, value: Any) -> list[KeyPart] | None:
        """The key parts that a field's `value` names, each once; None: it names no keys."""
        values = value if isinstance(value, list | tuple) else (value,)
        parts: dict[KeyPart, None] = {}
        for one in values:
            if isinstance(one, float) and one.is_integer():
                one = int(one)  # JSON has one kind of number
            if not isinstance(one, str | int) or isinstance(one, bool):
                return None
            parts[one if self.key is None else self.key(one)] = None
        return list(parts) or None

    def __repr__(self) -> str:
        options = ([f"key={_name(self.key)}"] if self.key else []) + (["subtree=True"] if self.subtree else [])
        return f"Row({', '.join([*(json.dumps(name) for name in (self.table, *self.fields)), *options])})"


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


#: What a tool's claims may be instead of a function: for each field or `Row`, how it is touched.
FieldModes = Mapping[str, Mode] | Mapping[Row, Mode] | Mapping[str | Row, Mode]


@attrs.frozen
class FieldClaims:
    """The claims of a tool whose input's fields name what it touches: a function of the input.

    It never looks at anything else, so what it gives for an input never changes.
    """

    #: The rows, each with how it is touched.
    modes: tuple[tuple[Row, Mode], ...]

    @classmethod
    def of(cls, modes: FieldModes) -> FieldClaims:
        """The function that `modes` stands for.

        Raises:
            DefinitionRefused: a key is neither a field's name nor a `Row`, it would name a key of the batch's state, or
                a value is no `Mode`.
        """
        rows = []
        for key, mode in modes.items():
            if not isinstance(key, Row) and not (isinstance(key, str) and key):
                raise DefinitionRefused("a key of a tool's claims", "the name of a field, or a toolrt.Row", key)
            if not isinstance(mode, Mode):
                raise DefinitionRefused(f"the claim of {key!r}", "toolrt.READ or toolrt.WRITE", mode)
            if key == _STATE:
                expected = 'Row("<a table>", "state"): what begins with "state" is a key of the batch\'s state'
                raise DefinitionRefused("a key of a tool's claims", expected, key)
            rows.append((key if isinstance(key, Row) else Row(key, key), mode))
        return cls(tuple(rows))

    def __call__(self, input: Mapping[str, Any], state: State) -> list[Claim]:
        found = [claim for row, mode in self.modes for claim in row.claims(input, mode)]
        return found if len(found) < 2 else list(dict.fromkeys(found))

    def check(self, what: str, known: Iterable[str]) -> None:
        """Refuse fields that are not among the `known` ones.

        Args:
            what: names the claims in the error.
            known: the fields of the tool's input.

        Raises:
            DefinitionRefused: the tool takes no field of that name.
        """
        names = tuple(known)
        for row, _ in self.modes:
            for field in row.fields:
                if field not in names:
                    takes = ", ".join(names) or "none"
                    raise DefinitionRefused(what, f"a field of its input ({takes})", field)
