"""Processes that a test kills, forked from one that has imported toolrt already.

A fresh Python takes 0.4 s to import toolrt; a fork of `multiprocessing`'s fork server takes 0.02 s.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from multiprocessing.process import BaseProcess
from typing import Any

__all__ = ["forked", "pipe"]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["toolrt.workspace", "tests.workspace._killed", "tests.workspace._killed_call"])

pipe = _CONTEXT.Pipe


def forked(function: Callable[..., object], *arguments: Any) -> ForkServerProcess:
    """A process that runs a module's function.  It is started, and the test has to join it."""
    process: BaseProcess = _CONTEXT.Process(target=function, args=arguments, daemon=True)
    process.start()
    assert isinstance(process, ForkServerProcess)
    return process
