"""A tool by which a model reads on in results that were too long.

Rules.
    1. Where the registry has `read_result`, a result that is cut keeps its text in `State.long_results`, by a modifier
       of its call.  So the calls before it decide what is there, and no timing does: a call reads what the state had
       when its lane began.
    2. The handle is made of the text alone.
    3. A state keeps the newest texts, by their calls' order, up to `KEPT_RESULTS` and `KEPT_MOST` characters.  What it
       keeps belongs to the conversation whose batches hand it on.
    4. A page has at most as many characters as a result may have, so no page is cut.
"""

from __future__ import annotations

import hashlib
from typing import Any

import attrs

from toolrt._plain import counted
from toolrt.model._bounded import KEPT_MOST, RESULT_MOST, TOLD_FROM, bounded, is_longer, shortened, whole_text
from toolrt.model._call import ToolOutput
from toolrt.model._change import Change
from toolrt.model._content import Text, parts_of
from toolrt.model._state import LongResult, State
from toolrt.model._tool import tool

#: How many texts a state keeps.
KEPT_RESULTS = 16

#: Characters for what a page, or a list of parts, says beside its content.
_NOTICE = 200

_SCHEMA = {
    "type": "object",
    "properties": {
        "handle": {"type": "string", "description": "As the result that was cut names it."},
        "offset": {"type": "integer", "minimum": 0, "description": "The character to begin with, from 0."},
        "limit": {"type": "integer", "minimum": 1, "description": "At most so many characters."},
    },
    "required": ["handle"],
    "additionalProperties": False,
}


def kept(value: Any, most: int) -> Any:
    """What a tool returned; if it is too long, cut, with a modifier that keeps its text.

    Args:
        value: what the tool returned.
        most: how many characters a result of it may have.
    """
    output = value if isinstance(value, ToolOutput) else ToolOutput(value)
    content = output.content
    if most < TOLD_FROM or content is None or (type(content) is str and len(content) <= most):
        return value
    parts = parts_of(content)
    if parts is None and not isinstance(content, str) and not is_longer(content, most):
        return value
    text, is_whole = whole_text(content)
    if len(text) <= most:
        return value
    long = LongResult(_handle_of(text[:KEPT_MOST]), text[:KEPT_MOST])
    if parts is None:
        shown: Any = shortened(text, most, is_whole, long.handle)
    else:
        told = Text(f"[... read_result(handle={long.handle!r}) reads all of it as text ...]")
        shown = [*bounded(parts, most - _NOTICE), told]
    return attrs.evolve(output, content=shown, modifiers=(*output.modifiers, Change.call(keep, long)))


def keep(state: State, long: LongResult) -> State:
    """The state with `long` as its newest text, and without the oldest ones that there is no room for."""
    texts = [one for one in state.long_results if one.handle != long.handle] + [long]
    while len(texts) > KEPT_RESULTS or sum(len(one.text) for one in texts) > KEPT_MOST:
        del texts[0]
    return state.replace(long_results=texts)


def _handle_of(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


async def _read(  # noqa: ASYNC124  a plain function would be run in a thread
    ctx: Any, handle: str, offset: int = 0, limit: int | None = None
) -> ToolOutput:
    """Read on in an earlier result that was too long: it names its handle, and the offset where it was cut."""
    texts = ctx.state.long_results
    text = next((one.text for one in texts if one.handle == handle), None)
    if text is None:
        known = ", ".join(f"{one.handle!r} ({counted(len(one.text), 'character')})" for one in texts)
        error = f"no text is kept under handle {handle!r}: later ones took its place, or it never was; there are: "
        return ToolOutput(error=error + (known or "none"))
    most = max(1, (ctx.max_result or RESULT_MOST) - _NOTICE)
    end = min(len(text), offset + min(most, most if limit is None else limit))
    on = f"read on with offset={end}" if end < len(text) else "the end"
    return ToolOutput(f"[characters {offset} to {end} of {len(text)}; {on}]\n{text[offset:end]}")


#: The tool; put it in a `Registry`, and results that are too long say how to read on.
read_result = tool(name="read_result", safe=True, pure=True, schema=_SCHEMA)(_read)
