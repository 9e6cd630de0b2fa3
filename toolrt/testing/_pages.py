"""``--explore-html DIR``: the page of each failure that an explored test reports, whatever explored it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from toolrt import sim

__all__ = ["keeping", "kept"]

_page: ContextVar[Path | None] = ContextVar("toolrt.testing: the page of the running test", default=None)


@contextmanager
def keeping(directory: Path, test: str) -> Iterator[None]:
    """Have `kept` write to `directory`, under the name of the `test` that runs."""
    slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", test).strip("-.")[-80:]
    token = _page.set(directory / f"{slug}-{hashlib.sha256(test.encode()).hexdigest()[:8]}.html")
    try:
        yield
    finally:
        _page.reset(token)


def kept(failure: sim.Failure) -> str:
    """Write the page of `failure`, and give what a report says of it; "" where no page is asked for."""
    page = _page.get()
    if page is None:
        return ""
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        failure.show().save(page)
    except OSError as error:
        return f"\n\nIts page could not be written: {error}"
    return f"\n\nStep through it:\n    {page}"
