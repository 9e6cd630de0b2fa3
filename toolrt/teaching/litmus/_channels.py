"""Programs on memory channels and nurseries: which task gets an item, which one closes, and which failure comes out."""

from __future__ import annotations

import trio
from trio.lowlevel import checkpoint

from toolrt.sim import Cell
from toolrt.teaching.litmus._litmus import Program, gallery, one_step, together


async def _close_or_receive() -> str:
    send, receive = trio.open_memory_channel[str](1)
    said: list[str] = []

    async def take() -> None:
        try:
            said.append(await receive.receive())
        except trio.ClosedResourceError:
            said.append("closed")

    async def put() -> None:
        try:
            await send.send("an item")
        except trio.BrokenResourceError:
            return

    await together(take, put, one_step(receive.close))
    return said[0]


async def _close_before_send() -> str:
    send, receive = trio.open_memory_channel[int](1)
    said: list[str] = []

    async def put() -> None:
        async with send:
            try:
                await send.send(1)
                await send.send(2)
            except trio.BrokenResourceError:
                said.append("broken")
            else:
                said.append("sent")

    async def take_one() -> None:
        async with receive:
            await receive.receive()

    await together(put, take_one)
    return said[0]


def _shared_out(clones: bool) -> Program:
    """Two producers of one item each and a consumer that goes on until the channel is closed."""

    async def program() -> str:
        send, receive = trio.open_memory_channel[str](0)
        got: list[str] = []
        said: list[str] = []

        async def put(channel: trio.MemorySendChannel[str], item: str) -> None:
            try:
                async with channel:
                    await channel.send(item)
            except trio.ClosedResourceError:
                said.append(f"{item} not sent")

        async def take() -> None:
            async for item in receive:
                got.append(item)

        await together((put, send.clone() if clones else send, "a"), (put, send, "b"), take)
        return ", ".join(["".join(sorted(got)), *said])

    return program


async def _work_queue() -> str:
    send, receive = trio.open_memory_channel[int](2)
    done = {"a": 0, "b": 0}

    async def work(name: str) -> None:
        async for _ in receive:
            done[name] += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, "a")
        nursery.start_soon(work, "b")
        async with send:
            send.send_nowait(1)
            send.send_nowait(2)
    return f"{done['a']} + {done['b']}"


async def _channel_keeps_order() -> str:
    send, receive = trio.open_memory_channel[str](1)
    got: list[str] = []

    async def put() -> None:
        async with send:
            for item in "abc":
                await send.send(item)

    async def take() -> None:
        async for item in receive:
            got.append(item)

    await together(put, take)
    return "".join(got)


async def _ask_each_other() -> str:
    to_a, for_a = trio.open_memory_channel[str](0)
    to_b, for_b = trio.open_memory_channel[str](0)

    async def ask(to: trio.MemorySendChannel[str], own: trio.MemoryReceiveChannel[str]) -> None:
        await to.send("how are you?")
        await own.receive()

    await together((ask, to_b, for_a), (ask, to_a, for_b))
    return "both asked"


async def _first_failure() -> None:
    async def fail(error: Exception) -> None:
        await checkpoint()
        raise error

    await together((fail, KeyError("a")), (fail, IndexError("b")))


async def _failure_while_cleaning_up() -> str:
    async def fail() -> None:
        await checkpoint()
        raise KeyError("a")

    async def clean_up() -> None:
        try:
            await checkpoint()
            await checkpoint()
        finally:
            raise IndexError("b")

    names: list[str] = []
    try:
        await together(fail, clean_up)
    except* (KeyError, IndexError) as group:
        names += [type(error).__name__ for error in group.exceptions]
    return " and ".join(sorted(names))


async def _result_beside_failure() -> str:
    results: list[str] = []

    async def fail() -> None:
        await checkpoint()
        raise KeyError("a")

    async def compute() -> None:
        await checkpoint()
        await checkpoint()
        results.append("a result")

    try:
        await together(fail, compute)
    except* KeyError:
        pass
    return "".join(results) or "no result"


async def _started_or_failed() -> str:
    closed = Cell(False, name="closed")

    async def serve(task_status: trio.TaskStatus[str]) -> None:
        await checkpoint()
        if closed.get():
            raise OSError("closed")
        task_status.started("serving")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one_step(closed.set), True)
        try:
            said: str = await nursery.start(serve)
        except* OSError:
            said = "refused"
    return said


async def _order_of_tasks() -> str:
    log = Cell("", name="log")

    def note(name: str) -> None:
        log.set(log.get() + name)

    await together(*((one_step(note), name) for name in "abc"))
    return log.get()


#: Programs on channels and nurseries.
CHANNELS = gallery(
    close_or_receive=_close_or_receive,
    close_before_send=_close_before_send,
    shared_sender=(_shared_out(clones=False), {"wrong": {"a, b not sent", "b, a not sent"}}),
    work_queue=_work_queue,
    channel_keeps_order=_channel_keeps_order,
    ask_each_other=_ask_each_other,
    first_failure=_first_failure,
    failure_while_cleaning_up=_failure_while_cleaning_up,
    result_beside_failure=_result_beside_failure,
    started_or_failed=_started_or_failed,
    order_of_tasks=(_order_of_tasks, {"wrong": {"acb", "bac", "bca", "cab", "cba"}}),
)
