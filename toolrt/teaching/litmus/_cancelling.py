"""Cancellation races: a cancel is one more task, and may come at every checkpoint."""

from __future__ import annotations

import trio
from trio.lowlevel import checkpoint

from toolrt.sim import Cell
from toolrt.teaching.litmus._litmus import Count, Litmus, Program, one_step, together

__all__ = ["CANCELLING"]


async def _cancel_or_result() -> str:
    ready, scope, got = trio.Event(), trio.CancelScope(), list[str]()

    async def work() -> None:
        with scope:
            await ready.wait()
            got.append("the result")
        if scope.cancelled_caught:
            got.append("cancelled")

    await together(work, one_step(ready.set), one_step(scope.cancel))
    return " and ".join(got)


def _taken_and_lost(at_once: bool) -> Program:
    async def program() -> str:
        send, receive = trio.open_memory_channel[str](1)
        send.send_nowait("the item")
        scope, done = trio.CancelScope(), list[str]()

        async def work() -> None:
            with scope:
                item = await receive.receive()
                if not at_once:
                    await checkpoint()
                done.append(item)

        await together(work, one_step(scope.cancel))
        if done:
            return "handled"
        try:
            receive.receive_nowait()
        except trio.WouldBlock:
            return "lost"
        return "still there"

    return program


async def _timeout_tie() -> str:
    with trio.move_on_after(1) as scope:
        await trio.sleep(1)
        return "slept"
    return "timed out" if scope.cancelled_caught else "left"


async def _timeout_or_event() -> str:
    ready, said = trio.Event(), list[str]()

    async def wait() -> None:
        with trio.move_on_after(1) as scope:
            await ready.wait()
        said.append("timed out" if scope.cancelled_caught else "in time")

    async def finish() -> None:
        await trio.sleep(1)
        ready.set()

    await together(wait, finish)
    return said[0]


async def _nested_timeouts() -> str:
    with trio.move_on_after(1) as outer:
        with trio.move_on_after(1) as inner:
            await trio.sleep_forever()
    return f"inner {inner.cancelled_caught}, outer {outer.cancelled_caught}"


def _clean_up(shielded: bool) -> Program:
    async def program() -> str:
        scope, cleaned = trio.CancelScope(), Cell(0, name="cleaned")

        async def work() -> None:
            with scope:
                try:
                    await checkpoint()
                finally:
                    with trio.CancelScope(shield=shielded):
                        cleaned.set(1)
                        await checkpoint()  # noqa: ASYNC102  half a cleanup is what is shown
                        cleaned.set(2)

        await together(work, one_step(scope.cancel))
        return {0: "nothing", 1: "half", 2: "all"}[cleaned.get()] + " cleaned up"

    return program


async def _send_or_time_out() -> str:
    send, receive = trio.open_memory_channel[str](0)
    said, got = list[str](), list[str]()

    async def put() -> None:
        with trio.move_on_after(1) as scope:
            await send.send("the item")
        said.append("timed out" if scope.cancelled_caught else "sent")
        send.close()

    async def take() -> None:
        await trio.sleep(1)
        async for item in receive:
            got.append(item)

    await together(put, take)
    return f"{said[0]}, {len(got)} received"


async def _cancel_or_send() -> str:
    send, receive = trio.open_memory_channel[str](0)
    scope, said, got = trio.CancelScope(), list[str](), list[str]()

    async def put() -> None:
        with scope:
            await send.send("the item")
            said.append("sent")
        send.close()

    async def take() -> None:
        async for item in receive:
            got.append(item)

    await together(put, take, one_step(scope.cancel))
    return f"{said[0] if said else 'not sent'}, {len(got)} received"


async def _first_step() -> str:
    log: list[str] = []

    async def act() -> None:
        log.append("one step")
        await checkpoint()
        log.append("two")

    async with trio.open_nursery() as nursery:
        nursery.cancel_scope.cancel()
        nursery.start_soon(act)
    return ", ".join(log)


async def _swallowed() -> str:
    scope, laps = trio.CancelScope(), list[int]()

    async def work() -> None:
        with scope:
            for lap in range(3):
                try:
                    await checkpoint()
                except trio.Cancelled:  # noqa: ASYNC103  to swallow it is what is shown
                    continue  # noqa: ASYNC104
                laps.append(lap)

    await together(work, one_step(scope.cancel))
    return f"{len(laps)} laps, {'caught' if scope.cancelled_caught else 'not caught'}"


async def _effect_between() -> str:
    scope, files = trio.CancelScope(), [Cell("old", name="one"), Cell("old", name="two")]

    async def write() -> None:
        with scope:
            for file in files:
                file.set("new")
                await checkpoint()

    await together(write, one_step(scope.cancel))
    return " ".join(file.get() for file in files)


async def _cancel_twice() -> str:
    outer, log = trio.CancelScope(), list[str]()

    async def work() -> None:
        with outer:
            with trio.CancelScope() as inner:
                inner.cancel()
                await checkpoint()
            log.append("between")
            await checkpoint()
            log.append("after")

    await together(work, one_step(outer.cancel))
    return " ".join(log) or "nothing"


#: Cancellation races.
CANCELLING: tuple[Litmus, ...] = (
    Litmus(
        "cancel_or_result",
        "A result arrives as its waiter is cancelled: the waiter has one or the other, never both and never neither.",
        _cancel_or_result,
        right={"the result", "cancelled"},
        interleavings=Count(10),
        classes=Count(9),
    ),
    Litmus(
        "taken_and_lost",
        "A worker takes an item out of a channel, and handles it after a checkpoint. A cancel in between loses the"
        " item.",
        _taken_and_lost(at_once=False),
        right={"handled", "still there"},
        wrong={"lost"},
        interleavings=Count(4),
        classes=Count(4),
    ),
    Litmus(
        "taken_and_kept",
        "The same without the checkpoint: receive() either gives the item or leaves it there.",
        _taken_and_lost(at_once=True),
        right={"handled", "still there"},
        interleavings=Count(3),
        classes=Count(3),
    ),
    Litmus(
        "timeout_tie",
        "A sleep of one second within a timeout of one second. Both end at the same instant, and the timeout wins: Trio"
        " expires both deadlines before anybody steps, and the outer cancel goes through the inner scope.",
        _timeout_tie,
        right={"timed out"},
        interleavings=Count(1),
        classes=Count(1),
    ),
    Litmus(
        "timeout_or_event",
        "An event is set at the very instant at which its waiter times out. The timeout wins here too: the setter still"
        " has to take its step.",
        _timeout_or_event,
        right={"timed out"},
        interleavings=Count(4),
        classes=Count(4),
    ),
    Litmus(
        "nested_timeouts",
        "Two timeouts of the same length, one inside the other: the outer one catches.",
        _nested_timeouts,
        right={"inner False, outer True"},
        interleavings=Count(1),
        classes=Count(1),
    ),
    Litmus(
        "cleanup",
        "A cleanup of two steps in a finally. Inside a cancelled scope its first checkpoint raises again, and half of"
        " it is left undone.",
        _clean_up(shielded=False),
        right={"all cleaned up"},
        wrong={"half cleaned up"},
        interleavings=Count(4),
        classes=Count(4),
    ),
    Litmus(
        "cleanup_shielded",
        "The same behind a shield.",
        _clean_up(shielded=True),
        right={"all cleaned up"},
        interleavings=Count(4),
        classes=Count(4),
    ),
    Litmus(
        "send_or_time_out",
        "A sender gives up after a second; the receiver comes at that very second. What the sender believes and what"
        " the receiver has agree.",
        _send_or_time_out,
        right={"timed out, 0 received"},
        interleavings=Count(4),
        classes=Count(4),
    ),
    Litmus(
        "cancel_or_send",
        "A sender is cancelled while it sends to a channel without a buffer: sent and received, or neither.",
        _cancel_or_send,
        right={"sent, 1 received", "not sent, 0 received"},
        interleavings=Count(21),
        classes=Count(16),
    ),
    Litmus(
        "first_step",
        "A task spawned into a cancelled nursery runs all the same, up to its first checkpoint: its first act should be"
        " to look whether it is still wanted.",
        _first_step,
        right={"one step"},
        interleavings=Count(1),
        classes=Count(1),
    ),
    Litmus(
        "swallowed_cancel",
        "A worker catches Cancelled and goes on: it is raised again at every checkpoint, so nothing is done any more,"
        " and the scope never learns that it was obeyed.",
        _swallowed,
        right={"3 laps, not caught"},
        wrong={"0 laps, not caught", "1 laps, not caught", "2 laps, not caught"},
        interleavings=Count(5),
        classes=Count(5),
    ),
    Litmus(
        "two_files",
        "Two files are written, with a checkpoint after each; a cancel leaves none, one or both changed. Interrupted"
        " must be told apart from not started.",
        _effect_between,
        right={"new new"},
        wrong={"new old"},
        interleavings=Count(4),
        classes=Count(4),
    ),
    Litmus(
        "cancel_inside_cancel",
        "An inner scope cancels itself while the outer one is cancelled by somebody else: what comes between the two"
        " runs unless the outer cancel was first.",
        _cancel_twice,
        right={"between after", "between", "nothing"},
        interleavings=Count(5),
        classes=Count(5),
    ),
)
