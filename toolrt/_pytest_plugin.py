"""What pytest loads by itself where toolrt is installed: as good as nothing, until a test asks for more.

The plugin proper is `toolrt.testing.plugin`.  It needs the ``testing`` extra, and this module must not: it is
loaded in every project that has toolrt among its packages.  Only options have to be known this early.
"""

from __future__ import annotations

import pytest

__all__: list[str] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Make the options known."""
    group = parser.getgroup("explore", "exploring schedules (toolrt)")
    group.addoption(
        "--explore-executions",
        type=int,
        metavar="N",
        help="executions of each explored test, whatever its marker says: the size of a sample, the most of a search",
    )
    group.addoption(
        "--explore-seed",
        type=int,
        metavar="SEED",
        help="seed of the explored tests that name no strategy, or one by its name; 0 by default",
    )
    group.addoption(
        "--explore-replay",
        metavar="SCHEDULE",
        help="run the explored tests under this schedule only, as a failure printed it",
    )
    group.addoption(
        "--explore-database",
        metavar="DIRECTORY",
        help="keep schedules that failed here, and try them first; by default Hypothesis' database",
    )
    parser.addini("explore_database", "directory that keeps schedules that failed, from the root directory", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, whether or not the extra is there."""
    config.addinivalue_line(
        "markers",
        "explore(strategy=None, executions=None, seed=0, check=None, step_limit=None, cancel_at=None, "
        "clock=None, clock_moves=None, jobs=1): "
        "run this async test under many schedules in virtual time (toolrt)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Load the plugin proper if some test is marked.

    Raises:
        MissingExtra: the ``testing`` extra is not installed, and a test is marked.
    """
    if any(item.get_closest_marker("explore") is not None for item in items):
        from toolrt.testing import plugin

        if not config.pluginmanager.is_registered(plugin):
            config.pluginmanager.register(plugin, "toolrt.testing")
