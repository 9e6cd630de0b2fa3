"""Processes that a test kills, forked from one that has imported toolrt already.

A fresh Python takes 0.4 s to import toolrt; a fork of `multiprocessing`'s fork server takes 0.02 s.  The fork server
keeps the environment of the test that started it, so each process is given the environment of its own test.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from multiprocessing.process import BaseProcess
from typing import Any

__all__ = ["forked", "pipe"]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["toolrt.workspace", "tests.workspace._killed", "tests.workspace._killed_call"])

pipe = _CONTEXT.Pipe


def forked(function: Callable[..., object], *arguments: Any) -> ForkServerProcess:
    """A process that runs a module's function in this test's environment.  The test has to join it."""
    process: BaseProcess = _CONTEXT.Process(
        target=_in_environment, args=(dict(os.environ), function, arguments), daemon=True
    )
    process.start()
    assert isinstance(process, ForkServerProcess)
    return process


def _in_environment(environment: dict[str, str], function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    function(*arguments)
