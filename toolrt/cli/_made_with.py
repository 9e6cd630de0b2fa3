"""The versions of what runs: for ``--version``, and for the files that the commands write."""

from __future__ import annotations

import platform
from importlib import metadata


def versions() -> dict[str, str]:
    """What made a file."""
    return {"toolrt": version("toolrt"), "trio": version("trio"), "python": platform.python_version()}


def version(package: str) -> str:
    """The installed version of `package`."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
