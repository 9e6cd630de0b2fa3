"""Programs that are wrong answers to exercises of the sheet: adders, transfers, and runtimes of calls."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import trio
from trio.lowlevel import checkpoint

from tests.teaching._right_answers import answer_of, gather, run_until, tickets


async def add_without_lock(counter: Any, lock: trio.Lock, think: Any) -> None:
    seen = counter.get()
    await think()
    counter.set(seen + 1)


async def add_reads_outside(counter: Any, lock: trio.Lock, think: Any) -> None:
    seen = counter.get()
    async with lock:
        await think()
        counter.set(seen + 1)


async def add_thinks_first(counter: Any, lock: trio.Lock, think: Any) -> None:
    await think()
    async with lock:
        counter.set(counter.get() + 1)


async def add_lets_go_to_think(counter: Any, lock: trio.Lock, think: Any) -> None:
    async with lock:
        seen = counter.get()
    await think()
    async with lock:
        counter.set(max(seen, counter.get()) + 1)


async def add_never_releases(counter: Any, lock: trio.Lock, think: Any) -> None:
    await lock.acquire()
    seen = counter.get()
    await think()
    counter.set(seen + 1)
    lock.release()


async def add_keeps_the_lock_when_cancelled(counter: Any, lock: trio.Lock, think: Any) -> None:
    await lock.acquire()
    seen = counter.get()
    try:
        await think()
    except Exception:
        lock.release()
        raise
    counter.set(seen + 1)
    lock.release()


async def add_writes_outside(counter: Any, lock: trio.Lock, think: Any) -> None:
    async with lock:
        seen = counter.get()
        await think()
    counter.set(seen + 1)


async def add_thinks_again(counter: Any, lock: trio.Lock, think: Any) -> None:
    async with lock:
        seen = counter.get()
        try:
            await think()
        except ValueError:
            await think()
        counter.set(seen + 1)


_LOCKS: dict[Any, trio.Lock] = defaultdict(trio.Lock)


async def add_one_lock_for_all(counter: Any, lock: trio.Lock, think: Any) -> None:
    async with _LOCKS[trio.lowlevel.current_task().parent_nursery], lock:
        seen = counter.get()
        await think()
        counter.set(seen + 1)


async def add_without_thinking(counter: Any, lock: trio.Lock, think: Any) -> None:
    counter.set(counter.get() + 1)


async def add_hides(counter: Any, lock: trio.Lock, think: Any) -> None:
    async with lock:
        try:
            await think()
        except ValueError:
            return
        counter.set(counter.get() + 1)


async def transfer_as_given(source: Any, target: Any, move: Any) -> None:
    async with source.lock, target.lock:
        await move()


async def transfer_sleepily(source: Any, target: Any, move: Any) -> None:
    async with source.lock:
        await checkpoint()
        async with target.lock:
            await move()


async def transfer_one_lock(source: Any, target: Any, move: Any) -> None:
    async with min(source, target, key=lambda account: account.name).lock:
        await move()


async def transfer_sorted(source: Any, target: Any, move: Any) -> None:
    first, second = sorted((source, target), key=lambda account: account.name)
    async with first.lock, second.lock:
        await move()


_GATES: dict[Any, trio.Lock] = defaultdict(trio.Lock)


async def transfer_through_a_gate(source: Any, target: Any, move: Any) -> None:
    """One at a time may take locks; who waits for a lock keeps the gate."""
    accounts = {account.name: account for account in (source, target)}.values()
    async with _GATES[trio.lowlevel.current_clock()]:
        for account in accounts:
            await account.lock.acquire()
    try:
        await move()
    finally:
        for account in accounts:
            account.lock.release()


async def transfer_without_finally(source: Any, target: Any, move: Any) -> None:
    accounts = [account for _, account in sorted({one.name: one for one in (source, target)}.items())]
    for account in accounts:
        await account.lock.acquire()
    await move()
    for account in accounts:
        account.lock.release()


async def gather_as_they_finish(functions: Any) -> list[Any]:
    answers: list[Any] = []

    async def call(function: Any) -> None:
        answers.append(await answer_of(function))

    async with trio.open_nursery() as nursery:
        for function in functions:
            nursery.start_soon(call, function)
    return answers


async def gather_one_by_one(functions: Any) -> list[Any]:
    return [await answer_of(function) for function in functions]


async def gather_by_function(functions: Any) -> list[Any]:
    answers: dict[Any, Any] = {}

    async def call(function: Any) -> None:
        answers[function] = await answer_of(function)

    async with trio.open_nursery() as nursery:
        for function in functions:
            nursery.start_soon(call, function)
    return [answers[function] for function in functions]


async def gather_of_ten(functions: Any) -> list[Any]:
    limiter = trio.CapacityLimiter(10)

    def limited(function: Any) -> Any:
        async def call() -> Any:
            async with limiter:
                return await function()

        return call

    return await gather([limited(function) for function in functions])


async def gather_value_errors(functions: Any) -> list[Any]:
    answers: list[Any] = [None] * len(functions)

    async def call(index: int) -> None:
        try:
            answers[index] = ("ok", await functions[index]())
        except ValueError as error:
            answers[index] = ("error", str(error))

    async with trio.open_nursery() as nursery:
        for index in range(len(functions)):
            nursery.start_soon(call, index)
    return answers


async def gather_until_one_fails(functions: Any) -> list[Any]:
    answers: list[Any] = [None] * len(functions)

    async def call(index: int) -> None:
        answers[index] = ("ok", await functions[index]())

    async with trio.open_nursery() as nursery:
        for index in range(len(functions)):
            nursery.start_soon(call, index)
    return answers


async def gather_swallowing(functions: Any) -> list[Any]:
    answers: list[Any] = [None] * len(functions)

    async def call(index: int) -> None:
        try:
            answers[index] = ("ok", await functions[index]())
        except BaseException as error:
            answers[index] = ("error", str(error))

    async with trio.open_nursery() as nursery:
        for index in range(len(functions)):
            nursery.start_soon(call, index)
    return answers


async def tickets_with_locks(calls: Any) -> list[Any]:
    locks: dict[Any, trio.Lock] = defaultdict(trio.Lock)

    def in_turn(resource: Any, function: Any) -> Any:
        async def locked() -> Any:
            if resource is None:
                return await function()
            async with locks[resource]:
                return await function()

        return locked

    return await gather([in_turn(*call) for call in calls])


async def tickets_one_by_one(calls: Any) -> list[Any]:
    return await gather_one_by_one([function for _, function in calls])


async def tickets_by_groups(calls: Any) -> list[Any]:
    answers: list[Any] = []
    free = [function for resource, function in calls if resource is None]
    answers += await gather(free)
    for resource in dict.fromkeys(resource for resource, _ in calls if resource is not None):
        answers += await gather_one_by_one([function for of, function in calls if of == resource])
    return answers


async def tickets_ignoring_names(calls: Any) -> list[Any]:
    return await gather([function for _, function in calls])


async def tickets_kept_by_a_failure(calls: Any) -> list[Any]:
    return await tickets(calls, failures_give_on=False)


async def tickets_of_none(calls: Any) -> list[Any]:
    """None is taken for the name of a resource."""
    return await tickets([(str(resource), function) for resource, function in calls])


async def tickets_of_ten(calls: Any) -> list[Any]:
    limiter = trio.CapacityLimiter(10)

    def limited(function: Any) -> Any:
        async def call() -> Any:
            async with limiter:
                return await function()

        return call

    return await tickets([(resource, limited(function)) for resource, function in calls])


async def tickets_by_function(calls: Any) -> list[Any]:
    answers = dict(zip([function for _, function in calls], await tickets(calls), strict=True))
    return [answers[function] for _, function in calls]


async def stop_never(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    limiter = trio.CapacityLimiter(limit)

    def limited(function: Any) -> Any:
        async def run() -> Any:
            async with limiter:
                return await function()

        return run

    return await gather([limited(function) for function in functions])


async def stop_one_by_one(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    answers = []
    for function in functions:
        if stop.is_set():
            answers.append(("not started",))
        else:
            answers.append(("ok", await function()))
    return answers


async def stop_denying(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    return [
        ("not started",) if answer == ("interrupted",) else answer for answer in await run_until(functions, limit, stop)
    ]


async def stop_without_limit(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    return await run_until(functions, len(functions), stop)


async def stop_saying_ok(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    answers = await run_until(functions, limit, stop)
    return [("ok", index) if answer == ("interrupted",) else answer for index, answer in enumerate(answers)]


async def stop_swallowing(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    answers: list[Any] = [("not started",)] * len(functions)
    waiting = list(range(len(functions)))

    async def worker() -> None:
        while waiting and not stop.is_set():
            index = waiting.pop(0)
            try:
                answers[index] = ("ok", await functions[index]())
            except trio.Cancelled:
                answers[index] = ("interrupted",)

    async def stopper() -> None:
        await stop.wait()
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stopper)
        async with trio.open_nursery() as workers:
            for _ in range(limit):
                workers.start_soon(worker)
        nursery.cancel_scope.cancel()
    return answers


async def stop_with_a_full_house(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    """It takes for granted that there are as many calls as may run at once."""
    answers: list[Any] = [("not started",)] * len(functions)
    first, rest = [functions[index] for index in range(limit)], functions[limit:]
    answers[:] = await run_until([*first, *rest], limit, stop)
    return answers
