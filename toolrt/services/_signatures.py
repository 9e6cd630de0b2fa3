"""What the first failed command said, and whether a later one still says it.

Rules.
    1. The first command that failed, by call order, leaves its most distinctive lines in the state
       (`State.error_signatures`); they stay.  It does so by a modifier, so who finished first decides nothing.
    2. A later command that succeeded, and does more than read, is compared with them: when at least three of five are
       gone the state gets a hint (`State.hints`), once.  By a modifier too: of two successes in one lane the one of
       lower call_index gives it.
    3. A command that only reads is no evidence that anything was mended: ``ls`` succeeds in any case.  A failure that
       wrote no line to know it by is not remembered.

Theory.  What tools print around a failure mixes it with what they always print, so no single line can be trusted; a
majority of five can (the rule is that of the ToolContext seed).  The score of a line, highest first:

    1. whether it names a failure (error, failed, exception, panic, assert, cannot, not found, ...);
    2. whether it is there once only: what repeats is a status;
    3. its length, up to 120 characters: longer is more particular;
    4. its place: the earlier one.

Lines are taken without colours and outer blanks.  Lines of less than 15 characters, without a letter, or that begin
with ``[`` (a step's number, a note) never count.  Two lines are the same when they differ in digits only: an error that
has moved to another line, or took another time, is still there.

Limits.  Only what is kept of a command's output is looked at, its beginning and its end.
"""

from __future__ import annotations

import re
from collections import Counter

from toolrt.model import Change, State

#: How many lines stand for a failure.
_MOST = 5

#: Of five lines so many must be gone.
_GONE, _OF = 3, 5

_SHORTEST, _LONGEST = 15, 120

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_DIGITS = re.compile(r"[0-9]+")
_LETTER = re.compile(r"[^\W\d_]")
_FAILURE = re.compile(
    r"error|exception|fail|fatal|panic|assert|traceback|undefined|unresolved|unexpected|unable|cannot|can't|could not"
    r"|denied|refused|invalid|missing|not found|no such|abort|segmentation|expected",
    re.IGNORECASE,
)

#: The hint that the model gets, once.
HINT = "the lines of the first error are gone: it looks mended; go on with what is left to do"


def distinctive(output: str) -> tuple[str, ...]:
    """The up to five most distinctive lines of what a failed command wrote, the best first; see the module's theory."""
    found: dict[str, tuple[int, str]] = {}
    counts: Counter[str] = Counter()
    for place, line in enumerate(map(_shown, output.splitlines())):
        if len(line) >= _SHORTEST and not line.startswith("[") and _LETTER.search(line):
            same = _compared(line)
            found.setdefault(same, (place, line))
            counts[same] += 1
    ranked = sorted(
        found.items(),
        key=lambda one: (_FAILURE.search(one[1][1]) is None, counts[one[0]] > 1, -len(one[1][1]), one[1][0]),
    )
    return tuple(line for _, (_, line) in ranked[:_MOST])


def remembering(output: str) -> Change:
    """The modifier of a command that failed: the first one's lines are in the state."""
    return Change.call(_remember, distinctive(output))


def _remember(state: State, lines: tuple[str, ...]) -> State:
    return state if state.error_signatures else state.replace(error_signatures=lines)


def resolving(output: str) -> Change:
    """The modifier of a command that succeeded: the hint is in the state if most lines are gone from `output`."""
    return Change.call(_resolve, frozenset(_compared(_shown(line)) for line in output.splitlines()))


def _resolve(state: State, said: frozenset[str]) -> State:
    signatures = state.error_signatures
    gone = sum(1 for line in signatures if _compared(line) not in said)
    if not signatures or HINT in state.hints or gone * _OF < len(signatures) * _GONE:
        return state
    return state.replace(hints=(*state.hints, HINT))


def _shown(line: str) -> str:
    return _COLOUR.sub("", line).strip()[:_LONGEST]


def _compared(line: str) -> str:
    return _DIGITS.sub("#", line)
