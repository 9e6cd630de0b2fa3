"""The network in memory answers as real sockets do: each script runs on both, and what comes out is compared."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
import trio
from trio import socket as tsocket

from toolrt import sim

Script = Callable[["Sockets"], Awaitable[list[Any]]]

_RESET = struct.pack("ii", 1, 0)


class Sockets:
    """Makes sockets that are closed when the script has ended."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._directory: str | None = None

    def keep(self, sock: Any) -> Any:
        """Close `sock` at the end."""
        self._stack.callback(sock.close)
        return sock

    def tcp(self, family: int = socket.AF_INET) -> Any:
        """Give a socket of TCP."""
        return self.keep(tsocket.socket(family, socket.SOCK_STREAM))

    def udp(self) -> Any:
        """Give a socket of UDP."""
        return self.keep(tsocket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    def unix(self) -> Any:
        """Give a Unix socket."""
        return self.keep(tsocket.socket(socket.AF_UNIX, socket.SOCK_STREAM))

    def datagrams_unix(self) -> Any:
        """Give a Unix socket of datagrams."""
        return self.keep(tsocket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))

    def path(self) -> str:
        """Give a path where there is nothing."""
        if self._directory is None:
            made = tempfile.TemporaryDirectory()
            self._directory = self._stack.enter_context(made)
        return os.path.join(self._directory, "socket")

    async def listener(self, backlog: int = 5) -> Any:
        """Give a socket that listens on a port of its own."""
        made = self.tcp()
        await made.bind(("127.0.0.1", 0))
        made.listen(backlog)
        return made

    async def pair(self) -> tuple[Any, Any]:
        """Give both ends of a connection: the one that connected first."""
        listener, client = await self.listener(), self.tcp()
        await client.connect(listener.getsockname())
        server, _ = await listener.accept()
        return client, self.keep(server)

    async def bound_udp(self) -> Any:
        """Give a socket of UDP with a port."""
        made = self.udp()
        await made.bind(("127.0.0.1", 0))
        return made


async def seen(result: Any, *args: Any) -> Any:
    """Give what comes of a call: a value, or the name of the exception and its number."""
    try:
        made = result(*args)
        return await made if hasattr(made, "__await__") else made
    except OSError as error:
        number = error.errno
        return type(error).__name__, errno.errorcode.get(number or 0, number)
    except Exception as error:
        return type(error).__name__


async def at_once(operation: Callable[[], Awaitable[Any]]) -> Any:
    """Give what comes of an operation, or that it waits."""
    with trio.move_on_after(0.02):
        return await seen(operation)
    return "waits"


async def _unconnected(sockets: Sockets) -> list[Any]:
    sock = sockets.tcp()
    return [
        await seen(sock.recv, 1),
        await seen(sock.send, b"x"),
        await seen(sock.getpeername),
        await seen(sock.shutdown, socket.SHUT_WR),
        await seen(sock.accept),
        sock.getsockname(),
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR),
        sock.is_readable(),
    ]


async def _closed(sockets: Sockets) -> list[Any]:
    sock = sockets.tcp()
    sock.close()
    sock.close()
    return [
        sock.fileno(),
        await seen(sock.recv, 1),
        await seen(sock.send, b"x"),
        await seen(sock.bind, ("127.0.0.1", 0)),
        await seen(sock.listen),
        await seen(sock.getsockname),
        await seen(sock.connect, ("127.0.0.1", 9)),
        await seen(sock.setsockopt, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1),
        await seen(sock.shutdown, socket.SHUT_WR),
        await seen(sock.dup),
        (sock.family, sock.type, sock.proto),
    ]


async def _refused(sockets: Sockets) -> list[Any]:
    listener = await sockets.listener()
    address = listener.getsockname()
    listener.close()
    sock = sockets.tcp()
    first = await seen(sock.connect, address)
    return [
        first,
        await seen(sock.connect, address),
        await seen(sock.getpeername),
        await seen(trio.open_tcp_stream, *address),
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR),
    ]


async def _in_use(sockets: Sockets) -> list[Any]:
    listener, other = await sockets.listener(), sockets.tcp()
    port = listener.getsockname()[1]
    wild = sockets.tcp()
    reusing = sockets.tcp()
    reusing.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    udp = sockets.udp()
    return [
        await seen(other.bind, ("127.0.0.1", port)),
        await seen(wild.bind, ("0.0.0.0", port)),
        await seen(reusing.bind, ("127.0.0.1", port)),
        await seen(udp.bind, ("127.0.0.1", port)),
        await seen(listener.bind, ("127.0.0.1", 0)),
        await seen(sockets.tcp().bind, ("192.0.2.1", 0)),
    ]


async def _reuse(sockets: Sockets) -> list[Any]:
    first, second = sockets.tcp(), sockets.tcp()
    for sock in (first, second):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    await first.bind(("127.0.0.1", 0))
    bound = await seen(second.bind, first.getsockname())
    first.listen()
    return [bound, await seen(second.listen), first.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)]


async def _wrong_connects(sockets: Sockets) -> list[Any]:
    client, server = await sockets.pair()
    listener = await sockets.listener()
    address = listener.getsockname()
    return [
        await seen(client.connect, address),
        await seen(server.connect, address),
        await seen(listener.connect, address),
        await seen(client.listen),
        await seen(client.accept),
        await seen(client.bind, ("127.0.0.1", 0)),
        await seen(listener.recv, 1),
        await seen(listener.send, b"x"),
        await seen(listener.getpeername),
    ]


async def _bytes(sockets: Sockets) -> list[Any]:
    client, server = await sockets.pair()
    buffer = bytearray(8)
    sent = [await client.send(b"abc"), await client.send(b"def")]
    await trio.sleep(0.01)
    return [
        sent,
        server.is_readable(),
        client.is_readable(),
        await server.recv(2, socket.MSG_PEEK),
        await server.recv(2),
        await server.recv_into(buffer, 1),
        await server.recvfrom(1),
        await server.recvmsg(1),
        await server.recvfrom_into(buffer),
        bytes(buffer),
        await at_once(lambda: server.recv(1)),
        await seen(server.recv, -1),
        await seen(server.recv_into, buffer, 9),
        await seen(client.send, "text"),
        await client.sendmsg([b"g", b"hi"]),
        await server.recv(10),
        await client.send(b""),
        client.getsockname() == server.getpeername(),
        client.getpeername() == server.getsockname(),
    ]


async def _empty_reads(sockets: Sockets) -> list[Any]:
    client, server = await sockets.pair()
    nothing = await at_once(lambda: server.recv(0))
    await client.send(b"x")
    await trio.sleep(0.01)
    return [nothing, await at_once(lambda: server.recv(0)), await server.recv(9)]


async def _half_close(sockets: Sockets) -> list[Any]:
    client, server = await sockets.pair()
    await client.send(b"last")
    client.shutdown(socket.SHUT_WR)
    await trio.sleep(0.01)
    first = [await server.recv(10), await server.recv(10), await server.recv(10), await server.send(b"still")]
    return [
        *first,
        await client.recv(10),
        await seen(client.send, b"x"),
        client.did_shutdown_SHUT_WR,
        await seen(client.shutdown, socket.SHUT_WR),
        await at_once(lambda: client.recv(1)),
        await seen(client.shutdown, 7),
    ]


async def _stops_reading(sockets: Sockets) -> list[Any]:
    client, server = await sockets.pair()
    await client.send(b"there")
    await trio.sleep(0.01)
    server.shutdown(socket.SHUT_RD)
    return [await server.recv(10), await server.recv(10), await server.send(b"x"), await client.recv(1)]


async def _closed_by_peer(sockets: Sockets) -> list[Any]:
    client, server = await sockets.pair()
    await server.send(b"last")
    server.close()
    await trio.sleep(0.01)
    first = [await client.recv(10), await client.recv(10), await client.send(b"x")]
    await trio.sleep(0.01)
    return [*first, await seen(client.send, b"x"), await seen(client.recv, 1), await seen(client.getpeername)]


async def _reset_by_unread(sockets: Sockets) -> list[Any]:
    client, server = await sockets.pair()
    await client.send(b"unread")
    await server.send(b"sent before")
    await trio.sleep(0.01)
    server.close()
    await trio.sleep(0.01)
    return [
        await seen(client.recv, 20),
        await seen(client.recv, 20),
        await seen(client.recv, 20),
        await seen(client.send, b"x"),
        await seen(client.getpeername),
        await seen(client.shutdown, socket.SHUT_WR),
    ]


async def _reset_by_linger(sockets: Sockets) -> list[Any]:
    client, server = await sockets.pair()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    kept = server.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == _RESET
    server.close()
    await trio.sleep(0.01)
    return [
        kept,
        client.is_readable(),
        await seen(client.send, b"x"),
        await seen(client.send, b"x"),
        await client.recv(1),
    ]


async def _reset_of_an_accepted(sockets: Sockets) -> list[Any]:
    listener, client = await sockets.listener(), sockets.tcp()
    await client.connect(listener.getsockname())
    listener.close()
    await trio.sleep(0.01)
    return [await seen(client.recv, 1), await seen(client.recv, 1)]


async def _closed_meanwhile(sockets: Sockets) -> list[Any]:
    _, server = await sockets.pair()
    results: list[Any] = []

    async def read() -> None:
        results.append(await seen(server.recv, 1))

    async def read_too() -> None:
        results.append(await seen(server.recv, 1))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.sleep(0.01)
        nursery.start_soon(read_too)
        await trio.sleep(0.01)
        server.close()
    return results


async def _full(sockets: Sockets) -> list[Any]:
    client, server = await sockets.pair()
    data = bytes(100_000)
    sent = 0
    with trio.move_on_after(0.1):
        while True:
            sent += await client.send(data)
    got = 0
    with trio.move_on_after(0.1):
        while True:
            got += len(await server.recv(1_000_000))
    return [sent > 0, got == sent, await client.send(b"x")]


async def _backlog(sockets: Sockets) -> list[Any]:
    listener = await sockets.listener(0)
    first, second = sockets.tcp(), sockets.tcp()
    await first.connect(listener.getsockname())
    accepted = sockets.keep((await listener.accept())[0])
    await second.connect(listener.getsockname())
    sockets.keep((await listener.accept())[0])
    await first.send(b"a")
    return [await accepted.recv(1), await at_once(listener.accept)]


async def _udp(sockets: Sockets) -> list[Any]:
    first, second = await sockets.bound_udp(), await sockets.bound_udp()
    buffer = bytearray(4)
    results: list[Any] = [
        await first.sendto(b"hello", second.getsockname()),
        await first.sendto(b"", second.getsockname()),
        await first.sendto(b"long one", second.getsockname()),
        await first.sendto(b"again", 0, second.getsockname()),
    ]
    data, address = await second.recvfrom(10)
    results += [data, address == first.getsockname(), await second.recv(10)]
    results += [(await second.recvmsg(4))[:3], await second.recv_into(buffer), bytes(buffer)]
    return [
        *results,
        await at_once(lambda: second.recv(1)),
        await seen(first.send, b"x"),
        await seen(first.getpeername),
        await seen(first.listen),
        await seen(first.accept),
        await seen(first.sendto, bytes(70_000), second.getsockname()),
        await seen(first.sendto, b"x", ("255.255.255.255", 9)),
        await seen(first.sendto, b"x", "no address"),
        await seen(first.shutdown, socket.SHUT_WR),
    ]


async def _udp_connected(sockets: Sockets) -> list[Any]:
    first, second, other = await sockets.bound_udp(), await sockets.bound_udp(), await sockets.bound_udp()
    await first.connect(second.getsockname())
    await other.sendto(b"from another", first.getsockname())
    await second.sendto(b"from the one", first.getsockname())
    got = await first.recv(20)
    second.close()
    sent = await first.send(b"x")
    await trio.sleep(0.01)
    return [got, sent, await seen(first.send, b"x"), await seen(first.send, b"x"), await seen(first.recv, 1)]


async def _unix(sockets: Sockets) -> list[Any]:
    path, listener, client = sockets.path(), sockets.unix(), sockets.unix()
    results: list[Any] = [
        await seen(client.connect, path),
        await seen(listener.listen),
        await seen(client.recv, 1),
        await seen(client.send, b"x"),
        client.getsockname(),
    ]
    await listener.bind(path)
    results += [await seen(client.connect, path), stat.S_ISSOCK(os.stat(path).st_mode)]
    results += [await seen(sockets.unix().bind, path)]
    listener.listen(1)
    await client.connect(path)
    server, address = await listener.accept()
    sockets.keep(server)
    results += [address, client.getpeername() == path, server.getsockname() == path, server.getpeername()]
    await client.send(b"hello")
    results += [await server.recv(10)]
    client.close()
    await trio.sleep(0.01)
    results += [await server.recv(1), await seen(server.send, b"x")]
    os.unlink(path)
    return [*results, await seen(sockets.unix().connect, path), await seen(sockets.unix().bind, "x" * 200)]


async def _unix_pair(sockets: Sockets) -> list[Any]:
    first, second = map(sockets.keep, tsocket.socketpair())
    await first.send(b"unread")
    await second.send(b"there")
    second.close()
    await trio.sleep(0.01)
    return [
        first.family == socket.AF_UNIX,
        await seen(first.recv, 10),
        await seen(first.recv, 10),
        await seen(first.recv, 10),
        await seen(first.send, b"x"),
        await seen(tsocket.socketpair, socket.AF_INET),
    ]


async def _unix_datagrams(sockets: Sockets) -> list[Any]:
    """Unread datagrams fill their sender's buffer, connected or not; a reader that closes frees it."""
    sender = sockets.datagrams_unix()
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1024)
    results: list[Any] = []

    async def send(path: str) -> None:
        results.append(await seen(sender.sendto, b"last", path))

    for reads in (True, False):
        path, reader = sockets.path() + str(reads), sockets.datagrams_unix()
        await reader.bind(path)
        sent = 0
        with trio.move_on_after(0.1) as waits:
            while True:
                await sender.sendto(b"x" * 500, path)
                sent += 1
        results += [sent > 1, waits.cancelled_caught]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, path)
            await trio.sleep(0.01)
            for _ in range(sent if reads else 0):
                await reader.recv(1000)
            if reads:
                results.append(await reader.recv(1000))
            reader.close()
    return results


async def _unix_stream(sockets: Sockets) -> list[Any]:
    path, listener = sockets.path(), sockets.unix()
    failure = await seen(trio.open_unix_socket, path)
    await listener.bind(path)
    listener.listen()
    async with await trio.open_unix_socket(path) as stream:
        server, _ = await listener.accept()
        async with trio.SocketStream(server) as other:
            await stream.send_all(b"one")
            await stream.send_eof()
            got = [await other.receive_some(), await other.receive_some(), await seen(stream.send_all, b"more")]
    return [failure, *got]


async def _streams(sockets: Sockets) -> list[Any]:
    client, server = await sockets.pair()
    first, second = trio.SocketStream(client), trio.SocketStream(server)
    await first.send_all(b"x" * 10)
    got = [await second.receive_some(4), await second.receive_some()]
    await second.aclose()
    await trio.sleep(0.01)
    got += [await first.receive_some(), await seen(first.send_all, b"x")]
    await trio.sleep(0.01)
    got += [await seen(first.send_all, b"x")]
    await first.aclose()
    return [
        *got,
        await seen(first.send_all, b"x"),
        await seen(first.receive_some),
        await seen(first.send_eof),
        await seen(trio.SocketStream, sockets.udp()),
        await seen(trio.SocketListener, sockets.tcp()),
    ]


async def _names(sockets: Sockets) -> list[Any]:
    local = await tsocket.getaddrinfo("localhost", "http", socket.AF_INET, socket.SOCK_STREAM)
    return [
        list(dict.fromkeys(local)),  # twice where /etc/hosts names ::1 so, too
        await seen(tsocket.getaddrinfo, "127.0.0.1", 80, 0, socket.SOCK_STREAM),
        await seen(tsocket.getaddrinfo, "there-is-none.invalid", 80),
        await seen(tsocket.getaddrinfo, "127.0.0.1", "no such service"),
        await seen(tsocket.getnameinfo, ("127.0.0.1", 80), socket.NI_NUMERICHOST | socket.NI_NUMERICSERV),
        await seen(sockets.tcp().connect, ("there-is-none.invalid", 80)),
        await seen(sockets.tcp().connect, "no address"),
        await seen(sockets.tcp().connect, ("127.0.0.1", 100_000)),
    ]


async def _dual(sockets: Sockets) -> list[Any]:
    listener, only = sockets.tcp(socket.AF_INET6), sockets.tcp(socket.AF_INET6)
    await listener.bind(("::", 0))
    listener.listen()
    port = listener.getsockname()[1]
    client, six = sockets.tcp(), sockets.tcp(socket.AF_INET6)
    await client.connect(("127.0.0.1", port))
    sockets.keep((await listener.accept())[0])
    await six.connect(("::1", port))
    _, address = await listener.accept()
    sockets.keep(_)
    only.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    await only.bind(("::", 0))
    only.listen()
    return [
        six.getpeername()[0], address[0], len(address), listener.getsockname()[0], client.getsockname()[0],
        await seen(sockets.tcp().connect, ("127.0.0.1", only.getsockname()[1])),
        await seen(sockets.tcp().bind, ("0.0.0.0", port)),
    ]  # fmt: skip


async def _options(sockets: Sockets) -> list[Any]:
    sock = sockets.tcp()
    level = socket.SOL_SOCKET
    before = [sock.getsockopt(level, option) for option in (socket.SO_REUSEADDR, socket.SO_KEEPALIVE, socket.SO_TYPE)]
    sock.setsockopt(level, socket.SO_KEEPALIVE, 5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    sock.setsockopt(level, socket.SO_REUSEADDR, struct.pack("i", 1))
    return [
        before,
        sock.getsockopt(level, socket.SO_KEEPALIVE),
        sock.getsockopt(level, socket.SO_REUSEADDR, 4),
        sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
        sock.get_inheritable(),
        repr(sock).split(" fd=")[0],
        await seen(tsocket.socket, 9999),
        await seen(tsocket.socket, socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_UDP),
        await seen(sock.setsockopt, level, socket.SO_REUSEADDR, b"x"),
    ]


async def _copies(sockets: Sockets) -> list[Any]:
    client, server = await sockets.pair()
    copy = sockets.keep(server.dup())
    server.close()
    await client.send(b"to the copy")
    got = [await copy.recv(20)]
    again = sockets.keep(tsocket.fromfd(copy.fileno(), socket.AF_INET, socket.SOCK_STREAM))
    copy.close()
    await again.send(b"back")
    got += [await client.recv(20)]
    again.close()
    return [*got, await client.recv(1)]


async def _shut_listener(sockets: Sockets) -> list[Any]:
    listener = await sockets.listener()
    address = listener.getsockname()
    listener.shutdown(socket.SHUT_RD)
    return [await seen(listener.accept), await seen(sockets.tcp().connect, address)]


SCRIPTS: list[Script] = [
    _unconnected, _closed, _refused, _in_use, _reuse, _wrong_connects, _bytes, _empty_reads, _half_close,
    _stops_reading, _closed_by_peer, _reset_by_unread, _reset_by_linger, _reset_of_an_accepted, _closed_meanwhile,
    _full, _backlog, _udp, _udp_connected, _unix, _unix_pair, _unix_datagrams, _unix_stream, _streams, _names, _dual,
    _options, _copies, _shut_listener,
]  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__.strip("_"))
def test_network_answers_as_real_sockets_do(script: Script) -> None:
    """Values, types of exceptions and their numbers are the same on loopback and in memory."""

    async def program() -> list[Any]:
        async with AsyncExitStack() as stack:
            return await script(Sockets(stack))

    real = trio.run(program)
    execution = sim.run(program)
    if execution.error is not None:
        raise execution.error
    assert execution.value == real
