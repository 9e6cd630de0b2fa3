"""Executors of tool calls: a serial one, the runtime, and those that are wrong on purpose."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from unittest import mock

import trio

import toolrt
from toolrt import Claim, Mode, Registry, Runtime, aio
from toolrt.store import MemoryRecords

Answers = list[tuple[str, Any, bool]]


async def answer(tools: Any, call: Any) -> tuple[str, Any, bool]:
    """Run one call."""
    tool = {tool.name: tool for tool in tools}[call.name]
    try:
        return call.call_id, await tool(**call.input), False
    except Exception as error:
        return call.call_id, str(error), True


class Serial:
    """One call at a time; what it cannot be asked is a journal, a rate and a deadline."""

    keeps = ("limit", "slots")

    async def execute_within(self, bounds: Any, tools: Any, calls: Any) -> Answers:
        """One at a time is within any limit."""
        return await self.execute(tools, calls)

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
        return _answers(await aio.run(Runtime(Registry([_of_toolrt(tool) for tool in tools])), calls))

    async def execute_durably(self, disk: Any, tools: Any, calls: Any) -> Answers:
        """The same with a journal; a later process goes on."""
        journal = toolrt.Journal(TwinRecords(disk))
        runtime = Runtime(Registry([_of_toolrt(tool) for tool in tools]), journal=journal)
        return _answers(await aio.run(runtime, calls, batch_id="batch", resume=True))

    keeps = ("limit", "slots", "rates", "deadline")

    async def execute_within(self, bounds: Any, tools: Any, calls: Any) -> Answers:
        """Limits are the runtime's, slots and rates are claims."""
        bounded = {name: [Claim(("slots", name), slots=number)] for name, number in bounds.slots.items()}
        bounded.update((name, [toolrt.Rate(name, per_second=number)]) for name, number in bounds.rates.items())
        registry = Registry([_of_toolrt(tool, bounded.get(tool.name)) for tool in tools])
        with mock.patch.object(trio._core._run, "SystemClock", LoopClock):  # the loop's time is virtual
            return _answers(await aio.run(Runtime(registry, limit=bounds.limit), calls, deadline=bounds.deadline))


class LoopClock(trio.abc.Clock):
    """Trio's clock, by the event loop's time."""

    def start_clock(self) -> None:
        """The loop's clock runs."""

    def current_time(self) -> float:
        """In seconds."""
        return asyncio.get_running_loop().time()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """In seconds."""
        return deadline - self.current_time()


def _answers(done: toolrt.BatchOutcome) -> Answers:
    return [(result.call_id, result.content if result.ok else result.error, not result.ok) for result in done.results]


class TwinRecords(MemoryRecords):
    """The records of a journal on the disk that the kit gives: each change is one commit, and is made again from it."""

    def __init__(self, disk: Any) -> None:
        super().__init__()
        self.disk = disk
        for name, *arguments in disk.read():
            getattr(MemoryRecords, name)(self, *arguments)

    def begin(self, batch_id: str, record: str, bounds: Any) -> str | None:
        """See `RecordStore.begin`."""
        if self.read(batch_id) is None:
            self.disk.commit(("begin", batch_id, record, bounds))
        return super().begin(batch_id, record, bounds)

    def commit(self, records: Any) -> None:
        """See `RecordStore.commit`."""
        self.disk.commit(("commit", list(records)))
        super().commit(records)

    def over(self, batch_id: str, record: str, bounds: Any) -> None:
        """See `RecordStore.over`."""
        self.disk.commit(("over", batch_id, record, bounds))
        super().over(batch_id, record, bounds)


def _of_toolrt(tool: Any, bounded: Any = None) -> toolrt.Tool:
    async def with_note(ctx: Any, note: str) -> Any:
        return await tool(note=note)

    async def with_path(ctx: Any, note: str, path: str) -> Any:
        return await tool(note=note, path=path)

    def claims(input: Any, state: Any = None) -> list[Claim]:
        modes = {"read": Mode.READ, "write": Mode.WRITE}
        return [Claim(resource, modes[mode]) for resource, mode in tool.claims(dict(input))]

    touches = "path" in tool.schema["properties"]
    options: dict[str, Any] = {"claims": claims} if touches else {"safe": tool.safe}
    if bounded is not None:
        options = {"claims": bounded}
    if tool.safe:
        options["idempotent"] = True
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
# Of what an executor may say that it can: each is a right one, but for one thing.


class DurableSerial(Serial):
    """One call at a time; the intent of each is durable before it, and its answer behind it."""

    async def execute_durably(self, disk: Any, tools: Any, calls: Any) -> Answers:
        """Go on behind the last call that was begun; what was caught in between may have happened."""
        kept = dict(disk.read())
        answers = []
        for call in calls:
            known = kept.get(call.call_id, [])
            if known is None and call.name not in ("search", "read_file", "fail"):
                known = (call.call_id, "it may have happened", True)
            elif not known:
                disk.commit((call.call_id, None))
                known = await answer(tools, call)
            disk.commit((call.call_id, known))
            answers.append(known)
        return answers


class NoIntents(Serial):
    """Keeps answers, and not what it is about to do."""

    async def execute_durably(self, disk: Any, tools: Any, calls: Any) -> Answers:
        """Run what has no answer."""
        kept = dict(disk.read())
        for call in calls:
            if call.call_id not in kept:
                kept[call.call_id] = await answer(tools, call)
                disk.commit((call.call_id, kept[call.call_id]))
        return [kept[call.call_id] for call in calls]


class AnswersBefore(Serial):
    """Keeps that a call is done before it is."""

    async def execute_durably(self, disk: Any, tools: Any, calls: Any) -> Answers:
        """Run what is not said to be done."""
        done, answers = disk.read(), []
        for number, call in enumerate(calls):
            if call.call_id not in done:
                disk.commit(call.call_id)
                answers.append(await answer(tools, call))
            else:
                answers.append((call.call_id, f"<{number}> done", False))
        return answers


class KeptLast(DurableSerial):
    """Answers what it had kept behind what it ran."""

    async def execute_durably(self, disk: Any, tools: Any, calls: Any) -> Answers:
        """Run what is left, and then look."""
        kept = {call_id for call_id, answer in disk.read() if answer}
        answers = await super().execute_durably(disk, tools, calls)
        return sorted(answers, key=lambda one: one[0] in kept)


class Bounded(Serial):
    """Runs calls that only look at once, each when `admitted` says so, and others in turn."""

    keeps = ("limit", "slots", "rates", "deadline")

    async def execute_within(self, bounds: Any, tools: Any, calls: Any) -> Answers:
        """Run them."""
        if any(call.name not in ("search", "fail") for call in calls):
            return await self.execute(tools, calls)
        begin, end = self.gate(bounds)

        async def one(call: Any) -> tuple[str, Any, bool]:
            await begin()
            try:
                return await answer(tools, call)
            finally:
                end()

        return list(await asyncio.gather(*map(one, calls)))

    def gate(self, bounds: Any) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Any]]:
        """What a call awaits before it runs, and what it calls at its end."""
        return self.permits(bounds.limit or bounds.slots["search"])

    def permits(self, number: int) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Any]]:
        """A semaphore."""
        semaphore = asyncio.Semaphore(number)
        return semaphore.acquire, semaphore.release


class OneTooMany(Bounded):
    """Counts from zero."""

    def gate(self, bounds: Any) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Any]]:
        """One more than may."""
        return self.permits((bounds.limit or bounds.slots["search"]) + 1)


class LastFirst(Serial):
    """Has slots, and gives them to the last call first."""

    async def execute_within(self, bounds: Any, tools: Any, calls: Any) -> Answers:
        """Run them from the end."""
        return (await self.execute(tools, list(reversed(calls))))[::-1]


class FixedWindows(Bounded):
    """Counts the starts of each whole second, so that at its turn twice as many start."""

    def gate(self, bounds: Any) -> tuple[Callable[[], Awaitable[Any]], Callable[[], Any]]:
        """Wait for the next whole second where this one is full."""
        starts: dict[int, int] = {}
        loop = asyncio.get_running_loop()
        began = loop.time() + 0.5

        async def begin() -> None:
            while starts.get(window := int(loop.time() + began), 0) >= bounds.rates["search"]:  # noqa: ASYNC110  wrong
                await asyncio.sleep(window + 1 - loop.time() - began)
            starts[window] = starts.get(window, 0) + 1

        return begin, lambda: None


class LetsThemFinish(Serial):
    """Starts nothing after a deadline, and lets what runs go on."""

    keeps = ("deadline",)

    async def execute_within(self, bounds: Any, tools: Any, calls: Any) -> Answers:
        """Run them in turn."""
        answers = []
        for call in calls:
            late = asyncio.get_running_loop().time() > bounds.deadline
            answers.append((call.call_id, "too late", True) if late else await answer(tools, call))
        return answers


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
    "no_effect_twice": NoIntents,
    "no_effect_lost": AnswersBefore,
    "resumed_in_call_order": KeptLast,
    "limit_kept": OneTooMany,
    "slots_kept": OneTooMany,
    "slots_kept ": LastFirst,
    "rates_kept": FixedWindows,
    "deadline_kept": LetsThemFinish,
}

Execute = Callable[[Any, Any], Awaitable[Answers]]
