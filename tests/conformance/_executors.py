"""Executors of tool calls: a serial one, the runtime, and ten that are wrong on purpose."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import toolrt
from toolrt import Claim, Mode, Registry, Runtime, aio

Answers = list[tuple[str, Any, bool]]


async def answer(tools: Any, call: Any) -> tuple[str, Any, bool]:
    """Run one call."""
    tool = {tool.name: tool for tool in tools}[call.name]
    try:
        return call.call_id, await tool(**call.input), False
    except Exception as error:
        return call.call_id, str(error), True


class Serial:
    """One call at a time."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run them in turn."""
        return [await answer(tools, call) for call in calls]


class Gather:
    """What a first version looks like: everything at once, and an exception comes out."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run them at once."""
        by_name = {tool.name: tool for tool in tools}
        contents = await asyncio.gather(*(by_name[call.name](**call.input) for call in calls))
        return [(call.call_id, content, False) for call, content in zip(calls, contents, strict=True)]


class Toolrt:
    """The runtime, through its door for asyncio."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Give each tool its claims."""
        runtime = Runtime(Registry([_of_toolrt(tool) for tool in tools]))
        done = await aio.run(runtime, calls)
        return [
            (result.call_id, result.content if result.ok else result.error, not result.ok) for result in done.results
        ]


def _of_toolrt(tool: Any) -> toolrt.Tool:
    async def with_note(ctx: Any, note: str) -> Any:
        return await tool(note=note)

    async def with_path(ctx: Any, note: str, path: str) -> Any:
        return await tool(note=note, path=path)

    def claims(input: Any, state: Any = None) -> list[Claim]:
        modes = {"read": Mode.READ, "write": Mode.WRITE}
        return [Claim(resource, modes[mode]) for resource, mode in tool.claims(dict(input))]

    touches = "path" in tool.schema["properties"]
    options: dict[str, Any] = {"claims": claims} if touches else {"safe": tool.safe}
    made: toolrt.Tool = aio.tool(name=tool.name, **options)(with_path if touches else with_note)
    return made


# Wrong on purpose.  Each is the serial executor, or the runtime, but for one thing.


class AnswersTwice(Serial):
    """Answers the last call twice."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run them in turn."""
        answers = await super().execute(tools, calls)
        return [*answers, answers[-1]]


class RunsAgain(Serial):
    """Runs a call that failed once more."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run them in turn, and the failed ones again."""
        answers = await super().execute(tools, calls)
        return [await answer(tools, call) if a[2] else a for call, a in zip(calls, answers, strict=True)]


class AsTheyFinish(Toolrt):
    """Gives the answers in the order in which calls finished."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run those that only look at once, else in turn."""
        if all(call.name in ("search", "fail") for call in calls):
            return [await one for one in asyncio.as_completed([answer(tools, call) for call in calls])]
        return await super().execute(tools, calls)


class LocksByArrival:
    """Takes a lock for each file when its call gets there, after a turn of the loop for those that only read."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run them at once, with one lock for all that touch files."""
        lock = asyncio.Lock()

        async def one(call: Any) -> tuple[str, Any, bool]:
            if call.name in ("search", "fail"):
                return await answer(tools, call)
            if call.name != "read_file":
                await asyncio.sleep(0)
            async with lock:
                return await answer(tools, call)

        if any(call.name == "shell" for call in calls):
            return await Serial().execute(tools, calls)
        return list(await asyncio.gather(*map(one, calls)))


class ShellBesideOthers:
    """Knows files, and lets a call that must run alone overlap what touches none."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run what touches files in turn, and the rest at once."""
        touching = [call for call in calls if call.name not in ("search", "fail")]
        rest = [call for call in calls if call not in touching]
        both = await asyncio.gather(Serial().execute(tools, touching), *(answer(tools, call) for call in rest))
        answers = {one[0]: one for one in (*both[0], *both[1:])}
        return [answers[call.call_id] for call in calls]


class MixesContents(Serial):
    """Hands two neighbours' contents to each other."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run them in turn."""
        answers = await super().execute(tools, calls)
        if len(answers) > 1:
            (a, one, fails), (b, other, fails_too) = answers[:2]
            answers[:2] = [(a, other, fails), (b, one, fails_too)]
        return answers


class HidesFailures(Serial):
    """Answers a failure as a content."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run them in turn."""
        return [(call_id, content, False) for call_id, content, _ in await super().execute(tools, calls)]


class Shielded(Serial):
    """Does not listen to a cancel before all calls have run."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run them in turn, whatever comes."""
        task = asyncio.ensure_future(super().execute(tools, calls))
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                continue
        return task.result()


class LeavesRunning(Serial):
    """Lets what runs go on after a cancel."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run them in turn, in a task of their own."""
        return await asyncio.shield(asyncio.ensure_future(super().execute(tools, calls)))


class NeverEnds(Serial):
    """Waits for ever once a call has failed."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run them in turn."""
        answers = await super().execute(tools, calls)
        if any(is_error for *_, is_error in answers):
            await asyncio.get_running_loop().create_future()
        return answers


class LeavesAfterTheFirstError:
    """Gives up at the first error, while the others run."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run those that only look at once, else in turn."""
        if any(call.name not in ("search", "fail") for call in calls):
            return await Serial().execute(tools, calls)
        tasks = [asyncio.ensure_future(answer(tools, call)) for call in calls]
        for task in asyncio.as_completed(tasks):
            if (await task)[2]:
                break
        pairs = zip(calls, tasks, strict=True)
        return [task.result() if task.done() else (call.call_id, "given up", False) for call, task in pairs]


#: Each with the law that it breaks.
WRONG: dict[str, Callable[[], Any]] = {
    "answered_once": AnswersTwice,
    "answered_once ": RunsAgain,
    "results_in_call_order": AsTheyFinish,
    "same_file_in_call_order": LocksByArrival,
    "exclusive_alone": ShellBesideOthers,
    "same_as_oracle": MixesContents,
    "failure_contained": HidesFailures,
    "cancel_truthful": Shielded,
    "nothing_left": LeavesAfterTheFirstError,
    "nothing_left_after_cancel": LeavesRunning,
    "batch_ends": NeverEnds,
}

Execute = Callable[[Any, Any], Awaitable[Answers]]
