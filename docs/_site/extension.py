"""What makes a site of pages that are written for any git host: a Sphinx extension.

Rules.
    1. The pages in git are plain Markdown.  What only the site has is put in while it reads them.
    2. `docs/README.md` is the one list of pages: the site's front page and its menu are made of it.
    3. The reference of a room stands where its page has ``<!-- names of toolrt.room -->``, in place of its table.
    4. A page in `docs/notebooks` stands for the notebook that it links to, and shows it.
    5. The gallery of litmus programs is part of the site, and linked where a page has ``<!-- gallery -->``.
    6. The playground is, where TOOLRT_PLAYGROUND_SITE names one that was written.  Each example that `try_it` finds
       then has a link that opens it there.
"""

from __future__ import annotations

import base64
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

from docstrings import as_fields
from notebook_pages import as_markdown, notebook_of
from prose import outside_code
from pygments.lexers.special import TextLexer  # type: ignore[import-untyped]
from reference import reference_of, with_defaults
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.nodes import make_refnode
from try_it import with_links

__all__ = ["setup"]

DOCS = Path(__file__).parents[1]
#: Pages whose children in the menu are the pages of a folder.
FOLDERS = {
    "explanation/laws": "explanation/laws/*",
    "reference/names": "reference/names/*",
    "notebooks/index": "notebooks/*",
}
#: What a section of the list of pages is called in the menu.
CAPTIONS = {
    "Find bugs in your Trio code": "Find bugs",
    "Run an agent's tools": "Run tools",
    "Teach": "Teach",
    "How it works": "How it works",
    "Look it up": "Look it up",
    "Decisions": "Decisions",
}

#: Where the gallery is, from the top of the site, and how many schedules of a program a page of it has: a check of the
#: site needs fewer.
GALLERY, GALLERY_MOST = "gallery", int(os.environ.get("TOOLRT_GALLERY_MOST", "40"))

#: Where the playground is, from the top of the site, and the variable that names one that was written.
PLAYGROUND, PLAYGROUND_WRITTEN = "playground", "TOOLRT_PLAYGROUND_SITE"

_NAMES = re.compile(r"^<!-- names of ([\w.]+) -->$(?:.*?^<!-- end of names -->$)?", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()([^)\s:#]+)((?:#[^)\s]*)?\))")


def setup(app: Sphinx) -> dict[str, Any]:
    """Hook it in."""
    app.add_lexer("output", TextLexer)
    app.connect("source-read", on_source)
    app.connect("autodoc-process-docstring", on_docstring)
    app.connect("autodoc-process-signature", on_signature)
    app.connect("missing-reference", on_missing)
    app.connect("builder-inited", on_begun)
    app.connect("build-finished", on_finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def on_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put in what only the site has."""
    text = source[0]
    if docname.startswith("notebooks/") and docname != "notebooks/index":
        path = notebook_of(text, DOCS / f"{docname}.md")
        app.env.note_dependency(str(path))
        text = as_markdown(path)
    if docname == "index":
        text = text.partition("The same pages can be read without the site")[0]
        text += _menu((DOCS / "README.md").read_text(encoding="utf-8"))
        app.env.note_dependency(str(DOCS / "README.md"))
    if pattern := FOLDERS.get(docname):
        text += f"\n\n```{{toctree}}\n:hidden:\n:glob:\n\n/{pattern}\n```\n"
    text = _NAMES.sub(lambda found: f"````{{eval-rst}}\n{reference_of(found[1])}\n````", text)
    way = "../" * docname.count("/") + GALLERY
    text = text.replace("<!-- gallery -->", f'<p><a href="{way}/index.html">Play the gallery of this site</a></p>')
    if PLAYGROUND_WRITTEN in os.environ:
        way = "../" * docname.count("/") + PLAYGROUND
        text = with_links(text, lambda program: _try_it(way, program))
    source[0] = outside_code(text, lambda prose: _LINK.sub(lambda found: _link(docname, found), prose))


def _try_it(way: str, source: str) -> str:
    """Give a link that opens a program in the playground: its fragment is what the page itself makes (link.js)."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(json.dumps({"source": source}).encode()) + packer.flush()
    fragment = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    return f'<p><a href="{way}/index.html#program={fragment}">Try it in the browser</a></p>'


def _link(docname: str, found: re.Match[str]) -> str:
    """A link as the site has it: the list of pages is the front page, and the notebooks have pages of their own."""
    here = (DOCS / docname).parent
    if docname.startswith("notebooks/") and found[2].startswith("../docs/"):
        target = (DOCS / found[2].removeprefix("../docs/")).resolve()
    else:
        target = (here / found[2]).resolve()
    root = DOCS.parent
    if target in (DOCS / "README.md", DOCS, root / "README.md"):
        target = DOCS / "index.md"
    elif target == root / "notebooks":
        target = DOCS / "notebooks" / "index.md"
    elif target.suffix == ".ipynb":
        target = DOCS / "notebooks" / f"{target.stem}.md"
    elif DOCS not in target.parents:
        return found[0]
    way = "../" * docname.count("/") + target.relative_to(DOCS).as_posix()
    return f"{found[1]}{way}{found[3]}"


def _menu(listed: str) -> str:
    """The list of pages, and a menu of each section of it."""
    intro, *parts = re.split(r"^## (.*)\n", listed.partition("\n")[2], flags=re.MULTILINE)
    text = [intro]
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        text += [f"## {title}", body]
        if title in CAPTIONS:
            pages = [_link("index", found)[2:-1].partition("#")[0] for found in _LINK.finditer(body)]
            own = [page.removesuffix(".md") for page in dict.fromkeys(pages) if page.endswith(".md")]
            text += [f"```{{toctree}}\n:hidden:\n:caption: {CAPTIONS[title]}\n"]
            text += [f"/{page}" for page in own] + ["```", ""]
    return "\n".join(text)


def on_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are in the house's form; what they name in backticks is a parameter first."""
    try:
        parameters = list(inspect.signature(obj).parameters)
    except (TypeError, ValueError):
        parameters = []
    own = re.compile(rf"(?<!`)`({'|'.join(parameters) or '(?!)'})`(?!`)")
    lines[:] = as_fields([own.sub(r"``\1``", line) for line in lines])


def on_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Defaults are told as code, and not as Python shows what they are at run time."""
    if signature is not None:
        signature = re.sub(r"<function (\w+)(?: at 0x\w+)?>", r"\1", with_defaults(signature, obj))
        signature = re.sub(r"<(\w+\.\w+): [^<>]*>", r"\1", signature)
    return signature, returned


def on_missing(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """What a docstring names by its last part alone, where only one public name ends so."""
    if node.get("refdomain") != "py":
        return None
    wanted = node.get("reftarget", "").rpartition(".toolrt.")[2]
    domain = env.domains["py"]
    found = [path for path in domain.objects if path == wanted or path.endswith(f".{wanted}")]
    found = [path for path in found if not domain.objects[path].aliased and domain.objects[path].objtype != "module"]
    last = wanted.rpartition(".")[2]
    if not found and last != wanted and last[:1].isupper():  # a private module's class, by the path of its code
        found = [path for path in domain.objects if path.endswith(f".{last}")]
    if len(found) != 1:
        return None
    told = domain.objects[found[0]]
    return make_refnode(app.builder, node["refdoc"], told.docname, told.node_id, content, found[0])


def on_begun(app: Sphinx) -> None:
    """Begin with the gallery, in a process of its own: it has few schedules of each program, and needs one core."""
    if app.builder.name == "html":
        if written := os.environ.get(PLAYGROUND_WRITTEN):
            shutil.copytree(written, Path(app.outdir) / PLAYGROUND, dirs_exist_ok=True)
        target = Path(app.outdir) / GALLERY
        command = [sys.executable, "-m", "toolrt", "litmus", "--site", str(target), "--most", str(GALLERY_MOST)]
        app.toolrt_gallery = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # type: ignore[attr-defined]


def on_finished(app: Sphinx, exception: Exception | None) -> None:
    """Wait for the gallery."""
    gallery: subprocess.Popen[bytes] | None = getattr(app, "toolrt_gallery", None)
    if gallery is not None and exception is not None:
        gallery.terminate()
    if gallery is not None and gallery.wait() and exception is None:
        raise ExtensionError(f"the gallery was not written: exit code {gallery.returncode}")
