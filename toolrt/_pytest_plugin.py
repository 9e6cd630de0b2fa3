"""What pytest loads by itself where toolrt is installed: as good as nothing, until a test asks for more.

The plugin proper is `toolrt.testing.plugin`.  It needs the ``testing`` extra, and this module must not: it is
loaded in every project that has toolrt among its packages.
"""

from __future__ import annotations

import pytest

__all__: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, whether or not the extra is there."""
    config.addinivalue_line("markers", "explore: run this async test under many schedules in virtual time (toolrt)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Load the plugin proper if some test is marked.

    Raises:
        MissingExtra: the ``testing`` extra is not installed, and a test is marked.
    """
    if any(item.get_closest_marker("explore") is not None for item in items):
        from toolrt.testing import plugin

        if not config.pluginmanager.is_registered(plugin):
            config.pluginmanager.register(plugin, "toolrt.testing")
