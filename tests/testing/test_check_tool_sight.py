"""What check_tool sees of shared memory: watched things, cells beside claims, overlaps, and what claims look at."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.testing._promises import promises_of
from toolrt import READ, WRITE, Claim, sim, tool
from toolrt.testing import check_tool


def _bump(shared: Any, **promises: Any) -> Any:
    @tool(schema=None, name="bump", **promises)
    async def bump(ctx: Any, name: str = "n") -> str:
        before = shared[name]
        await trio.lowlevel.checkpoint()
        shared[name] = before + 1
        return "done"

    return bump


class Box:
    """An object with one attribute."""

    n = 0


def test_a_safe_tool_that_loses_updates_of_a_watched_dict_is_broken() -> None:
    """A write of a watched dict is seen, whether the dict belongs to the tool's maker or to the module."""
    outside = sim.watch({"n": 0}, name="outside")
    assert "safe" in promises_of(check_tool(_bump(outside, safe=True), [{}]))
    broken = check_tool(lambda: _bump(sim.watch({"n": 0}, name="users"), safe=True), [{}])
    assert "safe" in promises_of(broken)
    assert "users" in str(broken[0])


@pytest.mark.parametrize("named", [True, False])
def test_watched_objects_and_lists_are_seen(named: bool) -> None:
    """A safe tool that changes an attribute of a watched object, or appends to a watched list, is broken."""
    name = {"name": "shared"} if named else {}

    def box() -> Any:
        watched = sim.watch(Box(), **name)

        @tool(schema=None, safe=True)
        async def touch(ctx: Any) -> None:
            before = watched.n
            await trio.lowlevel.checkpoint()
            watched.n = before + 1

        return touch

    def items() -> Any:
        watched = sim.watch([], **name)

        @tool(schema=None, safe=True)
        async def touch(ctx: Any) -> None:
            await trio.lowlevel.checkpoint()
            watched.append("x")

        return touch

    assert "safe" in promises_of(check_tool(box, [{}]))
    assert "safe" in promises_of(check_tool(items, [{}]))


def test_a_safe_tool_that_reads_a_watched_dict_is_kept() -> None:
    """Looking at shared memory that nothing changes is no broken promise."""

    def make() -> Any:
        shared = sim.watch({"n": 1}, name="config")

        @tool(schema=None, safe=True)
        async def look(ctx: Any) -> int:
            await trio.lowlevel.checkpoint()
            return int(shared["n"])

        return look

    assert check_tool(make, [{}]) == []


@pytest.mark.parametrize("claims", [[Claim("total", READ)], [Claim("other", READ)], []])
def test_a_cell_that_is_written_without_a_write_claim_is_broken(claims: list[Claim]) -> None:
    """A tool that changes a cell and claims nothing for writing is broken, also where there is no workspace."""

    def make() -> Any:
        cell = sim.Cell(0, name="total")

        @tool(schema=None, claims=claims)
        async def add(ctx: Any) -> str:
            before = cell.get()
            await trio.lowlevel.checkpoint()
            cell.set(before + 1)
            return "added"

        return add

    broken = check_tool(make, [{}])
    assert "claims" in promises_of(broken)
    assert "total" in str(broken[0])


def test_calls_that_may_overlap_and_touch_one_cell_are_broken() -> None:
    """WRITE claims by name do not cover a cell that all names share, although every answer is the same."""

    def make() -> Any:
        cell = sim.Cell(0, name="total")

        @tool(schema=None, claims=lambda input, state: [Claim(("counter", input["name"]), WRITE)])
        async def add(ctx: Any, name: str) -> str:
            before = cell.get()
            await trio.lowlevel.checkpoint()
            cell.set(before + 1)
            return "added"

        return add

    broken = check_tool(make, [{"name": "a"}, {"name": "b"}])
    assert promises_of(broken) == ["claims"]
    assert "total" in str(broken[0])


def test_a_writer_beside_a_reader_is_broken() -> None:
    """Two inputs must conflict if one writes what the other reads; each alone is kept."""

    def make(covered: bool) -> Any:
        cells = {name: sim.Cell(0, name=f"cell {name}") for name in "ab"}

        def claims(input: Any, state: Any) -> list[Claim]:
            found = [Claim(("cell", input["name"]), WRITE)]
            return [*found, Claim(("cell", input["also"]), READ)] if covered and "also" in input else found

        @tool(schema=None, claims=claims)
        async def touch(ctx: Any, name: str, also: str = "") -> str:
            if also:
                cells[also].get()
            await trio.lowlevel.checkpoint()
            cells[name].set(1)
            return "touched"

        return touch

    inputs = [{"name": "a"}, {"name": "b", "also": "a"}]
    assert promises_of(check_tool(lambda: make(False), inputs)) == ["claims"]
    assert check_tool(lambda: make(True), inputs) == []


def test_cells_that_claims_keep_apart_are_kept() -> None:
    """A tool with a cell for each name, claimed by name, has nothing broken."""

    def make() -> Any:
        cells = {name: sim.Cell(0, name=f"counter {name}") for name in "ab"}

        @tool(schema=None, claims=lambda input, state: [Claim(("counter", input["name"]), WRITE)])
        async def add(ctx: Any, name: str) -> int:
            before = cells[name].get()
            await trio.lowlevel.checkpoint()
            cells[name].set(before + 1)
            return before + 1

        return add

    assert check_tool(make, [{"name": "a"}, {"name": "b"}]) == []


def test_two_calls_at_once_are_compared_with_the_same_two_in_sequence() -> None:
    """What nothing reports is seen where two calls at once leave it otherwise than one after the other."""

    def make() -> Any:
        totals = {"n": 0}

        @tool(schema=None, claims=[Claim("unrelated", READ)])
        async def add(ctx: Any, name: str) -> str:
            before = totals["n"]
            await trio.lowlevel.checkpoint()
            totals["n"] = before + 1
            return "added"

        return add

    broken = check_tool(make, [{"name": "a"}, {"name": "b"}])
    assert "claims" in promises_of(broken)
    assert "totals" in str(broken[0])


def _credit(*, claimed: bool = False, declared: bool = False) -> Any:
    owner = sim.Cell("alice", name="owner")

    def claims(input: Any, state: Any) -> list[Claim]:
        return [*([Claim("owner", READ)] if claimed else []), Claim(("account", owner.get()), WRITE)]

    @tool(schema=None, claims=claims, claims_after=[Claim("owner", READ)] if declared else None)
    async def credit(ctx: Any, by: int = 1) -> str:
        await trio.lowlevel.checkpoint()
        return f"{owner.get()} {by}"

    return credit


def test_check_tool_names_what_claims_look_at() -> None:
    """Claims that look at a cell that nothing claims or declares are reported by the name of law 17."""
    broken = check_tool(_credit, [{}])
    assert promises_of(broken) == ["claims_hold"]
    assert "owner" in broken[0].detail
    assert "claims_after" in broken[0].detail
    assert check_tool(lambda: _credit(claimed=True), [{}]) == []
    assert check_tool(lambda: _credit(declared=True), [{}]) == []


@pytest.mark.parametrize("inputs", [[{"to": "bob"}, {}], [{}, {"to": "bob"}]])
def test_check_tool_sees_claims_that_another_call_changes(inputs: Any) -> None:
    """Claims that look at a plain dict are reported where a call that does not conflict changes their answer."""

    def make() -> Any:
        owner = {"T1": "alice"}

        def claims(input: Any, state: Any) -> list[Claim]:
            return [Claim(("to", input["to"]), WRITE)] if input["to"] else [Claim(("account", owner["T1"]), WRITE)]

        @tool(schema=None, claims=claims)
        async def handle(ctx: Any, to: str = "") -> str:
            await trio.lowlevel.checkpoint()
            if to:
                owner["T1"] = to
            return "handled"

        return handle

    broken = check_tool(make, inputs)
    assert "claims_hold" in promises_of(broken)
    assert "account/bob" in " ".join(map(str, broken))


@pytest.mark.parametrize("wrong", ["raises", "changes", "no claims"])
def test_a_look_that_keeps_no_promise_is_broken(wrong: str) -> None:
    """A ``claims_after`` that raises, gives no claims, or answers otherwise the second time breaks "claims"."""
    asked: list[int] = []

    def look(input: Any, state: Any) -> Any:
        asked.append(1)
        if wrong == "raises":
            raise RuntimeError("no")
        return ["text"] if wrong == "no claims" else [Claim(("look", len(asked)), READ)]

    @tool(schema=None, claims=lambda input, state: [Claim("a", WRITE)], claims_after=look)
    async def touch(ctx: Any) -> None: ...

    assert promises_of(check_tool(touch, [{}])) == ["claims"]
