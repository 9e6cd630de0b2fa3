"""Turns a server's answer into what the model reads, and a tool's answer into what a host reads.

Rules.  Text stands as it is.  A picture that models can see stays one, and a PDF document a file.  Other blocks (audio,
files) become their kind and size, not their bytes; so does a picture whose bytes are none: a provider would refuse it.
Structured content is given where there is no text: the protocol asks servers to write it as text too.  Of a block of an
unknown kind the model reads the kind.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from toolrt._plain import counted
from toolrt.interop._render import _utf8, shown
from toolrt.model import File, Image, ToolResult
from toolrt.model._content import Part, in_base64, picture_type
from toolrt.plugins.mcp._port import CallAnswer


def blocks_of(result: ToolResult) -> list[dict[str, Any]]:
    """A result as the protocol has it: its text, or its parts where it has such."""
    told = shown(result, _of_part)
    return [{"type": "text", "text": told}] if isinstance(told, str) else told


def _of_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image", "data": in_base64(part.data), "mimeType": part.media_type}
    if isinstance(part, File):
        about = {"uri": f"attachment:{quote(_utf8(part.name))}", "mimeType": part.media_type}
        text = part.text
        held = {"blob": in_base64(part.data)} if text is None else {"text": text}
        return {"type": "resource", "resource": {**about, **held}}
    return {"type": "text", "text": part.in_words()}


def content_of(answer: CallAnswer) -> str | list[Part | str]:
    """The answer as a tool of the runtime gives it: a text, or parts where there is more to see."""
    seen = [_seen(block) for block in answer.content]
    if not any(seen):
        return text_of(answer)
    return [part or _block(block) for part, block in zip(seen, answer.content, strict=True)]


def _seen(block: Mapping[str, Any]) -> Part | None:
    """A picture, or a PDF document; None for every other block."""
    held: Any = block.get("resource") if block.get("type") == "resource" else block
    if not isinstance(held, Mapping):
        return None
    data, kind = held.get("blob" if held is not block else "data"), str(held.get("mimeType"))
    if not isinstance(data, str) or block.get("type") not in ("image", "resource"):
        return None
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        return None
    if picture_type(raw) is not None and (kind.startswith("image/") or block.get("type") == "image"):
        return Image(raw)
    if kind == "application/pdf" and raw.startswith(b"%PDF"):
        return File(raw, kind, str(held.get("uri")).rpartition("/")[2] or "file")
    return None


def text_of(answer: CallAnswer) -> str:
    """The answer in words."""
    told = [_block(block) for block in answer.content]
    if answer.structured is not None and not any(block.get("type") == "text" for block in answer.content):
        told.append(json.dumps(answer.structured, ensure_ascii=False, separators=(",", ":")))
    return "\n".join(told)


def _block(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind in ("image", "audio"):
        return f"[{block.get('mimeType') or kind}, {_bytes(block.get('data'))}]"
    if kind == "resource_link":
        facts = [str(block[key]) for key in ("mimeType",) if block.get(key)]
        if isinstance(block.get("size"), int):
            facts.append(f"{block['size']:,} bytes")
        about = f" ({', '.join(facts)})" if facts else ""
        return f"[{block.get('name') or 'resource'}: {block.get('uri')}{about}]"
    if kind == "resource" and isinstance(block.get("resource"), Mapping):
        resource = block["resource"]
        if isinstance(resource.get("text"), str):
            return f"[{resource.get('uri')}]\n{resource['text']}"
        about = ", ".join(str(fact) for fact in (resource.get("mimeType"), _bytes(resource.get("blob"))) if fact)
        return f"[{resource.get('uri')}: {about}]"
    return f"[{kind}]"


def _bytes(data: object) -> str:
    """How many bytes stand there in base64."""
    if not isinstance(data, str):
        return "no bytes"
    size = max(0, len(data) * 3 // 4 - data[-2:].count("="))
    return f"{counted(size, 'byte')}"
