"""Be the scheduler: what can be chosen, where it leads, and what is said of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrt import sim
from toolrt.errors import MisuseError
from toolrt.teaching.litmus import LITMUS, Litmus
from toolrt.teaching.play import Game

_SMALL = [
    name
    for name, litmus in LITMUS.items()
    if litmus.interleavings is not None and litmus.interleavings.number <= 30 and litmus.wrong
]


def _ends(game: Game) -> set[tuple[str, ...]]:
    """Every way to the end, as a player finds them: each option, then back."""
    if game.over:
        return {game.execution.schedule.tasks}
    found = set()
    for choice in range(len(game.options)):
        game.choose(choice)
        found |= _ends(game)
        game.back()
    return found


@pytest.mark.parametrize("name", ["lost_update_2x1", "store_buffering", "two_locks"])
def test_player_can_reach_every_schedule_and_no_other(name: str) -> None:
    """Choosing each option at each turn gives what an exhaustive search gives, and then no class is unseen."""
    game = Game(LITMUS[name])
    searched: set[tuple[str, ...]] = set()
    sim.explore(
        LITMUS[name].program,
        sim.Exhaustive(),
        lambda execution: searched.add(execution.schedule.tasks) or True,  # type: ignore[func-returns-value]
    )
    assert _ends(game) == searched
    assert game.classes_unseen == 0


def test_classes_of_the_gallery_are_counted_alike() -> None:
    """Where everything that steps touch is reported, a player's classes are those that a search counts."""
    for name in ("lost_update_2x1", "lost_update_3x1", "store_buffering", "message_passing", "aba"):
        game = Game(LITMUS[name])
        assert LITMUS[name].classes is not None
        assert game.classes_unseen == LITMUS[name].classes.number  # type: ignore[union-attr]


@pytest.mark.drawn(15)
@pytest.mark.parametrize("name", _SMALL)
def test_following_the_hints_breaks_it(name: str) -> None:
    """Whoever does what the hints say ends in the bug."""
    game = Game(LITMUS[name])
    while not game.over:
        game.choose(game.hint().task)
    assert game.broken
    assert game.outcome in LITMUS[name].wrong


@pytest.mark.seldom
@settings(max_examples=30)
@given(data=st.data())
def test_hint_is_right_wherever_one_stands(data: st.DataObject) -> None:
    """A hint leads to the bug; where there is none, every way from there ends well."""
    game = Game(LITMUS["lost_update_3x1"])
    for _ in range(data.draw(st.integers(0, 6))):
        if not game.over:
            game.choose(data.draw(st.sampled_from([option.task for option in game.options])))
    hint = game.hint()
    if hint.task is None:
        assert hint.complete
        assert game.over or not _outcomes(game) & LITMUS["lost_update_3x1"].wrong
    else:
        while not game.over:
            game.choose(game.hint().task)
        assert game.broken


def _outcomes(game: Game) -> set[int]:
    if game.over:
        return {game.outcome}
    found = set()
    for choice in range(len(game.options)):
        game.choose(choice)
        found |= _outcomes(game)
        game.back()
    return found


def test_option_says_what_the_step_then_does() -> None:
    """What was promised of a step before it was chosen is what it did."""
    game = Game(LITMUS["lost_update_2x1"])
    while not game.over:
        option, place = game.options[-1], len(game.steps)
        game.choose(option.task)
        assert (game.steps[place].task, game.steps[place].does) == (option.task, option.does)
        assert game.steps[place].chosen
    assert len(game.steps) > 1


def test_back_and_restart_lead_where_one_was() -> None:
    """After back everything is as before the choice, at the beginning nothing happens; restart is the beginning."""
    game = Game(LITMUS["lost_update_2x1"])
    before = (game.steps, game.options)
    game.back()
    assert (game.steps, game.options) == before
    game.choose(1)
    after_one = (game.steps, game.options)
    game.choose(0)
    game.back()
    assert (game.steps, game.options) == after_one
    game.restart()
    assert (game.steps, game.options) == before


@pytest.mark.parametrize("who", [2, -1, "main.9", None, True + 5])
def test_who_cannot_run_is_refused(who: object) -> None:
    """Nothing is changed, and who could run is named."""
    game = Game(LITMUS["lost_update_2x1"])
    with pytest.raises(MisuseError, match=r"who could is main\.0, main\.1"):
        game.choose(who)  # type: ignore[arg-type]
    assert len(game.steps) == 1


def test_outcome_before_the_end_is_refused() -> None:
    """There is none yet."""
    with pytest.raises(MisuseError, match="before the program has ended"):
        _ = Game(LITMUS["lost_update_2x1"]).outcome


def test_end_takes_no_further_choice() -> None:
    """When it is over nobody can run."""
    game = Game(LITMUS["lost_update_2x1"])
    while not game.over:
        game.choose(0)
    assert game.options == []
    with pytest.raises(MisuseError, match="none: it is over"):
        game.choose(0)


def test_program_too_large_to_count_says_so() -> None:
    """None, not a guess."""
    large = next(
        litmus
        for litmus in LITMUS.values()
        if litmus.interleavings is not None
        and litmus.interleavings.number > 10**9
        and (litmus.classes is None or litmus.classes.number > 10**5)
    )
    assert Game(large).classes_unseen is None


def test_deadlock_is_an_end() -> None:
    """A program that can end in a deadlock is over when it has."""
    litmus: Litmus = LITMUS["two_locks"]
    game = Game(litmus)
    while not game.over:
        game.choose(game.hint().task)
    assert game.outcome == "Deadlock"


@pytest.mark.seldom
def test_task_keeps_its_number() -> None:
    """Whichever others can run, and in the next game too."""
    game = Game(LITMUS["dining_3"])
    known: dict[str, int] = {}
    for turn in range(40):
        if game.over:
            game.restart()
        for option in game.options:
            assert known.setdefault(option.task, option.number) == option.number
        game.choose(turn % len(game.options))
    assert sorted(known.values()) == list(range(1, len(known) + 1))
    assert [known[f"main.{seat}"] for seat in range(3)] == [1, 2, 3]
