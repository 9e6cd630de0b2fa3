"""What a state machine refuses changes nothing: the table is asked before anything is written."""

from __future__ import annotations

import pytest

from tests.runtime._tools import Diary, call, runtime
from toolrt import Outcome
from toolrt.errors import InternalError
from toolrt.model import WRITE, Claim
from toolrt.order import CallMove, ClaimTable, Ticket, give_back


@pytest.mark.parametrize("how", [CallMove.SETTLE, CallMove.SKIP])
async def test_second_settling_changes_nothing(how: CallMove) -> None:
    """The call keeps its result, in the batch's outcome, too."""
    async with runtime(Diary().tool("a")).open_batch() as batch:
        tracked = batch.submit(call("a"))
        batch.seal()
        async for _ in batch:
            pass
        (before,) = tracked.results
        with pytest.raises(InternalError, match="toolrt bug"):
            batch._engine.settle(batch._engine.records[0], Outcome.ERROR, None, "again", how)
        assert tracked.results == [before]
    assert batch.outcome.results == (before,)
    assert batch.outcome.results[0].outcome is Outcome.OK


@pytest.mark.parametrize("twice", ["released", "listed"])
def test_ticket_given_back_twice_takes_no_other_along(twice: str) -> None:
    """Of several tickets none leaves the order where one of them may not."""
    table = ClaimTable()
    told: list[str] = []
    first, second, third = (table.take([Claim("f", WRITE)], name, told.append) for name in "abc")
    released = table.take([Claim("g", WRITE)], "d")
    released.release()
    wrong = [first, released] if twice == "released" else [first, first]
    for give in (table.release, lambda tickets: give_back(tickets, _order)):
        with pytest.raises(InternalError, match="given back twice"):
            give(wrong)
    assert (first.released, second.ready, told) == (False, False, [])
    table.release([first, second, third])
    assert table.statistics() == ClaimTable().statistics()


def _order(owner: str) -> int:
    return ord(owner)


def test_ticket_tells_whether_it_was_given_back() -> None:
    """A refusal leaves the ticket as it was."""
    ticket: Ticket = ClaimTable().take([Claim("f", WRITE)])
    ticket.release()
    with pytest.raises(InternalError):
        ticket.release()
    assert ticket.released
