"""A workspace, and the processes that are left in it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.services._shells import Left, processes_in, small_tree
from toolrt import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory with two files in it, and a directory beside it."""
    return small_tree(tmp_path)


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(root)


@pytest.fixture
def left(root: Path) -> Left:
    """The processes that are still in the workspace's directory, by number."""
    if not sys.platform.startswith("linux") or shutil.which("bash") is None:
        pytest.skip("processes are counted in /proc, and started by bash")
    return lambda: processes_in(root)
