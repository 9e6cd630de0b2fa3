"""Finds the directory of a user's private state: histories of workspaces, and the key that signs names.

Rules.  ``$TOOLRT_STATE_DIR``, or else ``$XDG_STATE_HOME/toolrt`` or ``~/.local/state/toolrt`` (XDG Base Directory
Specification 0.8), and what a workspace is given as its `state_dir`.  Nothing that is believed may lie in a tree that
a tool can write: a directory inside a workspace holds no key.
"""

from __future__ import annotations

import os
from collections.abc import Sequence


def private_directories(roots: Sequence[str], given: str | os.PathLike[str] | None = None) -> list[str]:
    """Those of these directories that are outside all `roots`, the one to prefer first.

    Args:
        given: a state directory that the caller names.
    """
    named = os.environ.get("TOOLRT_STATE_DIR")
    bases = [os.path.abspath(named) if named else users_directory()]
    bases += [] if given is None else [os.path.abspath(os.fspath(given))]
    return [
        base
        for base in bases
        if os.path.isabs(base) and not any(contains(root, os.path.realpath(base)) for root in roots)
    ]


def users_directory() -> str:
    """The user's own, where no other is named."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "toolrt")


def contains(root: str, path: str) -> bool:
    """Whether `path` is `root` or below it."""
    return f"{path.rstrip('/')}/".startswith(f"{root.rstrip('/')}/")
