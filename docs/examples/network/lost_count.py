"""A client of httpx and a server of h11, over the network in memory: a lost update between two requests.

    pip install toolrt httpx h11
    python docs/examples/network/lost_count.py

Neither library knows of toolrt.  Two clients post to a counter, whose handler reads it, waits for a moment, and writes
it.  The explorer finds the order in which one of two counts is lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import h11
import httpx
import trio

from toolrt import sim

Handler = Callable[[bytes], Awaitable[bytes]]


async def serve(stream: trio.abc.HalfCloseableStream, handler: Handler) -> None:
    """Answer the requests of one connection."""
    connection = h11.Connection(h11.SERVER)

    async def next_event() -> Any:
        while (event := connection.next_event()) is h11.NEED_DATA:
            connection.receive_data(bytes(await stream.receive_some()))
        return event

    async with stream:
        while isinstance(await next_event(), h11.Request):
            body = b""
            while isinstance(event := await next_event(), h11.Data):
                body += event.data
            answer = await handler(body)
            head = h11.Response(status_code=200, headers=[("Content-Length", str(len(answer)))])
            for part in (head, h11.Data(data=answer), h11.EndOfMessage()):
                await stream.send_all(connection.send(part) or b"")
            if connection.our_state is h11.MUST_CLOSE:
                break
            connection.start_next_cycle()


async def two_posts(counter: list[int], add: Handler) -> list[str]:
    """Let two clients post to a server that counts with `add`; give the answers."""
    answers: list[str] = []

    async def post(port: int) -> None:
        async with httpx.AsyncClient(base_url=f"http://localhost:{port}", verify=False, trust_env=False) as client:
            answers.append((await client.post("/", content=b"1")).text)

    async with trio.open_nursery() as server:

        async def answer(stream: trio.SocketStream) -> None:
            await serve(stream, add)

        (listener,) = await server.start(_listen, answer)
        async with trio.open_nursery() as clients:
            for _ in range(2):
                clients.start_soon(post, listener.socket.getsockname()[1])
        server.cancel_scope.cancel()
    return sorted(answers)


async def _listen(answer: Any, *, task_status: trio.TaskStatus[list[trio.SocketListener]]) -> None:
    await trio.serve_tcp(answer, 0, host="127.0.0.1", task_status=task_status)


async def careless() -> list[str]:
    """Count without a lock."""
    counter = [0]

    async def add(body: bytes) -> bytes:
        seen = counter[0]
        await trio.lowlevel.checkpoint()
        counter[0] = seen + int(body)
        return b"%d" % counter[0]

    return await two_posts(counter, add)


async def careful() -> list[str]:
    """Count under a lock."""
    counter, lock = [0], trio.Lock()

    async def add(body: bytes) -> bytes:
        async with lock:
            seen = counter[0]
            await trio.lowlevel.checkpoint()
            counter[0] = seen + int(body)
            return b"%d" % counter[0]

    return await two_posts(counter, add)


def explored(program: Callable[[], Awaitable[list[str]]], executions: int = 40) -> sim.Report:
    """Run it under so many schedules."""
    strategy = sim.Random(sim.RandomWalk(seed=1), executions)
    return sim.explore(program, strategy, lambda execution: execution.value == ["1", "2"])


if __name__ == "__main__":
    for each in (careless, careful):
        print(each.__name__)
        print(explored(each))
