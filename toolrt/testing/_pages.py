"""``--explore-html DIR``: the page of each failure that an explored test reports, whatever explored it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from toolrt import sim, view

__all__ = ["keeping", "kept"]

_page: ContextVar[tuple[Path, str] | None] = ContextVar("toolrt.testing: the page of the running test", default=None)


@contextmanager
def keeping(directory: Path, test: str) -> Iterator[None]:
    """Have `kept` write to `directory`, under the name of the `test` that runs."""
    slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", test).strip("-.")[-80:]
    token = _page.set((directory / f"{slug}-{hashlib.sha256(test.encode()).hexdigest()[:8]}.html", test))
    try:
        yield
    finally:
        _page.reset(token)


def kept(failure: sim.Failure, command: str) -> str:
    """Write the page of `failure`, and give what a report says of it; "" where no page is asked for.

    Args:
        failure: what the running test reports.
        command: what runs it again from where pytest was started.
    """
    asked = _page.get()
    if asked is None:
        return ""
    page, test = asked
    # The program is the plugin's, which calls the test.
    of_test = {"Program": test, "Run it again": command}
    failing, passing = failure.compared
    shown = view.show(
        failing,
        passing,
        names=("fails",) if passing is None else ("fails", "passes"),
        title=f"{test.rpartition('::')[2]}: {failure.headline}",
        about=[(name, of_test.get(name, text)) for name, text in failure.about_minimal],
    )
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        shown.save(page)
    except OSError as error:
        return f"\n\nIts page could not be written: {error}"
    return f"\n\nStep through it:\n    {page}"
