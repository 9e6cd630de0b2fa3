"""What a tool does when it is cancelled, when time is another, and when another call is under way.

Rules.
    1. A cancel that reached a tool has to leave it: as `trio.Cancelled`, alone or in a group.  One that found nothing
       to interrupt, because the tool was shielded or about to return, asks for nothing.
    2. A call by itself answers the same under every order of its own tasks, and at every time.
    3. Two calls whose claims do not conflict answer, and leave the files and what the tool keeps, as in sequence;
       neither writes a cell or a watched thing that the other one touches, or changes what the other one claims.  On a
       store of the user's both sequences give the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import trio

from toolrt import probe, sim
from toolrt.errors import StepLimit
from toolrt.model import Arguments, Claim, State, Tool
from toolrt.testing._stepping import Steps
from toolrt.testing._stores import StoreContent
from toolrt.testing._trial import (
    Content,
    Maker,
    Trial,
    answer_of,
    call_of,
    context_of,
    kept_by,
    made,
    memory_of,
    named,
    refuse_unsimulated,
    run,
)
from toolrt.trace import Trace, plain

# A cancel is tried at so many of a tool's checkpoints, spread over all of them.
_CANCELS = 40

# Virtual seconds at which a tool is run a second time: a power of two, so that differences of times stay exact.
_LATER = 1024.0

Broken = tuple[str, str]


@attrs.frozen
class Case:
    """One input of a tool."""

    maker: Maker
    content: Content
    input: Any
    arguments: Arguments
    state: State
    claims: tuple[Claim, ...]
    #: Whether calls with this input may overlap others at all.
    shared: bool
    #: The tool's name.
    name: str
    #: Whether the tool says that it is safe, and nothing of what it touches.
    undeclared: bool
    #: Whether the call by itself changed something.
    changes: bool

    def tool(self, steps: Steps | None = None) -> tuple[Tool, Trial]:
        """Make the tool anew."""
        tool, trial = made(self.maker, self.content)
        trial.claims = self.claims
        if steps is not None:
            trial.steps = steps
        return tool, trial


def about_cancel(case: Case, checkpoints: int) -> Iterator[Broken]:
    """Cancel a tool that has so many `checkpoints` at each of them; give the first cancel it does not pass on."""
    every = max(1, -(-checkpoints // _CANCELS))
    for at in range(1, checkpoints + 1, every):
        tool, trial = case.tool(Steps(cancel_at=at))
        if tool.interrupt == "finish":
            return
        run(tool, case.arguments, case.state, trial)
        steps = trial.steps
        if steps.delivered and not steps.passed_on:
            did = "went on" if trial.stuck else "returned" if steps.ended == "returned" else steps.ended
            yield "cancel", f"expected the cancel at its checkpoint {at} to be raised on, it {did}"
            return


def about_timing(case: Case, first: Trial, executions: int) -> Iterator[Broken]:
    """Give what another time, or another order of the tool's own tasks, makes different."""
    tool, later = case.tool()
    run(tool, case.arguments, case.state, later, at=_LATER)
    if later.answer != first.answer:
        yield "timing", f"answered {first.answer!r} at 0 s, and {later.answer!r} at {_LATER:g} s"
        return
    if later.after != first.after:
        yield "timing", f"left other files at 0 s than at {_LATER:g} s"
        return
    if not first.parallel:
        return

    async def program() -> Any:
        tool, trial = case.tool()
        context = context_of(tool, 0, case.state, case.claims, "checked")
        answer = await _answered(call_of(tool, case.arguments, context, None))
        return [answer, _files(trial)]

    yield from _compared("timing", [first.answer, _files(first)], program, executions, "its own tasks")


def about_overlap(one: Case, two: Case, executions: int) -> Iterator[Broken]:
    """Run two calls at once that may overlap; give what comes out otherwise than one after the other."""
    if not (one.shared and two.shared) or any(a.conflicts_with(b) for a in one.claims for b in two.claims):
        return

    def program(together: bool, order: tuple[int, int] = (0, 1)) -> Any:
        async def both() -> Any:
            tool, trial = one.tool()
            calls = [
                call_of(used, case.arguments, context_of(used, at, case.state, case.claims, f"{at}"), None)
                for at, (case, used) in enumerate(((one, tool), (two, _second(two, one, tool))))
            ]
            answers: list[Any] = [None, None]

            async def answer(at: int) -> None:
                answers[at] = await _answered(calls[at])

            if together:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(answer, 0)
                    nursery.start_soon(answer, 1)
            else:
                await answer(order[0])
                # In a step of its own, so that what the two touch can be told apart.
                await trio.lowlevel.checkpoint()
                probe.event(_SECOND)
                await answer(order[1])
            kept = {} if isinstance(one.maker, Tool) else kept_by(tool)
            return [answers, _files(trial), kept]

        return both

    promise = "safe" if one.undeclared or not (one.claims or two.claims) else "claims"
    expected = sim.run(program(False))
    if expected.error is not None:
        return
    changed = _claims_changed(one, two) or _claims_changed(two, one)
    if changed is not None:
        yield "claims_hold", changed
        return
    what = f"{_call(two, one)}, with which it has no claim in common"
    shared = _shared_memory(expected.trace)
    if shared is not None:
        yield promise, f"touches {shared} like {what}, and one of the two changes it"
        return
    stored = isinstance(one.content, StoreContent)
    if stored:
        # One of the two may take so long that the other is over before it begins: timing decides which.
        other = sim.run(program(False, (1, 0)))
        if other.error is None and other.value != expected.value:
            remedy = "; let it claim what it reads, as in claims={Row(...): READ}" if one.undeclared else ""
            difference = _differences(expected.value, other.value)
            yield promise, f"before or after {what}, it makes a difference: {difference}{remedy}"
            return
    yield from _compared(promise, expected.value, program(True), executions, what, stored)


#: Tells in the trace that the second of two calls begins.
_SECOND = "check.second"


def _second(two: Case, one: Case, tool: Tool) -> Tool:
    """The tool of `two`: the one of `one`, if both calls are of one tool."""
    return tool if two.maker is one.maker else two.tool()[0]


def _call(two: Case, one: Case) -> str:
    """Name the call `two` beside the call `one`."""
    return f"a call {'' if two.maker is one.maker else f'of {two.name} '}with {two.input!r}"


def _claims_changed(first: Case, then: Case) -> str | None:
    """How the claims of one call are others once another call has run, which does not conflict with it; or None."""
    tool, _ = first.tool()
    then_tool = _second(then, first, tool)
    if not callable(then_tool.claims):
        return None
    context = context_of(tool, 0, first.state, first.claims, "0")
    sim.run(lambda: _answered(call_of(tool, first.arguments, context, None)))
    now = then_tool.claims_for(then.input, then.state)
    if now == then.claims:
        return None
    before, after = (", ".join(map(str, claims)) or "nothing" for claims in (then.claims, now))
    return (
        f"{_call(then, first)} claims {before}, and {after} once a call with {first.input!r} has run, with which "
        "it has no claim in common: claim what the claims look at, and declare it with claims_after"
    )


def _shared_memory(trace: Trace) -> str | None:
    """A cell or watched thing that both of two calls in sequence touched, and one of them changed."""
    (second,) = trace.of_kind(_SECOND)
    assert second.step is not None
    first, then = memory_of(trace.steps[: second.step]), memory_of(trace.steps[second.step :])
    return next(
        (named(resource) for resource in first if resource in then and (first[resource] or then[resource])), None
    )


def _compared(
    promise: str, expected: Any, program: Any, executions: int, what: str, stored: bool = False
) -> Iterator[Broken]:
    report = sim.explore(program, sim.Portfolio(executions), check=lambda it: it.error is None and it.value == expected)
    if not report.failures:
        return
    failure = report.failures[0]
    refuse_unsimulated(failure.error)
    if isinstance(failure.error, StepLimit):
        return
    got = failure.execution.value if failure.error is None else answer_of(None, failure.error)
    if stored and failure.error is None:
        yield promise, f"beside {what}, it is not as in sequence: {_differences(expected, got)}"
        return
    yield (
        promise,
        f"expected {expected!r} under every order of steps with {what}; "
        f"under {failure.schedule.short!r} it was {got!r}",
    )


def _differences(expected: Any, got: Any) -> str:
    """What differs between two outcomes of two calls on a store: answers in the order of the two, and rows."""
    (answers, rows, _), (other_answers, other_rows, _) = expected, got
    parts = [] if answers == other_answers else [f"expected the answers {answers!r}, got {other_answers!r}"]
    parts += [
        f"expected {name} to be {rows.get(name, 'absent')!r}, got {other_rows.get(name, 'absent')!r}"
        for name in dict.fromkeys((*rows, *other_rows))
        if rows.get(name) != other_rows.get(name)
    ]
    return "; ".join(parts)


async def _answered(call: Any) -> Any:
    """Give the answer; what the tool raises is one."""
    try:
        return answer_of(await call, None)
    except Exception as error:
        refuse_unsimulated(error)
        return answer_of(None, error)


def _files(trial: Trial) -> Any:
    return None if trial.workspace is None and trial.store is None else plain(dict(trial.looks()))
