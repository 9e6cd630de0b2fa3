"""What searches have missed: a reduction, an enumeration and what is written beside each program are one set."""

from __future__ import annotations

import pytest

from tests.sim.missed import MISSED
from toolrt import sim


def _texts(outcomes: object) -> list[str]:
    return sorted(map(str, outcomes))  # type: ignore[call-overload]


@pytest.mark.drawn(20)
@pytest.mark.parametrize("name", MISSED)
def test_missed_program_ends_in_exactly_what_is_written(name: str) -> None:
    """Every schedule, and one of each class, has these outcomes; where a reduction does not see all, it says so."""
    missed = MISSED[name]
    is_in_threads = name.startswith("thread_")
    every = sim.explore(missed.program, sim.Exhaustive(), track=is_in_threads, **missed.options)
    assert (every.verdict, _texts(every.outcomes)) == (sim.PASS, _texts(missed.outcomes)), every
    reduced = sim.explore(missed.program, sim.DPOR(), track=True, **missed.options)
    if missed.is_seen:
        assert (reduced.verdict, _texts(reduced.outcomes)) == (sim.PASS, _texts(missed.outcomes)), reduced
    else:
        assert reduced.verdict is sim.INCONCLUSIVE, reduced


def test_missed_programs_are_sixty_and_more() -> None:
    """So many were asked for, and all but a few are seen whole."""
    assert len(MISSED) > 60
    assert [name for name, missed in MISSED.items() if not missed.is_seen] == ["finalize"]
