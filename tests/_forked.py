"""Processes of a test, forked from one that has imported toolrt already.

A fresh Python takes 0.4 s to import toolrt; a fork of `multiprocessing`'s fork server takes 0.02 s.  The fork server
keeps the environment of the test that started it, so each process is given the environment of its own test.

`ran` is for tests of what a command says.  A test of the start itself, or of what is imported, starts a Python.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
from collections.abc import Callable, Mapping
from multiprocessing.context import ForkServerProcess
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        *("toolrt.workspace", "tests.workspace._killed", "tests.workspace._killed_call", "tests.store._killed"),
        # What `ran` runs; pytest rewrites the assertions of its plugins, so they are not imported before it is.
        *("pytest", "hypothesis.stateful", "toolrt.testing._explored", "toolrt.testing._strategies"),
    ]
)

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


def ran(
    module: str, *arguments: str, cwd: Path, environment: Mapping[str, str], seconds: float = 200
) -> tuple[int, str, str]:
    """Run `module` as ``python -m`` does; its exit code, and what it wrote to standard output and to standard error."""
    out, err = (cwd.parent / f"{cwd.name}.{name}" for name in ("out", "err"))
    process: BaseProcess = _CONTEXT.Process(
        target=_as_program, args=(module, arguments, str(cwd), dict(environment), str(out), str(err))
    )
    process.start()
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
    assert process.exitcode is not None
    return process.exitcode, out.read_text(), err.read_text()


def _as_program(
    module: str, arguments: tuple[str, ...], cwd: str, environment: dict[str, str], out: str, err: str
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate((os.devnull, out, err)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(cwd)
    root = str(Path(__file__).parents[1])
    sys.path[:] = [cwd, *(path for path in sys.path if os.path.abspath(path) != root)]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
