"""A task's path: its parent's path and how many tasks that parent had spawned before it.

``main`` is the program's root, ``main.0`` the first task it spawned (in whichever of its nurseries, or in
another task's), ``main.0.2`` the third that one spawned.  Paths are compared number by number, so ``main.2``
comes before ``main.10``.
"""

from __future__ import annotations

__all__ = ["ROOT", "key_of_path"]

ROOT = "main"


def key_of_path(path: str) -> tuple[int, ...]:
    """Read a path: ``main.0.2`` is ``(0, 2)``.

    Raises:
        ValueError: it is not a path.
    """
    root, *numbers = path.split(".")
    if root != ROOT or not all(number.isascii() and number.isdecimal() for number in numbers):
        raise ValueError(f"{path!r} is not a task path such as {ROOT} or {ROOT}.0.2")
    return tuple(map(int, numbers))
