"""A crash is an actor: every order of a small batch, with a crash before every step, ends without a double effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import trio

import toolrt
from tests._profile import FULL
from toolrt import Claim, MemoryDisk, Outcome, Registry, Runtime, Tool, ToolCall, ToolContext, Workspace, sim
from toolrt.errors import JournalRefused
from toolrt.runtime._journal import BatchJournal
from toolrt.store import MemoryRecords


def tools_of(did: Callable[[str], None]) -> list[Tool]:
    """A tool whose calls wait for each other, one whose calls do not, and one with a sub-batch."""

    @toolrt.tool(claims=[Claim("till", toolrt.WRITE)], schema=None)
    async def pay(ctx: ToolContext, what: str) -> toolrt.ToolOutput:
        did(what)
        return toolrt.ToolOutput("paid", modifiers=[toolrt.Change.append("paid", what)])

    @toolrt.tool(claims=[], schema=None)
    async def mail(ctx: ToolContext, what: str) -> str:
        did(what)
        await trio.lowlevel.checkpoint()
        return "mailed"

    @toolrt.tool(idempotent=True, claims=[Claim("till", toolrt.WRITE)], schema=None)
    async def both(ctx: ToolContext, what: str) -> list[str]:
        outcome = await ctx.run([ToolCall(one, "pay", {"what": f"{what}{one}"}) for one in "ab"])
        return [result.outcome.value for result in outcome.results]

    return [pay, mail, both]


async def resumed(runtime: Runtime, calls: list[ToolCall]) -> toolrt.BatchOutcome:
    """What each process does: it begins the batch, or goes on with it."""
    try:
        return await runtime.run(calls, batch_id="b")
    except JournalRefused:
        return await runtime.resume("b")


def program_of(*names: str) -> Callable[[], Any]:
    """Calls of these tools, in a process that may crash; gives how they ended, and how often each took effect."""
    calls = [ToolCall(str(index), name, {"what": f"{index}"}) for index, name in enumerate(names)]

    async def program() -> Any:
        effects: Counter[str] = sim.durable("effects", Counter)
        records = sim.durable("records", MemoryRecords)

        def did(what: str) -> None:
            effects[what] += 1

        outcome = await resumed(Runtime(Registry(tools_of(did)), journal=toolrt.Journal(records)), calls)
        ended = tuple(result.outcome.value for result in outcome.results)
        said = str([result.content for result in outcome.results])
        return ended, tuple(sorted(effects.items())), outcome.state.get("paid", ()), said

    return program


def twice(execution: sim.Execution) -> str | None:
    """Whether the value of an execution has an effect twice."""
    if execution.error is not None:
        return repr(execution.error)
    effects = execution.value[1]
    return f"twice: {effects}" if any(times > 1 for _, times in effects) else None


def holds(execution: sim.Execution) -> str | None:
    """What is wrong with the value of an execution."""
    wrong = twice(execution)
    if wrong is not None:
        return wrong
    ended, effects, paid, _ = execution.value
    named = {int(what[0]) for what, _ in effects}
    lost = [index for index, outcome in enumerate(ended) if outcome == "ok" and index not in named]
    kept = [what for what in paid if ended[int(what)] != "ok"]
    return f"lost {lost}, kept {kept} of {ended}, {effects}" if lost or kept else None


#: The last two take 5 and 11 seconds: they have calls that overlap.
BATCHES = [("pay", "pay"), ("mail",), ("both",), *([("pay", "mail"), ("mail", "mail")] if FULL else [])]


@pytest.mark.parametrize("names", BATCHES)
def test_every_crash_of_a_small_batch_is_harmless(names: tuple[str, ...]) -> None:
    """Every order of its steps, and a crash before each: OK calls took effect once, others say that they may have."""
    report = sim.explore(program_of(*names), sim.DPOR(), holds, crash_at="any")
    assert report.verdict is sim.PASS, report.failures[:1]
    assert report.complete
    assert "crash_at=any" in report.claim
    assert ("ok",) * len(names) in {value[0] for value in report.outcomes}
    assert any("interrupted" in str(value) for value in report.outcomes), (
        "a crash between intent and result is among them"
    )


async def _starts_at_once(journal: BatchJournal, call: Any) -> None:
    """A mutant: the intent is not written."""


def test_a_missing_intent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exploration is not blind: without the intent some crash lets an effect happen twice."""
    monkeypatch.setattr(BatchJournal, "intend", _starts_at_once)
    assert sim.explore(program_of("mail"), sim.DPOR(), twice, crash_at="any").verdict is sim.FAIL


def test_every_crash_of_an_edit_is_seen_by_its_tool() -> None:
    """On the twin of the disk the file is as the edit left it, and the call is always OK."""

    async def program() -> Any:
        disk = sim.durable("disk", lambda: MemoryDisk({"a.txt": "one"}))
        disk.recover([()])  # as the start of a workspace on a real disk does
        journal = toolrt.Journal(sim.durable("records", MemoryRecords))
        call = ToolCall("1", "edit_file", {"path": "a.txt", "old": "one", "new": "one one"})
        outcome = await resumed(Runtime(Registry(Workspace(disk).tools()), journal=journal), [call])
        return outcome.results[0].outcome, str(Workspace(disk).snapshot())

    report = sim.explore(program, sim.Exhaustive(), crash_at="any")
    assert report.complete
    assert set(report.outcomes) == {(Outcome.OK, "{'a.txt': b'one one'}")}
