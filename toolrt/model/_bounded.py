"""Bounds what one result and one progress message may hold.

Rules.
    1. A text that is too long loses its middle.  What is left says how much is missing, and how to get it: see
       `toolrt.model._read_result` for a handle to read on by.
    2. Any other value of JSON's kinds that would be too long becomes the beginning of its JSON.
    3. Of parts (pictures, files) each is kept as long as there is room.
    4. A progress message is cut by the same rules 1 and 2, at `MESSAGE_MOST`; what is cut of it is kept nowhere.
    5. A value of another kind is handed on as it is: only its own code knows how large it is.

Theory.  What is cut follows from the value and the bound alone, so it is the same under every schedule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolrt._plain import stable_text
from toolrt.model._content import File, Image, Part, Text, parts_of, words_of

#: Characters that a result may have unless a tool or a runtime says otherwise: about 50,000 tokens.
RESULT_MOST = 200_000

#: From so many on, there is room to say how to get the rest.
TOLD_FROM = 400

#: Characters that are kept of a result which is too long, and of all that a state keeps, so that a model reads on.
KEPT_MOST = 2_000_000

#: Characters that a progress message may have, so that the 1,000 that a batch keeps for its reader are bounded too.
MESSAGE_MOST = 100_000

#: Bytes of the pictures and files of one result; providers take about 5 MB of each.
_DATA_MOST = 5 * 1024 * 1024

#: Characters that a value of no kind of JSON's counts for.
_OTHER = 20

#: Bits of the longest number whose digits are written to be counted; beyond, ten bits are three digits.
_WRITTEN_BITS = 4_000


def is_a_bound(value: object) -> bool:
    """Whether it is a number of characters, 1 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def bounded(content: Any, most: int) -> Any:
    """`content`, or as much of it as has at most `most` characters, in words that say so."""
    kind = type(content)
    if kind is str:
        return content if len(content) <= most else shortened(content, most)
    if content is None or kind is int or kind is float or kind is bool:
        return content
    parts = parts_of(content)
    if parts is not None:
        return _bounded_parts(content, parts, most)
    if not is_longer(content, most):
        return content
    if isinstance(content, str):
        return shortened(str.__str__(content), most)
    text, is_whole = _beginning(content, most)
    return shortened(text, most, is_whole) if not is_whole or len(text) > most else text


def bounded_message(message: Any) -> Any:
    """A progress `message`, or as much of it as has about `MESSAGE_MOST` characters, in words that say so."""
    if isinstance(message, str):
        text, is_whole = str.__str__(message), True
        if len(text) <= MESSAGE_MOST:
            return message
    elif is_longer(message, MESSAGE_MOST):
        text, is_whole = _beginning(message, MESSAGE_MOST)
    else:
        return message
    left_out = f"{len(text) - MESSAGE_MOST:,} characters" if is_whole else "the rest"
    tail = MESSAGE_MOST // 2 if is_whole else 0
    gap = f"\n[... {left_out} left out: a progress message may have {MESSAGE_MOST:,} characters ...]\n"
    return f"{text[: MESSAGE_MOST - tail]}{gap}{text[len(text) - tail :]}"


def _bounded_parts(content: Any, parts: list[Part], most: int) -> Any:
    """`content`, or its `parts` with as much of each as there is room for after those before it."""
    told: list[Part] = []
    characters, size = most, _DATA_MOST
    for part in parts:
        if isinstance(part, Image | File):
            size -= len(part.data)
            if size < 0:
                cut = f"{part.in_words().removesuffix('here]')}as a result may have {_DATA_MOST:,} bytes of such]"
                part = Text(cut if len(cut) <= TOLD_FROM else "[a file that is too large]")
            told.append(part)
            continue
        text = part.in_words()
        if len(text) > max(0, characters):
            part = Text(shortened(text, max(0, characters)))
        characters -= len(text)
        told.append(part)
        if characters < 0:
            left = len(parts) - len(told)
            told += [Text(f"[... {left} more parts left out ...]")] if left else []
            break
    return content if told == parts else told


def shortened(text: str, most: int, is_whole: bool = True, handle: str | None = None) -> str:
    """`text` without its middle.

    Args:
        text: more than `most` characters.
        most: how many the answer has; of a few hundred, beside the line that tells of the rest.
        is_whole: whether it is all that there was; if not, its beginning is what is kept.
        handle: what `toolrt.read_result` reads on by; None: nothing is kept to read on.
    """
    left_out = f"{len(text) - most:,} characters" if is_whole else "the rest"

    def gap(offset: int) -> str:
        if most < TOLD_FROM:
            return f"\n[... {left_out} left out ...]\n"
        how = "ask for less at a time if the tool can give it, or raise max_result of the tool or the Runtime"
        if handle is not None:
            how = f"read on with read_result(handle={handle!r}, offset={offset})"
        over = "over " if is_whole else ""
        return f"\n[... {over}{left_out} left out: a result may have {most:,} characters; {how} ...]\n"

    # No offset has more digits than the bound.  Where that is small, the line that tells of the rest is not counted.
    room = most if most < TOLD_FROM else most - len(gap(most))
    tail = room // 2 if is_whole else 0
    head = room - tail
    return f"{text[:head]}{gap(head)}{text[len(text) - tail :]}"


def whole_text(content: Any) -> tuple[str, bool]:
    """All of `content` as a text, or the beginning of its JSON that is kept; and whether it is all."""
    if isinstance(content, str):
        return str.__str__(content), True
    parts = parts_of(content)
    if parts is not None:
        return words_of(parts), True
    return _beginning(content, KEPT_MOST)


def is_longer(value: Any, most: int) -> bool:
    """Whether its JSON has more than `most` characters, about; looks at no more of it than that takes."""
    left, size = [value], 0
    while left:
        one = left.pop()
        if isinstance(one, str):
            size += str.__len__(one) + 2
        elif isinstance(one, Mapping | list | tuple | set | frozenset):
            try:
                # Brackets, commas and colons.
                size += max(2, len(one) + 1 + (len(one) if isinstance(one, Mapping) else 0))
                if size > most:
                    return True
                left.extend(one)
                if isinstance(one, Mapping):
                    left.extend(one.values())
            except Exception:  # one that cannot be read: only its own code knows how large it is
                size += _OTHER
        else:
            size += _characters_of(one)
        if size > most:
            return True
    return False


def _characters_of(one: Any) -> int:
    """The characters of JSON that a value without parts takes."""
    if isinstance(one, int) and one.bit_length() > _WRITTEN_BITS:
        return one.bit_length() * 3 // 10
    if isinstance(one, bool) or one is None:
        return len(str(one))
    if isinstance(one, int):
        return len(int.__repr__(one))
    return len(float.__repr__(one)) if isinstance(one, float) else _OTHER


def _beginning(value: Any, most: int) -> tuple[str, bool]:
    """The beginning of the JSON of `value`, more than `most` characters of it, and whether it is all."""
    encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=lambda one: stable_text(one, str))
    written: list[str] = []
    size = 0
    try:
        for piece in encoder.iterencode(value):  # piece by piece: nothing is written that is not shown
            written.append(piece)
            size += len(piece)
            if size > most:
                return "".join(written), False
    except Exception as error:
        written.append(f" ({type(value).__name__} that is no JSON from here on: {type(error).__name__})")
    return "".join(written), True
