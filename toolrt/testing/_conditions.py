"""What a tool does when it is cancelled, when time is another, and when another call is under way.

Rules.
    1. A cancel that reached a tool has to leave it: as `trio.Cancelled`, alone or in a group.  One that found nothing
       to interrupt, because the tool was shielded or about to return, asks for nothing.
    2. A call by itself answers the same under every order of its own tasks, and at every time.
    3. Two calls whose claims do not conflict answer, and leave the files, as one after the other would.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import trio

from toolrt import sim
from toolrt.errors import StepLimit
from toolrt.model import Arguments, Claim, State, Tool
from toolrt.testing._stepping import Steps
from toolrt.testing._trial import (
    Content,
    Maker,
    Trial,
    answer_of,
    call_of,
    context_of,
    made,
    refuse_unsimulated,
    run,
)
from toolrt.trace import plain

__all__ = ["Case", "about_cancel", "about_overlap", "about_timing"]

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

    def program(together: bool) -> Any:
        async def both() -> Any:
            tool, trial = one.tool()
            calls = [
                call_of(tool, case.arguments, context_of(tool, at, case.state, case.claims, f"{at}"), None)
                for at, case in enumerate((one, two))
            ]
            answers: list[Any] = [None, None]

            async def answer(at: int) -> None:
                answers[at] = await _answered(calls[at])

            if together:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(answer, 0)
                    nursery.start_soon(answer, 1)
            else:
                await answer(0)
                await answer(1)
            return [answers, _files(trial)]

        return both

    promise = "safe" if not (one.claims or two.claims) else "claims"
    expected = sim.run(program(False))
    if expected.error is not None:
        return
    what = f"a call with {two.input!r}, with which it has no claim in common"
    yield from _compared(promise, expected.value, program(True), executions, what)


def _compared(promise: str, expected: Any, program: Any, executions: int, what: str) -> Iterator[Broken]:
    report = sim.explore(program, sim.Portfolio(executions), check=lambda it: it.error is None and it.value == expected)
    if not report.failures:
        return
    failure = report.failures[0]
    refuse_unsimulated(failure.error)
    if isinstance(failure.error, StepLimit):
        return
    got = failure.execution.value if failure.error is None else answer_of(None, failure.error)
    yield (
        promise,
        f"expected {expected!r} under every order of steps with {what}; "
        f"under {failure.schedule.short!r} it was {got!r}",
    )


async def _answered(call: Any) -> Any:
    """Give the answer; what the tool raises is one."""
    try:
        return answer_of(await call, None)
    except Exception as error:
        refuse_unsimulated(error)
        return answer_of(None, error)


def _files(trial: Trial) -> Any:
    return None if trial.workspace is None else plain(dict(trial.workspace.snapshot()))
