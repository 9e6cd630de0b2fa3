"""What is kept of each failure that an explored test reports, whatever explored it.

``--explore-html DIR`` keeps its page, ``--explore-reproduce DIR`` a program that fails without toolrt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import attrs

from toolrt import sim, view
from toolrt.errors import NotReproducible


@attrs.frozen
class _Keeping:
    """What is to be kept of the test that runs; None: not that."""

    test: str
    pages: Path | None
    reproductions: Path | None

    def path(self, directory: Path, ending: str) -> Path:
        """Give the file for this test, in a directory that is made where there is none."""
        slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", self.test).strip("-.")[-80:]
        directory.mkdir(parents=True, exist_ok=True)
        return directory / f"{slug}-{hashlib.sha256(self.test.encode()).hexdigest()[:8]}{ending}"


_keeping: ContextVar[_Keeping | None] = ContextVar("toolrt.testing: what is kept of the running test", default=None)


@contextmanager
def keeping(test: str, pages: Path | None, reproductions: Path | None) -> Iterator[None]:
    """Have `kept` write to these directories, under the name of the `test` that runs."""
    token = _keeping.set(_Keeping(test, pages, reproductions))
    try:
        yield
    finally:
        _keeping.reset(token)


def kept(failure: sim.Failure, command: str) -> str:
    """Write what is wanted of `failure`, and give what a report says of it; "" where nothing is.

    Args:
        failure: what the running test reports.
        command: what runs it again from where pytest was started.
    """
    wanted = _keeping.get()
    if wanted is None:
        return ""
    page = "" if wanted.pages is None else _page(failure, command, wanted, wanted.pages)
    return page + ("" if wanted.reproductions is None else _reproduction(failure, wanted, wanted.reproductions))


def _page(failure: sim.Failure, command: str, wanted: _Keeping, directory: Path) -> str:
    # The program is the plugin's, which calls the test.
    of_test = {"Program": wanted.test, "Run it again": command}
    failing, passing = failure.compared
    shown = view.show(
        failing,
        passing,
        names=("fails",) if passing is None else ("fails", "passes"),
        title=f"{wanted.test.rpartition('::')[2]}: {failure.headline}",
        about=[(name, of_test.get(name, text)) for name, text in failure.about_minimal],
    )
    try:
        page = wanted.path(directory, ".html")
        shown.save(page)
    except OSError as error:
        return f"\n\nIts page could not be written: {error}"
    return f"\n\nStep through it:\n    {page}"


def _reproduction(failure: sim.Failure, wanted: _Keeping, directory: Path) -> str:
    # The program is the plugin's; that which it calls was written by a person.
    failure.source = getattr(failure.source, "as_written", failure.source)
    try:
        made = failure.reproduce()
        path = wanted.path(directory, ".py")
        path.write_text(made, encoding="utf-8")
    except (NotReproducible, OSError) as error:
        return f"\n\nNo program without toolrt was written: {error}"
    return f"\n\nOn plain Trio it failed in {made.failed} of {made.runs} runs:\n    {path}"
