"""What calls say of themselves, in words for people: a text, how far they are, and how many bytes it was.

Rules.  A tool may say anything, also what cannot be shown: nothing here raises.  How far a call is, is what it states:
a ``progress`` of a ``total`` (as MCP servers say it), ``done`` of ``of``, or a text with "3 of 10" or "30%" in it.  In
what a command writes, a number is only a number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, TypeGuard

import attrs

from toolrt.cli.screen._escape import on_one_line

#: Characters of a text that are looked at and kept.
_TEXT = 200

_OF = re.compile(r"(?<![\w.,])(\d{1,9}) (?:of|/) (\d{1,9})(?![\w.,]*\d)")
_PERCENT = re.compile(r"(?<![\w.,])(\d{1,3}(?:\.\d{1,3})?) ?%")

_PAIRS = (("progress", "total"), ("done", "of"), ("done", "total"))


@attrs.frozen
class CallMessage:
    """One message of a call."""

    #: In words, on one line, fit for a terminal.
    text: str
    #: How far the call is, from 0 to 1; None: it did not say.
    share: float | None = None
    #: How many bytes a command has written so far; None for what is no command's output.
    written: int | None = None


def said_in(message: Any) -> CallMessage:
    """What `message` says, whatever it is."""
    try:
        return _read(message)
    except Exception:
        return CallMessage(on_one_line(f"({type(message).__name__})", _TEXT))


def _read(message: Any) -> CallMessage:
    if isinstance(message, Mapping):
        return _read_fields(message)
    text = str(message)[: _TEXT + 1]
    return CallMessage(on_one_line(text, _TEXT), _stated(text))


def _read_fields(fields: Mapping[Any, Any]) -> CallMessage:
    output = fields.get("output")
    if isinstance(output, str):
        offset = fields.get("offset")
        written = size_of(output) + offset if isinstance(offset, int) else None
        lines = output[-20 * _TEXT :].rstrip().splitlines()
        return CallMessage(on_one_line(lines[-1] if lines else "", _TEXT), None, written)
    if "path" in fields and "message" in fields:
        inner = _read(fields["message"])
        return attrs.evolve(inner, text=on_one_line(f"{fields['path']}: {inner.text}", _TEXT))
    for part, whole in _PAIRS:
        done, total = fields.get(part), fields.get(whole)
        if _is_number(done) and _is_number(total) and total > 0:
            said = fields.get("message")
            text = said if isinstance(said, str) else f"{done:g} of {total:g}"
            return CallMessage(on_one_line(text, _TEXT), min(1.0, max(0.0, done / total)))
    if isinstance(said := fields.get("message"), str):
        return _read(said)
    return CallMessage(on_one_line(str(fields), _TEXT))


def output_in(message: Any) -> str | None:
    """What a command wrote, where `message` says that; else None."""
    output = message.get("output") if isinstance(message, dict) else None
    return output if isinstance(output, str) else None


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _stated(text: str) -> float | None:
    """How far it is, where a text states it: the last statement counts."""
    shares = [float(one) / 100 for one in _PERCENT.findall(text)]
    shares += [int(done) / int(total) for done, total in _OF.findall(text) if int(total)]
    fitting = [share for share in shares if share <= 1]
    return fitting[-1] if fitting else None


def size_of(value: object) -> int:
    """Bytes of a text in UTF-8, or of bytes; of what a command wrote, where `value` is a message that says so."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes | bytearray | memoryview):
        return len(value)
    return size_of(output_in(value)) if isinstance(value, dict) else 0


def in_bytes(count: float) -> str:
    """A number of bytes in few characters: 999 B, 1.2 kB, 34 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            break
        count /= 1000
    return f"{count:.1f} {unit}" if unit != "B" and count < 9.95 else f"{count:,.0f} {unit}"
