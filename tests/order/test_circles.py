"""Circles against their definition: a call that waits is refused where no order of ends lets it start."""

from __future__ import annotations

import re
from itertools import pairwise

import attrs
from hypothesis import example, given, settings

from tests.order._choices import Choices, choices
from toolrt.model import WRITE, Claim, ToolCall
from toolrt.order import CallRecord, CallState, ClaimTable, Holds, LanePlace, Siblings, Status, circle_through

#: Where a call may be when another one is held against it.
STATES = (
    CallState.RUNNING,
    CallState.WAITING,
    CallState.READY,
    CallState.PLACED,
    CallState.COMPLETED,
    CallState.ASKING,
    CallState.SPAWNED,
)
ENDED = (Status.COMPLETED, Status.YIELDED)


@attrs.frozen(eq=False)
class OpenBatch:
    """What `CallRecord.opened` knows of a batch."""

    records: Siblings


class World:
    """Some batches, others that their calls have opened, and the tables in which they wait."""

    def __init__(self, choices: Choices) -> None:
        self.batches: list[Siblings] = []
        tables = [ClaimTable() for _ in range(2)]
        for number in range(1 + choices.below(4)):
            calls = Siblings()
            calls.limit = choices.one_of((9, 1, 2))
            earlier = [call for batch in self.batches for call in batch if call.status is Status.EXECUTING]
            self.batches.append(calls)
            if number and earlier:
                opener = choices.one_of(earlier)
                opener.opened = (*opener.opened, OpenBatch(calls))
            for index in range(1 + choices.below(3)):
                call = CallRecord(ToolCall(str(index), "tool", {}), index, str(number), 0.0, calls)
                call.state = choices.one_of(STATES)
                call.place = LanePlace(choices.below(2)) if call.state is CallState.PLACED else LanePlace(0)
                calls.append(call)
                if call.state in (CallState.PLACED, CallState.COMPLETED):
                    continue
                for table in tables:
                    claims = [Claim(choices.one_of("ab"), WRITE) for _ in range(choices.below(3))]
                    if claims and (ticket := table.take(claims, call)).missing:
                        call.missing += 1
                        call.tickets = (*call.tickets, ticket)
                if call.missing and call.state is not CallState.ASKING:
                    call.state = CallState.WAITING
                elif call.state is CallState.WAITING and not call.missing:
                    call.state = CallState.READY

    def needs(self, call: CallRecord) -> tuple[list[CallRecord], list[CallRecord]]:
        """The calls that must all end before it can, and those that must leave a slot."""
        every, some = list[CallRecord](), list[CallRecord]()
        if call.status is Status.EXECUTING:
            every = [one for batch in call.opened for one in batch.records]
        elif call.status is Status.QUEUED and call.state is CallState.PLACED:
            asking = [one for one in call.siblings if one.state is CallState.ASKING and one.lane == call.lane]
            every = [one for one in call.siblings if (one.lane or 0) < (call.lane or 0)] + asking
        elif call.status is Status.QUEUED and call.state.holds is Holds.TICKETS:
            every = [owner for ticket in call.tickets for owner in ticket.waits_for()]
            holding = [one for one in call.siblings if one.state.holds is Holds.SLOT]
            some = holding if len(holding) >= call.siblings.limit else []
        return [one for one in every if one.status not in ENDED], some

    def ends(self, call: CallRecord) -> bool:
        """Whether the call ends, if its earlier siblings do, as long as more calls can end."""
        calls = [one for batch in self.batches for one in batch]
        ended = {id(one) for one in call.siblings if one is not call}
        while True:
            more = set()
            for one in calls:
                every, some = self.needs(one)
                holding = sum(id(other) not in ended for other in some)
                if all(id(other) in ended for other in every) and holding < one.siblings.limit:
                    more.add(id(one))
            if more <= ended:
                return id(call) in ended
            ended |= more


@settings(max_examples=8 * settings.default.max_examples)
@example(choices=Choices(b"\x80V\xab\x00\x00\x00%V" + bytes(15) + b"V"))  # two calls hold the slot of a limit of one
@given(choices=choices(70))
def test_call_is_refused_where_it_would_never_start(choices: Choices) -> None:
    """What it says names a way of calls where each waits for the next, and that comes back to where it was."""
    world = World(choices)
    call = world.batches[-1][-1]
    why = circle_through(call)
    assert (why is None) == world.ends(call)
    if why is not None:
        named = [(int(index), batch) for index, batch in re.findall(r"call (\d+) \(tool\) of batch (\d+)", why)]
        way = [call, *(world.batches[int(batch)][index] for index, batch in named)]
        for one, following in pairwise(way):
            every, some = world.needs(one)
            assert any(following is other for other in (*every, *some))
        assert any(way[-1] is one for one in way[:-1])
        assert len({id(one) for one in way}) == len(way) - 1
