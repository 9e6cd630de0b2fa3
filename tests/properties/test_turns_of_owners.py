"""When the batches of one owner begin: what declares nothing is alone among them, and the others run side by side."""

from __future__ import annotations

import warnings

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from tests.runtime._tools import WRITE, runtime
from toolrt import EVERYTHING, Claim, ToolCall, ToolContext, sim
from toolrt.errors import UndeclaredWarning

NEVER = float("inf")


@attrs.frozen
class Planned:
    """A batch of one call or two, each with a lane of its own unless both declare what they touch."""

    owner: str
    #: ``undeclared``, ``everything`` or ``file``, by call.
    kinds: list[str]
    seconds: int
    #: How long after it began it is cancelled.
    cancelled: float


def _lanes(one: Planned) -> list[bool]:
    """Whether each of its lanes is alone among those of its owner."""
    if one.kinds == ["file", "file"]:
        return [False]
    return [kind != "file" for kind in one.kinds]


def _begins(plan: list[Planned]) -> list[list[float | None]]:
    """When each lane begins; None where a cancel comes first.  A lane asks for its turn when the one before is over."""
    found: list[list[float | None]] = [[] for _ in plan]
    asked: list[tuple[float, int]] = [(place / 8, place) for place in range(len(plan))]
    turns: list[tuple[str, bool, float]] = []  # whose it is, whether it is alone, when it is over
    while asked:
        now, place = min(asked)
        asked.remove((now, place))
        one = plan[place]
        stop = place / 8 + one.cancelled
        alone = _lanes(one)[len(found[place])]
        before = [over for owner, other, over in turns if owner == one.owner and (alone or other)]
        begins = max([now, *before])
        if stop <= begins:
            found[place] += [None] * (len(_lanes(one)) - len(found[place]))
            turns.append((one.owner, alone, min(stop, begins)))
            continue
        ends = min(begins + one.seconds, stop)
        found[place].append(begins)
        turns.append((one.owner, alone, ends))
        if len(found[place]) < len(_lanes(one)):
            if ends < stop:
                asked.append((ends, place))
            else:
                found[place].append(None)
    return found


PLANS = st.builds(
    Planned,
    st.sampled_from(["ann", "ann", "bob"]),
    st.lists(st.sampled_from(["undeclared", "file"]), min_size=1, max_size=2),
    st.integers(1, 3),
    st.sampled_from([NEVER, NEVER, 1.0625, 2.5625]),
)
ONE_OWNER = st.builds(
    Planned,
    st.just("ann"),
    st.lists(st.sampled_from(["undeclared", "everything", "file"]), min_size=1, max_size=1),
    st.integers(1, 3),
    st.sampled_from([NEVER, NEVER, 1.0625, 2.5625]),
)


@given(plan=st.lists(PLANS, min_size=2, max_size=4) | st.lists(ONE_OWNER, min_size=2, max_size=4), ends=st.booleans())
def test_batches_of_one_owner_take_turns(plan: list[Planned], ends: bool) -> None:
    """In the order of asking; one that is cancelled gives its turn up, and other owners do not wait.

    Args:
        ends: whether a batch is cut short by its caller's scope, and not by a cancel.
    """
    began: list[list[float]] = [[] for _ in plan]

    async def body(ctx: ToolContext, place: int, seconds: int, lane: str = "") -> None:
        began[place].append(trio.current_time())
        await trio.sleep(seconds)

    tools = runtime(
        toolrt.tool(name="undeclared")(body),
        toolrt.tool(name="everything", claims=[EVERYTHING])(body),
        toolrt.tool(name="file", claims=lambda input, state: [Claim((input["lane"],), WRITE)])(body),
    )

    async def use(place: int, one: Planned) -> None:
        calls = [
            ToolCall(f"{place}.{at}", kind, {"place": place, "seconds": one.seconds, "lane": f"{place}.{at}"})
            for at, kind in enumerate(one.kinds)
        ]
        await trio.sleep(place / 8)
        with trio.CancelScope(deadline=trio.current_time() + one.cancelled if ends else NEVER):
            async with tools.open_batch(owner=one.owner) as batch, trio.open_nursery() as nursery:
                for call in calls:
                    batch.submit(call)
                batch.seal()
                if not ends and one.cancelled < NEVER:

                    async def cancel() -> None:
                        await trio.sleep(one.cancelled)
                        batch.cancel("enough")

                    nursery.start_soon(cancel)

    async def program() -> bool:
        async with trio.open_nursery() as nursery:
            for place, one in enumerate(plan):
                nursery.start_soon(use, place, one)
        return tools.tables[0].busy

    execution = sim.run(program)
    if execution.error is not None:
        raise execution.error
    assert execution.value is False
    for one, lanes, times in zip(plan, _begins(plan), began, strict=True):
        calls = 2 if one.kinds == ["file", "file"] else 1
        assert times == [at for at in lanes if at is not None for _ in range(calls)]


@given(kinds=st.lists(st.sampled_from(["undeclared", "file", "other file", "everything"]), min_size=2, max_size=4))
def test_wait_for_what_declares_nothing_is_told_once(kinds: list[str]) -> None:
    """By a warning that names both calls, of the first that waits so for another batch, where no batch has an owner."""

    async def body(ctx: ToolContext) -> None:
        await trio.sleep(1)

    tools = runtime(
        toolrt.tool(name="undeclared")(body),
        toolrt.tool(name="everything", claims=[EVERYTHING])(body),
        toolrt.tool(name="file", claims=[Claim("f", WRITE)])(body),
        toolrt.tool(name="other file", claims=[Claim("g", WRITE)])(body),
    )

    async def use(place: int, kind: str) -> None:
        await trio.sleep(place / 8)
        await tools.run([ToolCall(f"{place}", kind)])

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for place, kind in enumerate(kinds):
                nursery.start_soon(use, place, kind)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert sim.run(program).error is None
    waits = [
        (place, other)
        for place, kind in enumerate(kinds)
        for other in range(place)
        if _meet(kind, kinds[other]) and "undeclared" in (kind, kinds[other])
    ]
    told = [str(one.message) for one in seen if issubclass(one.category, UndeclaredWarning)]
    assert len(told) == (1 if waits else 0)
    if waits:
        first = waits[0][0]
        others = {kinds[other] for place, other in waits if place == first}
        assert f"call 0 ({kinds[first]}) of batch batch-{first + 1}" in told[0]
        assert any(f"call 0 ({other})" in told[0] for other in others)


def _meet(one: str, other: str) -> bool:
    """Whether two of these calls may not run side by side."""
    return one == other or {one, other} != {"file", "other file"}
