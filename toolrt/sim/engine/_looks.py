"""Marks functions of the simulator's own that run in a step, and look at things without changing any."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: The code of the functions that are marked, by its id: the hash of code is one of all that it holds.
LOOKING: dict[int, CodeType] = {}


def only_looks(function: F) -> F:
    """Say that `function` changes nothing that a program can see, whatever its code does.

    A watch for steps that may have written (`StepWatch`) does not look into it.
    """
    code = function.__code__
    LOOKING[id(code)] = code
    return function
