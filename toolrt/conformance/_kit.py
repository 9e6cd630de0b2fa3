"""Holds an executor against the laws: draws plans, runs them on virtual time, and shrinks what breaks a law."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import os
import random
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from toolrt._plain import counted
from toolrt.conformance._laws import LAWS, BlackBoxLaw
from toolrt.conformance._loop import Stuck, VirtualLoop
from toolrt.conformance._plan import PATHS, Answer, Kind, SampleBatch, SampleCall, Tried, serial_run, tool_calls, tools
from toolrt.errors import InputRefused

__all__ = ["Conformance", "LawReport", "conformance", "load_adapter", "tried"]

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
    #: "held", "broken" or "not applicable".
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

    @property
    def conforms(self) -> bool:
        """Whether no law was seen broken."""
        return all(cell.verdict != "broken" for cell in self.cells)

    def to_json(self) -> dict[str, Any]:
        """Give the same as plain values: what a badge file holds."""
        return {
            "schema": 1,
            "adapter": self.adapter,
            "conforms": self.conforms,
            "laws": [cell.to_json() for cell in self.cells],
        }

    def __str__(self) -> str:
        lines = []
        for cell in self.cells:
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
            `not_applicable` gives the reason for each law that cannot be asked of it.
        examples: how many plans are drawn for each law, 1 or more.
        name: what the report calls it.
        laws: the names of those to ask; None: all of `LAWS`.

    Returns:
        One cell for each law.  The same adapter gives the same report.

    Raises:
        InputRefused: `adapter` has no such function, or there is no such law.

    Checkpoint: never (it is not async).
    """
    made = _made(adapter)
    reasons: Mapping[str, str] = getattr(made, "not_applicable", {})
    asked = list(LAWS if laws is None else laws)
    for law_name in asked:
        if law_name not in LAWS:
            raise InputRefused(f"law {law_name!r}", "there is no such law", f"Use some of {', '.join(LAWS)}.")
    cells = []
    for law in map(LAWS.__getitem__, asked):
        if law.name in reasons:
            cells.append(LawReport(law.name, law.sentence, "not applicable", detail=str(reasons[law.name])))
        else:
            cells.append(_cell(made, law, examples))
    return Conformance(name or str(getattr(adapter, "__qualname__", type(adapter).__name__)), tuple(cells))


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
    made = _made(adapter)
    found = Tried(plan, serial_run(plan.calls))
    # What hangs may also hang when it is cancelled, at the end.
    with contextlib.suppress(Stuck), asyncio.Runner(loop_factory=lambda: VirtualLoop(plan.seed)) as runner:
        try:
            runner.run(_try(made, found))
        except Stuck as stuck:
            found.error = stuck
            found.ended_after = len(found.happened)
            loop: Any = runner.get_loop()
            loop.is_closing = True
    return found


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
    try:
        given = await _execute_of(adapter)(list(tools(found)), tool_calls(found.plan))
        found.answers = [_answer(one) for one in given]
    except asyncio.CancelledError:
        raise
    except Exception as error:
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
    for count in range(1, examples + 1):
        found = tried(adapter, _drawn(draws, law.cancels))
        if law.broken(found) is not None:
            found, why = _smallest(adapter, law, found)
            serial = tuple(_line(answer) for answer in found.serial.answers)
            return LawReport(law.name, law.sentence, "broken", count, why, found.plan, serial, _got(found))
    return LawReport(law.name, law.sentence, "held", examples)


def _drawn(draws: random.Random, cancels: bool) -> SampleBatch:
    """A plan of few kinds of calls and few files, so that calls that conflict meet often."""
    kinds = draws.sample(_KINDS, draws.choice((1, 2, 2, 3, len(_KINDS))))
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
    """Plans with one call less, one call of a simpler kind, one wait shorter, an earlier cancel, or no ties drawn."""
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
