"""Shows a Jupyter notebook as what it is: its cells, what they printed, and their pictures.

Rules.  The format is version 4 of nbformat (https://nbformat.readthedocs.io).  What is no such notebook is shown as the
text that it is.  Of one output its picture is shown, else its plain text; HTML and widgets are not.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any

from toolrt.model import Image
from toolrt.model._content import picture_type

_TERMINAL_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def parts_of_notebook(text: str) -> tuple[str | Image, ...] | None:
    """The parts of a notebook, no two texts behind each other; None: it is none."""
    try:
        notebook = json.loads(text)
        cells = notebook["cells"]
        parts: list[str | Image] = [f"[A notebook of {len(cells)} cells; offset=1 shows the text of its file.]\n"]
        for number, cell in enumerate(cells, 1):
            for part in _parts_of_cell(number, cell):
                if isinstance(part, str) and isinstance(parts[-1], str):
                    parts[-1] += part
                else:
                    parts.append(part)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return tuple(parts)


def _parts_of_cell(number: int, cell: dict[str, Any]) -> Iterator[str | Image]:
    yield f"\n[{number}: {cell['cell_type']}]\n{_on_lines(cell['source'])}"
    for output in cell.get("outputs", ()):
        if output["output_type"] == "stream":
            yield f"[{number}: {output['name']}]\n{_on_lines(output['text'])}"
        elif output["output_type"] == "error":
            yield f"[{number}: error]\n{_TERMINAL_COLOURS.sub('', _on_lines(chr(10).join(output['traceback'])))}"
        else:
            yield from _parts_of_data(number, output["data"])


def _parts_of_data(number: int, data: dict[str, Any]) -> Iterator[str | Image]:
    for kind in ("image/png", "image/jpeg", "image/gif", "image/webp"):
        if kind in data:
            try:
                picture = base64.b64decode("".join(data[kind]))
            except binascii.Error:
                continue
            if picture_type(picture) is not None:
                yield f"[{number}: output]\n"
                yield Image(picture)
                return
    if "text/plain" in data:
        yield f"[{number}: output]\n{_on_lines(data['text/plain'])}"


def _on_lines(text: str | list[str]) -> str:
    """A text of a notebook, which may be in pieces, with a line's end behind it."""
    joined = text if isinstance(text, str) else "".join(text)
    return joined if not joined or joined.endswith("\n") else f"{joined}\n"
