"""Waiting until a socket of the network can be read or written, as Trio's loop waits for the operating system."""

from __future__ import annotations

from typing import Any

import outcome
import trio
from trio.lowlevel import Abort, Task

from toolrt.probe import Resource
from toolrt.sim.programs.network._endpoints import Endpoint
from toolrt.sim.programs.network._links import touch


class SocketWaiter:
    """A task that waits for a socket; its ``custom_sleep_data`` meanwhile."""

    __slots__ = ("left_by_cancelling", "task")

    def __init__(self, task: Task, resource: Resource) -> None:
        self.task = task
        #: What changes when it waits no longer.
        self.left_by_cancelling = resource


async def wait_until_ready(endpoint: Endpoint, fd: int, what: str) -> None:
    """Wait until a socket can be read ("r") or written ("w").

    Raises:
        trio.BusyResourceError: another task waits for it.
        trio.ClosedResourceError: the socket is closed meanwhile.

    Checkpoint: always.
    """
    resource = (*endpoint.name, "waits", what)
    touch(resource, True)
    if (fd, what) in endpoint.waiting:
        raise trio.BusyResourceError("another task is already reading / writing this fd")
    if endpoint.is_ready(what):
        await trio.lowlevel.checkpoint()
        return
    task = trio.lowlevel.current_task()
    task.custom_sleep_data = endpoint.waiting[fd, what] = SocketWaiter(task, resource)

    def abort(_: object) -> Abort:
        endpoint.waiting.pop((fd, what), None)
        return Abort.SUCCEEDED

    await trio.lowlevel.wait_task_rescheduled(abort)


def close_waits(endpoint: Endpoint, fd: int) -> None:
    """Wake the tasks that wait for a socket which is about to be closed."""
    for what in "rw":
        waiter: Any = endpoint.waiting.pop((fd, what), None)
        if waiter is not None:
            touch(waiter.left_by_cancelling, True)
            error = trio.ClosedResourceError("another task closed this fd")
            endpoint.net.links.run.wake(waiter.task, outcome.Error(error))
