"""For each exercise of the sheet an answer that is right.  They stand here and in no notebook."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import trio
from trio.lowlevel import checkpoint

import toolrt
from toolrt import sim
from toolrt.workspace import held


async def add(counter: Any, lock: trio.Lock, think: Any) -> None:
    async with lock:
        seen = counter.get()
        await think()
        counter.set(seen + 1)


async def transfer(source: Any, target: Any, move: Any) -> None:
    first, second = sorted((source, target), key=lambda account: account.name)
    async with first.lock:
        if second is first:
            await move()
            return
        async with second.lock:
            await move()


async def answer_of(function: Any) -> tuple[str, Any]:
    try:
        return "ok", await function()
    except Exception as error:
        return "error", str(error)


async def gather(functions: Any) -> list[Any]:
    answers: list[Any] = [None] * len(functions)

    async def call(index: int) -> None:
        answers[index] = await answer_of(functions[index])

    async with trio.open_nursery() as nursery:
        for index in range(len(functions)):
            nursery.start_soon(call, index)
    return answers


async def tickets(calls: Any, failures_give_on: bool = True) -> list[Any]:
    answers: list[Any] = [None] * len(calls)
    last: dict[str, trio.Event] = {}

    async def call(index: int, before: trio.Event | None, after: trio.Event) -> None:
        if before is not None:
            await before.wait()
        answers[index] = await answer_of(calls[index][1])
        if failures_give_on or answers[index][0] == "ok":
            after.set()

    async with trio.open_nursery() as nursery:
        for index, (resource, _) in enumerate(calls):
            before, after = last.get(resource), trio.Event()
            if resource is not None:
                last[resource] = after
            nursery.start_soon(call, index, before, after)
    return answers


async def run_until(functions: Any, limit: int, stop: trio.Event) -> list[Any]:
    answers: list[Any] = [("not started",)] * len(functions)
    waiting = list(range(len(functions)))[::-1]

    async def worker() -> None:
        while waiting and not stop.is_set():
            index = waiting.pop()
            answers[index] = ("interrupted",)
            answers[index] = ("ok", await functions[index]())

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


def holds(answers: list[Any], delivered: list[tuple[int, Any]]) -> bool:
    return delivered == list(enumerate(answers))


def merge(state: dict[str, Any], finished: list[Any]) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    rejected = []
    for index, position, modifier in sorted(finished, key=lambda one: one[:2]):
        try:
            state = modifier(dict(state))
        except Exception:
            rejected.append((index, position))
    return state, rejected


def counting(state: toolrt.State, word: str) -> toolrt.State:
    seen = state["seen"]
    return state.set("seen", {**seen, word: seen.get(word, 0) + 1})


@toolrt.tool(safe=True)
async def count(ctx: toolrt.ToolContext, word: str) -> toolrt.ToolOutput:
    """Count a word."""
    await checkpoint()
    return toolrt.ToolOutput("counted", modifiers=[lambda state: counting(state, word)])


def appender(workspace: toolrt.Workspace) -> toolrt.Tool:
    @toolrt.tool(claims=lambda input, state: workspace.claims(input["path"], state, toolrt.WRITE), owner=workspace)
    async def append_line(ctx: toolrt.ToolContext, path: str, line: str) -> str:
        """Add a line."""
        identity = held(workspace, ctx, path, toolrt.WRITE)
        await workspace.files.revise(ctx, identity, lambda before: (before or b"") + f"{line}\n".encode())
        return "added"

    return append_line


def file_law(trace: Any, readers: bool = True) -> list[str]:
    wrong = []
    writing: dict[Any, int] = {}
    written: dict[Any, set[int]] = defaultdict(set)
    read: dict[Any, set[int]] = defaultdict(set)
    kinds = ("file.mutation_began", "file.mutation_ended", *["file.read"] * readers)
    for event in trace.of_kind(*kinds):
        call, where = event.fields["call"], (event.fields["batch"], event.fields["file"])
        if event.kind == "file.mutation_ended":
            writing.pop(where, None)
            written[where].add(call)
            continue
        if where in writing and writing[where] != call:
            wrong.append(f"call {call} while call {writing[where]} changes {where[1]}")
        late = read[where] | written[where] if event.kind == "file.mutation_began" else set()
        wrong += [f"call {call} changes {where[1]} after call {other}" for other in late if other > call]
        if event.kind == "file.mutation_began":
            writing[where] = call
        else:
            wrong += [f"call {call} reads what call {other} wrote" for other in written[where] if other > call]
            read[where].add(call)
    return wrong


RIGHT: dict[str, Any] = {
    "two_adders": {1, 2},
    "lose_it": "main main.0 main.1*2 main.0 main",
    "how_many": {2: (6, 4), 3: (90, 36)},
    "mend_it": add,
    "embrace": "main main.0*2 main.1*3 main.0",
    "no_embrace": transfer,
    "in_call_order": holds,
    "gather": gather,
    "needle": lambda seed: sim.Random(sim.PCT(depth=2, seed=seed), 300),
    "merge": merge,
    "pure_counter": count,
    "honest_tool": appender,
    "tickets": tickets,
    "file_law": file_law,
    "stop": run_until,
}
