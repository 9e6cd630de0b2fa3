"""The house's docstrings as reStructuredText.

Rules.  ``Args:``, ``Attributes:``, ``Raises:``, ``Returns:`` and ``Example:`` stand alone in their line, with what
belongs to them indented; ``Checkpoint:`` and ``Ordering:`` are followed by a sentence.  Prose comes first, whatever
stood between, then the fields, then the examples.
"""

from __future__ import annotations

import re
from textwrap import dedent

__all__ = ["SECTIONS", "as_fields", "sections_of"]

#: What stands alone in a line and has indented lines below it.
SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises", "Example", "Examples")

_SECTION = re.compile(rf"^({'|'.join(SECTIONS)}):(:?)$")
_SENTENCE = re.compile(r"^(Checkpoint|Ordering): +(.*)$")
_WITHIN = re.compile(r"(?<=\S)(?: {2}|^)(?=(?:Checkpoint|Ordering): )", re.MULTILINE)
_ENTRY = re.compile(r"^(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*): +(.*)$")
_TITLE = re.compile(r"^(Rules|Theory|Limits)\. {1,2}(?=\S)")
_FIELDS = {"Args": "param", "Attributes": "ivar", "Raises": "raises"}


def sections_of(lines: list[str]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """A docstring's prose, and its sections in order: each title (with a colon where code follows) and its lines."""
    lines = [part for line in lines for part in _WITHIN.split(line)]
    prose: list[str] = []
    sections: list[tuple[str, list[str]]] = []
    at = 0
    while at < len(lines):
        if found := _SECTION.match(lines[at]):
            body, at = _indented(lines, at + 1)
            sections.append((found[1] + found[2], dedent("\n".join(body)).strip("\n").split("\n")))
        elif found := _SENTENCE.match(lines[at]):
            body = [found[2]]
            at += 1
            while at < len(lines) and lines[at].strip() and not _SENTENCE.match(lines[at]):
                body.append(lines[at].strip())
                at += 1
            sections.append((found[1], body))
        else:
            prose.append(lines[at])
            at += 1
    return prose, sections


def _indented(lines: list[str], at: int) -> tuple[list[str], int]:
    body = []
    while at < len(lines) and (not lines[at].strip() or lines[at].startswith(" ")):
        body.append(lines[at])
        at += 1
    return body, at


def entries_of(body: list[str]) -> list[tuple[str, str]]:
    """The entries of a section such as ``Args:``: what stands before each colon, and all that follows."""
    found: list[tuple[str, list[str]]] = []
    for line in body:
        if (entry := _ENTRY.match(line)) and not line.startswith(" "):
            found.append((entry[1], [entry[2]]))
        elif found:
            found[-1][1].append(line.strip())
        elif line.strip():
            found.append(("", [line.strip()]))
    return [(name, " ".join(text for text in texts if text)) for name, texts in found]


def as_fields(lines: list[str]) -> list[str]:
    """A docstring in the house's form, as reStructuredText."""
    prose, sections = sections_of(lines)
    fields: list[str] = []
    examples: list[str] = []
    for title, body in sections:
        kind = title.rstrip(":")
        if kind in _FIELDS:
            for names, text in entries_of(body):
                fields += [f":{_FIELDS[kind]} {name}: {text}" for name in names.split(", ")]
        elif kind in ("Returns", "Yields"):
            fields.append(f":returns: {' '.join(line.strip() for line in body)}")
        elif kind in ("Checkpoint", "Ordering"):
            fields.append(f":{kind}: {' '.join(body)}")
        else:
            code = title.endswith(":")
            examples += ["", f".. rubric:: {kind}", ""]
            examples += [".. code-block:: python", ""] if code else []
            examples += [f"   {line}" if code and line else line for line in body]
    prose = [_TITLE.sub(lambda found: f"**{found[1]}.** ", line) for line in prose]
    return [*prose, "", *fields, "", *examples, ""]
