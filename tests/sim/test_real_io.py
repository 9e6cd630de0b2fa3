"""Real sockets and files under controlled time: what is waited for is real, and when its end is seen is a choice."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import trio

from toolrt import sim
from toolrt.errors import NotSimulated, RealTimeout

_ORDERS = ("any", "trio")

# A counter behind HTTP: GET gives it, PUT sets it.  Each connection has a thread and carries one request.
_SERVER = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 0), backlog=50)
print(listener.getsockname()[1], flush=True)
count = 0

def serve(connection):
    global count
    with connection, connection.makefile("rwb") as stream:
        method, length = stream.readline().split()[0], 0
        while (line := stream.readline()) not in (b"\\r\\n", b""):
            if line.startswith(b"Content-Length:"):
                length = int(line.split()[1])
        body = stream.read(length)
        if method == b"PUT":
            count = int(body)
        stream.write(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\n%d" % count)

while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    command = [sys.executable, "-S", "-E", "-c", _SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.kill()


async def _request(port: int, method: str, body: str = "") -> int:
    connection = trio.socket.socket()
    await connection.connect(("127.0.0.1", port))
    async with trio.SocketStream(connection) as stream:
        await stream.send_all(f"{method} / HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        answer = b"".join([chunk async for chunk in stream])
    return int(answer.partition(b"\r\n\r\n")[2])


def _counting(port: int, lock: trio.Lock | None = None) -> Callable[[], Awaitable[int]]:
    async def add() -> None:
        if lock is None:
            await _request(port, "PUT", str(await _request(port, "GET") + 1))
            return
        async with lock:
            await _request(port, "PUT", str(await _request(port, "GET") + 1))

    async def program() -> int:
        sim.leave_real("sockets")
        await _request(port, "PUT", "0")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(add)
            nursery.start_soon(add)
        return await _request(port, "GET")

    return program


@pytest.mark.process
@pytest.mark.parametrize("order", _ORDERS)
def test_a_race_of_two_clients_of_a_real_server_is_found_and_replayed(port: int, order: Any) -> None:
    """An update is lost in the real server; the same choices lose it again, and a lock mends it."""
    program = _counting(port)
    report = sim.explore(
        program, sim.Random(sim.RandomWalk(seed=1), 8), lambda execution: execution.value == 2, order=order
    )
    assert report.verdict is sim.FAIL, report
    assert report.claim.endswith("real sockets")
    assert report.failures[0].reproduced
    assert "real.1.0" in str(report.failures[0].execution.schedule)
    assert sim.replay(program, report.failures[0].execution.schedule, order=order).value == 1
    mended = sim.explore(
        _counting(port, trio.Lock()), sim.Random(sim.RandomWalk(seed=1), 4), lambda each: each.value == 2
    )
    assert mended.verdict is sim.PASS, mended


class _Server:
    """A real server in a thread of this process; `serve` gets each connection."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self._serve = serve
        self._kept: list[socket.socket] = []
        self._thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        # Its end closes the listener.
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self._kept.append(connection)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError):
            self._serve(connection)

    def __enter__(self) -> _Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for each in (self.listener, *self._kept):
            each.close()


async def _dial(server: _Server, say: bytes = b"x") -> trio.SocketStream:
    sim.leave_real("sockets")
    connection = trio.socket.socket()
    await connection.connect(server.address)
    stream = trio.SocketStream(connection)
    await stream.send_all(say)
    return stream


def _silent(connection: socket.socket) -> None:
    connection.recv(100)


@pytest.mark.parametrize("seconds", [None, 1])
def test_a_server_that_does_not_answer_decides_nothing(seconds: float | None) -> None:
    """Neither a deadlock nor a virtual timeout is what a slow server would have led to."""
    with _Server(_silent) as server:

        async def program() -> str:
            sim.thread_seconds(0.1)
            async with await _dial(server) as stream:
                with trio.move_on_after(seconds or 1e9):
                    await stream.receive_some()
                return "timed out"

        report = sim.explore(program, None, lambda execution: False, 20)
    assert report.verdict is sim.INCONCLUSIVE
    assert report.executions == 1  # each further one would take as long
    assert set(report.outcomes) == {"RealTimeout"}
    assert "wait for a real file or socket for more than 0.1 seconds: let the other end answer" in str(
        report.unfinished
    )


def test_real_time_is_no_virtual_time() -> None:
    """A task waits for an answer as long as that takes; its timeout does not come meanwhile."""

    def late(connection: socket.socket) -> None:
        connection.recv(100)
        threading.Event().wait(0.15)
        connection.send(b"late")

    with _Server(late) as server:

        async def program() -> tuple[bytes, float]:
            sim.thread_seconds(1)
            async with await _dial(server) as stream:
                with trio.move_on_after(0.01):
                    return bytes(await stream.receive_some()), trio.current_time()
            return b"", trio.current_time()

        assert sim.run(program).value == (b"late", 0.0)


def test_an_answer_may_need_another_request() -> None:
    """A server answers the first client when the second has asked: the first waits meanwhile."""
    asked = threading.Semaphore(0)

    def pairs(connection: socket.socket) -> None:
        if connection.recv(100) == b"first":
            asked.acquire(timeout=9)
            connection.send(b"now")
        else:
            asked.release()
            connection.send(b"yes")

    with _Server(pairs) as server:

        async def program() -> list[bytes]:
            sim.thread_seconds(2)
            heard = []

            async def asks(say: bytes) -> None:
                async with await _dial(server, say) as stream:
                    heard.append(bytes(await stream.receive_some()))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(asks, b"first")
                nursery.start_soon(asks, b"second")
            return sorted(heard)

        assert sim.run(program).value == [b"now", b"yes"]


def _counted() -> Callable[[socket.socket], None]:
    numbers = iter(range(1_000))

    def serve(connection: socket.socket) -> None:
        connection.recv(100)
        connection.send(b"%03d" % next(numbers))

    return serve


@pytest.mark.parametrize(
    ("uses", "claim", "why"),
    [
        (False, "with real bytes that differ when the same choices are made again, real sockets", None),
        (True, "uncontrolled", "; other bytes came from real main.0 (read 0)"),
    ],
)
def test_bytes_that_no_choice_decides_are_said(uses: bool, claim: str, why: str | None) -> None:
    """Another date or number each time: a program that goes by it is undecided, and the claim names it in any case."""
    with _Server(_counted()) as server:

        async def program() -> bytes:
            async with await _dial(server) as stream:
                answer = bytes(await stream.receive_some())
            return answer if uses else b""

        report = sim.explore(program, max_executions=4)
    assert claim in report.claim
    assert report.verdict is (sim.INCONCLUSIVE if uses else sim.PASS)
    assert (report.unfinished or "").endswith(why or "")


@pytest.mark.parametrize("is_wrong", [False, True])
def test_failure_that_no_schedule_brings_about_is_none(is_wrong: bool) -> None:
    """What the server answered once fails the check; what the same choices fail with again and again is a failure."""
    with _Server(_counted()) as server:

        async def program() -> int:
            async with await _dial(server) as stream:
                return int(await stream.receive_some())

        report = sim.explore(program, None, lambda execution: not is_wrong and execution.value != 3, 8)
    assert "other bytes came from" in str(report.unfinished)
    assert report.failed
    assert report.verdict is (sim.FAIL if is_wrong else sim.INCONCLUSIVE)


def _pipe_program(read: Callable[[trio.lowlevel.FdStream], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    async def program() -> Any:
        sim.leave_real("files")
        reads, writes = os.pipe()
        async with trio.lowlevel.FdStream(reads) as ours, trio.lowlevel.FdStream(writes) as theirs:
            heard: list[Any] = []

            async def reader() -> None:
                heard.append(await read(ours))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(reader)
                await theirs.send_all(b"hello")
                await theirs.send_all(b"world")
                await theirs.aclose()
        return heard[0]

    return program


@pytest.mark.parametrize("order", _ORDERS)
def test_what_a_real_pipe_carries_is_seen_at_any_moment(order: Any) -> None:
    """A reader sees the first write alone or both together; the operating system holds them meanwhile."""

    async def chunks(stream: trio.lowlevel.FdStream) -> tuple[bytes, ...]:
        return tuple([bytes(chunk) async for chunk in stream])

    report = sim.explore(_pipe_program(chunks), sim.Random(sim.RandomWalk(seed=1), 40), order=order)
    assert set(report.outcomes) == {(b"hello", b"world"), (b"helloworld",)}
    assert report.claim.endswith("real files")


def test_each_kind_is_left_real_by_its_name() -> None:
    """Sockets that are left real leave pipes refused, and the other way round."""

    async def waits_for_a_pipe() -> None:
        sim.leave_real("sockets")
        reads, writes = os.pipe()
        async with trio.lowlevel.FdStream(reads) as stream, trio.lowlevel.FdStream(writes):
            await stream.receive_some()

    async def uses_a_socket() -> None:
        sim.leave_real("files")
        trio.socket.from_stdlib_socket(made)

    assert isinstance(sim.run(waits_for_a_pipe).error, NotSimulated)
    with socket.socket() as made:
        assert isinstance(sim.run(uses_a_socket).error, NotSimulated)


async def _tcp() -> bytes:
    async def shout(stream: trio.SocketStream) -> None:
        async for chunk in stream:
            await stream.send_all(bytes(chunk).upper())

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, shout, 0)
        async with await trio.open_tcp_stream("127.0.0.1", listeners[0].socket.getsockname()[1]) as stream:
            await stream.send_all(b"hello")
            answer = bytes(await stream.receive_some())
        nursery.cancel_scope.cancel()
    return answer


async def _datagrams() -> bytes:
    first, second = (trio.socket.socket(type=trio.socket.SOCK_DGRAM) for _ in range(2))
    with first, second:
        await first.bind(("127.0.0.1", 0))
        await second.sendto(b"HELLO", first.getsockname())
        return (await first.recvfrom(100))[0]


async def _full() -> bytes:
    """Send more than fits while another task reads."""
    first, second = trio.socket.socketpair()
    total = bytearray()

    async def reads() -> None:
        while chunk := await second.recv(1 << 16):
            total.extend(chunk)

    with first, second:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reads)
            stream = trio.SocketStream(first)
            await stream.send_all(b"HELLO" * 100_000)
            await stream.aclose()
    return bytes(total[:5]) if len(total) == 500_000 else b""


async def _closed() -> bytes:
    first, second = trio.socket.socketpair()

    async def waits() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await first.recv(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waits)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await first.recv(1)
        first.close()
    second.close()
    return b"HELLO"


async def _given_up() -> bytes:
    first, second = trio.socket.socketpair()
    with first, second:
        with trio.move_on_after(0) as scope:
            await first.recv(1)
        await second.send(b"HELLO")
        return await first.recv(5) if scope.cancelled_caught else b""


@pytest.mark.parametrize("program", [_tcp, _datagrams, _full, _closed, _given_up])
@pytest.mark.parametrize("order", _ORDERS)
def test_trio_on_real_sockets_does_what_it_does_alone(program: Callable[[], Awaitable[bytes]], order: Any) -> None:
    """Both ends in the program, on sockets of the operating system: the same under plain Trio and in any schedule."""

    async def left_real() -> bytes:
        sim.leave_real("sockets")
        sim.thread_seconds(0.5)
        return await program()

    assert trio.run(program) == b"HELLO"
    report = sim.explore(
        left_real, sim.Random(sim.RandomWalk(seed=1), 2), lambda each: each.value == b"HELLO", order=order
    )
    assert report.verdict is sim.PASS, report


def test_a_network_that_is_declared_stays_in_memory() -> None:
    """Inside its block sockets are the network's, although others are real."""

    async def program() -> tuple[bool, bool]:
        sim.leave_real("sockets")
        with trio.socket.socket() as real, sim.Network(), trio.socket.socket() as simulated:
            return real.fileno() < 1 << 20, simulated.fileno() < 1 << 20

    assert sim.run(program).value == (True, False)


def test_a_real_command_that_takes_too_long_is_no_failure() -> None:
    """It has not been met to the end, so no check can tell what the program does with its output."""

    async def program() -> None:
        sim.leave_real("processes")
        sim.thread_seconds(0.1)
        await trio.run_process([sys.executable, "-S", "-E", "-c", "import signal; signal.alarm(9); signal.pause()"])

    report = sim.explore(program, None, lambda execution: False, 20)
    assert report.verdict is sim.INCONCLUSIVE
    assert isinstance(sim.run(program).error, RealTimeout)


def test_room_to_write_is_no_answer() -> None:
    """A task that waits for room to write leaves the turn to the task that reads, however long an answer may take."""

    async def program() -> int:
        sim.leave_real("sockets")
        # So that an answer would be waited for for ten seconds before another task has its turn.
        sim.thread_seconds(100)
        ours, theirs = (trio.socket.from_stdlib_socket(each) for each in socket.socketpair())
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        count = 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.SocketStream(ours).send_all, bytes(20_000))
            while count < 20_000:
                count += len(await theirs.recv(65_536))
        ours.close()
        theirs.close()
        return count

    began = time.monotonic()
    assert sim.run(program).value == 20_000
    assert time.monotonic() - began < 9


@pytest.mark.process
def test_thread_waits_for_the_end_of_a_real_process_while_tasks_go_on() -> None:
    """A task lets the process end; the thread would keep the turn in `os.waitpid` for ever."""

    async def program() -> int:
        sim.leave_real("processes", "files")
        sim.thread_seconds(2)
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)  # noqa: ASYNC220
        assert child.stdin is not None
        ended: list[tuple[int, int]] = []

        async def wait() -> None:
            ended.append(await trio.to_thread.run_sync(os.waitpid, child.pid, 0))
            child.returncode = os.waitstatus_to_exitcode(ended[0][1])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            assert not ended
            child.stdin.close()
        return child.returncode

    execution = sim.run(program)
    assert (execution.value, execution.error) == (0, None)


@pytest.mark.process
def test_real_process_that_a_step_starts_itself_ends_with_its_execution() -> None:
    """As one does that Trio starts."""
    started: list[subprocess.Popen[bytes]] = []

    async def program() -> None:
        sim.leave_real("processes")
        started.append(subprocess.Popen(["sleep", "100"]))  # noqa: ASYNC220

    assert sim.run(program).error is None
    assert [child.returncode for child in started] == [-signal.SIGKILL]
