"""Wildcards over names and paths.

Rules.  ``*`` is any characters of one name, ``?`` one of them, ``[a-z]`` and ``[!a-z]`` one of a set (also
``[[:digit:]]`` and the like), a name ``**`` any number of directories, none included, and a backslash takes the next
character for itself.  Nothing matches a slash.  Upper and lower case differ.

Theory.  A pattern is walked along a path name by name, as an automaton whose states are places in the pattern: so
a walk of a tree steps once for each name, and sees when nothing below a directory can match any more.  Each name is
matched by a regular expression whose stars are atomic (`fnmatch` does so too): what a star passed over is never tried
again, so the time is bounded by the product of both lengths for every pattern, however it was made.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import attrs

#: How many patterns the braces of one may stand for.
BRACES_MOST = 100

#: The classes that POSIX names, as `re` writes them.
POSIX = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~", "space": " \\t\\n\\r\\f\\v",
    "upper": "A-Z", "xdigit": "a-fA-F0-9",
}  # fmt: skip

#: Matches nothing.
_NEVER = "(?!)"

#: Places in a pattern, ascending; empty: nothing can match any more.
State = tuple[int, ...]


class PatternRefused(ValueError):
    """A pattern cannot be meant; the text says why."""


def name_matcher(pattern: str, *, as_git: bool = False) -> re.Pattern[str]:
    """An expression that matches the whole of a name where `pattern`, which has no slash, does.

    Args:
        as_git: a set that is never closed matches nothing; otherwise its bracket is a character, as for a shell.
    """
    chunks: list[str] = [""]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            if chunks[-1] or len(chunks) == 1:
                chunks.append("")
        elif character == "?":
            chunks[-1] += "."
        elif character == "[":
            expression, at = _set(pattern, at, as_git)
            chunks[-1] += expression
        elif character == "\\":
            # A backslash at the end escapes nothing, and matches nothing.
            chunks[-1] += re.escape(pattern[at]) if at < len(pattern) else _NEVER
            at += 1
        else:
            chunks[-1] += re.escape(character)
    first, *rest = chunks
    if not rest:
        return re.compile(f"{first}\\Z", re.DOTALL)
    *middle, last = rest
    # Each chunk matches a fixed number of characters, so the leftmost place for it is as good as any.
    atoms = "".join(f"(?>.*?{chunk})" for chunk in middle)
    return re.compile(f"{first}{atoms}.*{last}\\Z", re.DOTALL)


def _set(pattern: str, at: int, as_git: bool) -> tuple[str, int]:
    """The expression for the set that opened just before `at`, and where the pattern goes on."""
    begin = at
    negated = at < len(pattern) and pattern[at] in "!^"
    at += negated
    inside: list[str] = []
    first = True
    while at < len(pattern) and (pattern[at] != "]" or first):
        first = False
        if pattern.startswith("[:", at):
            end = pattern.find(":]", at + 2)
            if end >= 0:
                name = pattern[at + 2 : end]
                if name not in POSIX:
                    return _NEVER, _after_set(pattern, end + 2)
                inside.append(POSIX[name])
                at = end + 2
                continue
        low, at = _member(pattern, at)
        if at + 1 < len(pattern) and pattern[at] == "-" and pattern[at + 1] != "]":
            high, at = _member(pattern, at + 1)
            if low <= high:
                inside.append(f"{_in_class(low)}-{_in_class(high)}")
        else:
            inside.append(_in_class(low))
    if at >= len(pattern):
        return (_NEVER if as_git else "\\["), begin  # never closed
    if not inside:
        return ("." if negated else _NEVER), at + 1
    return f"[{'^' if negated else ''}{''.join(inside)}]", at + 1


def _member(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "\\" and at + 1 < len(pattern):
        at += 1
    return pattern[at], at + 1


def _after_set(pattern: str, at: int) -> int:
    end = pattern.find("]", at)
    return len(pattern) if end < 0 else end + 1


def _in_class(character: str) -> str:
    return f"\\{character}" if character in "\\]^-[&~|" else character


def braces_expanded(pattern: str) -> list[str]:
    """The patterns that ``a.{b,c}`` stands for, in order, each once; braces may stand in braces.

    Raises:
        PatternRefused: they are more than `BRACES_MOST`.
    """
    done: dict[str, None] = {}
    pending = [pattern]
    while pending:
        one = pending.pop()
        found = _braces(one)
        if found is None:
            done[one] = None
        else:
            begin, end, choices = found
            pending += [one[:begin] + choice + one[end:] for choice in reversed(choices)]
        if len(done) + len(pending) > BRACES_MOST:
            raise PatternRefused(f"braces that stand for more than {BRACES_MOST} patterns")
    return list(done)


def _braces(pattern: str) -> tuple[int, int, list[str]] | None:
    """The first group of braces that is closed and has a comma: where it is, and its choices."""
    opened: list[tuple[int, list[int]]] = []
    groups: list[tuple[int, int, list[int]]] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 1
        elif character == "{":
            opened.append((at, []))
        elif character == "," and opened:
            opened[-1][1].append(at)
        elif character == "}" and opened:
            begin, commas = opened.pop()
            if commas:
                groups.append((begin, at + 1, commas))
        at += 1
    if not groups:
        return None
    begin, end, commas = min(groups)
    cuts = [begin, *commas, end - 1]
    return begin, end, [pattern[left + 1 : right] for left, right in itertools.pairwise(cuts)]


def _names_of(pattern: str) -> list[str]:
    """The names of a pattern as git takes them: a slash in a set is one of the set's characters.

    One behind a backslash parts names, too; only ``**`` before it is no directory at all then, but one or more.
    """
    names: list[str] = []
    begin = at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "\\" and pattern.startswith("/", at):
            names.append(pattern[begin : at - 1])
            if _any_directories(names[-1]):
                names.append("*")
            begin = at = at + 1
        elif character == "\\":
            at += 1
        elif character == "[":
            _, at = _set(pattern, at, True)
        elif character == "/":
            names.append(pattern[begin : at - 1])
            begin = at
    return [*names, pattern[begin:]]


def _any_directories(name: str) -> bool:
    """Whether git takes it for ``**``."""
    return len(name) > 1 and not name.strip("*")


@attrs.frozen
class Glob:
    """A pattern for paths, walked name by name."""

    #: An expression for each name of the pattern; None stands for ``**``.
    _names: tuple[re.Pattern[str] | None, ...]
    #: What was closed so far; a walk comes to few states.
    _known: dict[frozenset[int], State] = attrs.field(factory=dict, init=False, eq=False)

    @classmethod
    def of(cls, pattern: str, *, as_git: bool = False) -> Glob:
        """The automaton of `pattern`, which has no braces; names that are empty or a dot count for nothing.

        Args:
            as_git: as for `name_matcher`; and an empty name or a dot matches nothing, more than two stars are two.
        """
        names: list[re.Pattern[str] | None] = []
        for name in _names_of(pattern) if as_git else pattern.split("/"):
            if name == "**" or (as_git and _any_directories(name)):
                if not names or names[-1] is not None:
                    names.append(None)
            elif as_git or name not in ("", "."):
                names.append(name_matcher(name, as_git=as_git))
        return cls(tuple(names))

    @property
    def start(self) -> State:
        """Where a walk begins."""
        return self._closed({0})

    def step(self, state: State, name: str) -> State:
        """Where a walk is after `name`; empty: no path that begins like this matches."""
        after: set[int] = set()
        for place in state:
            if place < len(self._names):
                expression = self._names[place]
                if expression is None:
                    after.add(place)
                elif expression.match(name):
                    after.add(place + 1)
        return self._closed(after)

    def accepts(self, state: State) -> bool:
        """Whether the path walked so far matches."""
        return bool(state) and state[-1] == len(self._names)

    def matches(self, names: Sequence[str]) -> bool:
        """Whether the path of these names matches."""
        state = self.start
        for name in names:
            state = self.step(state, name)
        return self.accepts(state)

    def last_names(self, state: State) -> list[re.Pattern[str]] | None:
        """What the last name of a path may match, one of them, after a walk came to this state; None: any name does."""
        found: list[re.Pattern[str]] = []
        for place in state:
            if place < len(self._names):
                expression = self._names[place]
                if not self.accepts(self._closed({place if expression is None else place + 1})):
                    continue
                if expression is None:
                    return None
                found.append(expression)
        return found

    def may_match_in(self, above: Sequence[str]) -> bool:
        """Whether some name in the directory of these names may match."""
        state = self.start
        for name in above:
            state = self.step(state, name)
        return self.last_names(state) != []

    def _closed(self, places: set[int]) -> State:
        """`places` and those behind each ``**``, which may stand for nothing."""
        asked = frozenset(places)
        known = self._known.get(asked)
        if known is None:
            known = self._known[asked] = self._made_closed(asked)
        return known

    def _made_closed(self, places: frozenset[int]) -> State:
        more = {place + 1 for place in places if place < len(self._names) and self._names[place] is None}
        return tuple(sorted(places | more))
