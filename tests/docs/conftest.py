"""Where the documents are."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: The README, and every page under docs/ apart from the example's own files.
PAGES = [ROOT / "README.md", *sorted(ROOT.joinpath("docs").rglob("*.md"))]


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known where toolrt's plugin is not loaded: the pages use it."""
    config.addinivalue_line("markers", "explore: see docs/how-to/explore-your-test.md")


@pytest.fixture(params=PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def page(request: pytest.FixtureRequest) -> Path:
    """One page of the documentation."""
    found: Path = request.param
    return found


@pytest.fixture
def root() -> Path:
    """The top of the checkout."""
    return ROOT
