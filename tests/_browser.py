"""A browser to look at pages with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["chromium"]

#: What Chromium is called on the systems that have it; TOOLRT_BROWSER names another.
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a headless Chromium for the block; the test is skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    found = os.environ.get("TOOLRT_BROWSER") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        pytest.skip("there is no Chromium: apt-get install chromium, or name one in TOOLRT_BROWSER")
    # Chromium's own sandbox does not work for root; the pages come from this repository alone.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=arguments, timeout=120_000)
        yield browser
        browser.close()
