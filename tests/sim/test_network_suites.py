"""A sample of Trio's own tests of sockets over the network in memory; `nox -s network` runs them all."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from toolrt import sim

_MODULES = ("test_socket", "test_highlevel_socket", "test_highlevel_open_tcp_listeners")


def _tests() -> list[Any]:
    """Give those that need no fixture."""
    found = []
    for name in _MODULES:
        module = importlib.import_module(f"trio._tests.{name}")
        for function in vars(module).values():
            is_test = inspect.iscoroutinefunction(function) and function.__name__.startswith("test_")
            if is_test and not inspect.signature(function).parameters and not getattr(function, "pytestmark", []):
                found.append(pytest.param(function, id=function.__name__))
    return found


# Those for which a thread is needed.
_REFUSED = {"test_getprotobyname"}


@pytest.mark.drawn(12)
@pytest.mark.parametrize("test", _tests())
def test_trio_test_passes_in_memory(test: Callable[[], Awaitable[None]]) -> None:
    """Under the schedule of zeros, and under others."""
    if test.__name__ in _REFUSED:
        pytest.skip("it needs a worker thread")
    report = sim.explore(test, sim.Random(sim.RandomWalk(seed=1), 3), order="trio")
    if report.failures:
        raise report.failures[0].error or AssertionError(str(report))
    assert report.failed == 0
