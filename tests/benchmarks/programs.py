"""Small programs with known numbers of schedules: what explorers are compared by.

Most are programs of the litmus gallery, here in any size.  Each function makes a program and the check that tells its
bug; a check of None means that the bug is a deadlock or an error.  The numbers of schedules are in the tests of the
strategies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.lowlevel import checkpoint

from toolrt import Registry, Runtime, ToolCall, sim
from toolrt.teaching.litmus import LITMUS, _cells, _locks, _spaces
from toolrt.workspace import MemoryDisk, Workspace

Program = Callable[[], Awaitable[Any]]
Made = tuple[Program, Callable[[sim.Execution], bool] | None]


def lost_update(tasks: int, rounds: int) -> Made:
    """Tasks that each read a counter, pass a checkpoint and write it: an increment may get lost."""
    return _cells.lost_update(tasks, rounds), lambda execution: execution.value == tasks * rounds


def reorder(tasks: int) -> Made:
    """All tasks but one set a, then b; the last one reads a, then b, and must see both set or neither."""
    return _spaces._reorder(tasks), lambda execution: execution.value in ((0, 0), (1, -1))


def needle(tasks: int, rounds: int) -> Made:
    """Two of the tasks must strictly take turns for the bug to show."""
    return _spaces._needle(tasks, rounds), lambda execution: execution.value != "ab" * rounds


def uneven() -> Made:
    """A task of one step has to come after the last of a task of 25."""
    return LITMUS["uneven_25"].program, lambda execution: execution.value != 25


def bounded_buffer(producers: int, consumers: int) -> Made:
    """A buffer of one place with one Condition for both "not full" and "not empty": the wrong one may be woken."""

    async def program() -> None:
        condition = trio.Condition()
        buffer: list[int] = []

        async def put() -> None:
            async with condition:
                while buffer:
                    await condition.wait()
                buffer.append(0)
                condition.notify()

        async def get() -> None:
            async with condition:
                while not buffer:
                    await condition.wait()
                buffer.pop()
                condition.notify()

        async with trio.open_nursery() as nursery:
            for _ in range(producers):
                nursery.start_soon(put)
            for _ in range(consumers):
                nursery.start_soon(get)

    return program, None


def dining(philosophers: int) -> Made:
    """Everyone takes the left fork first; when all hold one, none eats."""
    return _locks._dining(philosophers), None


def twostage(tasks: int) -> Made:
    """Writers pass one stage under one lock and a second under another; a reader between sees half of it."""

    async def program() -> list[tuple[int, int]]:
        first_lock, second_lock = trio.Lock(), trio.Lock()
        first, second = sim.Cell(0, name="first"), sim.Cell(0, name="second")
        torn: list[tuple[int, int]] = []

        async def write() -> None:
            async with first_lock:
                first.set(1)
            await checkpoint()
            async with second_lock:
                second.set(first.get() + 1)

        async def read() -> None:
            async with first_lock:
                one = first.get()
            if not one:
                return
            await checkpoint()
            async with second_lock:
                two = second.get()
            if two != one + 1:
                torn.append((one, two))

        async with trio.open_nursery() as nursery:
            for _ in range(tasks - 1):
                nursery.start_soon(write)
            nursery.start_soon(read)
        return torn

    return program, lambda execution: execution.value == []


def unordered_tools(calls: int, files: int) -> Made:
    """Calls of three steps without tickets; the second step writes one of the files."""

    async def program() -> tuple[int, ...]:
        contents = [sim.Cell(-1, name=f"file {index}") for index in range(files)]

        async def call(index: int) -> None:
            await checkpoint()
            contents[index % files].set(index)
            await checkpoint()

        async with trio.open_nursery() as nursery:
            for index in range(calls):
                nursery.start_soon(call, index)
        return tuple(content.get() for content in contents)

    return program, None


def file_tools(calls: int, files: int) -> Made:
    """The same through the real runtime with the real `write_file` on the disk's twin."""
    wanted = [
        ToolCall(str(index), "write_file", {"path": f"{index % files}.txt", "content": str(index)})
        for index in range(calls)
    ]

    async def program() -> tuple[str, ...]:
        workspace = Workspace(MemoryDisk({f"{index}.txt": "" for index in range(files)}))
        outcome = await Runtime(Registry(workspace.tools())).run(wanted)
        return tuple(result.outcome.value for result in outcome.results)

    return program, None
