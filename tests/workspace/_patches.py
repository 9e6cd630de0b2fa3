"""The corpus of patches as models write them: ``patches/*.txt``.

Each file has a tree, results, and patches.  A line that begins with ``§`` begins a part:

- ``§ original PATH [crlf] [no-end]``: a file that is there before.
- ``§ result KEY PATH [crlf] [no-end] [gone]``: a file that is there (or gone) after a patch of that key.
- ``§ from`` and ``§ to``, behind a result without text: it is the original with these lines replaced.
- ``§ patch KEY | TITLE``: a patch; KEY is ``refused`` where it has to be.
- ``§ refused STYLE``: the result before it has to be refused in this style.

A file without patches is a list of changes: each of its results is a patch in all styles of `_patch_styles`.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import attrs

from tests.workspace._patch_styles import styles

Tree = dict[str, str]


@attrs.frozen
class Case:
    """One patch of the corpus."""

    title: str
    before: Tree
    patch: str
    #: The tree after it; None: it is refused.
    after: Tree | None


@attrs.define
class Result:
    """A file after a patch."""

    #: None: it is gone.
    text: str | None
    words: list[str]
    #: The lines of the last ``§ from``.
    old: str = ""
    #: The styles in which its change is refused.
    refused: set[str] = attrs.Factory(set)

    def replace(self, new: str) -> None:
        """Put `new` in place of the old lines, which stand there once."""
        assert self.text is not None
        assert f"\n{self.text}".count(f"\n{self.old}") == 1, self.old
        self.text = f"\n{self.text}".replace(f"\n{self.old}", f"\n{new}")[1:]


def corpus() -> list[Case]:
    """All patches, in the order of the files."""
    files = sorted(pathlib.Path(__file__).with_name("patches").glob("*.txt"))
    return [case for file in files for case in _cases(file.stem, file.read_text("utf-8"))]


def _cases(name: str, parts: str) -> Iterator[Case]:
    before: dict[str, Result] = {}
    after: dict[str, dict[str, Result]] = {}
    for part in parts.split("§ ")[1:]:
        head, _, text = part.partition("\n")
        match head.split():
            case ["original", path, *words]:
                before[path] = Result(text, words)
            case ["result", key, path, *words]:
                gone = None if "gone" in words else text or before[path].text
                result = after.setdefault(key, {})[path] = Result(gone, words)
            case ["from"]:
                result.old = text
            case ["to"]:
                result.replace(text)
            case ["refused", *words]:
                result.refused.add(" ".join(words))
            case ["patch", key, "|", *words]:
                changed = None if key == "refused" else _tree({**before, **after[key]})
                yield Case(f"{name}: {' '.join(words)} ({key})", _tree(before), text, changed)
            case _:
                raise ValueError(f"{name}.txt has a part that begins with {head!r}")
    if "§ patch " in parts:
        return
    ((path, original),) = before.items()
    for key, results in after.items():
        for style, patch in styles(path, original.text or "", results[path].text or ""):
            changed = None if style in results[path].refused else _tree(results)
            yield Case(f"{name}: {style} ({key})", _tree(before), patch, changed)


def _tree(results: dict[str, Result]) -> Tree:
    """What the files have, with the ends that their words say."""
    tree = {}
    for path, result in results.items():
        if result.text is not None:
            text = result.text.removesuffix("\n") if "no-end" in result.words else result.text
            tree[path] = text.replace("\n", "\r\n") if "crlf" in result.words else text
    return tree
