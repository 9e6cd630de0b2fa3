"""Threads that a program starts itself, where it was not written for the explorer."""

from __future__ import annotations

import functools
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import MagicMock

import pytest
import trio

from toolrt import sim
from toolrt.errors import NotSimulated
from toolrt.sim.programs.threads._own import simulate_own_threads


def _with_own(program: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    @functools.wraps(program)
    def begun() -> Awaitable[Any]:
        simulate_own_threads()
        return program()

    return begun


async def _lost_update() -> int:
    count = 0

    def add() -> None:
        nonlocal count
        seen = count
        time.sleep(0)
        count = seen + 1

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
        assert thread.is_alive()
    for thread in threads:
        await trio.to_thread.run_sync(thread.join)
        assert not thread.is_alive()
    return count


def test_own_threads_are_explored() -> None:
    """Each order of their parts comes up; without being asked for they are refused."""
    report = sim.explore(_with_own(_lost_update), sim.Random(sim.RandomWalk(seed=1), 30))
    assert set(report.outcomes) == {1, 2}
    assert "threads atomic between hand-overs" in report.claim
    error = sim.run(_lost_update).error
    assert isinstance(error, NotSimulated)
    assert error.action == "start a thread"


def test_own_threads_call_the_loop_and_are_joined_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor's, too; what one raises is told as ever, and one that is left ends with its execution."""
    told = list[str]()
    monkeypatch.setattr(threading, "excepthook", lambda raised: told.append(str(raised.exc_value)))
    before = {*threading.enumerate()}

    async def program() -> list[object]:
        token, event, log = trio.lowlevel.current_trio_token(), trio.Event(), list[object]()

        def tell() -> None:
            time.sleep(1)
            trio.from_thread.run_sync(event.set, trio_token=token)
            raise ValueError("told")

        threading.Thread(target=time.sleep, args=(1000,)).start()
        thread = threading.Thread(target=tell)
        thread.start()
        await event.wait()
        log.append(trio.current_time())
        thread.join()
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(log.append, number) for number in (1, 1)]
            await trio.to_thread.run_sync(futures[0].result)
        return log

    report = sim.explore(_with_own(program), sim.Random(sim.RandomWalk(seed=1), 5))
    assert report.verdict is sim.PASS
    assert [*report.outcomes] == ["[1.0, 1, 1]"]
    assert set(told) == {"told"}
    assert {*threading.enumerate()} <= before


def test_what_a_thread_may_not_do_ends_its_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the error of the execution, and none of the thread's; the tasks are cancelled."""
    told = list[object]()
    monkeypatch.setattr(threading, "excepthook", told.append)

    async def program() -> None:
        ours, theirs = socket.socketpair()

        def send() -> None:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, b"0000")]
            ours.sendmsg([b"x"], rights)

        threading.Thread(target=send).start()
        try:
            await trio.sleep_forever()
        finally:
            told.append("cancelled")
            ours.close()
            theirs.close()

    error = sim.run(_with_own(program)).error
    assert isinstance(error, NotSimulated)
    assert error.action == "send more than bytes through a socket"
    assert told == ["cancelled"]


def test_own_thread_that_nothing_wakes_is_no_join() -> None:
    async def program() -> None:
        thread = threading.Thread(target=threading.Event().wait)
        thread.start()
        thread.join(3)
        assert (trio.current_time(), thread.is_alive()) == (3, True)
        thread.join()

    error = sim.run(_with_own(program)).error
    assert isinstance(error, NotSimulated)
    assert error.action == "block Trio's loop for ever"


def test_handshake_of_a_server_ends_well_when_its_client_is_gone() -> None:
    """A client closes after its handshake: OpenSSL overlooks that no session ticket can be sent, in each schedule."""
    authority = pytest.importorskip("trustme", reason="certificates for tests").CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(server)
    authority.configure_trust(client)

    async def program() -> None:
        ours, theirs = socket.socketpair()

        def serve() -> None:
            server.wrap_socket(theirs, server_side=True).close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, serve)
            plain = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
            stream = trio.SSLStream(plain, client, server_hostname="localhost")
            await stream.do_handshake()
            await trio.aclose_forcefully(stream)

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 10))
    assert report.verdict is sim.PASS, report


def test_ssl_socket_in_a_thread_speaks_over_the_network() -> None:
    """`ssl.SSLSocket` blocks its thread, shuts down, and is accepted by one that listens; the loop may join it."""
    authority = pytest.importorskip("trustme", reason="certificates for tests").CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(server)
    authority.configure_trust(client)

    async def program() -> tuple[object, ...]:
        plain = socket.socket()
        plain.bind(("127.0.0.1", 0))
        plain.listen()
        listener = server.wrap_socket(plain, server_side=True, suppress_ragged_eofs=False)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(connection.recv(100).upper())
                connection.unwrap().close()

        thread = threading.Thread(target=serve)
        thread.start()
        stream = await trio.open_ssl_over_tcp_stream("localhost", listener.getsockname()[1], ssl_context=client)
        await stream.send_all(b"hello")
        answer = await stream.receive_some()
        end = await stream.receive_some()
        await stream.aclose()
        thread.join()
        listener.close()
        return bytes(answer), bytes(end)

    report = sim.explore(_with_own(program), sim.Random(sim.RandomWalk(seed=1), 5))
    assert report.outcomes == {(b"HELLO", b""): 5}, report


def test_thread_may_call_what_has_any_attribute() -> None:
    """A mock has each attribute that a function might have, and code of none of them."""

    async def program() -> None:
        await trio.to_thread.run_sync(MagicMock())

    assert sim.run(program).error is None


def test_thread_whose_task_is_ended_before_its_first_step_ends_too() -> None:
    """It stood for ever, and an interpreter that has executors waits for it at its own end."""

    async def program() -> None:
        simulate_own_threads()
        token = trio.lowlevel.current_trio_token()
        with ThreadPoolExecutor(1) as executor:
            # It waits for the loop, which waits for it.
            executor.submit(trio.from_thread.run_sync, int, trio_token=token).result()

    before = set(threading.enumerate())
    assert isinstance(sim.run(program).error, NotSimulated)
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
        assert not thread.is_alive()
