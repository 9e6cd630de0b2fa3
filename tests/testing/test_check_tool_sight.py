"""What check_tool sees of shared memory: watched things, cells beside claims, overlaps, and what claims look at."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from tests.testing._promises import promises_of
from toolrt import READ, WRITE, Claim, Tool, ToolContext, sim, tool
from toolrt.testing import check_tool


class Cells:
    """Cells by name, used as a dict is; without names one cell stands for all."""

    def __init__(self, *names: str) -> None:
        self._cells = {name: sim.Cell(0, name=f"cell {name}") for name in names or ("all",)}

    def of(self, name: str) -> sim.Cell[int]:
        return self._cells.get(name) or self._cells["all"]

    def __getitem__(self, name: str) -> int:
        return self.of(name).get()

    def __setitem__(self, name: str, value: int) -> None:
        self.of(name).set(value)


class Box:
    """An object with one attribute."""

    n = 0

    def __getitem__(self, name: str) -> int:
        return self.n

    def __setitem__(self, name: str, value: int) -> None:
        self.n = value


def counts(make_memory: Callable[[], Any], **promises: Any) -> Callable[[], Any]:
    """Make a tool that counts under a name, or looks at it, and at another one; its memory is new in each run."""

    def make() -> Any:
        memory = make_memory()

        @tool(schema=None, **promises)
        async def count(ctx: Any, name: str = "n", also: str = "", looks: bool = False) -> str:
            before = memory[name]
            if also:
                memory[also]
            await trio.lowlevel.checkpoint()
            if not looks:
                memory[name] = before + 1
            return "counted"

        return count

    return make


def by_name(input: Any, state: Any) -> list[Claim]:
    return [Claim(("counter", input["name"]), WRITE)]


def by_name_and_also(input: Any, state: Any) -> list[Claim]:
    return [*by_name(input, state), *([Claim(("counter", input["also"]), READ)] if "also" in input else [])]


def watched(thing: Any, name: str | None = "shared") -> Callable[[], Any]:
    return lambda: sim.watch(copy.copy(thing), name)


BOTH = [{"name": "a"}, {"name": "b"}]
BESIDE = [{"name": "a"}, {"name": "b", "also": "a"}]


@pytest.mark.parametrize(
    ("made", "inputs", "promise", "word"),
    [
        (counts(watched({"n": 0}, "users"), safe=True), [{}], "safe", "users"),
        (counts(watched({"n": 0}, "outside"), safe=True)(), [{}], "safe", "outside"),
        (counts(watched(Box()), safe=True), [{}], "safe", "shared"),
        (counts(watched(Box(), None), safe=True), [{}], "safe", "watched"),
        *((counts(Cells, claims=claims), [{}], "claims", "cell all") for claims in ([Claim("all", READ)], [])),
        (counts(Cells, claims=by_name), BOTH, "claims", "cell all"),
        (counts(lambda: Cells("a", "b"), claims=by_name), BESIDE, "claims", "cell a"),
        (counts(lambda: {"n": 0}, claims=[Claim("unrelated", READ)]), [{}, {"also": "n"}], "claims", "memory"),
    ],
    ids=[
        "a watched dict",
        "one of the module's",
        "a watched object",
        "one without a name",
        "a cell that is claimed for reading",
        "a cell that is not claimed",
        "one cell for all names",
        "a writer beside a reader",
        "two at once, and in sequence",
    ],
)
def test_memory_that_claims_do_not_cover_breaks_a_promise(made: Any, inputs: Any, promise: str, word: str) -> None:
    """Whether its accesses are seen, or only what two calls at once leave, which two in sequence do not."""
    broken = check_tool(made, inputs)
    assert set(promises_of(broken)) == {promise}, broken
    assert word in str(broken[0])


class Slotted:
    """An object in whose only slot another one is."""

    __slots__ = ("box",)

    def __init__(self) -> None:
        self.box = Box()

    def __getitem__(self, name: str) -> int:
        return self.box.n

    def __setitem__(self, name: str, value: int) -> None:
        self.box.n = value


class Counter:
    """A tool that is an object, and keeps itself."""

    def __init__(self) -> None:
        self.n, self.me = 0, self

    async def __call__(self, ctx: ToolContext) -> str:
        before = self.n
        await trio.lowlevel.checkpoint()
        self.n = before + 1
        return "counted"

    async def count(self, ctx: ToolContext) -> str:
        return await self(ctx)


def by_a_helper() -> Tool:
    found = SimpleNamespace(n=0)

    async def add() -> None:
        before = found.n
        await trio.lowlevel.checkpoint()
        found.n = before + 1

    @tool(**UNRELATED)
    async def count(ctx: Any) -> str:
        await add()
        return "counted"

    return count


UNRELATED: dict[str, Any] = {"claims": [Claim("unrelated", READ)]}


@pytest.mark.parametrize(
    "made",
    [
        counts(Box, **UNRELATED),
        counts(Slotted, **UNRELATED),
        by_a_helper,
        lambda: Tool.from_callable(Counter(), name="count", **UNRELATED),
        lambda: Tool.from_callable(functools.partial(Counter().count), name="count", **UNRELATED),
    ],
    ids=["an object", "an object in another", "a helper's closure", "the tool itself", "the object of a method"],
)
def test_what_two_calls_leave_in_objects_and_helpers_is_compared(made: Any) -> None:
    """No access is seen, and each call answers the same: what is left tells that one was lost."""
    assert promises_of(check_tool(made, [{}])) == ["claims"]


@pytest.mark.parametrize(
    ("made", "inputs"),
    [
        (counts(watched({"n": 1}), safe=True), [{"looks": True}]),
        (counts(lambda: Cells("a", "b"), claims=by_name_and_also), BESIDE),
        (counts(lambda: Cells("a", "b"), claims=by_name), BOTH),
    ],
    ids=["it only looks", "what it looks at is claimed", "a cell for each name"],
)
def test_memory_that_claims_cover_breaks_none(made: Any, inputs: Any) -> None:
    """Nothing is broken that only looks like it."""
    assert check_tool(made, inputs) == []


def test_watched_list_is_seen() -> None:
    """A safe tool that appends to it is broken."""

    def make() -> Any:
        items = sim.watch([])

        @tool(schema=None, safe=True)
        async def touch(ctx: Any) -> None:
            await trio.lowlevel.checkpoint()
            items.append("x")

        return touch

    assert "safe" in promises_of(check_tool(make, [{}]))


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
