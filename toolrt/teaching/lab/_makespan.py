"""How long batches take by policy, against what their calls allow, on virtual time.

Definitions.  A batch has calls 0 to n - 1, submitted at time 0.  Call j runs for d(j) seconds and touches some
things.
    - Two calls *conflict* if one of them changes what the other touches.
    - An *order* is a set of pairs i < j: call j may not start before call i has ended.  The *order of the conflicts*
      has the pairs that conflict.  The *order of a policy* has the pairs in different lanes, and in one lane the pairs
      whose claims conflict (`order_of`).
    - The *length* of an order: e(j) = d(j) + the greatest e(i) of the pairs (i, j), or d(j) without any; the length is
      the greatest e.  The batch's *critical path* is the length of the order of its conflicts.
    - The *makespan* of a batch under a policy: when its last call ends in an execution, with its calls submitted at
      once.  The *serial sum* is the sum of all d.

Theory.  A policy is *right* if it keeps conflicting calls in call order: its order contains that of the conflicts.
For a right policy critical path <= length of its order <= makespan <= serial sum.  The last holds because a call that
may start and has a slot does so at once (law 6), so that some call runs at every instant.  Without a limit the makespan
*is* the length of the policy's order.  With a limit of m slots it is at most serial / m + (1 - 1/m) x length (Graham,
1969).  "Everything at once" is not right: its makespan is the longest call, whatever that overlaps.

What is measured is the runtime itself, on the simulator's clock: nothing here computes a makespan.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import trio

from toolrt import sim
from toolrt.errors import DefinitionRefused, InternalError
from toolrt.events import CallEnded, CallStarted
from toolrt.model import EVERYTHING, READ, WRITE, Registry, Tool, ToolCall
from toolrt.order import LanePolicy, by_claims, by_safety, partition, serial
from toolrt.runtime import Runtime
from toolrt.teaching.lab._workloads import TimedCall, Workload

#: The name of running everything at once, without any order.
AT_ONCE = "at once"

#: How an order is written: for each call the calls before it.
Order = Sequence[frozenset[int]]

_POLICIES: Mapping[str, LanePolicy | None] = {
    "by_claims": by_claims,
    "by_safety": by_safety,
    "serial": serial,
    AT_ONCE: None,
}

#: Virtual time moves for each call, and each takes a handful of steps.
_STEPS = 1_000_000


@attrs.frozen
class Ran:
    """One execution of a batch."""

    #: When the last call ended, in virtual seconds after the submission.
    makespan: float
    #: When each call started and ended, in call order.
    times: tuple[tuple[float, float], ...]
    #: What was run, to be drawn; its value has the makespan, the critical path and the serial sum, in seconds.
    execution: sim.Execution = attrs.field(repr=False, eq=False)

    def overlapping(self, calls: Sequence[TimedCall]) -> list[tuple[int, int]]:
        """The pairs of conflicting calls of which the later one started before the earlier one had ended."""
        return [
            (before, call)
            for call, (start, _) in enumerate(self.times)
            for before in range(call)
            if start < self.times[before][1] and calls[before].conflicts_with(calls[call])
        ]


def conflicts(calls: Sequence[TimedCall]) -> Order:
    """The order of the conflicts of `calls`."""
    return [
        frozenset(before for before in range(at) if calls[before].conflicts_with(call)) for at, call in enumerate(calls)
    ]


def order_of(calls: Sequence[TimedCall], policy: LanePolicy = by_claims) -> Order:
    """The order in which a runtime with this `policy` keeps `calls`: the pairs that it lets wait."""
    tools = _Things(calls).tools()
    lanes = partition(
        [ToolCall(str(at), tool.name, {}) for at, tool in enumerate(tools)], Registry(tools), None, policy
    )
    lane_of = {int(call.call_id): lane.index for lane in lanes for call in lane.calls}
    held = [call.touches if call.declares else (EVERYTHING,) for call in calls]
    return [
        frozenset(
            before
            for before in range(at)
            if lane_of[before] != lane_of[at]
            or any(theirs.conflicts_with(mine) for theirs in held[before] for mine in held[at])
        )
        for at in range(len(calls))
    ]


def length(calls: Sequence[TimedCall], order: Order) -> float:
    """The length of `order`: the seconds of its longest chain of `calls`."""
    ends: list[float] = []
    for call, before in zip(calls, order, strict=True):
        ends.append(call.seconds + max((ends[one] for one in before), default=0.0))
    return max(ends, default=0.0)


def critical_path(calls: Sequence[TimedCall]) -> float:
    """The seconds of the longest chain of conflicting `calls`: no right policy is quicker, whatever its slots."""
    return length(calls, conflicts(calls))


class _Things:
    """What the calls of one execution touch, and their tools: a call reads at its start and writes at its end."""

    def __init__(self, calls: Sequence[TimedCall]) -> None:
        self._calls = calls
        names = {claim.resource for call in calls for claim in call.touches}
        self._cells = {name: sim.Cell(0, name="/".join(name)) for name in sorted(names)}
        #: When each tool ran: index of the call, start and end.
        self.ran: list[tuple[int, float, float]] = []

    def tools(self) -> list[Tool]:
        """A tool for each call."""
        return [self._tool(at, call) for at, call in enumerate(self._calls)]

    def _tool(self, at: int, call: TimedCall) -> Tool:
        async def act(ctx: Any) -> int:
            return await self.act(at)

        declares = call.declares
        return Tool(
            name=f"{call.tool}_{at}",
            function=act,
            safe=declares and call.only_reads,
            claims=call.touches if declares else None,
            schema=None,
        )

    def _touched(self, call: TimedCall, writes: bool) -> list[sim.Cell[int]]:
        found = []
        for claim in call.touches:
            if (claim.mode is WRITE) is writes:
                deep = len(claim.resource)
                found += [cell for name, cell in self._cells.items() if name[:deep] == claim.resource]
        return found

    async def act(self, at: int) -> int:
        """Do what call `at` does."""
        call, start = self._calls[at], trio.current_time()
        seen = sum(cell.get() for mode in (READ, WRITE) for cell in self._touched(call, mode is WRITE))
        await trio.sleep(call.seconds)
        for cell in self._touched(call, True):
            cell.set(31 * seen + at + 1)  # never what was there before
        self.ran.append((at, start, trio.current_time()))
        return seen


def ran_under(
    calls: Sequence[TimedCall],
    policy: LanePolicy | None = by_claims,
    limit: int | None = None,
) -> Ran:
    """Run `calls` once on virtual time.

    Args:
        policy: who shares a lane; None runs everything at once, in no order, without a runtime.
        limit: how many calls run at once; None is any number.

    Checkpoint: never; call it outside Trio.
    """
    ran: list[_Things] = []

    async def program() -> dict[str, float]:
        things = _Things(calls)
        ran.append(things)
        began = trio.current_time()
        if policy is None:
            await _at_once(things, len(calls), limit)
        else:
            tools = things.tools()
            runtime = Runtime(Registry(tools), policy, limit)
            await runtime.run([ToolCall(str(at), tool.name, {}) for at, tool in enumerate(tools)])
        return {
            "makespan": trio.current_time() - began,
            "critical path": critical_path(calls),
            "serial sum": sum(call.seconds for call in calls),
        }

    execution = sim.run(program, step_limit=_STEPS)
    if execution.error is not None:
        raise InternalError(f"a workload ended by {execution.error!r}") from execution.error
    if policy is None:
        times = {at: (start, end) for at, start, end in ran[0].ran}
    else:
        started, ended = execution.trace.of_kind(CallStarted.kind), execution.trace.of_kind(CallEnded.kind)
        ends = {event.fields["call"]: event.time for event in ended}
        times = {event.fields["call"]: (event.time, ends[event.fields["call"]]) for event in started}
    return Ran(execution.value["makespan"], tuple(times[at] for at in sorted(times)), execution)


async def _at_once(things: _Things, count: int, limit: int | None) -> None:
    slots = trio.CapacityLimiter(count + 1 if limit is None else limit)

    async def one(at: int) -> None:
        async with slots:
            await things.act(at)

    async with trio.open_nursery() as nursery:
        for at in range(count):
            nursery.start_soon(one, at)


def makespans(
    workload: Workload,
    policies: Mapping[str, LanePolicy | None] | None = None,
    *,
    batches: int = 100,
    seed: int = 0,
    limit: int | None = None,
) -> list[dict[str, Any]]:
    """Run batches of `workload` under each policy.

    Args:
        policies: by name; None for everything at once.  Unless given: by_claims, by_safety, serial and everything at
            once.
        batches: how many, 1 or more.
        seed: of the series of batches.
        limit: how many calls of a batch run at once; None is any number.

    Returns:
        A row for each batch and policy: ``workload``, ``policy``, ``batch``, ``calls``, ``critical`` and ``serial``
        (the batch's critical path and serial sum, in seconds), ``makespan`` (in seconds), ``ratio`` (makespan /
        critical), ``speedup`` (serial / makespan), ``overlaps`` (how many pairs of conflicting calls ran in no order).

    Raises:
        DefinitionRefused: `batches` is no whole number of 1 or more.

    Checkpoint: never; call it outside Trio.

    Example:
        >>> from toolrt.teaching import lab
        >>> rows = lab.makespans(lab.WORKLOADS["retail"], batches=3)
        >>> all(row["critical"] <= row["makespan"] <= row["serial"] for row in rows if row["overlaps"] == 0)
        True
    """
    if not isinstance(batches, int) or isinstance(batches, bool) or batches < 1:
        raise DefinitionRefused("makespans(batches)", "a whole number, 1 or more", batches)
    rows: list[dict[str, Any]] = []
    for number in range(batches):
        calls = workload.batch(number, seed)
        critical, total = critical_path(calls), sum(call.seconds for call in calls)
        for name, policy in (_POLICIES if policies is None else policies).items():
            ran = ran_under(calls, policy, limit)
            rows.append(
                {
                    "workload": workload.name,
                    "policy": name,
                    "batch": number,
                    "calls": len(calls),
                    "critical": critical,
                    "serial": total,
                    "makespan": ran.makespan,
                    "ratio": ran.makespan / critical,
                    "speedup": total / ran.makespan,
                    "overlaps": len(ran.overlapping(calls)),
                }
            )
    return rows


def spread(
    rows: Iterable[Mapping[str, Any]],
    column: str = "ratio",
    by: Sequence[str] = ("workload", "policy"),
    *,
    resamples: int = 1_000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """The distribution of a `column` of `rows`, for each group of rows.

    Args:
        column: a column of numbers.
        by: the columns whose values make a group.
        resamples: how many bootstrap samples make the interval, 1 or more.
        seed: of the bootstrap.

    Returns:
        A row for each group, in the order of their first rows: the columns of `by`, ``n``, ``median``, ``low`` and
        ``high`` (the percentile bootstrap's 95 % confidence interval of the median: Efron, 1979), ``p10`` and ``p90``.

    Checkpoint: never.

    Example:
        >>> from toolrt.teaching import lab
        >>> rows = [{"policy": "serial", "ratio": ratio} for ratio in (1.0, 2.0, 4.0)]
        >>> [(row["median"], row["low"], row["high"]) for row in lab.spread(rows, by=["policy"])]
        [(2.0, 1.0, 4.0)]
    """
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row[column])
    found = []
    for group, values in groups.items():
        draw = random.Random(f"{group} {seed}")
        medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(resamples))
        found.append(
            {
                **dict(zip(by, group, strict=True)),
                "n": len(values),
                "median": statistics.median(values),
                "low": _quantile(medians, 0.025),
                "high": _quantile(medians, 0.975),
                "p10": _quantile(sorted(values), 0.1),
                "p90": _quantile(sorted(values), 0.9),
            }
        )
    return found


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the `ordered` values are: one of them, no mean of two."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
