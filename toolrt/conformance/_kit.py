"""Holds an executor against the laws: draws plans, runs them on virtual time, and shrinks what breaks a law."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import itertools
import os
import random
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from toolrt._plain import counted
from toolrt.conformance._capabilities import CAPABILITIES
from toolrt.conformance._laws import LAWS, BlackBoxLaw
from toolrt.conformance._loop import Stuck, VirtualLoop
from toolrt.conformance._plan import (
    PATHS,
    Answer,
    Kind,
    SampleBatch,
    SampleBounds,
    SampleCall,
    Tried,
    serial_run,
    tool_calls,
    tools,
)
from toolrt.errors import InputRefused

#: How an executor is called.
Execute = Callable[[list[Any], list[Any]], Awaitable[Iterable[tuple[str, Any, bool]]]]

#: Virtual seconds that go by after the end, in which nothing may run.
_AFTERWARDS = 100.0

#: The tools, simplest first.
_KINDS: tuple[Kind, ...] = ("search", "fail", "read_file", "append_file", "append_then_fail", "shell")

#: How often a smaller batch is tried, because an executor may not always do the same.
_RETRIES = 3

#: Calls in one plan, at most, and the seconds of one wait.
_MOST_CALLS, _WAITS = 5, (0, 0, 1, 2, 3)


@attrs.frozen
class LawReport:
    """What was found of one law."""

    #: Its name.
    law: str
    #: What it says.
    sentence: str
    #: "held", "broken", "not applicable", or "not asked": the adapter does not say that its executor can.
    verdict: str
    #: How many plans were tried.
    examples: int = 0
    #: Why it is broken or not applicable; empty where it held.
    detail: str = ""
    #: The smallest plan that breaks it; None where none does.
    plan: SampleBatch | None = None
    #: What a serial run answers to that plan, and what the executor answered, as texts.
    serial: tuple[str, ...] = ()
    got: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Give the same as plain values."""
        return {
            "law": self.law,
            "sentence": self.sentence,
            "verdict": self.verdict,
            "examples": self.examples,
            "detail": self.detail,
            "plan": None if self.plan is None else str(self.plan).splitlines(),
            "serial": list(self.serial),
            "got": list(self.got),
        }


@attrs.frozen
class Conformance:
    """What was found of one executor."""

    #: What the report calls it.
    adapter: str
    #: One for each law that was asked, in the order of `LAWS`.
    cells: tuple[LawReport, ...]
    #: One for each question of `CAPABILITIES`, in that order.
    capabilities: tuple[LawReport, ...] = ()

    @property
    def conforms(self) -> bool:
        """Whether no law was seen broken, and nothing that the executor says it can."""
        return all(cell.verdict != "broken" for cell in (*self.cells, *self.capabilities))

    def to_json(self) -> dict[str, Any]:
        """Give the same as plain values: what a badge file holds."""
        return {
            "schema": 1,
            "adapter": self.adapter,
            "conforms": self.conforms,
            "laws": [cell.to_json() for cell in self.cells],
            "capabilities": [cell.to_json() for cell in self.capabilities],
        }

    def __str__(self) -> str:
        lines = []
        for cell in (*self.cells, *self.capabilities):
            lines.append(f"{cell.law:26} {_verdict(cell)}")
            if cell.plan is not None:
                lines += [f"    {cell.sentence}", f"    {cell.detail}", "    The smallest batch:"]
                lines += [f"        {line}" for line in str(cell.plan).splitlines()]
                lines += ["    A serial run answers:", *(f"        {line}" for line in cell.serial)]
                lines += ["    The executor answered:", *(f"        {line}" for line in cell.got)]
        return "\n".join(lines)


def _verdict(cell: LawReport) -> str:
    if cell.verdict == "held":
        return f"held in {counted(cell.examples, 'example')}"
    return cell.verdict if cell.verdict == "broken" else f"{cell.verdict}: {cell.detail}"


def conformance(
    adapter: Any, examples: int = 100, name: str | None = None, laws: Iterable[str] | None = None
) -> Conformance:
    """Hold an executor against the laws.

    Args:
        adapter: an object with ``async def execute(self, tools, calls)`` that gives ``[(call_id, content, is_error)]``,
            a class of such objects, or such a function.  A tool has `name`, `description`, `schema`, `safe` and
            `claims`, and is awaited with the input of a call.  A call has `call_id`, `name` and `input`.  It is
            cancelled by cancelling the task that awaits it, and by its method ``cancel()`` where it has one.  A mapping
            `not_applicable` gives the reason for each law that cannot be asked of it.  Of `CAPABILITIES` it is asked
            what it says that it can, by ``execute_durably(disk, tools, calls)`` and by ``execute_within(bounds, tools,
            calls)`` with the names of those bounds in `keeps`.
        examples: how many plans are drawn for each law, 1 or more.
        name: what the report calls it.
        laws: the names of those to ask, of `LAWS` and `CAPABILITIES`; None: all of both.

    Returns:
        One cell for each law and question.  The same adapter gives the same report.

    Raises:
        InputRefused: `adapter` has no such function, or there is no such law.

    Checkpoint: never (it is not async).
    """
    made = _made(adapter)
    reasons: Mapping[str, str] = getattr(made, "not_applicable", {})
    known = {**LAWS, **CAPABILITIES}
    asked = list(known if laws is None else laws)
    for law_name in asked:
        if law_name not in known:
            raise InputRefused(f"law {law_name!r}", "there is no such law", f"Use some of {', '.join(known)}.")
    cells: list[LawReport] = []
    for law in map(known.__getitem__, asked):
        if law.name in reasons:
            cells.append(LawReport(law.name, law.sentence, "not applicable", detail=str(reasons[law.name])))
        elif law.needs and not _can(made, law):
            cells.append(LawReport(law.name, law.sentence, "not asked", detail=f"the adapter has not {law.needs}"))
        else:
            cells.append(_cell(adapter, law, examples))
    of_laws = tuple(cell for cell in cells if cell.law in LAWS)
    others = tuple(cell for cell in cells if cell.law in CAPABILITIES)
    return Conformance(name or str(getattr(adapter, "__qualname__", type(adapter).__name__)), of_laws, others)


def _can(made: Any, law: BlackBoxLaw) -> bool:
    """Whether the adapter says that its executor can do what the question is about."""
    if law.bound:
        return callable(getattr(made, "execute_within", None)) and law.bound in getattr(made, "keeps", ())
    return callable(getattr(made, "execute_durably", None))


def load_adapter(place: str) -> Any:
    """Give the adapter that ``MODULE:ADAPTER`` names.

    Args:
        place: that text; the module may be a file below the current directory.

    Raises:
        InputRefused: there is no such module or name, or the module cannot be imported.
    """
    module, colon, attribute = place.partition(":")
    if not (module and colon and attribute):
        raise InputRefused(
            f"adapter {place!r}", "it is not of the form MODULE:ADAPTER", "Write my_package.kit:Adapter."
        )
    with _importable(os.getcwd()):
        try:
            found: Any = importlib.import_module(module.removesuffix(".py").replace("/", "."))
        except Exception as error:
            why = f"module {module!r} cannot be imported ({type(error).__name__}: {error})"
            raise InputRefused(f"adapter {place!r}", why, "Install it, or run this where it is.") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise InputRefused(f"adapter {place!r}", f"{module!r} has no {attribute!r}", "Name what is defined there.")
        found = getattr(found, name)
    _made(found)
    return found


def tried(adapter: Any, plan: SampleBatch) -> Tried:
    """Run one plan on virtual time, and give what happened.

    Checkpoint: never (it is not async).
    """
    found = Tried(plan, serial_run(plan.calls))
    if plan.kills is None:
        _process(_made(adapter), found)
        return found
    for kill_at in (*plan.kills, None):
        found.disk.begin(kill_at)
        _process(_made(adapter), found)  # a class is made anew: a process begins with an empty memory
    return found


def _process(made: Any, found: Tried) -> None:
    """Let one process run the plan.

    Checkpoint: never (it is not async).
    """
    # What hangs may also hang when it is cancelled, at the end.
    with contextlib.suppress(Stuck), asyncio.Runner(loop_factory=lambda: VirtualLoop(found.plan.seed)) as runner:
        loop: Any = runner.get_loop()
        if found.plan.kills is not None:
            found.disk.clock = loop.time
            loop.set_exception_handler(_of_the_living(found))
        try:
            runner.run(_try(made, found))
        except Stuck as stuck:
            found.error = stuck
            found.ended_after = len(found.happened)
            loop.is_closing = True
    if found.disk.killed_at is not None:
        found.killed_at.append(found.disk.killed_at)
        found.answers = found.error = found.ended_at = None


def _of_the_living(found: Tried) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """Tells what the loop has to tell, unless it is of a process that was killed."""

    def tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if found.disk.killed_at is None:
            loop.default_exception_handler(context)

    return tell


async def _try(adapter: Any, found: Tried) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    task = asyncio.ensure_future(_execute(adapter, found))
    if found.plan.cancel_at is not None:
        await asyncio.wait([task], timeout=found.plan.cancel_at)
        if not task.done():
            cancel = getattr(adapter, "cancel", None)
            if cancel is not None:
                answer = cancel()
                if inspect.isawaitable(answer):
                    await answer
            task.cancel()
    await asyncio.wait([task])
    found.ended_at = loop.time() - began
    found.ended_after = len(found.happened)
    await asyncio.sleep(_AFTERWARDS)


async def _execute(adapter: Any, found: Tried) -> None:
    plan, asked = found.plan, (list(tools(found)), tool_calls(found.plan))
    try:
        if plan.kills is not None:
            given = await adapter.execute_durably(found.disk, *asked)
        elif plan.bounds is not None:
            given = await adapter.execute_within(plan.bounds, *asked)
        else:
            given = await _execute_of(adapter)(*asked)
        found.answers = [_answer(one) for one in given]
    except asyncio.CancelledError:
        raise
    except Exception as error:
        found.error = error
    except BaseException as error:  # noqa: ASYNC103  how a killed process ends is nothing that anyone sees
        if found.disk.killed_at is None:
            raise
        found.error = error


def _answer(given: Any) -> Answer:
    try:
        call_id, content, is_error = given
    except (TypeError, ValueError):
        raise TypeError(f"an answer is (call_id, content, is_error), got {given!r}") from None
    return Answer(call_id, content, bool(is_error))


def _made(adapter: Any) -> Any:
    made = adapter() if isinstance(adapter, type) else adapter
    if not callable(_execute_of(made)):
        raise InputRefused(
            f"adapter {adapter!r}",
            "it has no function execute(tools, calls)",
            "Give it: async def execute(self, tools, calls) -> [(call_id, content, is_error)].",
        )
    return made


def _execute_of(made: Any) -> Any:
    return getattr(made, "execute", made if inspect.iscoroutinefunction(made) else None)


def _cell(adapter: Any, law: BlackBoxLaw, examples: int) -> LawReport:
    draws = random.Random(law.name)
    plans = _killed_plans(adapter, draws) if law.name in CAPABILITIES and not law.bound else _plans(draws, law)
    for count, plan in zip(range(1, examples + 1), plans, strict=False):
        found = tried(adapter, plan)
        if law.broken(found) is not None:
            found, why = _smallest(adapter, law, found)
            serial = tuple(_line(answer) for answer in found.serial.answers)
            return LawReport(law.name, law.sentence, "broken", count, why, found.plan, serial, _got(found))
    return LawReport(law.name, law.sentence, "held", examples)


def _plans(draws: random.Random, law: BlackBoxLaw) -> Iterator[SampleBatch]:
    """Plans for a law, without end."""
    while True:
        plan = _drawn(draws, law.cancels, of_one_tool=law.bound in ("slots", "rates"))
        yield attrs.evolve(plan, bounds=_bounds(draws, law.bound)) if law.bound else plan


def _bounds(draws: random.Random, what: str) -> SampleBounds:
    most = draws.choice((1, 2, 3))
    if what == "limit":
        return SampleBounds(limit=most)
    if what == "slots":
        return SampleBounds(slots={"search": most})
    if what == "rates":
        return SampleBounds(rates={"search": most})
    return SampleBounds(deadline=draws.randint(0, 2 * max(_WAITS)) + 0.5)


def _killed_plans(adapter: Any, draws: random.Random) -> Iterator[SampleBatch]:
    """Plans that are killed at each of their moments in turn; every second plan is then killed once more."""
    for number in itertools.count():
        plan = attrs.evolve(_drawn(draws, cancels=False), kills=())
        yield plan
        moments = tried(adapter, plan).disk.moments
        for moment in range(moments):
            again = (draws.randrange(moments),) if number % 2 else ()
            yield attrs.evolve(plan, kills=(moment, *again))


def _drawn(draws: random.Random, cancels: bool, of_one_tool: bool = False) -> SampleBatch:
    """A plan of few kinds of calls and few files, so that calls that conflict meet often."""
    kinds: Sequence[Kind] = (
        ("search",) if of_one_tool else draws.sample(_KINDS, draws.choice((1, 2, 2, 3, len(_KINDS))))
    )
    paths = draws.choice((PATHS[:1], PATHS))

    def wait() -> int:
        return draws.choice(_WAITS)

    calls = tuple(
        SampleCall(draws.choice(kinds), draws.choice(paths), wait(), wait(), wait())
        for _ in range(draws.randint(1, _MOST_CALLS))
    )
    # Half a second after an instant at which calls end, so that it is clear what came before the cancel.
    return SampleBatch(calls, draws.randint(0, 2 * max(_WAITS)) + 0.5 if cancels else None, draws.randrange(2**16))


def _smallest(adapter: Any, law: BlackBoxLaw, found: Tried) -> tuple[Tried, str]:
    """Make the batch smaller while it still breaks the law; give the last try, and how it breaks it."""
    why = law.broken(found) or ""
    smaller = True
    while smaller:
        smaller = False
        for plan in _simpler(found.plan):
            for _ in range(_RETRIES):
                other = tried(adapter, plan)
                other_why = law.broken(other)
                if other_why is not None:
                    found, why, smaller = other, other_why, True
                    break
            if smaller:
                break
    return found, why


def _simpler(plan: SampleBatch) -> Iterator[SampleBatch]:
    """Plans with one call less or simpler, one wait shorter, a kill less or earlier, an earlier cancel or no ties."""
    kills = plan.kills or ()
    for index, moment in enumerate(kills):
        for instead in ((), *((earlier,) for earlier in range(moment))):
            yield attrs.evolve(plan, kills=(*kills[:index], *instead, *kills[index + 1 :]))
    for index, call in enumerate(plan.calls):
        before, after = plan.calls[:index], plan.calls[index + 1 :]
        if before or after:
            yield attrs.evolve(plan, calls=before + after)
        simpler = [attrs.evolve(call, tool=kind) for kind in _KINDS[: _KINDS.index(call.tool)]]
        simpler += [attrs.evolve(call, before=seconds) for seconds in range(call.before)]
        simpler += [attrs.evolve(call, between=seconds) for seconds in range(call.between)]
        simpler += [attrs.evolve(call, after=seconds) for seconds in range(call.after)]
        for other in simpler:
            yield attrs.evolve(plan, calls=(*before, other, *after))
    if plan.cancel_at is not None and plan.cancel_at > 1:
        yield attrs.evolve(plan, cancel_at=plan.cancel_at - 1)
    if plan.seed:
        yield attrs.evolve(plan, seed=0)


def _got(found: Tried) -> tuple[str, ...]:
    if found.answers is not None:
        return tuple(_line(answer) for answer in found.answers)
    if found.error is not None:
        return (f"raised {type(found.error).__name__}: {found.error}",)
    return ("nothing: it was cancelled",)


def _line(answer: Answer) -> str:
    return f"{answer.call_id}: {'error ' if answer.is_error else ''}{answer.content!r}"


@contextlib.contextmanager
def _importable(directory: str) -> Iterator[None]:
    added = directory not in sys.path
    if added:
        sys.path.insert(0, directory)
    try:
        yield
    finally:
        if added and directory in sys.path:
            sys.path.remove(directory)
