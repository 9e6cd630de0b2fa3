"""toolrt and what it needs, as one archive for a Python in a browser.

Rules.  The files are those of this installation.  What a page cannot use (commands, plugins, tests) stays out.  The
same installation gives the same bytes.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

#: Trio, and what it imports.
_OTHERS = ("attr", "attrs", "idna", "outcome", "sniffio", "sortedcontainers", "trio")

#: What of them, and of toolrt, is not taken.
_LEFT_OUT = (
    "toolrt/aio",
    "toolrt/cli",
    "toolrt/conformance",
    "toolrt/playground/page",
    "toolrt/plugins",
    "toolrt/testing",
    "trio/_tests",
    "trio/_tools",
)

#: What else than Python is taken.
_KINDS = {".py", ".css", ".html", ".js", ".md", ".txt"}

# Archives have no time before this one.
_TIME = (1980, 1, 1, 0, 0, 0)


def archive() -> bytes:
    """Give a ZIP archive for the site-packages of a Python in a browser."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, path in sorted(_files()):
            packed.writestr(zipfile.ZipInfo(name, _TIME), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return written.getvalue()


def _files() -> Iterator[tuple[str, Path]]:
    for package in ("toolrt", *_OTHERS):
        found = importlib.util.find_spec(package)
        assert found is not None
        for folder in found.submodule_search_locations or ():
            for path in Path(folder).rglob("*"):
                name = f"{package}/{path.relative_to(folder).as_posix()}"
                if path.suffix in _KINDS and not any(name.startswith(f"{each}/") for each in _LEFT_OUT):
                    yield name, path
