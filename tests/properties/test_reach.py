"""Random mixes reach the rows of the state machines: what no example reaches, no law can judge."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from toolrt import sim
from toolrt.order import _states
from toolrt.testing import Mix, schedules, tool_mixes

#: The examples of the sample: as many as the law tests draw in three runs.
EXAMPLES = 1_500

#: Rows that random mixes reach in fewer than one of a thousand examples, so not in each sample.
RARE = {
    "placed stand, asking take, asking leave, asking settle, asking skip": "claims that look at what others change",
    "returned repeat, undecided repeat, again spawn, respawned start": "a pure call that is stale",
    "again settle, again skip, respawned settle, respawned skip": "the same, and a cancel or a stop before it has run",
    "ready skip, spawned skip, running skip, returned skip, undecided skip": "a stop beside calls that only read",
    "dropped skip, dropped end, dropped yield, lingering end, finishing skip": "the same, and it does not end at once",
    "spawned settle": "a cancel between a call's spawn and its first step",
    "closed close": "a claim on a state key that splits a lane",
    "open stop": "a stop while calls still come",
}

#: Rows that no mix reaches, and what does.
UNREACHED = {
    "finishing yield, finishing close, lingering close, dropped close, answered close": "threads, Ctrl-C, a torn run",
    "answered skip": "a stop inside another stop",
    "full close, open leave": "a block that is left by an exception",
    "sealed seal, ending seal": "a second `seal()`",
}


def _named(table: dict[str, str]) -> set[str]:
    return {row for rows in table for row in rows.split(", ")}


def rows_reached(examples: int, number: int = 0) -> Counter[str]:
    """How often random mixes go through each row."""
    reached: Counter[str] = Counter()
    words = {id(move.leads): move.value for moves in MOVES for move in moves}

    def look(self: Any, state: Any) -> Any:
        found = dict.__getitem__(self, state)
        reached[f"{state.name.lower()} {words[id(self)]}"] += 1
        return found

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(mix=tool_mixes(cancel=True) | tool_mixes(), schedule=schedules())
    def draw(mix: Mix, schedule: list[int]) -> None:
        sim.run(mix.program(), sim.Choices(schedule))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_states.Rows, "__getitem__", look, raising=False)
        patch.setattr(
            _states.Rows, "get", lambda self, state: look(self, state) if state in self else None, raising=False
        )
        draw()
    return reached


MOVES: tuple[Any, ...] = (_states.CallMove, _states.LaneMove, _states.BatchMove)

EVERY = {
    f"{state.name.lower()} {move.value}"
    for table in (_states.CALL, _states.LANE, _states.BATCH)
    for state, move in table  # type: ignore[attr-defined]
}


@pytest.mark.slow
def test_random_mixes_reach_the_rows_of_the_machines() -> None:
    """A fixed sample goes through every row but those that are named above, and through some of the rare ones."""
    reached = set(rows_reached(EXAMPLES))
    rare, unreached = _named(RARE), _named(UNREACHED)
    assert EVERY - rare - unreached - reached == set()
    assert len(rare & reached) >= len(rare) // 4, sorted(rare - reached)


def test_rows_that_are_named_are_rows() -> None:
    """A row that is gone is named no longer, and none is named twice."""
    rare, unreached = _named(RARE), _named(UNREACHED)
    assert rare | unreached <= EVERY
    assert not rare & unreached


def test_few_examples_reach_a_third_of_the_rows() -> None:
    """What the quickest profile draws goes through a third of the tables."""
    assert len(rows_reached(60)) >= len(EVERY) // 3
