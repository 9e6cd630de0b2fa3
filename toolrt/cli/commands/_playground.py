"""``toolrt playground``: a page on which programs are edited and explored in a browser, as a folder of files."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

from cyclopts import Parameter

from toolrt.cli._exit import Exit
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._screen import Screen, forgiving
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.playground import write_playground


def playground(
    *,
    site: Annotated[str, Parameter(help="The directory that is written; a file server has to offer it.")],
    packages: Annotated[
        str | None,
        Parameter(help="A directory in which `npm ci` was run; unless given, npm installs into the user's cache."),
    ] = None,
) -> int:
    """Write a page on which Trio programs are edited and explored in a browser.

    The page runs toolrt in the browser itself: no server runs any code, and nothing leaves the browser. It is built
    with Node.js and npm, from Pyodide and CodeMirror.
    """
    screen = Screen(forgiving(sys.stdout))
    try:
        written = write_playground(site, packages)
    except DefinitionRefused:
        remedy = "Name a directory that has no index.html of its own."
        raise InputRefused(f"--site {site!r}", "it has an index.html that is no playground's", remedy) from None
    size, compressed = (sum(sizes.values()) / 1e6 for sizes in (written.sizes, written.compressed))
    screen.say(f"{len(written.sizes)} files, {size:.1f} MB, or {compressed:.1f} MB where a server compresses them")
    screen.say(on_one_line(f"Open it: python -m http.server --directory {shlex.quote(str(written.directory))}", 300))
    return Exit.OK
