"""Programs on the network in memory: what is deterministic, what commutes, and what `sim.Network` changes."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from toolrt import sim
from toolrt.errors import Deadlock, NotSimulated


async def shout(stream: trio.SocketStream) -> None:
    """Answer in capitals until the other end is done."""
    async for chunk in stream:
        await stream.send_all(chunk.upper())


async def echo(*, port: int = 0, host: str = "localhost") -> tuple[bytes, bytes]:
    """Say something to a server, and hear its answer and its end."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, shout, port)
        async with await trio.open_tcp_stream(host, listeners[0].socket.getsockname()[1]) as stream:
            await stream.send_all(b"hello")
            got = await stream.receive_some()
            await stream.send_eof()
            end = await stream.receive_some()
        nursery.cancel_scope.cancel()
    return bytes(got), bytes(end)


def test_network_is_under_trio_without_a_word_of_the_program() -> None:
    """What stands on trio.socket works in a simulation as it does on plain Trio."""
    assert sim.run(echo).value == trio.run(echo) == (b"HELLO", b"")
    report = sim.explore(echo, sim.Random(sim.RandomWalk(seed=1), 50))
    assert report.outcomes == {(b"HELLO", b""): 50}
    assert report.distinct > 20


def pairs(count: int, read: int) -> Callable[[], Awaitable[list[bytes]]]:
    """Give a program with so many independent pairs of sockets, where one task writes and one reads."""

    async def program() -> list[bytes]:
        ends = [trio.socket.socketpair() for _ in range(count)]
        got = [b""] * count

        async def write(number: int) -> None:
            with ends[number][0] as sock:
                await sock.send(b"ab")

        async def receive(number: int) -> None:
            with ends[number][1] as sock:
                got[number] = await sock.recv(read)

        async with trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(write, number)
                nursery.start_soon(receive, number)
        return got

    return program


def test_network_race_for_a_connection_is_found() -> None:
    """Which of two clients is accepted first is up to the schedule."""

    async def program() -> bytes:
        async with trio.open_nursery() as nursery:
            (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            port = listener.socket.getsockname()[1]

            async def say(word: bytes) -> None:
                async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                    await stream.send_all(word)

            nursery.start_soon(say, b"first")
            nursery.start_soon(say, b"second")
            async with listener, await listener.accept() as one, await listener.accept():
                return bytes(await one.receive_some())

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 30))
    assert set(report.outcomes) == {b"first", b"second"}


def test_network_reads_of_nothing_are_deadlocks_in_words() -> None:
    """A read for which nothing will come is reported with what waits."""

    async def program() -> None:
        first, second = trio.socket.socketpair()
        with first, second:
            await first.recv(1)

    error = sim.run(program).error
    assert isinstance(error, Deadlock)
    assert "main waits for a socket to recv at test_network.py" in str(error)


def test_network_pushes_back() -> None:
    """A send waits when the other end does not read."""

    async def program() -> tuple[int, float]:
        first, second = trio.socket.socketpair()
        with first, second:
            sent = 0
            with trio.move_on_after(1):
                while True:
                    sent += await first.send(bytes(10_000))
            return sent, trio.current_time()

    assert sim.run(program).value == (65_536, 1.0)

    async def smaller() -> tuple[int, float]:
        with sim.Network(buffer=100):
            return await program()

    assert sim.run(smaller).value == (100, 1.0)


async def _two_hosts(**settings: Any) -> tuple[list[bytes], float]:
    """Have a client talk to a server on another host; give what it read, and when it had all."""
    got = []
    with sim.Network(hosts=["client", "server"], **settings) as network:
        async with trio.open_nursery() as nursery:
            with network.host("server"):
                await nursery.start(trio.serve_tcp, shout, 80)
            async with await trio.open_tcp_stream("server", 80) as stream:
                assert stream.socket.getpeername()[0] != "127.0.0.1"
                await stream.send_all(b"hello")
                await stream.send_eof()
                async for chunk in stream:
                    got.append(bytes(chunk))
            at = trio.current_time()
            nursery.cancel_scope.cancel()
    return got, at


def test_network_partial_reads_are_choices() -> None:
    """So many of them as the program allows, and none unless it says so."""

    async def one(partial: int) -> bytes:
        with sim.Network(partial=partial):
            first, second = trio.socket.socketpair()
            with first, second:
                await first.send(b"abc")
                return await second.recv(3)

    async def none() -> bytes:
        return await one(0)

    async def some() -> bytes:
        return await one(1)

    assert sim.explore(none, sim.Exhaustive()).outcomes == {b"abc": 1}
    assert set(sim.explore(some, sim.Exhaustive()).outcomes) == {b"abc", b"ab", b"a"}


def test_network_resets_are_choices() -> None:
    """The connection of a program that asks for resets may be reset by any send."""

    async def program() -> object:
        return await _two_hosts(resets=1)

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 15), lambda execution: True)
    assert set(report.outcomes) == {"ExceptionGroup", "([b'HELLO'], 0.0)"}


def test_network_loses_datagrams() -> None:
    """One of two datagrams may be lost, when the program says so; the rest arrives."""

    async def program() -> list[bytes]:
        got = []
        with (
            sim.Network(loss=1),
            trio.socket.socket(type=socket.SOCK_DGRAM) as sender,
            trio.socket.socket(type=socket.SOCK_DGRAM) as receiver,
        ):
            await receiver.bind(("127.0.0.1", 0))
            for word in (b"one", b"two"):
                await sender.sendto(word, receiver.getsockname())
            with trio.move_on_after(1):
                while True:
                    got.append(await receiver.recv(10))
        return got

    report = sim.explore(program, sim.Exhaustive(), outcomes=[[b"one", b"two"], [b"one"], [b"two"]])
    assert report.verdict is sim.PASS


def test_network_hosts_are_apart() -> None:
    """What listens on one host's loopback is not there on another's, and an unknown name is no host."""

    async def program() -> list[str]:
        seen = []
        with sim.Network(hosts=["one", "two"]) as network:
            with network.host("two"):
                (listener,) = await trio.open_tcp_listeners(80, host="127.0.0.1")
                seen.append(socket.gethostname())
            for host in ("127.0.0.1", "two", "nowhere", "192.0.2.1"):
                try:
                    await trio.open_tcp_stream(host, 80)
                except OSError as error:
                    causes = getattr(error.__cause__, "exceptions", [error])
                    seen.append(type(causes[0]).__name__)
            await listener.aclose()
        return seen

    assert sim.run(program).value == ["two", "ConnectionRefusedError", "ConnectionRefusedError", "gaierror", "OSError"]


def test_network_of_one_execution_is_gone_in_the_next() -> None:
    """Ports and files are free again, also when the program leaves them open."""
    paths: list[str] = []

    async def program() -> None:
        sock = trio.socket.socket()
        await sock.bind(("127.0.0.1", 4000))
        sock.listen()
        unix = trio.socket.socket(socket.AF_UNIX)
        await unix.bind(str(paths[0]))
        sock.close()
        unix.close()

    with tempfile.TemporaryDirectory() as directory:
        paths.append(f"{directory}/socket")
        assert sim.explore(program, sim.Random(sim.Fifo(), 3)).verdict is sim.PASS


def test_network_refuses_the_world_outside() -> None:
    """A host that the program has not declared is not simulated, and said so."""

    async def program() -> None:
        await trio.open_tcp_stream("python.org", 80)

    error = sim.run(program).error
    assert isinstance(error, NotSimulated)
    assert "sim.Network(hosts=[...])" in str(error)


def test_network_refuses_a_server_outside_the_simulation() -> None:
    """A fixture's, in a thread say: nothing of the program waits there, and a refused connection would be no answer."""

    async def connect(port: int) -> str:
        try:
            await trio.open_tcp_stream("127.0.0.1", port)
        except OSError:
            return "refused"
        return "connected"

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        error = sim.run(lambda: connect(port)).error
        assert isinstance(error, NotSimulated)
        assert f"connect to a real server (port {port})" in str(error)
    assert sim.run(lambda: connect(port)).value == "refused"


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["stream", "datagrams"])
def test_network_refuses_a_unix_server_outside_the_simulation(tmp_path: Path, kind: socket.SocketKind) -> None:
    """A manager of `multiprocessing`, say, or a log of the machine's; the file alone is no server."""
    path = str(tmp_path / "server")

    async def connect() -> str:
        with trio.socket.socket(socket.AF_UNIX, kind) as client:
            try:
                await client.connect(path)
            except ConnectionRefusedError:
                return "refused"
        return "connected"

    with socket.socket(socket.AF_UNIX, kind) as server:
        server.bind(path)
        if kind is socket.SOCK_STREAM:
            server.listen()
        error = sim.run(connect).error
        assert isinstance(error, NotSimulated)
        assert "connect to a real server (Unix socket)" in str(error)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept() if kind is socket.SOCK_STREAM else server.recv(1)
    assert sim.run(connect).value == "refused"


def test_network_is_plain_trio_outside_a_simulation() -> None:
    """The same program runs on real sockets there."""

    async def program() -> object:
        with sim.Network() as network, network.host("localhost"):
            return await echo()

    assert trio.run(program) == (b"HELLO", b"")


def test_network_connections_of_other_pairs_commute() -> None:
    """Two independent pairs have the product of the classes that one has, and no more."""
    one = sim.explore(pairs(1, 2), sim.DPOR()).executions
    assert sim.explore(pairs(2, 2), sim.DPOR()).executions == one**2


def test_network_blocks_a_worker_thread_and_nothing_else() -> None:
    """A client that blocks is in a thread, and talks to a server that is a task."""

    def talk(port: int) -> tuple[bytes, bytes]:
        with socket.create_connection(("localhost", port), timeout=5) as sock:
            sock.sendall(b"hello")
            answer = sock.recv(10)
            try:
                sock.recv(10)
            except TimeoutError:
                return answer, b"timed out"
        return answer, b""

    async def program() -> tuple[object, float]:
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(trio.serve_tcp, shout, 0)
            got = await trio.to_thread.run_sync(talk, listeners[0].socket.getsockname()[1])
            nursery.cancel_scope.cancel()
        return got, trio.current_time()

    wanted = ((b"HELLO", b"timed out"), 5.0)
    assert sim.run(program).value == wanted
    assert sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 10)).outcomes == {wanted: 10}


def test_method_that_a_watcher_has_wrapped_is_the_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that watches calls of sockets puts functions of its own name in their place."""

    def watched(real: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return real(*args, **kwargs)

        return wrapper

    monkeypatch.setattr(socket.socket, "sendto", watched(socket.socket.sendto), raising=False)

    async def program() -> bytes:
        one, other = (trio.socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
        with one, other:
            await other.bind(("127.0.0.1", 0))
            await one.sendto(b"word", other.getsockname())
            return bytes((await other.recvfrom(10))[0])

    assert sim.run(program).value == b"word"


@pytest.mark.parametrize("use", ["send", "recv", "shutdown", "fileno"])
def test_use_beside_a_close_has_every_outcome(use: str) -> None:
    """A task that comes after the close of another one is refused, and its step says what it depends on."""

    async def program() -> list[object]:
        one, other = trio.socket.socketpair()
        own = [sim.Cell(0, name="own"), sim.Cell(0, name="other")]
        seen: list[object] = []

        async def uses() -> None:
            own[0].set(1)
            try:
                if use == "send":
                    seen.append(await one.send(b"word"))
                elif use == "recv":
                    seen.append(await one.recv(10))
                elif use == "shutdown":
                    seen.append(one.shutdown(socket.SHUT_WR))
                else:
                    seen.append(one.fileno() == -1)
            except OSError as error:
                seen.append(error.errno)

        async def closes() -> None:
            own[1].set(1)
            one.close()

        with other:
            await other.send(b"word")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(uses)
                nursery.start_soon(closes)
        return seen

    every = sim.explore(program, sim.Exhaustive())
    reduced = sim.explore(program, sim.DPOR())
    assert (every.verdict, reduced.verdict) == (sim.PASS, sim.PASS), reduced
    assert len(reduced.outcomes) == 2
    assert reduced.outcomes.keys() == every.outcomes.keys()
