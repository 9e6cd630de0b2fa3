"""Tools on a store of the user's: whether the claims are enough, and which ones their calls suggest."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterable
from typing import Any

import pytest
import trio

import toolrt
from toolrt import READ, WRITE, Row, Tool, ToolCall, ToolContext
from toolrt.errors import DefinitionRefused
from toolrt.testing import BrokenPromise, Store, check_tool, check_tools, propose_claims

ACCOUNT = Row("accounts", "account")


class Bank:
    """Accounts in SQLite."""

    def __init__(self) -> None:
        self.claim_table = toolrt.ClaimTable("bank")
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute("create table accounts (name text primary key, cents integer)")
        self.connection.execute("create table rates (name text primary key, percent integer)")
        self.restore({"accounts": {"ann": (100,), "bob": (200,), "cid": (3,)}, "rates": {"all": (1,)}})

    def __del__(self) -> None:
        self.connection.close()

    def snapshot(self) -> dict[str, Any]:
        return {
            table: {key: row for key, *row in self.rows(f"select * from {table}")} for table in ("accounts", "rates")
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        for table, rows in snapshot.items():
            self.connection.execute(f"delete from {table}")
            for key, row in rows.items():
                self.connection.execute(f"insert into {table} values (?, ?)", (key, *row))

    def rows(self, statement: str, *values: Any) -> list[Any]:
        return self.connection.execute(statement, values).fetchall()

    def cents(self, account: str) -> int:
        found = self.rows("select cents from accounts where name = ?", account)
        if not found:
            raise LookupError(f"no account {account}")
        return int(found[0][0])

    def put(self, account: str, cents: int) -> None:
        self.rows("insert or replace into accounts values (?, ?)", account, cents)


def tools_of(bank: Bank, **claims: Any) -> list[Tool]:
    """The tools of a bank; `claims` has other promises for some of them, by name."""

    async def deposit(ctx: ToolContext, account: str, cents: int) -> int:
        before = bank.cents(account)
        await trio.sleep(1)
        bank.put(account, before + cents)
        return before + cents

    async def transfer(ctx: ToolContext, payer: str, payee: str, cents: int) -> None:
        before = bank.cents(payer), bank.cents(payee)
        await trio.sleep(1)
        bank.put(payer, before[0] - cents)
        bank.put(payee, before[1] + cents)

    def balance(ctx: ToolContext, account: str) -> int:
        return bank.cents(account)

    def total(ctx: ToolContext) -> int:
        return int(bank.rows("select sum(cents) from accounts")[0][0])

    def close(ctx: ToolContext, accounts: list[str]) -> None:
        for account in accounts:
            bank.rows("delete from accounts where name = ?", account)

    def reset(ctx: ToolContext, account: str) -> None:
        bank.put(account, 0)

    def ping(ctx: ToolContext) -> str:
        return "here"

    promises: dict[str, Any] = {
        "deposit": {"claims": {ACCOUNT: WRITE}},
        "transfer": {"claims": {Row("accounts", "payer"): WRITE, Row("accounts", "payee"): WRITE}},
        "balance": {"claims": {ACCOUNT: READ}},
        "total": {"claims": {Row("accounts"): READ}},
        "close": {"claims": {Row("accounts", "accounts"): WRITE}},
        "reset": {"claims": {ACCOUNT: WRITE}},
        "ping": {"safe": True},
    } | claims
    functions = (deposit, transfer, balance, total, close, reset, ping)
    return [toolrt.tool(owner=bank, **promises[function.__name__])(function) for function in functions]


def calls_of(*calls: tuple[str, dict[str, Any]]) -> list[ToolCall]:
    return [ToolCall(str(at), name, input) for at, (name, input) in enumerate(calls)]


CALLS = calls_of(
    ("deposit", {"account": "ann", "cents": 5}),
    ("deposit", {"account": "bob", "cents": 5}),
    ("transfer", {"payer": "ann", "payee": "bob", "cents": 7}),
    ("balance", {"account": "ann"}),
    ("balance", {"account": "bob"}),
    ("total", {}),
    ("reset", {"account": "cid"}),
    ("close", {"accounts": ["cid", "bob"]}),
    ("ping", {}),
)


def broken(calls: Iterable[ToolCall] = CALLS, **claims: Any) -> list[BrokenPromise]:
    bank = Bank()
    return check_tools(tools_of(bank, **claims), calls, bank, executions=3)


def test_tools_whose_claims_are_enough_break_nothing() -> None:
    """And the store is left as it was."""
    bank = Bank()
    before = bank.snapshot()
    assert check_tools(tools_of(bank), CALLS, bank, executions=3) == []
    assert bank.snapshot() == before
    assert isinstance(bank, Store)


def test_safe_tool_that_reads_what_another_call_changes_is_found() -> None:
    """Whichever comes first in a batch: timing would decide."""
    found = broken(balance={"safe": True})
    assert {one.promise for one in found} == {"safe"}
    assert {one.tool for one in found} == {"balance"}
    assert "before or after a call of deposit with" in str(found[0])
    assert "claims={Row(...): READ}" in str(found[0])


def test_safe_tool_that_changes_a_row_is_found() -> None:
    """By itself, beside no other call."""
    [found] = broken(CALLS[6:7], reset={"safe": True})
    assert (found.promise, found.detail) == ("safe", "expected no effect, it changed accounts cid")


def test_claims_on_another_row_than_the_changed_one_are_found() -> None:
    """A claim on a table of the store means its rows."""
    [found] = broken(CALLS[2:3], transfer={"claims": {Row("accounts", "payer"): WRITE}})
    assert found.detail == "changed accounts bob, holding write accounts/ann"


def test_claims_of_two_names_for_one_row_are_found_by_what_the_calls_leave() -> None:
    """None of them names a table of the store; two calls on one account lose an update."""
    apart = {"deposit": {"claims": {"account": WRITE}}, "reset": {"claims": {Row("names", "account"): WRITE}}}
    calls = calls_of(("deposit", {"account": "ann", "cents": 5}), ("reset", {"account": "ann"}))
    [found] = broken(calls, **apart)
    assert found.promise == "claims"
    assert "accounts ann" in found.detail


def test_lost_update_of_one_tool_is_found_beside_itself() -> None:
    """`check_tool` takes a store, too, and makes its rows anew for each run."""
    bank = Bank()
    deposit = tools_of(bank, deposit={"claims": {Row("deposits", "cents"): WRITE}})[0]
    inputs = [{"account": "ann", "cents": 5}, {"account": "ann", "cents": 6}]
    found = check_tool(deposit, inputs, store=bank, executions=3)
    assert {one.promise for one in found} == {"claims"}
    assert check_tool(tools_of(bank)[0], inputs, store=bank, executions=3) == []


@pytest.mark.seldom
def test_calls_suggest_the_claims_that_suffice() -> None:
    """By one field, by two, by a list, of a whole table, and none."""
    bank = Bank()
    before = bank.snapshot()
    more = calls_of(("reset", {"account": "ann"}), ("transfer", {"payer": "bob", "payee": "ann", "cents": 1}))
    proposals = propose_claims(tools_of(bank), [*more, *CALLS], bank)
    claims = {proposal.tool: proposal.claims for proposal in proposals}
    assert claims == {
        "reset": {ACCOUNT: WRITE},
        "transfer": {Row("accounts", "payer"): WRITE, Row("accounts", "payee"): WRITE},
        "deposit": {ACCOUNT: WRITE},
        "balance": {ACCOUNT: READ},
        "total": {Row("accounts"): READ},
        "close": {Row("accounts", "accounts"): WRITE},
        "ping": {},
    }
    assert bank.snapshot() == before
    suggested: dict[str, Any] = {name: {"claims": found} for name, found in claims.items()}
    assert broken(CALLS, **suggested) == []
    assert str(proposals[0]) == 'reset: claims={Row("accounts", "account"): WRITE}'
    assert "no field of the input names" in str(next(found for found in proposals if found.tool == "total"))


def test_proposal_warns_of_what_is_safe_and_what_never_succeeds() -> None:
    """A tool with safe=True that reads what others change; one whose calls all fail."""
    bank = Bank()
    calls = calls_of(
        ("balance", {"account": "ann"}),
        ("balance", {"account": "bob"}),
        ("deposit", {"account": "ann", "cents": 1}),
        ("transfer", {"payer": "eve", "payee": "ann", "cents": 1}),
    )
    safe, once, never = propose_claims(tools_of(bank, balance={"safe": True}), calls, bank)
    assert "It says safe=True and reads accounts ann, which deposit changes" in str(safe)
    assert once.warnings == ("One call alone changes a row of accounts: give calls that name others, too.",)
    assert "No call of it succeeded: give calls that do." in never.warnings


def test_keys_of_several_parts_are_found() -> None:
    """All parts by fields, or the first of them."""

    class Lines:
        def __init__(self) -> None:
            self.lines = {(order, item): 1 for order in ("W1", "W2") for item in (1, 2)}

        def snapshot(self) -> dict[str, Any]:
            return {"lines": dict(self.lines)}

        def restore(self, snapshot: dict[str, Any]) -> None:
            self.lines = dict(snapshot["lines"])

    lines = Lines()

    @toolrt.tool
    def count(ctx: ToolContext, order: str, item: int, count: int) -> None:
        lines.lines[order, item] = count

    @toolrt.tool
    def clear(ctx: ToolContext, order: str) -> None:
        lines.lines = {key: 0 if key[0] == order else value for key, value in lines.lines.items()}

    calls = calls_of(
        ("count", {"order": "W1", "item": 2, "count": 7}),
        ("count", {"order": "W2", "item": 1, "count": 8}),
        ("clear", {"order": "W1"}),
    )
    counted, cleared = propose_claims([count, clear], calls, lines)
    assert counted.claims == {Row("lines", "order", "item"): WRITE}
    assert cleared.claims == {Row("lines", "order", subtree=True): WRITE}


def test_proposal_says_when_a_call_never_does_the_same_twice() -> None:
    """Every row would look as if it were read; what it changes is known all the same."""
    bank = Bank()
    numbers = itertools.count()

    @toolrt.tool
    def number(ctx: ToolContext, account: str) -> int:
        bank.put(account, next(numbers))
        return 0

    calls = calls_of(("number", {"account": "ann"}), ("number", {"account": "bob"}))
    [found] = propose_claims([number], calls, bank)
    assert found.claims == {ACCOUNT: WRITE}
    assert found.warnings[0].startswith("It does something else when it runs again")


@pytest.mark.parametrize("check", [check_tools, propose_claims])
def test_rows_are_put_back_where_the_check_fails(check: Any) -> None:
    """Here, because the store breaks down under it."""
    bank = Bank()
    before = bank.snapshot()
    looks = [bank.snapshot] * 3

    def broken_snapshot() -> dict[str, Any]:
        return looks.pop()()

    bank.snapshot = broken_snapshot  # type: ignore[method-assign]
    with pytest.raises(IndexError):
        check(tools_of(bank), CALLS, bank)
    del bank.snapshot
    assert bank.snapshot() == before


@pytest.mark.parametrize("check", [check_tools, propose_claims])
def test_what_cannot_be_checked_is_refused(check: Any) -> None:
    """No store, other snapshots, no calls, calls of other tools."""
    bank = Bank()
    tools = tools_of(bank)
    with pytest.raises(DefinitionRefused, match="snapshot\\(\\) and restore"):
        check(tools, CALLS, {})
    with pytest.raises(DefinitionRefused, match="at least one ToolCall"):
        check(tools, [], bank)
    with pytest.raises(DefinitionRefused, match="calls of deposit"):
        check(tools, [ToolCall("1", "withdraw")], bank)
    bank.snapshot = lambda: {"accounts": [1]}  # type: ignore[method-assign]
    with pytest.raises(DefinitionRefused, match="rows by table and key"):
        check(tools, CALLS, bank)
