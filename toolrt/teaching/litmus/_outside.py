"""Programs with worker threads, and with sockets."""

from __future__ import annotations

import trio

from toolrt import sim
from toolrt.teaching.litmus._litmus import Program, gallery, together


def _seats(is_checked_inside: bool) -> Program:
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


def _message(is_read_whole: bool) -> Program:
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


def _count(is_added_there: bool) -> Program:
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


#: Programs with threads and sockets.
OUTSIDE = gallery(
    check_then_thread=_seats(is_checked_inside=False),
    check_in_thread=_seats(is_checked_inside=True),
    one_read=_message(is_read_whole=False),
    read_until_whole=_message(is_read_whole=True),
    count_sent=_count(is_added_there=False),
    count_kept_there=_count(is_added_there=True),
)
