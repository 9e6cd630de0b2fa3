"""Writes the site: static files, which any file server can offer.

Rules.
    1. Everything comes from the folder: the content policy allows nothing else.  It is loosened in one place,
       ``'wasm-unsafe-eval'``, without which no browser compiles WebAssembly.  Pictures of schedules, and sliders, are
       pages of `toolrt.view`, whose one script and one style are allowed by their hashes.
    2. Node makes two files: the editor (esbuild bundles CodeMirror), and the memory of a Python that has imported
       everything, which loads in a quarter of the time.
    3. The same installation and the same packages give the same files, but for that memory.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import os
import re
import shutil
from pathlib import Path

import attrs

from toolrt import sim, view
from toolrt.errors import DefinitionRefused
from toolrt.playground._lessons import lessons
from toolrt.playground._packages import PAGE, node, node_modules
from toolrt.playground._packed import archive
from toolrt.playground._programs import starting_points
from toolrt.teaching.litmus import LITMUS
from toolrt.teaching.play import Game

_PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
_COPIED = ("page.css", "page.js", "link.js", "worker.js", "workers.js", "lesson.js", "progress.js", "class.js")


@attrs.frozen
class PlaygroundSite:
    """A playground that was written."""

    #: Its directory; a file server that offers it is all that it needs.
    directory: Path
    #: The bytes of each file, by its name in the directory.
    sizes: dict[str, int]
    #: The same, compressed as file servers compress.
    compressed: dict[str, int]


def write_playground(
    directory: str | os.PathLike[str],
    packages: str | os.PathLike[str] | None = None,
) -> PlaygroundSite:
    """Write the playground as a site that needs no code on a server.

    Args:
        directory: where; it is made, and files of the same names are replaced.
        packages: a folder in which ``npm ci`` was run; None: it is run in the user's cache.

    Raises:
        DefinitionRefused: `directory` has an ``index.html`` that is no playground's.
        MisuseError: Node, npm or a package is missing, or one of them failed.
        MissingExtra: lessons are written, and markdown-it-py, which rich brings along, is not installed.
        OSError: a file cannot be written.
    """
    target = Path(directory).absolute()
    index = target / "index.html"
    if index.exists() and "toolrt playground" not in index.read_text(encoding="utf-8", errors="replace"):
        raise DefinitionRefused("write_playground(directory)", "a directory of its own, or an earlier one", str(target))
    modules = node_modules(None if packages is None else Path(packages))
    (target / "pyodide").mkdir(parents=True, exist_ok=True)
    for name in _PYODIDE:
        shutil.copyfile(modules / "pyodide" / name, target / "pyodide" / name)
    node(PAGE / "bundle.mjs", modules, target / "editor.js")
    (target / "python.zip").write_bytes(archive())
    node(PAGE / "snapshot.mjs", modules / "pyodide", target / "python.zip", PAGE / "warm.py", target / "warm.bin")
    for name in _COPIED:
        shutil.copyfile(PAGE / name, target / name)
    points = [attrs.asdict(one) for one in starting_points()]
    (target / "programs.json").write_text(json.dumps(points), encoding="utf-8")
    pages = _write_pages(target)
    names = (*_COPIED, *pages, "editor.js", "programs.json", "python.zip", "warm.bin")
    paths = [target / name for name in (*names, *(f"pyodide/{name}" for name in _PYODIDE))]
    paths.append(_write_service(target, paths))
    files = {path.relative_to(target).as_posix(): path.read_bytes() for path in paths}
    return PlaygroundSite(
        target,
        {name: len(content) for name, content in files.items()},
        {name: min(len(content), len(gzip.compress(content, 6))) for name, content in files.items()},
    )


def _write_pages(target: Path) -> list[str]:
    """Write the pages, and give their names."""
    taught = lessons()
    links = " ".join(f'<a href="{one.page}">{one.number} {html.escape(one.title)}</a>' for one in taught)
    common = {"policy": html.escape(_policy()), "lessons": links}
    pages = {
        "index.html": _page("index", {**common, "heading": "toolrt playground", "script": "page.js"}),
        "class.html": _page("class", {**common, "heading": "A class of the toolrt playground", "script": "class.js"}),
    }
    for one in taught:
        heading = f"{html.escape(one.title)}: a lesson of the toolrt playground"
        filled = {"number": one.number, "body": one.body, "heading": heading, "script": "lesson.js"}
        pages[one.page] = _page("lesson", common | filled)
    for name, text in pages.items():
        (target / name).write_text(text, encoding="utf-8")
    return list(pages)


def _page(name: str, parts: dict[str, str]) -> str:
    text = "".join((PAGE / f"{part}.html").read_text(encoding="utf-8") for part in ("head", name))
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], text)


def _policy() -> str:
    """Give the content policy of the page, which its worker and the pages in it have, too."""

    async def program() -> None: ...

    run = sim.run(program)
    shown = (view.show(run), view.play(Game(LITMUS["lost_update_2x1"])), view.slider([run], axes={"at": [0]}))
    pages = [page.html for page in shown]
    hashes = {kind: " ".join(_hash(page, kind) for page in pages) for kind in ("script-src", "style-src")}
    return (
        f"default-src 'none'; script-src 'self' 'wasm-unsafe-eval' {hashes['script-src']}; "
        f"style-src 'self' {hashes['style-src']}; connect-src 'self'; worker-src 'self' blob:; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(page: str, kind: str) -> str:
    found = re.search(f"{kind} ('sha256-[^']+')", html.unescape(page))
    assert found is not None
    return found[1]


def _write_service(target: Path, kept: list[Path]) -> Path:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in kept)).hexdigest()[:16]
    names = ["./", *(path.relative_to(target).as_posix() for path in kept)]
    text = (PAGE / "service.js").read_text(encoding="utf-8")
    filled = text.replace("{{version}}", f"toolrt-playground-{digest}").replace("{{files}}", json.dumps(names))
    service = target / "service.js"
    service.write_text(filled, encoding="utf-8")
    return service
