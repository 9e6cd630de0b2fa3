"""Workspaces with a shell, and a count of what is left behind."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from tests.services._shells import Answer, Left, Run, calls_of, processes_in, small_tree
from toolrt import BatchOutcome, Registry, Runtime, State, Workspace, services


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


@pytest.fixture
def descriptors() -> Callable[[], int]:
    """How many files are open in this process."""
    return lambda: len(os.listdir("/proc/self/fd"))


@pytest.fixture
def run(workspace: Workspace) -> Run:
    """Runs commands as one batch."""

    def run(*inputs: object, state: State | None = None, **options: object) -> BatchOutcome:
        tool = services.shell_tool(workspace, **options)  # type: ignore[arg-type]
        runtime = Runtime(Registry([*workspace.tools(), tool]))
        return trio.run(runtime.run, calls_of(*inputs), state)

    return run


@pytest.fixture
def answer(run: Run) -> Answer:
    """Runs one command."""
    return lambda input, **options: run(input, **options).results[0]
