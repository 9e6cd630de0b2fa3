"""A browser to look at pages with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolrt import view

Open = Callable[..., Any]

#: Milliseconds in which a page has to answer, on a slow machine that does much else.
_PATIENCE = 60_000


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a page; when the test ends, no page has asked for anything, complained or put up a dialog."""
    contexts: list[Any] = []
    trouble: list[str] = []

    def open_page(page: view.Page | str, *, width: int = 1280, refuses: bool = False, **settings: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 800}, **settings)
        context.set_default_timeout(_PATIENCE)
        contexts.append(context)
        tab = context.new_page()
        tab.on("dialog", lambda dialog: (trouble.append(f"dialog: {dialog.message}"), dialog.dismiss()))

        def complained(message: Any) -> None:
            if not (refuses and "Content Security Policy" in message.text):
                trouble.append(f"console: {message.text}")

        tab.on("console", complained)
        tab.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        file = tmp_path / f"page{len(contexts)}.html"
        if isinstance(page, str):
            file.write_text(page, encoding="utf-8")
        else:
            page.save(file)
        address = file.as_uri()

        def asked(request: Any) -> None:
            if request.url not in (address, "about:srcdoc") and not request.url.startswith("data:"):
                trouble.append(f"request: {request.url}")

        tab.on("request", asked)
        tab.goto(address)
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert trouble == []
