"""What a resumed batch gives back, what it refuses, and what a journal can keep."""

from __future__ import annotations

import sqlite3
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

import toolrt
from tests.store._crashes import Crash, crashed
from toolrt import Change, Claim, Outcome, Registry, Runtime, State, Tool, ToolCall, ToolContext, ToolOutput, sim
from toolrt.errors import DefinitionRefused, JournalFailed, JournalRefused
from toolrt.store import Codec, MemoryRecords

RAN: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def _counts_from_zero() -> None:
    RAN.clear()


def doubled(state: State, key: str) -> State:
    """A named function that changes the state."""
    return state.set(key, state[key] * 2)


@attrs.frozen
class Money:
    """A value that JSON does not have."""

    amount: int


@toolrt.tool(claims=[], schema=None)
async def note(ctx: ToolContext, what: str = "it") -> ToolOutput:
    """Counts, and changes the state in each way."""
    RAN[what] += 1
    changes = [Change.add("n", 2), Change.append("seen", what), Change.set("last", what), Change.call(doubled, "n")]
    return ToolOutput(("noted", what), modifiers=changes)


@toolrt.tool(claims=[], schema=None)
async def slow(ctx: ToolContext, what: str) -> None:
    """Counts, and takes its time."""
    RAN[what] += 1
    await trio.lowlevel.checkpoint()


@toolrt.tool(claims=[], schema=None)
async def lambdas(ctx: ToolContext) -> ToolOutput:
    """Gives a modifier that no file keeps."""
    return ToolOutput("done", modifiers=[lambda state: state.set("x", 1)])


@toolrt.tool(claims=[], schema=None)
async def pays(ctx: ToolContext) -> Money:
    """Says that it returns what the codec does not carry."""
    RAN["pays"] += 1
    return Money(3)


@toolrt.tool(claims=[], schema=None)
async def surprises(ctx: ToolContext):  # type: ignore[no-untyped-def]  # what it returns is known when it has run
    """Returns what the codec does not carry."""
    return [Money(3)]


def runtime(journal: toolrt.Journal, *tools: Tool, **options: Any) -> Runtime:
    return Runtime(Registry(tools or [note, lambdas, pays, surprises]), journal=journal, **options)


async def test_outcomes_come_back_as_they_were(tmp_path: Path) -> None:
    """Contents, their kinds and the state are the same, no tool runs again, and only the owner may read the file."""
    path = tmp_path / "new" / "journal.db"
    first = runtime(toolrt.Journal(path))
    outcome = await first.run(
        [ToolCall("1", "note", {}), ToolCall("2", "note", {"what": "x"})], State({"n": 1}), batch_id="b"
    )
    assert outcome.state == State({"n": 16, "seen": ("it", "x"), "last": "x"})
    again = await runtime(toolrt.Journal(path)).resume("b")
    assert again == outcome
    assert again.results[0].content == ("noted", "it")
    assert RAN == {"it": 1, "x": 1}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_used_id_is_refused_and_names_resume() -> None:
    """The same id twice would be two batches of one name; nothing is run."""
    one = runtime(toolrt.Journal(MemoryRecords()))
    await one.run([], batch_id="b")
    with pytest.raises(JournalRefused, match=r"its id was used before.*runtime\.resume\('b'\)"):
        await one.run([ToolCall("1", "note", {})], batch_id="b")
    with pytest.raises(JournalRefused, match="has no batch of this id"):
        await one.resume("c")
    with pytest.raises(DefinitionRefused, match="journal"):
        await Runtime(Registry([note])).resume("b")
    assert not RAN


async def stopped(records: MemoryRecords, calls: list[ToolCall], *tools: Tool, at: int = 1, **options: Any) -> None:
    """A process begins a batch and ends at its commit number `at`."""
    commits = iter(range(100))

    def at_commit(count: int, is_done: bool) -> None:
        if not is_done and next(commits) >= at:
            raise Crash

    records.at_commit = at_commit
    with pytest.raises(BaseException) as raised:
        await runtime(toolrt.Journal(records), *tools, **options).run(calls, batch_id="b")
    assert crashed(raised.value)
    records.at_commit = None
    records.running.clear()


async def test_a_changed_registry_is_refused_by_name_and_schema() -> None:
    """A batch goes on with the tools that it began with, or not at all."""
    records = MemoryRecords()
    await stopped(records, [ToolCall("1", "note", {})])
    changed = toolrt.tool(name="note", schema={"type": "object", "properties": {"what": {"type": "integer"}}})(
        note.function
    )
    with pytest.raises(JournalRefused, match="'note', whose schema is another one now"):
        await runtime(toolrt.Journal(records), changed).resume("b")
    with pytest.raises(JournalRefused, match="'note', which this registry does not have"):
        await runtime(toolrt.Journal(records), lambdas).resume("b")
    with pytest.raises(JournalRefused, match=r"lanes=by_claims.* and serial"):
        await runtime(toolrt.Journal(records), lanes=toolrt.serial).resume("b")
    with pytest.raises(JournalRefused, match=r"codec 'toolrt-1'.*'mine'"):
        await runtime(toolrt.Journal(records, codec=Codec("mine"))).resume("b")
    assert (await runtime(toolrt.Journal(records)).resume("b")).results[0].ok


async def test_what_the_journal_cannot_keep_ends_its_call_in_words() -> None:
    """A lambda, a content, a declared content (before the start), an input; and a state before anything is run."""
    one = runtime(toolrt.Journal(MemoryRecords()))
    calls = [ToolCall("1", name, {}) for name in ("lambdas", "pays", "surprises")]
    results = (await one.run([*calls, ToolCall("4", "note", {"what": Money(1)})])).results
    assert [result.outcome for result in results] == [Outcome.ERROR] * 4
    errors = [str(result.error) for result in results]
    assert "lambda" in errors[0]
    assert "toolrt.Change.set" in errors[0]
    assert "not started: it returns a" in errors[1]
    assert "Money" in errors[2]
    assert "cannot keep its input" in errors[3]
    assert not RAN
    with pytest.raises(JournalRefused, match=r"its state holds a .*Money"):
        await one.run([], State({"x": Money(1)}))
    with pytest.raises(DefinitionRefused, match="that its module has by name"):
        Change.call(lambda state: state)


async def test_kinds_of_your_own_are_carried() -> None:
    """A codec with a kind for it keeps what the default one refuses."""
    codec = Codec("shop-1", {"money": (Money, lambda money: money.amount, Money)})
    records = MemoryRecords()
    outcome = await runtime(toolrt.Journal(records, codec=codec)).run([ToolCall("1", "pays", {})], batch_id="b")
    assert outcome.results[0].content == Money(3)
    assert await runtime(toolrt.Journal(records, codec=codec)).resume("b") == outcome


async def test_given_approvals_stay_and_pending_ones_are_asked_again() -> None:
    """The process ends while one of two answers is still to come."""
    records, asked, pending = MemoryRecords(), [], trio.Event()

    async def approve(request: toolrt.ApprovalRequest) -> bool:
        asked.append(request.call_index)
        if request.call_index == 1:
            await pending.wait()
        return True

    calls = [ToolCall("1", "note", {"what": "a"}), ToolCall("2", "note", {"what": "b"})]
    async with trio.open_nursery() as nursery:
        one = runtime(toolrt.Journal(records), approve=approve)

        async def first() -> None:
            with trio.CancelScope() as scope:
                nursery.start_soon(trio.testing.wait_all_tasks_blocked)
                nursery.start_soon(cancelled_later, scope)
                await one.run(calls, batch_id="b")

        async def cancelled_later(scope: trio.CancelScope) -> None:
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()

        nursery.start_soon(first)
    assert sorted(asked) == [0, 1]
    assert await one.journal.unfinished() == ["b"]  # type: ignore[union-attr]
    pending.set()
    outcome = await runtime(toolrt.Journal(records), approve=approve).resume("b")
    assert [result.outcome for result in outcome.results] == [Outcome.OK] * 2
    assert sorted(asked) == [0, 1, 1]
    assert RAN == {"a": 1, "b": 1}


async def test_a_journal_that_fails_cuts_the_batch_short() -> None:
    """Nothing starts whose intent is not on the disk, and the error names the journal."""
    records = MemoryRecords()

    def full(count: int, is_done: bool) -> None:
        if records.read("b"):
            raise OSError("no space left on device")

    records.at_commit = full
    with pytest.raises(JournalFailed, match="journal memory: OSError: no space left"):
        await runtime(toolrt.Journal(records)).run([ToolCall("1", "note", {})], batch_id="b")
    assert not RAN
    records.at_commit = None
    assert (await runtime(toolrt.Journal(records)).resume("b")).results[0].ok


@pytest.mark.parametrize("at", range(1, 9))
async def test_a_disk_that_refuses_once_leaves_what_came_before(at: int) -> None:
    """Nothing of the batch is kept behind what was refused, so a later process finds it as after a crash there."""
    records = MemoryRecords()
    commits = iter(range(100))

    def full(count: int, is_done: bool) -> None:
        if not is_done and next(commits) == at:
            kept.extend(records.read("b") or ())
            raise OSError("no space left on device")

    kept: list[str] = []
    records.at_commit = full
    batch = runtime(toolrt.Journal(records), slow).open_batch(batch_id="b")
    try:
        async with batch:
            for name in "abc":
                batch.submit(ToolCall(name, "slow", {"what": name}))
            batch.seal()
            with trio.CancelScope(shield=True):
                [update async for update in batch]
    except JournalFailed:
        assert records.read("b") == kept
    records.at_commit = None
    outcome = await runtime(toolrt.Journal(records), slow).resume("b")
    assert [result.call_id for result in outcome.results] == list("abc")[: len(outcome.results)]
    assert all(count == 1 for count in RAN.values())


async def test_bounds_are_kept(tmp_path: Path) -> None:
    """Batches that are over lose their records, oldest first, and their ids stay used; a full journal says so."""
    journal = toolrt.Journal(tmp_path / "journal.db", keep=1)
    for name in "abc":
        await runtime(journal).run([ToolCall("1", "note", {})], batch_id=name)
    with pytest.raises(JournalRefused, match="its records were removed"):
        await runtime(journal).resume("b")
    with pytest.raises(JournalRefused, match="its id was used"):
        await runtime(journal).run([], batch_id="a")
    assert (await runtime(journal).resume("c")).results[0].ok
    for small in (
        toolrt.Journal(tmp_path / "journal.db", most_bytes=10),
        toolrt.Journal(MemoryRecords(), most_bytes=0),
    ):
        await runtime(small).journal.unfinished()  # type: ignore[union-attr]
        if small.store.blocks:
            with pytest.raises(JournalRefused, match="over 10 bytes"):
                await runtime(small).run([], batch_id="d")


async def test_files_of_others_are_refused(tmp_path: Path) -> None:
    """A file that is no journal, and a database of another program, stay as they are."""
    (tmp_path / "text").write_text("no journal, but long enough to be looked at as one" * 100)
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE mine(x)")
    other.close()
    for name, why in (("text", "no journal"), ("other", "a database that is no journal")):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(JournalRefused, match=why):
            await runtime(toolrt.Journal(tmp_path / name)).run([], batch_id="b")
        assert (tmp_path / name).read_bytes() == before


async def test_a_cancelled_batch_that_was_left_is_over() -> None:
    """Its outcome was handed out, so it is given again: with what was interrupted, and what was not started."""
    journal, started = toolrt.Journal(MemoryRecords()), trio.Event()

    @toolrt.tool(claims=[Claim("x", toolrt.WRITE)], schema=None)
    async def waits(ctx: ToolContext) -> None:
        started.set()
        await trio.sleep_forever()

    async with runtime(journal, waits).open_batch(batch_id="b") as batch:
        for _ in range(2):
            batch.submit(ToolCall("1", "waits", {}))
        await started.wait()
        batch.cancel("enough")
    assert [result.outcome for result in batch.outcome.results] == [Outcome.INTERRUPTED, Outcome.NOT_STARTED]
    assert await runtime(journal, waits).resume("b") == batch.outcome
    assert await journal.unfinished() == []


async def test_a_call_that_was_cancelled_alone_stays_cancelled() -> None:
    """The batch is stopped after it: what waited is not started later, and what ran may have happened."""
    journal, started, goes_on = toolrt.Journal(MemoryRecords()), trio.Event(), trio.Event()
    delivered = []

    @toolrt.tool(idempotent=True, claims=[Claim("x", toolrt.WRITE)], schema=None)
    async def waits(ctx: ToolContext) -> str:
        started.set()
        await goes_on.wait()
        return "done"

    with pytest.raises(KeyError):
        async with runtime(journal, waits).open_batch(batch_id="b") as batch:
            for _ in range(3):
                batch.submit(ToolCall("1", "waits", {}))
            await started.wait()
            batch.cancel_call(1, "not this one")
            batch.cancel_call(0, "nor this")
            async for update in batch:
                if isinstance(update, toolrt.ResultReady):
                    delivered.append(update.result)
                if len(delivered) == 2:
                    break
            raise KeyError
    goes_on.set()
    outcome = await runtime(journal, waits).resume("b")
    assert [result.outcome for result in outcome.results] == [Outcome.INTERRUPTED, Outcome.NOT_STARTED, Outcome.OK]
    assert list(outcome.results[:2]) == delivered


async def test_run_goes_on_with_what_there_is_of_a_batch() -> None:
    """A part of it, whose batch got its calls one by one and now gets the others; and then all of it."""
    one = runtime(toolrt.Journal(MemoryRecords()))
    calls = [ToolCall(what, "note", {"what": what}) for what in ("a", "b")]
    with pytest.raises(KeyError):
        async with one.open_batch(State({"n": 1}), "b") as batch:
            batch.submit(calls[0])
            async for update in batch:
                if isinstance(update, toolrt.ResultReady):
                    raise KeyError
    first = await one.run(calls, batch_id="b", resume=True)
    assert [result.call_id for result in first.results] == ["a", "b"]
    assert first.state["seen"] == ("a", "b")
    assert await one.run(calls, batch_id="b", resume=True) == first
    assert RAN == {"a": 1, "b": 1}


async def test_run_goes_on_with_its_own_calls_alone() -> None:
    """Other calls under a used id are refused, and so is a resume without a journal or an id; nothing is run."""
    one = runtime(toolrt.Journal(MemoryRecords()))
    calls = [ToolCall("1", "note", {})]
    await one.run(calls, State({"n": 1}), batch_id="b", resume=True)
    with pytest.raises(JournalRefused, match="it was begun with other calls: call 0 of it is"):
        await one.run([ToolCall("1", "note", {"what": "x"})], batch_id="b", resume=True)
    with pytest.raises(JournalRefused, match="it has 1 calls, got 2"):
        await one.run([*calls, *calls], batch_id="b", resume=True)
    with pytest.raises(DefinitionRefused, match="the batch_id of the batch"):
        await one.run(calls, resume=True)
    with pytest.raises(DefinitionRefused, match="journal"):
        await Runtime(Registry([note])).run(calls, batch_id="b", resume=True)
    assert RAN == {"it": 1}


def test_what_has_a_result_waits_for_no_rate() -> None:
    """Three of four calls of one a second have returned: the fourth starts at once, as the first of its process."""

    async def program() -> float:
        @toolrt.tool(claims=[toolrt.Rate("api", per_second=1)], schema=None)
        async def paced(ctx: ToolContext) -> str:
            return "done"

        calls = [ToolCall(str(at), "paced", {}) for at in range(4)]
        one = runtime(toolrt.Journal(MemoryRecords()), paced)
        with pytest.raises(KeyError):
            async with one.open_batch(batch_id="b") as batch:
                for call in calls[:3]:
                    batch.submit(call)
                batch.seal()
                async for update in batch:
                    if isinstance(update, toolrt.ResultReady) and update.result.call_index == 2:
                        raise KeyError
        began = trio.current_time()
        outcome = await runtime(one.journal, paced).run(calls, batch_id="b", resume=True)  # type: ignore[arg-type]
        assert [result.outcome for result in outcome.results] == [Outcome.OK] * 4
        return trio.current_time() - began

    execution = sim.run(program)
    assert (execution.error, execution.value) == (None, 0.0)
