"""A program that speaks TLS over the network in memory."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Awaitable, Callable

import trio
import trustme

from toolrt import sim


def encrypted(partial: int = 0) -> Callable[[], Awaitable[bytes]]:
    """Give a program whose client says something to a server through TLS, and takes its answer."""
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(server)
    authority.configure_trust(client)

    async def shout(stream: trio.SSLStream[trio.SocketStream]) -> None:
        async for chunk in stream:
            await stream.send_all(chunk.upper())

    async def program() -> bytes:
        with sim.Network(partial=partial):
            async with trio.open_nursery() as nursery:
                serve = functools.partial(trio.serve_ssl_over_tcp, host="127.0.0.1")
                (listener,) = await nursery.start(serve, shout, 0, server)
                port = listener.transport_listener.socket.getsockname()[1]
                async with await trio.open_ssl_over_tcp_stream("localhost", port, ssl_context=client) as stream:
                    await stream.send_all(b"hello")
                    answer = await stream.receive_some()
                nursery.cancel_scope.cancel()
        return bytes(answer)

    return program
