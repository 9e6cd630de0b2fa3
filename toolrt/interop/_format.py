"""The formats that responses come in and results go out in, by name."""

from __future__ import annotations

from typing import Literal, get_args

from toolrt.errors import InputRefused

#: The Anthropic Messages API; the OpenAI Responses API; the OpenAI Chat Completions API; a plain list of calls.
Format = Literal["anthropic", "openai-responses", "openai-chat", "calls"]

_FORMATS: tuple[Format, ...] = get_args(Format)

#: What people type; "openai" alone is the newer API.
_SHORT: dict[str, Format] = {"openai": "openai-responses", "chat": "openai-chat", "json": "calls"}


def named_format(name: str) -> Format:
    """The format of that name: its own, or "openai" (openai-responses), "chat" (openai-chat), "json" (calls).

    Raises:
        InputRefused: there is no such format.
    """
    for known in _FORMATS:
        if name == known:
            return known
    if isinstance(name, str) and name in _SHORT:
        return _SHORT[name]
    raise InputRefused(f"format {name!r}", "there is no such format", f"Use one of {', '.join((*_FORMATS, *_SHORT))}.")
