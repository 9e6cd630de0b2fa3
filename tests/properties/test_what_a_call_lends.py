"""What a call lends to the calls inside it: claims, what it may change, its name to approval checks, and its end."""

from __future__ import annotations

from typing import Any

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from tests.runtime._tools import READ, WRITE, call, claims, outcomes, runtime
from toolrt import Claim, Services, ToolCall, ToolContext, sim
from toolrt.errors import BatchClosed
from toolrt.invariants import check
from toolrt.model import FileChanged
from toolrt.runtime._lease import DEEPEST


@attrs.frozen
class Node:
    """One call and those inside it."""

    #: The files that it reads or writes; None: it declares nothing.
    claims: dict[str, str] | None
    #: What it says of files: a change of each one, that there is none, or nothing.
    says: str
    inside: list[Node]

    def call(self, call_id: str) -> ToolCall:
        """The call; ids are made of the places on the way to it."""
        inside = [one.call(f"{call_id}.{place}") for place, one in enumerate(self.inside)]
        given = {"says": self.says, "inside": [[one.name, one.call_id, one.input] for one in inside]}
        if self.claims is None:
            return ToolCall(call_id, "undeclared", given)
        return ToolCall(call_id, "work", {**given, "claims": self.claims})

    def covers(self, other: Node) -> bool:
        """Whether it may run `other` inside it."""
        if self.claims is None:
            return True
        if other.claims is None:
            return False
        return all(self.claims.get(name) in (mode, "write") for name, mode in other.claims.items())

    @property
    def outcome(self) -> Any:
        """What it answers, which is the answers of those inside it."""
        return [one.outcome if self.covers(one) else "invalid" for one in self.inside]

    @property
    def said(self) -> list[str] | None:
        """What counts as said by it of files; None: nothing, so it may have changed whatever it claims to write."""
        own = {"a change": sorted(self.claims or "r"), "none": [], "nothing": None}[self.says]
        known: list[str] = []
        told, silent = own is not None, False
        for one in self.inside:
            said = one.said if self.covers(one) else []
            told = told or (said is not None and self.covers(one))
            silent = silent or (said is None and one.writes)
            known += said or []
        return None if silent or not told else known + (own or [])

    @property
    def writes(self) -> bool:
        return self.claims is None or "write" in self.claims.values()

    @property
    def may_change(self) -> tuple[list[str], bool]:
        """The files that services hear of, and whether it may have changed any other."""
        if self.said is not None:
            return self.said, False
        return [name for name, mode in (self.claims or {}).items() if mode == "write"], self.claims is None


async def _body(ctx: ToolContext, says: str, inside: list[Any], claims: Any = None) -> Any:
    if says == "a change":
        for name in sorted(claims or "r"):
            ctx.emit(FileChanged(name))
    elif says == "none":
        ctx.changes_no_file()
    if not inside:
        return []
    calls = [ToolCall(call_id, name, given) for name, call_id, given in inside]
    if len(calls) % 2:
        done = await ctx.run(calls)
    else:
        async with ctx.open_batch() as batch:
            for one in calls:
                batch.submit(one)
                await trio.lowlevel.checkpoint()
        done = batch.outcome
    return [one.content if one.outcome.value == "ok" else one.outcome.value for one in done.results]


def _claims_of(input: Any, state: Any) -> list[Claim]:
    return [Claim(("file", name), WRITE if mode == "write" else READ) for name, mode in input["claims"].items()]


CLAIMS = st.dictionaries(st.sampled_from("fgh"), st.sampled_from(["read", "write"]), max_size=3)
SAYS = st.sampled_from(["a change", "none", "nothing"])
NODES = st.recursive(
    st.builds(Node, CLAIMS, SAYS, st.just([])) | st.builds(Node, st.none(), SAYS, st.just([])),
    lambda inner: st.builds(
        Node, st.none() | CLAIMS | st.just({"f": "write", "g": "write"}), SAYS, st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)


@given(nodes=st.lists(NODES, min_size=1, max_size=2), limit=st.sampled_from([None, 1]), asks=st.booleans())
def test_calls_inside_have_what_the_call_has_and_no_more(nodes: list[Node], limit: int | None, asks: bool) -> None:
    """At any depth: which are refused, what services hear of files, and what an approval check is shown around each."""
    told: list[Any] = []
    ways: list[tuple[str, ...]] = []

    def approve(request: toolrt.ApprovalRequest) -> bool:
        way, parent = [request.call_id], request.parent
        while parent is not None:
            assert parent.call_id.rsplit(".", 1)[-1] == str(parent.call_index)
            way, parent = [*way, parent.call_id], parent.parent
        ways.append(tuple(way))
        return True

    work = toolrt.tool(name="work", claims=_claims_of, schema=None)(_body)
    undeclared = toolrt.tool(name="undeclared", schema=None)(_body)
    services = Services(after_lane=[told.append])
    tools = runtime(work, undeclared, services=services, limit=limit, approve=approve if asks else None)
    execution = sim.run(lambda: tools.run([node.call(str(place)) for place, node in enumerate(nodes)]))
    assert check(execution.trace) == []
    assert [one.content for one in execution.value.results] == [node.outcome for node in nodes]
    lanes: list[list[Node]] = []
    for node in nodes:
        if lanes and node.claims is not None and lanes[-1][0].claims is not None:
            lanes[-1].append(node)
        else:
            lanes.append([node])
    expected = []
    for place, lane in enumerate(lanes):
        paths = [path for node in lane for path in node.may_change[0]]
        changes = [path for node in lane for path in node.said or ()]
        unknown = any(node.may_change[1] for node in lane)
        if paths or unknown:
            expected.append((place, tuple(dict.fromkeys(paths)), changes, unknown))
    heard = [(one.lane, one.paths, [change.path for change in one.changes], one.unknown) for one in told]
    assert heard == expected
    assert all(way == tuple(way[0].rsplit(".", up)[0] for up in range(len(way))) for way in ways)
    assert all(len(way) == 1 + way[0].count(".") for way in ways)


@given(
    ends=st.sampled_from(["cancel", "cancel one", "timeout", "scope", "raises", "returns"]),
    parent=st.sampled_from(["cancel", "finish"]),
    child=st.sampled_from(["cancel", "finish"]),
    depth=st.integers(1, 3),
)
def test_no_call_inside_outlives_the_call(ends: str, parent: Any, child: Any, depth: int) -> None:
    """A cancel reaches those inside at once, and the call ends with the last that may finish what it does.

    Args:
        ends: what ends the outermost call; ``raises`` and ``returns``: it, with the sub-batch open.
        depth: how many calls are around the innermost two; of these the second waits for the first.
    """
    if ends in ("raises", "returns"):
        depth = 1
    by_itself = ends not in ("cancel", "cancel one", "scope")
    order: list[str] = []
    file = claims(("f", WRITE))

    async def leaf(ctx: ToolContext) -> str:
        order.append(f"{ctx.call_index} began {trio.current_time():g}")
        await trio.sleep(5)
        return "leaf"

    async def opens(ctx: ToolContext, left: int) -> Any:
        inside = [ToolCall("leaf", "leaf"), ToolCall("leaf", "leaf")] if left == 1 else [_opens(left - 1)]
        if ends == "raises":
            async with ctx.open_batch() as batch:
                batch.submit(inside[0])
                batch.submit(inside[1])
                await trio.sleep(2)
                raise LookupError("enough")
        if ends == "returns":
            batch = await ctx.open_batch().__aenter__()
            batch.submit(inside[0])
            batch.submit(inside[1])
            await trio.sleep(2)
            return "early"
        return outcomes((await ctx.run(inside)).results)

    def _opens(left: int) -> ToolCall:
        return ToolCall("opens", "outer" if left == depth else "middle", {"left": left})

    timeout = 2.0 if ends == "timeout" else None
    tools = runtime(
        toolrt.tool(name="leaf", claims=file, interrupt=child)(leaf),
        toolrt.tool(name="outer", claims=file, interrupt=parent, timeout=timeout)(opens),
        toolrt.tool(name="middle", claims=file, interrupt=parent)(opens),
    )

    async def program() -> Any:
        try:
            with trio.CancelScope(deadline=2 if ends == "scope" else float("inf")):
                async with tools.open_batch() as batch:
                    batch.submit(_opens(depth))
                    batch.seal()
                    await trio.sleep(2)
                    if ends == "cancel":
                        batch.cancel("enough")
                    if ends == "cancel one":
                        assert batch.cancel_call(0, "enough") is (parent == "cancel")
        finally:
            order.append(f"over {trio.current_time():g}")
        return batch.outcome.results[0]

    execution = sim.run(program)
    assert check(execution.trace) == []
    # One that may finish lets those inside it finish, and start, whatever ended the call around it.
    if parent == "finish" and (depth > 1 or not by_itself):
        assert order == ["0 began 0", "1 began 5", "over 10"]
    else:
        assert order == ["0 began 0", f"over {5 if child == 'finish' else 2}"]
    cut = "ok" if parent == "finish" else "interrupted"
    expected = {"timeout": "timed_out", "raises": "error", "returns": "error"}.get(ends, cut)
    assert execution.value.outcome.value == expected


@given(levels=st.integers(DEEPEST - 2, DEEPEST + 2), limit=st.sampled_from([None, 1]))
def test_sub_batches_are_nested_so_deep_and_no_deeper(levels: int, limit: int | None) -> None:
    """What is refused is the answer of the tool that asked."""

    @toolrt.tool(safe=True)
    async def opens(ctx: ToolContext, left: int) -> Any:
        if not left:
            return "deep"
        try:
            done = await ctx.run([ToolCall(f"to{left - 1}", "opens", {"left": left - 1})])
        except BatchClosed:
            return f"refused at {left}"
        return done.results[0].content

    async def program() -> Any:
        done = await runtime(opens, limit=limit).run([call("opens", left=levels)])
        return done.results[0].content

    assert sim.run(program).value == ("deep" if levels <= DEEPEST else f"refused at {levels - DEEPEST}")
