"""Random mixes reach the rows of the state machines: what no example reaches, no law can judge."""

from __future__ import annotations

import pytest

from tests._rows import RowWatch, known_pairs
from toolrt import sim
from toolrt.order import _states
from toolrt.testing import Mix, shipped_examples
from toolrt.testing._mutation_score import drawn

#: The examples of the sample: as many as the law tests draw in three runs.
EXAMPLES = 1_000

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


def watched(examples: int, number: int = 0) -> RowWatch:
    """Watch the runtime run random mixes."""
    watch = RowWatch()

    def run(example: tuple[Mix, list[int]]) -> bool:
        mix, schedule = example
        sim.run(mix.program(), sim.Choices(schedule))
        return True

    with watch:
        drawn(shipped_examples(), number, examples, run)
    return watch


EVERY = {
    f"{state.name.lower()} {move.value}"
    for table in (_states.CALL, _states.LANE, _states.BATCH)
    for state, move in table  # type: ignore[attr-defined]
}


@pytest.mark.seldom
@pytest.mark.slow
def test_random_mixes_reach_the_rows_of_the_machines() -> None:
    """A fixed sample goes through every row but those that are named above, and through some of the rare ones.

    It lets half of the rows of conflicting calls meet that many times as many examples let meet.
    """
    sample = watched(EXAMPLES)
    reached = set(sample.rows)
    assert len(known_pairs() & set(sample.pairs)) >= len(known_pairs()) // 2
    rare, unreached = _named(RARE), _named(UNREACHED)
    assert EVERY - rare - unreached - reached == set()
    assert len(rare & reached) >= len(rare) // 4, sorted(rare - reached)


def test_rows_that_are_named_are_rows() -> None:
    """A row that is gone is named no longer, and none is named twice."""
    rare, unreached = _named(RARE), _named(UNREACHED)
    assert rare | unreached <= EVERY
    assert not rare & unreached


@pytest.mark.seldom
def test_few_examples_reach_a_third_of_the_rows() -> None:
    """What the quickest profile draws goes through a third of the tables."""
    assert len(watched(60).rows) >= len(EVERY) // 3
