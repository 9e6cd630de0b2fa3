r"""Cuts a pattern that goes over several lines into one for each line.

Rules.  An expression is cut at each ``\n`` (or ``\r\n``, ``\r?\n``, or a line's end itself) that stands outside of
groups and sets; the parts match a line's end, whole lines, and a line's beginning.  A ``\n`` in a group, beside ``|``
or with a repeat is refused by name.  In a set it means what it always did: the character, which no line has.

Theory.  No other part of an expression passes a line's end, so lines behind one another that match the parts are what
the whole expression matches.  The search itself stays one of lines, with the time that it had.
"""

from __future__ import annotations

import re

from toolrt.workspace.finding._regex import LEADING_FLAGS, RegexRefused

#: A line end as an expression has it.
_WRITTEN_END = re.compile(r"(?:\\r\??|\r\??)?(?:\\n|\n)|\r")


def expressions_of_lines(pattern: str) -> list[str]:
    """The expression for each line, the first of all that the pattern goes over; the pattern itself if it is of one.

    Raises:
        RegexRefused: a line's end stands where the expression cannot be cut.
    """
    flags = LEADING_FLAGS.match(pattern)  # they are each part's
    at = begin = 0 if flags is None else flags.end()
    parts: list[str] = []
    depth, has_choice, in_group = 0, False, False
    while at < len(pattern):
        end = _WRITTEN_END.match(pattern, at)
        if end is not None:
            in_group = in_group or depth > 0
            if pattern[end.end() : end.end() + 1] in ("*", "+", "?", "{"):
                raise RegexRefused("a line's end is repeated in it, which is not known here (write each)")
            parts.append(pattern[begin:at])
            at = begin = end.end()
            continue
        character = pattern[at]
        if character == "[":
            at = _behind_set(pattern, at)
            continue
        depth += (character == "(") - (character == ")")
        has_choice = has_choice or (character == "|" and depth == 0)
        at += 2 if character == "\\" else 1
    parts.append(pattern[begin:])
    if len(parts) == 1:
        return [pattern]
    if in_group or has_choice:
        raise RegexRefused(r"a line's end in a group or beside | is not known here (write \n outside of groups)")
    head = "" if flags is None else flags[0]
    first, *middle, last = parts
    return [f"{head}(?:{first})$", *(f"{head}^(?:{one})$" for one in middle), f"{head}^(?:{last})"]


def _behind_set(pattern: str, at: int) -> int:
    """Where the set that begins here has ended."""
    at += 2 if pattern.startswith("[^", at) else 1
    first = True
    while at < len(pattern) and (first or pattern[at] != "]"):
        named = re.compile(r"\[:\^?\w*:\]").match(pattern, at)
        at = named.end() if named is not None else at + (2 if pattern[at] == "\\" else 1)
        first = False
    return at + 1
