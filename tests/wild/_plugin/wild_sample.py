"""A pytest plugin for the suites of others: leaves so many of their async tests of Trio's, evenly spread."""

from __future__ import annotations

import pytest

from toolrt.testing._unedited import is_async, left_to_asyncio


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--wild-sample", type=int)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the others."""
    most = config.getoption("--wild-sample")
    if most is None:
        return
    meant = [item for item in items if is_async(item) and left_to_asyncio(item) is None]
    kept = {meant[number * len(meant) // most] for number in range(min(most, len(meant)))} if meant else set()
    if len(meant) <= most:
        kept = set(meant)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
