"""Counts the tokens of a text, and shortens the answer about a file that has too many.

Rules.  A read that asks for the whole of a file is answered with it while that fits the read's share of the context
(`ToolContext.read_budget`), else with a skeleton that says how to get the rest.  A read that names lines is answered
with those lines, or as many of them as a result may have (`ToolContext.max_result`).  What is answered follows from the
file and these bounds alone.

Theory.  The share is the same for all reads of a batch and fixed before the first one starts, so no read can take what
another one needs, and none is shorter because it came later.

Limits.  Tokens are estimated: bytes of UTF-8 divided by 4, rounded up.  Measured against three vocabularies (cl100k,
o200k, and the one Anthropic has published) on 540 files: the median of estimate to truth is 1.0 for Python (0.97 to
1.09), Markdown (0.94 to 0.99) and JSON (1.02 to 1.05), 0.8 to 1.0 for C, 0.77 to 0.9 for scripts and pages of the web;
for nine files of ten it is between 0.53 and 1.19.  Tables of digits and base64 have up to 2.8 times the estimate, runs
of blanks a fifth of it.  A caller that knows the model's own count passes it as `tokens`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolrt._plain import counted
from toolrt.workspace.text._text import lines_of

#: Counts the tokens of a text.
TokenCount = Callable[[str], int]

#: What is shown of a file that is over its share: from its path, its text and the tokens that it may have.
Skeleton = Callable[[str, str, int], str]

#: Bytes of UTF-8 for one token.
_BYTES_PER_TOKEN = 4

#: How much of a share the beginning gets; the end gets the rest.  Imports, names and intentions stand at the beginning.
_HEAD = 2 / 3


def estimated_tokens(text: str) -> int:
    """How many tokens `text` has, about: its bytes in UTF-8 divided by 4, rounded up.  See the module's limits."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // _BYTES_PER_TOKEN)


def tokens_of(characters: int) -> int:
    """How many tokens a text of so many characters has, about, where each is one byte."""
    return characters // _BYTES_PER_TOKEN


def fitted(path: str, text: str, shown: str, budget: int | None, skeleton: Skeleton, tokens: TokenCount) -> str:
    """`shown` if it has at most `budget` tokens, else a skeleton.

    Args:
        path: the file, as messages show it.
        text: all of it.
        shown: all of it as it was asked for, with line numbers, say.
        budget: tokens; None: any number.
        skeleton: makes one of `text`; where it raises, or gives what is no text or over the budget as well, `shown` is
            cut by `head_and_tail`.
        tokens: counts them; where it raises, they are estimated.
    """
    if budget is None or not text or _counted(shown, tokens) <= budget:
        return shown
    if skeleton is not head_and_tail:
        try:
            made = skeleton(path, text, budget)
        except Exception:
            made = None
        if isinstance(made, str) and _counted(made, tokens) <= budget:
            return made
    return head_and_tail(path, shown, budget, tokens)


def page(path: str, shown: str, first: int, most: int, *, more: bool = False) -> str:
    """`shown`, or as many of its first lines as fit into `most` characters, and how to read on.

    Args:
        path: the file, as messages show it.
        shown: some lines of it.
        first: the number of the first of them.
        most: characters.
        more: whether more lines were asked for than these, to the end of the file.
    """
    if len(shown) <= most:
        return shown
    lines = lines_of(shown)
    last = "the end" if more else f"line {first + len(lines) - 1}"

    def begins(count: int) -> str:
        read_on = f"read on with offset={first + count}" if count else "search can show parts of it"
        shows = (
            f"lines {first} to {first + count - 1} of those" if count else f"the beginning of line {first} of what was"
        )
        return f"[{path}: {shows} asked for (to {last}), as a result may have {most:,} characters; {read_on}.]\n"

    room = most - len(begins(len(lines)))
    count = _fitting(lines, room, len)
    if count:
        return begins(count) + "".join(lines[:count])
    return begins(0) + lines[0][: max(0, most - len(begins(0)))]


def last_page(path: str, shown: str, most: int) -> str:
    """`shown`, the last lines of a file, or as many of the last of them as fit into `most` characters.

    Args:
        path: the file, as messages show it.
        shown: the lines.
        most: characters.
    """
    if len(shown) <= most:
        return shown
    lines = lines_of(shown)

    def begins(count: int) -> str:
        shows = f"the last {counted(count, 'line')}" if count else "the end of the last line"
        return f"[{path}: {shows} of those asked for, as a result may have {most:,} characters; ask for fewer.]\n"

    count = _fitting(lines[::-1], most - len(begins(len(lines))), len)
    if count:
        return begins(count) + "".join(lines[-count:])
    return begins(0) + lines[-1][-max(1, most - len(begins(0))) :]


def head_and_tail(path: str, text: str, budget: int, tokens: TokenCount = estimated_tokens) -> str:
    """The beginning and the end of `text`, whole lines of it, with what is left out and how to get it.

    A text that fits is given as it is; of a line that is too long for all, its beginning is shown.

    Args:
        path: the file, as messages show it.
        text: all of it.
        budget: how many tokens the answer may have, a few hundred at least: its own words are some fifty.
        tokens: counts them.
    """
    total = _counted(text, tokens)
    if total <= budget or not text:
        return text
    lines = lines_of(text)
    # With the longest numbers there can be.
    room = budget - _counted("".join(_frame(path, len(lines), total, budget, len(lines), 2 * len(lines))), tokens)
    head = min(_fitting(lines, int(room * _HEAD), tokens), len(lines) - 1)
    before = "".join(lines[:head])
    if not head:  # as much of the first line as fits
        line, share = lines[0], int(room * _HEAD)
        before = line[: _most(len(line), lambda size: _counted(line[:size], tokens) <= share)]
    room -= _counted(before, tokens)
    tail = _fitting(lines[head + 1 :][::-1], room, tokens)
    notice, gap = _frame(path, len(lines), total, budget, head + 1, len(lines) - tail)
    after = "".join(lines[len(lines) - tail :])
    between = "" if not before or before.endswith("\n") else "\n"
    return f"{notice}{before}{between}{gap}{after}"


def _frame(path: str, lines: int, total: int, budget: int, first: int, last: int) -> tuple[str, str]:
    """What stands before the text, and where lines `first` to `last` of it are left out."""
    left_out = f"lines {first} to {last}" if last > first else f"line {first}"
    return (
        f"[{path} has {lines} lines, about {total} tokens; this read may answer {budget}. L{left_out[1:]} of it "
        f"{'are' if last > first else 'is'} left out: read some of it at a time with offset={first} and limit (there "
        f"are {last - first + 1} to read).]\n",
        f"[... {left_out} left out ...]\n",
    )


def _fitting(lines: Sequence[str], budget: int, tokens: TokenCount) -> int:
    """How many of the first of `lines` have at most `budget` tokens together."""
    return _most(len(lines), lambda count: _counted("".join(lines[:count]), tokens) <= budget)


def _most(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `limit` that fits; costs what fits, not what there is."""
    low, high = 0, min(1, limit)
    while high > low and fits(high):
        low, high = high, min(2 * high, limit)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _counted(text: str, tokens: TokenCount) -> int:
    try:
        return int(tokens(text))
    except Exception:
        return estimated_tokens(text)
