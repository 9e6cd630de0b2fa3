"""Finds out which spellings a real directory takes for the same name."""

from __future__ import annotations

import itertools
import os
import string
import unicodedata

#: How many of a directory's names are tried.
_NAMES_TRIED = 64

#: ASCII letters only: that they fold is what all systems that fold at all agree on.
_OTHER_CASE = str.maketrans(
    string.ascii_lowercase + string.ascii_uppercase, string.ascii_uppercase + string.ascii_lowercase
)


def tried(path: str) -> tuple[bool | None, bool | None]:
    """Whether names in `path` fold by case and by composition; None where no name there can tell."""
    try:
        with os.scandir(path) as found:
            names = [entry.name for entry in itertools.islice(found, _NAMES_TRIED)]
    except OSError:
        return None, None
    case: bool | None = None
    composed: bool | None = None
    for name in names:
        if case is None and (other := name.translate(_OTHER_CASE)) != name:
            case = _is_same(path, name, other, names)
        if composed is None and (other := _recomposed(name)) != name:
            composed = _is_same(path, name, other, names)
        if case is not None and composed is not None:
            break
    return case, composed


def _recomposed(name: str) -> str:
    decomposed = unicodedata.normalize("NFD", name)
    return decomposed if decomposed != name else unicodedata.normalize("NFC", name)


def _is_same(path: str, name: str, other: str, names: list[str]) -> bool | None:
    """Whether `other` finds the entry `name`; None when that cannot be told."""
    if other in names:
        return False
    try:
        first = os.lstat(f"{path}/{name}")
    except OSError:
        return None
    try:
        second = os.lstat(f"{path}/{other}")
    except FileNotFoundError:
        return False
    except OSError:
        return None
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)
