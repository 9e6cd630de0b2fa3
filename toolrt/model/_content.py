"""What a tool may answer beside text and JSON: parts that a model sees as what they are.

Rules.
    1. A tool answers one part, or a list of parts among which texts and other values may stand.
    2. Each provider, MCP and each framework gets a part in its own form.  Where it has none for it, it gets words:
       what the part is, and that it cannot be shown.
    3. Bytes that begin as a picture does are one.
"""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import attrs

from toolrt._plain import counted, plain

#: How pictures begin that every model can see which sees any.
_BEGINNINGS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))

#: The media types of these.
SHOWN = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))


def picture_type(data: bytes) -> str | None:
    """The media type of a picture, by its first bytes; None: it is none that models see."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS if data.startswith(beginning)), None)


class Part(ABC):
    """A part of a tool's answer."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The part as a JSON object."""

    @abstractmethod
    def in_words(self) -> str:
        """The part where nothing but text can be shown."""

    def _plain_part(self) -> dict[str, Any]:
        """What `toolrt._plain` writes of it."""
        return self.to_json()


@attrs.frozen
class Text(Part):
    """A text, beside other parts."""

    #: What it says.
    text: str

    def to_json(self) -> dict[str, Any]:
        """See `Part.to_json`."""
        return {"type": "text", "text": self.text}

    def in_words(self) -> str:
        """See `Part.in_words`."""
        return self.text


@attrs.frozen
class Json(Part):
    """A value that goes to the model as JSON, beside other parts."""

    #: Anything; what JSON does not have is given by its text.
    value: Any

    def to_json(self) -> dict[str, Any]:
        """See `Part.to_json`."""
        return {"type": "json", "value": plain(self.value, str)}

    def in_words(self) -> str:
        """See `Part.in_words`."""
        return json.dumps(plain(self.value, str), ensure_ascii=False, separators=(",", ":"))


@attrs.frozen
class Image(Part):
    """A picture.

    Example::

        @toolrt.tool(safe=True)
        async def screenshot(ctx: toolrt.ToolContext) -> toolrt.Image:
            return toolrt.Image(await take_screenshot())
    """

    #: The bytes of the picture's file.
    data: bytes = attrs.field(repr=lambda data: f"<{counted(len(data), 'byte')}>")
    #: Such as ``image/png``; by default what its first bytes say.
    media_type: str = attrs.field()

    @media_type.default
    def _by_its_beginning(self) -> str:
        return picture_type(self.data) or "application/octet-stream"

    def to_json(self) -> dict[str, Any]:
        """See `Part.to_json`."""
        return {"type": "image", "media_type": self.media_type, "data": in_base64(self.data)}

    def in_words(self) -> str:
        """See `Part.in_words`."""
        return f"[{self.media_type}, {counted(len(self.data), 'byte')}: it cannot be shown here]"


@attrs.frozen
class File(Part):
    """A file: a PDF document, a recording, a text of its own."""

    #: Its bytes.
    data: bytes = attrs.field(repr=lambda data: f"<{counted(len(data), 'byte')}>")
    #: Such as ``application/pdf``.
    media_type: str = "application/octet-stream"
    #: What a reader calls it by.
    name: str = "file"

    @property
    def text(self) -> str | None:
        """What a file of text says; None: it is none."""
        if not self.media_type.startswith("text/") and self.media_type != "application/json":
            return None
        return self.data.decode("utf-8", "replace")

    def to_json(self) -> dict[str, Any]:
        """See `Part.to_json`."""
        return {"type": "file", "media_type": self.media_type, "name": self.name, "data": in_base64(self.data)}

    def in_words(self) -> str:
        """See `Part.in_words`."""
        text = self.text
        if text is not None:
            return f"[{self.name}]\n{text}"
        return f"[{self.name}: {self.media_type}, {counted(len(self.data), 'byte')}: it cannot be shown here]"


def in_base64(data: bytes) -> str:
    """`data` in base64."""
    return base64.b64encode(data).decode("ascii")


def data_url(part: Image | File) -> str:
    """The part as a ``data:`` address."""
    return f"data:{part.media_type};base64,{in_base64(part.data)}"


def words_of(parts: Iterable[Part]) -> str:
    """The parts where nothing but one text can be shown."""
    return "\n".join(part.in_words() for part in parts)


def parts_of(content: Any) -> list[Part] | None:
    """The parts of a tool's answer; None where it is a text or a value alone."""
    if type(content) is str:  # most answers are
        return None
    if isinstance(content, list | tuple):
        try:
            members = list(content)
        except Exception:  # its own code cannot read it
            return None
        if not any(isinstance(one, Part | bytes) and parts_of(one) for one in members):
            return None
        return [part for one in members for part in parts_of(one) or [Text(one) if isinstance(one, str) else Json(one)]]
    if isinstance(content, Part):
        return [content]
    if isinstance(content, bytes) and picture_type(content) is not None:
        return [Image(content)]
    return None
