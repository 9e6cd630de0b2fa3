"""Import paths of earlier versions: a module whose names moved looks them up where they live now.

An alias imports nothing until a name is asked for, so a low room can keep the path of a name that moved up.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["forward_to"]


def forward_to(alias: str, *rooms: str) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of the module `alias`: it finds the public names of `rooms`."""

    def find(name: str) -> Any:
        modules = [importlib.import_module(room) for room in rooms]
        if name == "__all__":
            return [public for module in modules for public in module.__all__]
        for module in modules:
            if name in module.__all__:
                return getattr(module, name)
        raise AttributeError(f"module {alias!r} has no attribute {name!r}")

    return find
