"""Claims that depend on what earlier calls change: declared, refused when stale, and never a deadlock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from toolrt import (
    READ,
    WRITE,
    Claim,
    Deny,
    MemoryDisk,
    Registry,
    Rewrite,
    Runtime,
    State,
    ToolCall,
    ToolOutput,
    Workspace,
    by_claims,
    invariants,
    parallel,
    serial,
    sim,
    tool,
)
from toolrt.errors import DefinitionRefused
from toolrt.order import ClaimTable

EMPTY = {"groups": 0, "waiting": 0, "ghosts": 0, "nodes": 0}


class Bank:
    """Owners by ticket, and accounts by owner; every access is seen."""

    def __init__(self, declared: bool = True, covered: bool = True) -> None:
        self.owner = {"T1": sim.Cell("alice", name="owner T1"), "T2": sim.Cell("bob", name="owner T2")}
        self.accounts = {name: sim.Cell(0, name=f"account {name}") for name in ("alice", "bob", "carol")}
        self.claim_table = ClaimTable("bank")
        self.declared = declared
        self.covered = covered

    def looked_at(self, input: Any, state: State) -> list[Claim]:
        return [Claim(("owner", input["ticket"]), READ)]

    def claims(self, input: Any, state: State) -> list[Claim]:
        owner = self.owner[input["ticket"]].get()
        look = self.looked_at(input, state) if self.covered and not self.declared else []
        return [*look, Claim(("account", owner), WRITE)]

    def tools(self) -> list[Any]:
        @tool(
            schema=None,
            owner=self,
            claims=self.claims,
            claims_after=self.looked_at if self.declared else None,
        )
        async def credit(ctx: Any, ticket: str, by: int = 1) -> str:
            owner = self.owner[ticket].get()
            if self.declared:
                assert any(claim.covers(Claim(("account", owner), WRITE)) for claim in ctx.claims)
            before = self.accounts[owner].get()
            await trio.lowlevel.checkpoint()
            self.accounts[owner].set(before + by)
            return f"{owner} has {before + by}"

        @tool(schema=None, owner=self, claims=lambda input, state: [Claim(("owner", input["ticket"]), WRITE)])
        async def assign(ctx: Any, ticket: str, to: str) -> str:
            await trio.lowlevel.checkpoint()
            self.owner[ticket].set(to)
            return f"{ticket} is {to}'s"

        @tool(schema=None, owner=self, claims=lambda input, state: [Claim(("account", input["name"]), READ)])
        async def balance(ctx: Any, name: str) -> int:
            await trio.lowlevel.checkpoint()
            return int(self.accounts[name].get())

        @tool(schema=None)
        async def audit(ctx: Any) -> dict[str, Any]:
            return {name: cell.get() for name, cell in self.accounts.items()}

        @tool(schema=None, safe=True)
        async def rest(ctx: Any, seconds: float = 1) -> str:
            await trio.sleep(seconds)
            return "rested"

        return [credit, assign, balance, audit, rest]

    @property
    def ended(self) -> Any:
        assert self.claim_table.statistics() == EMPTY
        assert not self.claim_table.busy
        cells = [*self.owner.values(), *self.accounts.values()]
        return [cell.get() for cell in cells]


def calls_of(*calls: tuple[str, dict[str, Any]]) -> list[ToolCall]:
    return [ToolCall(str(at), name, input) for at, (name, input) in enumerate(calls)]


def credit(ticket: str = "T1", by: int = 1) -> tuple[str, dict[str, Any]]:
    return "credit", {"ticket": ticket, "by": by}


def assign(ticket: str = "T1", to: str = "bob") -> tuple[str, dict[str, Any]]:
    return "assign", {"ticket": ticket, "to": to}


def balance(name: str) -> tuple[str, dict[str, Any]]:
    return "balance", {"name": name}


REST: tuple[str, dict[str, Any]] = ("rest", {})
AUDIT: tuple[str, dict[str, Any]] = ("audit", {})


def program(calls: list[ToolCall], lanes: Any = by_claims, make: Callable[[], Bank] = Bank, **options: Any) -> Any:
    """A program that runs `calls` on a bank of its own, and gives results and the bank."""

    async def run() -> Any:
        bank = make()
        runtime = Runtime(Registry(bank.tools()), lanes, **options)
        done = await runtime.run(calls)
        return [(result.outcome.value, result.content, result.error) for result in done.results], bank.ended

    return run


BATCHES = {
    "assigned before": [assign(), credit(), balance("bob")],
    "assigned behind": [credit(), assign(), credit()],
    "assigned twice": [assign(), assign(to="carol"), credit(), credit("T2")],
    "two dependents": [assign(), credit(), assign("T2", "alice"), credit("T2", 5), balance("alice")],
    "an exclusive call between": [assign(), credit(), AUDIT, credit()],
}


@pytest.mark.parametrize("calls", BATCHES.values(), ids=BATCHES.keys())
@pytest.mark.parametrize(("lanes", "limit"), [(by_claims, None), (by_claims, 1), (by_claims, 2), (parallel, None)])
def test_declared_claims_end_as_in_series_under_every_schedule(calls: Any, lanes: Any, limit: int | None) -> None:
    """Claims that are computed when what they look at is granted give the serial run's results; no deadlock."""
    expected = sim.run(program(calls_of(*calls), serial)).value
    run = program(calls_of(*calls), lanes, limit=limit)
    report = sim.explore(
        run, sim.DPOR(), check=lambda it: it.error is None and it.value == expected, max_executions=1500
    )
    assert not report.failures, report.failures[0].explain()


def test_stale_claims_that_are_covered_are_an_error_under_every_schedule() -> None:
    """A call whose tickets cover what its claims look at is refused the same way in each schedule, and runs nothing."""
    calls = calls_of(assign(), credit(), balance("alice"), balance("bob"))
    run = program(calls, make=lambda: Bank(declared=False))
    report = sim.explore(run, sim.Exhaustive(), check=lambda it: not invariants.check(it.trace))
    assert report.complete
    assert not report.failures, report.failures[0].explain()
    assert len(report.outcomes) == 1
    results, ended = sim.run(run).value
    assert [outcome for outcome, _, _ in results] == ["ok", "error", "ok", "ok"]
    assert "write account/alice" in results[1][2]
    assert "write account/bob" in results[1][2]
    assert "claims_after" in results[1][2]
    assert ended == ["bob", "bob", 0, 0, 0]


def test_claims_that_look_at_what_nothing_orders_break_the_law() -> None:
    """Where no ticket covers what claims look at, the explorer finds `claims_hold` broken, and it names the cell."""
    calls = calls_of(assign(), credit())
    run = program(calls, make=lambda: Bank(declared=False, covered=False))
    report = sim.explore(run, sim.Exhaustive(), check=lambda it: not invariants.check(it.trace))
    assert report.failures
    broken = invariants.check(report.failures[0].execution.trace)
    assert {violation.law for violation in broken} == {"claims_hold"}
    assert any("owner T1" in violation.detail for violation in broken)


def test_a_refusal_by_chance_breaks_the_law() -> None:
    """A call that is refused since an unordered call changed what its claims look at shows `claims_hold` broken."""
    calls = calls_of(balance("alice"), assign(), credit())
    run = program(calls, make=lambda: Bank(declared=False, covered=False))
    report = sim.explore(run, sim.Exhaustive())
    refused = sim.explore(run, sim.Exhaustive(), check=lambda it: it.value[0][2][0] != "error")
    assert len(report.outcomes) > 1
    assert refused.failures
    broken = invariants.check(refused.failures[0].execution.trace)
    assert [violation.law for violation in broken] == ["claims_hold"]
    assert "owner T1" in broken[0].detail


def test_later_calls_wait_until_the_claims_are_known() -> None:
    """Behind a call whose claims are not known nothing starts; then what does not conflict with it runs at once."""

    async def run() -> Any:
        bank = Bank()
        started: list[str] = []

        @tool(schema=None, owner=bank, claims=[Claim(("owner", "T1"), WRITE)])
        async def slow(ctx: Any) -> str:
            await trio.sleep(3)
            bank.owner["T1"].set("carol")
            return "slow"

        @tool(schema=None, owner=bank, claims=bank.claims, claims_after=bank.looked_at)
        async def dependent(ctx: Any, ticket: str) -> str:
            started.append(f"dependent at {trio.current_time():g}")
            await trio.sleep(1)
            return " ".join(map(str, ctx.claims))

        @tool(schema=None, safe=True)
        async def behind(ctx: Any) -> str:
            started.append(f"behind at {trio.current_time():g}")
            return "behind"

        runtime = Runtime(Registry([slow, dependent, behind]))
        async with runtime.open_batch() as batch:
            tracked = [
                batch.submit(call) for call in calls_of(("slow", {}), ("dependent", {"ticket": "T1"}), ("behind", {}))
            ]
            await trio.sleep(1)
            waits = [call.waits_for for call in tracked]
        return waits, started, batch.outcome.results[1].content

    waits, started, content = sim.run(run).value
    assert waits == [[], [0], ["lane"]]
    assert started == ["dependent at 3", "behind at 3"]
    assert content == "write account/carol"


@pytest.mark.seldom
def test_two_batches_with_dependent_calls_never_deadlock() -> None:
    """Batches of two runtimes on one table, each with a dependent call behind a change, end under every schedule."""

    def make() -> Any:
        async def run() -> Any:
            bank = Bank()
            batches = [calls_of(assign(), credit()), calls_of(assign(to="carol"), credit("T1", 5))]
            runtimes = [Runtime(Registry(bank.tools())) for _ in batches]
            async with trio.open_nursery() as nursery:
                for runtime, calls in zip(runtimes, batches, strict=True):
                    nursery.start_soon(runtime.run, calls)
            owner, _, *accounts = bank.ended
            assert owner in ("bob", "carol")
            assert sum(accounts) == 6

        return run

    report = sim.explore(make(), sim.DPOR(), check=lambda it: it.error is None, max_executions=1500)
    assert not report.failures, report.failures[0].explain()


def test_a_stop_skips_calls_whose_claims_are_unknown() -> None:
    """A failed call that stops the batch skips a dependent call behind it, and those behind that one."""

    async def run() -> Any:
        bank = Bank()

        @tool(schema=None, owner=bank, stops_batch=True, claims=[Claim(("owner", "T1"), WRITE)])
        async def fails(ctx: Any) -> None:
            await trio.sleep(1)
            raise RuntimeError("no")

        runtime = Runtime(Registry([*bank.tools(), fails]))
        done = await runtime.run(calls_of(("fails", {}), credit(), credit("T2"), REST))
        return [result.outcome.value for result in done.results], bank.ended

    report = sim.explore(run, sim.DPOR(), check=lambda it: it.error is None and not invariants.check(it.trace))
    assert not report.failures, report.failures[0].explain()
    assert sim.run(run).value[0] == ["error", "skipped", "skipped", "skipped"]


def test_a_dependent_call_that_stops_the_batch_is_decided_first() -> None:
    """A call whose claims were unknown takes the control claim: what has effects behind it waits for its end."""

    async def run() -> Any:
        bank = Bank()

        @tool(schema=None, owner=bank, stops_batch=True, claims=bank.claims, claims_after=bank.looked_at)
        async def fails(ctx: Any, ticket: str) -> None:
            await trio.sleep(1)
            raise RuntimeError("no")

        runtime = Runtime(Registry([*bank.tools(), fails]))
        done = await runtime.run(calls_of(assign(), ("fails", {"ticket": "T1"}), credit("T2"), balance("alice")))
        return [result.outcome.value for result in done.results], bank.ended

    report = sim.explore(run, sim.DPOR(), check=lambda it: it.error is None and not invariants.check(it.trace))
    assert not report.failures, report.failures[0].explain()
    results, ended = sim.run(run).value
    assert results == ["ok", "error", "skipped", "skipped"]
    assert ended == ["bob", "bob", 0, 0, 0]


@pytest.mark.parametrize("waits", [False, True])
def test_approval_is_asked_when_the_claims_are_known(waits: bool) -> None:
    """The check is shown the claims that will be held; a rewrite beyond them, or to another look, is denied."""
    shown: list[Any] = []

    async def answer(request: Any) -> Any:
        if waits:
            await trio.sleep(1)
        if request.name == "credit":
            shown.append([str(claim) for claim in request.claims])
            if request.input["by"] == 7:
                return Rewrite({"ticket": "T2", "by": 7})
            if request.input["by"] == 8:
                return Rewrite({"ticket": "T1", "by": 80})
            if request.input["by"] == 9:
                return Deny("no nine")
        return True

    calls = calls_of(assign(), credit(), credit(by=7), credit(by=8), credit(by=9), AUDIT)
    results, ended = sim.run(program(calls, approve=answer)).value
    assert [outcome for outcome, _, _ in results] == ["ok", "ok", "denied", "ok", "denied", "ok"]
    assert shown == [["write account/bob"]] * 4
    assert "owner/T2" in results[2][2]
    assert ended == ["bob", "bob", 0, 81, 0]


def test_a_denied_call_is_denied_whatever_its_claims_become() -> None:
    """Approval and stale claims are decided in one order: a denied call is DENIED under every schedule."""

    async def deny(request: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return Deny("no") if request.name == "credit" else True

    run = program(calls_of(assign(), credit()), make=lambda: Bank(declared=False), approve=deny)
    report = sim.explore(run, sim.Exhaustive(), max_executions=3000)
    assert len(report.outcomes) == 1
    assert sim.run(run).value[0][1][0] == "denied"


def test_sub_batches_depend_inside_their_parent() -> None:
    """A child's claims are computed among its siblings, and are refused where the parent does not cover them."""

    def tools(bank: Bank, held: list[Claim]) -> list[Any]:
        @tool(schema=None, owner=bank, claims=held)
        async def parent(ctx: Any) -> Any:
            done = await ctx.run(calls_of(assign(), credit(), balance("bob")))
            inner = await ctx.isolate().run(calls_of(assign(to="alice"), credit()))
            return [[result.outcome.value, str(result.content)] for result in (*done.results, *inner.results)]

        return [*bank.tools(), parent]

    def run_with(held: list[Claim], lanes: Any) -> Any:
        async def run() -> Any:
            bank = Bank()
            runtime = Runtime(Registry(tools(bank, held)), lanes)
            done = await runtime.run(calls_of(assign("T2", "carol"), ("parent", {}), credit("T2")))
            return [result.content for result in done.results], bank.ended

        return run

    whole = [Claim(("owner",), WRITE, subtree=True), Claim(("account",), WRITE, subtree=True)]
    expected = sim.run(run_with(whole, serial)).value
    report = sim.explore(
        run_with(whole, by_claims), sim.DPOR(), check=lambda it: it.value == expected, max_executions=500
    )
    assert not report.failures, report.failures[0].explain()
    part = [Claim(("owner",), WRITE, subtree=True), Claim(("account", "alice"), WRITE)]
    content, _ = sim.run(run_with(part, by_claims)).value
    assert [outcome for outcome, _ in content[1]] == ["ok", "invalid", "invalid", "ok", "ok"]


def test_state_keys_may_be_looked_at() -> None:
    """A call that looks at a state key which an earlier call claims, or turns out to claim one, opens another lane."""

    async def run(lanes: Any) -> Any:
        bank = Bank()

        @tool(schema=None, claims=[Claim(("state", "owner"), WRITE), Claim(("owner", "T1"), WRITE)])
        async def name_owner(ctx: Any, name: str) -> ToolOutput:
            bank.owner["T1"].set(f"key {name}")
            return ToolOutput("named", modifiers=[lambda state: state.set("owner", name)])

        @tool(
            schema=None,
            claims=lambda input, state: [Claim(("account", state.get("owner", "none")), WRITE)],
            claims_after=[Claim(("state", "owner"), READ)],
        )
        async def by_state(ctx: Any) -> str:
            wanted = Claim(("account", ctx.state.get("owner", "none")), WRITE)
            assert any(claim.covers(wanted) for claim in ctx.claims)
            return str(wanted)

        @tool(
            schema=None,
            claims=lambda input, state: [Claim(("state", bank.owner["T1"].get().removeprefix("key ")), WRITE)],
            claims_after=[Claim(("owner", "T1"), READ)],
        )
        async def by_look(ctx: Any) -> ToolOutput:
            key = bank.owner["T1"].get().removeprefix("key ")
            seen = ctx.state.get(key, "")
            return ToolOutput(f"{key}: {seen}", modifiers=[lambda state: state.set(key, seen + "x")])

        runtime = Runtime(Registry([name_owner, by_state, by_look]), lanes)
        done = await runtime.run(
            calls_of(
                ("name_owner", {"name": "a"}), ("by_state", {}), ("by_look", {}), ("by_look", {}), ("by_state", {})
            )
        )
        return [result.content for result in done.results], done.state.to_json()

    expected = sim.run(lambda: run(serial)).value
    report = sim.explore(lambda: run(by_claims), sim.DPOR(), check=lambda it: it.value == expected)
    assert not report.failures, report.failures[0].explain()


def test_claims_that_come_to_look_elsewhere_wait_for_that_too() -> None:
    """A dependent call whose look leads on, as a link to another link, waits for calls that change the next one."""

    class Chain(Bank):
        def looked_at(self, input: Any, state: State) -> list[Claim]:
            first = self.owner["T1"].get()
            return [Claim(("owner", "T1"), READ), *([Claim(("owner", "T2"), READ)] if first == "T2" else [])]

        def claims(self, input: Any, state: State) -> list[Claim]:
            name = self.owner["T1"].get()
            return [Claim(("account", self.owner["T2"].get() if name == "T2" else name), WRITE)]

    async def run(lanes: Any) -> Any:
        bank = Chain()

        @tool(schema=None, owner=bank, claims=bank.claims, claims_after=bank.looked_at)
        async def touch(ctx: Any) -> str:
            return " ".join(map(str, ctx.claims))

        runtime = Runtime(Registry([*bank.tools(), touch]), lanes)
        done = await runtime.run(calls_of(assign("T2", "carol"), assign("T1", "T2"), ("touch", {}), balance("carol")))
        return [str(result.content) for result in done.results], bank.ended

    report = sim.explore(lambda: run(by_claims), sim.Exhaustive(), check=lambda it: it.error is None)
    assert not report.failures, report.failures[0].explain()
    assert len(report.outcomes) == 1
    assert sim.run(lambda: run(by_claims)).value[0][2] == "write account/carol"


def test_a_looked_at_function_that_raises_waits_for_everything() -> None:
    """A ``claims_after`` that fails claims everything, and the call still runs with the right claims."""

    class Broken(Bank):
        def looked_at(self, input: Any, state: State) -> list[Claim]:
            raise RuntimeError("broken")

    calls = calls_of(assign(), credit(), balance("bob"))
    report = sim.explore(program(calls, make=Broken), sim.Exhaustive(), check=lambda it: it.error is None)
    assert not report.failures
    assert len(report.outcomes) == 1
    assert sim.run(program(calls, make=Broken)).value[0][2][1] == 1


def test_history_waits_behind_a_call_whose_claims_are_unknown() -> None:
    """An undo from outside the batch, asked while a call's claims are unknown, waits for its turn and ends."""

    async def run() -> Any:
        workspace = Workspace(MemoryDisk({"a.txt": "a\n", "b.txt": "b\n"}))
        runtime = Runtime(Registry(workspace.tools()))
        async with runtime.open_batch(batch_id="first") as batch:
            batch.submit(ToolCall("w", "write_file", {"path": "b.txt", "content": "new\n"}))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                runtime.run,
                calls_of(("delete_path", {"path": "a.txt"}), ("write_file", {"path": "a.txt/x", "content": "x\n"})),
            )
            await trio.lowlevel.checkpoint()
            await workspace.history.undo("first")
        assert workspace.claim_table.statistics() == EMPTY
        return workspace.snapshot()

    report = sim.explore(run, sim.Portfolio(60), check=lambda it: it.error is None)
    assert not report.failures, report.failures[0].explain()
    assert list(report.outcomes.values()) == [60]


@pytest.mark.parametrize("wrong", [Claim("a", READ), 5, ["a"], "text"])
def test_what_are_no_claims_is_refused(wrong: Any) -> None:
    """``claims_after`` takes claims or a function; anything else is refused where the tool is defined."""
    with pytest.raises(DefinitionRefused):

        @tool(claims=lambda input, state: [], claims_after=wrong, schema=None)
        async def refused(ctx: Any) -> None: ...


def test_a_look_without_a_function_of_claims_is_refused() -> None:
    """``claims_after`` without ``claims`` as a function has nothing to be asked for, and is refused."""
    with pytest.raises(DefinitionRefused, match="claims_after"):

        @tool(claims_after=[Claim("a", READ)], schema=None)
        async def refused(ctx: Any) -> None: ...
