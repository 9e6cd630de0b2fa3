"""Programs with worker threads, and with sockets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from toolrt import sim
from toolrt.teaching.litmus._litmus import Count, Litmus, together


def _seats(is_checked_inside: bool) -> Callable[[], Any]:
    async def program() -> int:
        seats = sim.Cell(1, name="seats")

        def take() -> None:
            seats.set(seats.get() - 1)

        def check_and_take() -> None:
            if seats.get():
                take()

        async def in_thread() -> None:
            if is_checked_inside:
                await trio.to_thread.run_sync(check_and_take)
            elif seats.get():
                await trio.to_thread.run_sync(take)

        async def in_task() -> None:  # noqa: ASYNC124  a task is one step
            check_and_take()

        await together(in_thread, in_task)
        return seats.get()

    return program


def _message(is_read_whole: bool) -> Callable[[], Any]:
    async def program() -> str:
        with sim.Network(partial=1):
            near, far = map(trio.SocketStream, trio.socket.socketpair())
            async with near, far:
                await near.send_all(b"abc")
                text = await far.receive_some(3)
                while is_read_whole and len(text) < 3:
                    text += await far.receive_some(3)
                return text.decode()

    return program


def _count(is_added_there: bool) -> Callable[[], Any]:
    async def program() -> int:
        count = sim.Cell(0, name="count")
        near, far = trio.socket.socketpair()

        async def client() -> None:
            text = "+" if is_added_there else str(count.get() + 1)
            await near.send(text.encode())

        async def server() -> None:
            for _ in range(2):
                text = await far.recv(1)
                count.set(count.get() + 1 if text == b"+" else int(text))

        with near, far:
            await together(client, client, server)
        return count.get()

    return program


OUTSIDE = (
    Litmus(
        "check_then_thread",
        "A task looks whether a seat is free and takes it in a worker thread; another one does both in one step. It may"
        " come before the thread, and one seat is sold twice.",
        _seats(is_checked_inside=False),
        right={0},
        wrong={-1},
        interleavings=Count(7),
        classes=Count(3),
    ),
    Litmus(
        "check_in_thread",
        "The same where the thread looks, too. Between two hand-overs a thread is one step, so this is right.",
        _seats(is_checked_inside=True),
        right={0},
        interleavings=Count(7),
        classes=Count(2),
    ),
    Litmus(
        "one_read",
        "Three bytes are sent over a socket and read by one call. TCP keeps the order of bytes and no messages:"
        " some may be missing.",
        _message(is_read_whole=False),
        right={"abc"},
        wrong={"a", "ab"},
        interleavings=Count(5),
        classes=Count(5),
    ),
    Litmus(
        "read_until_whole",
        "The same with reads until all three are there.",
        _message(is_read_whole=True),
        right={"abc"},
        interleavings=Count(5),
        classes=Count(5),
    ),
    Litmus(
        "count_sent",
        "Two clients read a count and send the next one over a socket to a server, which keeps what it gets. Both may"
        " send 1.",
        _count(is_added_there=False),
        right={2},
        wrong={1},
        interleavings=Count(158),
        classes=Count(158),
    ),
    Litmus(
        "count_kept_there",
        "The same where they send what is to be done, and the server does it.",
        _count(is_added_there=True),
        right={2},
        interleavings=Count(158),
        classes=Count(158),
    ),
)
