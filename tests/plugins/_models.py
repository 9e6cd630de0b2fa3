"""A model that answers the real clients of SDKs with the bytes of a stream, without a network."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

import httpx2

#: A part of the stream: bytes, an exception that breaks the stream, or something to wait for before it goes on.
Part = bytes | Exception | Callable[[], Awaitable[object]]


def sse(event: dict[str, Any]) -> bytes:
    """One event as both APIs send it."""
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def cut(parts: Iterable[Part], sizes: Sequence[int]) -> Iterator[Part]:
    """The same parts, their bytes in pieces of these sizes, over and over."""
    sizes, count = sizes or [1 << 20], 0
    for part in parts:
        if not isinstance(part, bytes):
            yield part
            continue
        while part:
            size = sizes[count % len(sizes)]
            yield part[:size]
            part, count = part[size:], count + 1


class _Body(httpx2.AsyncByteStream):
    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts = iter(parts)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
            elif isinstance(part, Exception):
                raise part
            else:
                await part()


class FakeModel:
    """Answers each request with the next reply, and keeps what it was asked."""

    def __init__(self, *replies: Iterable[Part]) -> None:
        self._replies = list(replies)
        #: The body of each request.
        self.asked: list[dict[str, Any]] = []

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(json.loads(request.content))
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, stream=_Body(self._replies.pop(0)))

    def client(self, kind: Callable[..., Any]) -> Any:
        """A client of an SDK that speaks with this model alone."""
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))
        return kind(api_key="none", http_client=http, max_retries=0, base_url="http://model.invalid")
