"""Turns a server's answer into what the model reads.

Rules.  Text stands as it is.  Other blocks (images, audio, files) become their kind and size, not their bytes.
Structured content is given where there is no text: the protocol asks servers to write it as text too.  What is longer
than the limit loses its middle, and says how much.  Of a block of an unknown kind the model reads the kind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolrt._plain import counted
from toolrt.plugins.mcp._port import CallAnswer


def text_of(answer: CallAnswer, limit: int) -> str:
    """The answer in words, at most `limit` characters of it and a line that says what is missing."""
    told = [_block(block) for block in answer.content]
    if answer.structured is not None and not any(block.get("type") == "text" for block in answer.content):
        told.append(json.dumps(answer.structured, ensure_ascii=False, separators=(",", ":")))
    text = "\n".join(told)
    if len(text) <= limit:
        return text
    head, tail = text[: limit - limit // 2], text[-(limit // 2) :]
    return f"{head}\n[... {len(text) - limit:,} characters left out ...]\n{tail}"


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
