"""One change of a file in each style that models write it in, with their slips in numbers, spaces and names."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import attrs


@attrs.frozen
class Hunk:
    """Lines of a change with their signs, and where they stand."""

    #: Numbers of the first old and of the first new line, as git counts them.
    old: int
    new: int
    lines: list[str]
    #: The line above, without its indentation: the nearest that is indented less than the first change.
    above: str

    def side(self, sign: str) -> list[str]:
        """The old lines ("-") or the new ones ("+"), without their signs."""
        return [line[1:] for line in self.lines if line[0] in (" ", sign)]

    def at(self, further: int = 0, more: int = 0) -> str:
        """The header with numbers; `further` and `more` make places and counts wrong."""
        old, new = len(self.side("-")) + more, len(self.side("+")) + more
        return f"@@ -{self.old + further},{old} +{self.new + further},{new} @@"

    def block(self) -> str:
        """The hunk as a search and replace block."""
        lines = ["<<<<<<< SEARCH", *self.side("-"), "=======", *self.side("+"), ">>>>>>> REPLACE"]
        return "\n".join(lines)


def hunks_of(before: str, after: str, context: int) -> list[Hunk]:
    """The change in hunks with that many lines of context."""
    old, new = before.splitlines(), after.splitlines()
    found = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        lines, first = [], next(row[1] for row in group if row[0] != "equal")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[i1:i2]]
            else:
                lines += [f"-{line}" for line in old[i1:i2]] + [f"+{line}" for line in new[j1:j2]]
        start, end, new_start = group[0][1], group[-1][2], group[0][3]
        found.append(Hunk(start + (start < end), new_start + 1, lines, _above(old, first)))
    return found


def _above(lines: list[str], index: int) -> str:
    indent = len(lines[index]) - len(lines[index].lstrip())
    rows = [line for line in lines[:index] if line.strip()]
    less = [line for line in rows if len(line) - len(line.lstrip()) < indent]
    return (less or rows)[-1].strip()


def styles(path: str, before: str, after: str) -> Iterator[tuple[str, str]]:
    """Each style's name, and the change in it."""
    hunks, narrow, bare = (hunks_of(before, after, context) for context in (3, 1, 0))
    unsigned = [attrs.evolve(hunk, lines=[line.removeprefix(" ") for line in hunk.lines]) for hunk in hunks]
    spaces = [attrs.evolve(h, lines=[f"{line}  " if line[0] == " " else line for line in h.lines]) for h in hunks]
    git = [hunk.at() for hunk in hunks]
    above = [f"@@ {hunk.above}" for hunk in hunks]
    none = ["@@"] * len(bare)
    miscounted = diff(path, [hunk.at(3, more=1) for hunk in hunks], hunks)
    index = f"diff --git a/{path} b/{path}\nindex 3b18e51..9f8c2d1 100644\n"

    yield "as git writes it", index + diff(path, git, hunks)
    yield "counts that are wrong", diff(path, [hunk.at(more=2) for hunk in hunks], hunks)
    yield "line numbers and counts that are wrong", diff(path, [hunk.at(17, more=-1) for hunk in hunks], hunks)
    yield "line numbers that are wrong", diff(path, [hunk.at(40) for hunk in hunks], hunks)
    yield "no numbers", diff(path, none, hunks)
    yield "no numbers and two pairs of signs", diff(path, ["@@ ... @@"] * len(hunks), hunks)
    yield "the line above in place of numbers", diff(path, [f"@@ {hunk.above}" for hunk in narrow], narrow)
    yield "begin patch with the line above", begun(path, above, hunks)
    yield "begin patch", begun(path, ["", *none[1:]], hunks)
    yield "begin patch with git's numbers", begun(path, git, hunks)
    yield "context without its space", diff(path, none, unsigned)
    yield (
        "context without its space and counts that are wrong",
        diff(path, [hunk.at(more=1) for hunk in hunks], unsigned),
    )
    yield "spaces at the ends of context lines", diff(path, git, spaces)
    yield "a prefix on one name", diff(path, git, hunks, old=path)
    times = [f"{path}\t2026-03-01 10:0{minute}:00" for minute in (0, 5)]
    yield "no prefixes and times", diff(path, git, hunks, *times)
    yield "no header of a hunk", diff(path, ["", *none[1:]], hunks)
    yield (
        "a fence and prose around it",
        (
            f"Here is the fix:\n\n```diff\n{diff(path, none, hunks)}```\n\n"
            "This keeps the behaviour of the other functions.\n"
        ),
    )
    yield "a fence and counts that are wrong", f"```diff\n{miscounted}```\n"
    yield "no context and right numbers", diff(path, [hunk.at() for hunk in bare], bare)
    yield "no context and no numbers", diff(path, none, bare)
    yield "one line of context and no numbers", diff(path, none, narrow)
    yield "search and replace", "\n".join([path, "\n\n".join(hunk.block() for hunk in hunks), ""])
    yield "search and replace in fences", "\n".join(f"`{path}`\n```\n{hunk.block()}\n```\n" for hunk in narrow)
    if len(hunks) > 1:
        yield "hunks from the bottom up", diff(path, git[::-1], hunks[::-1])
        yield (
            "one file in two parts",
            "".join(diff(path, [head], [hunk]) for head, hunk in zip(git, hunks, strict=True)),
        )


def diff(path: str, heads: list[str], hunks: list[Hunk], old: str = "", new: str = "") -> str:
    """A unified diff with these headers of hunks; an empty one is left out, and so are more of them than hunks."""
    return "\n".join([f"--- {old or f'a/{path}'}", f"+++ {new or f'b/{path}'}", *_under(heads, hunks), ""])


def begun(path: str, heads: list[str], hunks: list[Hunk]) -> str:
    """The form that begins with a line that says so."""
    rows = ["*** Begin Patch", f"*** Update File: {path}", *_under(heads, hunks), "*** End Patch", ""]
    return "\n".join(rows)


def _under(heads: list[str], hunks: list[Hunk]) -> Iterator[str]:
    for head, hunk in zip(heads, hunks, strict=False):
        yield from [head, *hunk.lines] if head else hunk.lines
