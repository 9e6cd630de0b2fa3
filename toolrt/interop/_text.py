"""From the text of a recorded response to its calls."""

from __future__ import annotations

import codecs

from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.interop._json import NotStrictJSON, strict_json
from toolrt.interop._response import Response, read_named

#: Bytes of UTF-8.  A response is limited by the model's output tokens to a few megabytes; past this it is another
#: file, and reading it would take many times its size in memory.
MAX_RESPONSE_BYTES = 32 * 1024 * 1024

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def parse_response(text: str | bytes, name: str = "the response") -> Response:
    """The calls of a response given as JSON text, in its order.

    A byte order mark is passed over.  The text is read strictly: NaN, a key that one object has twice and nesting
    deeper than `MAX_NESTING` are refused, because what one reader makes of them is not what the next one does.
    Inside OpenAI's ``arguments``, itself a JSON text, the same things are the fault of that one call.

    Args:
        text: UTF-8 if bytes; at most `MAX_RESPONSE_BYTES` bytes.
        name: what errors call the text: a file's name.

    Raises:
        InputRefused: as `read_response`; or it is too large, empty, not UTF-8 or not JSON.
        DefinitionRefused: it is no text.

    Example::

        parse_response('[{"name": "read_file", "input": {"path": "a.py"}}]', "calls.json").calls
    """
    if isinstance(text, bytes):
        _refuse_large(len(text), name)
        text = _decoded(text, name)
    elif not isinstance(text, str):
        raise DefinitionRefused("parse_response(text)", "str or bytes; read_response takes what was decoded", text)
    else:
        _refuse_large(len(text), name)
        _refuse_large(len(text.encode("utf-8", "surrogatepass")), name)
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InputRefused(name, "it is empty", "Give the JSON of one model response.")
    try:
        source = strict_json(text)
    except NotStrictJSON as error:
        raise InputRefused(
            name, f"it cannot be read as JSON: {error}", "Give the body of one whole response, as the API sent it."
        ) from None
    return read_named(source, name)


def _refuse_large(size: int, name: str) -> None:
    if size > MAX_RESPONSE_BYTES:
        raise InputRefused(
            name,
            f"it is larger than the limit of {MAX_RESPONSE_BYTES:,} bytes",
            "Give the response alone, or split its calls into several files.",
        )


def _decoded(text: bytes, name: str) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        why = f"it is not UTF-8: byte 0x{text[error.start]:02x} at offset {error.start}"
    if text.startswith(_UTF_16):
        why = "it is UTF-16, not UTF-8"
    raise InputRefused(name, why, "Save it as UTF-8.")
