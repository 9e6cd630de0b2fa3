"""A mapping that never changes, and that another one is made of without copying all of it.

Theory.  It is a shared dict with a small one over it.  A change copies the small one alone; once that has grown to the
square root of the shared one, both become one dict, so that a change costs about as much in either way.  Keys come in
the order in which a dict has them: a key that is changed keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: A mapping of fewer keys is copied: that costs less than to look at two.
_SMALL = 64


class Overlay(Mapping[str, Any]):
    """Some keys of a dict, and others over them.

    Args:
        below: no code changes it.
        above: what is new, or has another value; no code changes it.
    """

    __slots__ = ("_above", "_below", "_count")

    def __init__(self, below: dict[str, Any], above: dict[str, Any]) -> None:
        self._below = below
        self._above = above
        self._count = len(below) + sum(key not in below for key in above)

    def __getitem__(self, key: str) -> Any:
        return self._above[key] if key in self._above else self._below[key]

    def __contains__(self, key: object) -> bool:
        return key in self._above or key in self._below

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        yield from self._below
        for key in self._above:
            if key not in self._below:
                yield key

    def with_all(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same with `values` over it."""
        above = {**self._above, **values}
        if len(above) ** 2 > len(self._below):
            return {**self._below, **above}
        return Overlay(self._below, above)


def changed(values: Mapping[str, Any], others: Mapping[str, Any]) -> Mapping[str, Any]:
    """`values` with `others` over it; both stay as they are, and no code may change `values` afterwards."""
    if isinstance(values, Overlay):
        return values.with_all(others)
    assert isinstance(values, dict)
    if len(values) < _SMALL:
        return {**values, **others}
    return Overlay(values, {}).with_all(others)
