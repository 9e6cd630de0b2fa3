"""The corpus of patches as models write them: ``patches/*.txt``.

Each file has a tree, results, and patches.  A line that begins with ``§`` begins a part:

- ``§ original PATH [crlf] [no-end]``: a file that is there before.
- ``§ result KEY PATH [crlf] [no-end] [gone]``: a file that is there (or gone) after a patch of that key.
- ``§ patch KEY | TITLE``: a patch; KEY is ``refused`` where it has to be.
"""

from __future__ import annotations

import pathlib

import attrs

Tree = dict[str, str]


@attrs.frozen
class Case:
    """One patch of the corpus."""

    title: str
    before: Tree
    patch: str
    #: The tree after it; None: it is refused.
    after: Tree | None


def corpus() -> list[Case]:
    """All patches, in the order of the files."""
    found: list[Case] = []
    for file in sorted(pathlib.Path(__file__).with_name("patches").glob("*.txt")):
        before: Tree = {}
        results: dict[str, dict[str, str | None]] = {}
        for part in file.read_text("utf-8").split("§ ")[1:]:
            head, _, text = part.partition("\n")
            kind, _, rest = head.partition(" ")
            if kind == "patch":
                key, _, title = rest.partition(" | ")
                after = None if key == "refused" else _changed(before, results[key])
                found.append(Case(f"{file.stem}: {title} ({key})", before, text, after))
                continue
            key, path, *words = ("", *rest.split()) if kind == "original" else rest.split()
            content = None if "gone" in words else _content(text, words)
            if kind == "original":
                assert content is not None
                before[path] = content
            else:
                results.setdefault(key, {})[path] = content
    return found


def _content(text: str, words: list[str]) -> str:
    text = text.removesuffix("\n") if "no-end" in words else text
    return text.replace("\n", "\r\n") if "crlf" in words else text


def _changed(before: Tree, result: dict[str, str | None]) -> Tree:
    return {path: text for path, text in {**before, **result}.items() if text is not None}
