"""Notebooks as Markdown, with the outputs they have."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["as_markdown", "notebook_of"]

_LINKED = re.compile(r"\]\(([^)\s]+\.ipynb)\)")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
#: The kinds of output that can be shown, the fullest first.
_KINDS = ("text/html", "image/svg+xml", "image/png", "text/markdown", "text/plain")


def notebook_of(stub: str, page: Path) -> Path:
    """The notebook that a page stands for: the executed one, if TOOLRT_NOTEBOOKS names a directory that has it.

    Raises:
        ValueError: the page links to none, or to one that is not there.
    """
    linked = _LINKED.search(stub)
    if linked is None:
        raise ValueError(f"{page}: a page of docs/notebooks links to the notebook it stands for")
    kept = (page.parent / linked[1]).resolve()
    executed = Path(os.environ.get("TOOLRT_NOTEBOOKS", kept.parent)) / kept.name
    for path in (executed, kept):
        if path.is_file():
            return path
    raise ValueError(f"{page}: there is no notebook {linked[1]}")


def as_markdown(path: Path) -> str:
    """A notebook's cells one after the other, each output below its code."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    language = notebook["metadata"].get("kernelspec", {}).get("language", "python")
    parts = [part for cell in notebook["cells"] for part in _cell(cell, language)]
    return "\n\n".join([*parts, f"This page is the notebook `notebooks/{path.name}`.", ""])


def _cell(cell: Mapping[str, Any], language: str) -> Iterator[str]:
    source = _text(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
    elif cell["cell_type"] == "code" and source.strip():
        yield _fence(language, source)
        for output in cell["outputs"]:
            yield _output(output)


def _output(output: Mapping[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _fence("output", _ANSI.sub("", _text(output["text"])))
    if output["output_type"] == "error":
        return _fence("output", _ANSI.sub("", "\n".join(output["traceback"])))
    kind = next((kind for kind in _KINDS if kind in output["data"]), None)
    if kind is None:
        return ""
    data = _text(output["data"][kind])
    if kind == "text/plain":
        return _fence("output", data)
    if kind == "text/markdown":
        return data
    if kind == "image/png":
        alone = "".join(data.split())
        data = f'<img alt="{html.escape(_text(output["data"].get("text/plain", "")), quote=True)}" '
        data += f'src="data:image/png;base64,{alone}">'
    return _fence("{raw} html", f'<div class="cell-output">\n{data}\n</div>')


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def _fence(language: str, text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text.strip(chr(10))}\n{ticks}"
