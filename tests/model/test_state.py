"""The state: a value."""

from __future__ import annotations

import copy
import pickle
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrt import State
from toolrt.errors import DefinitionRefused
from toolrt.model._watched_state import StateReads, watched


def test_state_set_gives_a_new_one() -> None:
    """The old one stays as it was."""
    before = State({"a": 1})
    after = before.set("a", 2).set("b", 3)
    assert before == State({"a": 1})
    assert after == State({"b": 3, "a": 2})


_KEYS = st.sampled_from([f"key {number}" for number in range(0, 400, 3)])


@given(
    size=st.sampled_from([0, 60, 64, 100, 300]),
    changes=st.lists(st.one_of(_KEYS, st.dictionaries(_KEYS, st.integers(), max_size=20)), max_size=40),
)
def test_every_version_of_a_state_is_as_a_dict_was(size: int, changes: list[str | dict[str, int]]) -> None:
    """Content, number and order of the keys, also of those that later ones were made of; a key alone is deleted."""
    model: dict[str, Any] = {f"key {number}": number for number in range(size)}
    state, versions = State(model), [(State(model), dict(model))]
    for change in changes:
        if isinstance(change, dict):
            state, model = state.update(change), {**model, **change}
        elif change in model:
            state = state.delete(change)
            model = {key: value for key, value in model.items() if key != change}
        else:
            state, model = state.set(change, -1), {**model, change: -1}
        versions.append((state, dict(model)))
    for seen, wanted in versions:
        assert list(seen.items()) == list(wanted.items())
        assert len(seen) == len(wanted)
        assert seen == State(wanted)
        assert pickle.loads(pickle.dumps(seen)) == copy.deepcopy(seen) == seen
        assert repr(seen) == repr(State(wanted))
    assert state.to_json() == State(model).to_json()


def test_state_does_not_change_in_place() -> None:
    """Neither by attribute nor through the mapping it was made of."""
    values = {"a": 1}
    state = State(values)
    values["a"] = 2
    assert state["a"] == 1
    with pytest.raises(AttributeError, match="replace"):
        state.working_dir = PurePath("x")  # type: ignore[misc]
    with pytest.raises(AttributeError, match="delete"):
        del state.working_dir


def test_state_fields_stand_beside_the_mapping() -> None:
    """A key and a field of one name are two things, and both count for equality."""
    state = State({"working_dir": 1}, working_dir="src")
    assert state["working_dir"] == 1
    assert state.working_dir == PurePath("src")
    assert state != State({"working_dir": 1})
    assert state.replace(working_dir=None) == State({"working_dir": 1})


def test_state_keeps_its_fields_when_a_key_is_set() -> None:
    """set, update and delete change the mapping alone."""
    state = State({"a": 1}, context_budget=5, error_signatures=("x",))
    for after in (state.set("b", 1), state.update({"c": 2}), state.delete("a")):
        assert (after.context_budget, after.error_signatures) == (5, ("x",))


def test_state_is_a_mapping() -> None:
    """get, in, len, iteration, dict()."""
    state = State({"a": 1, "b": 2})
    assert (state.get("c", 3), "a" in state, len(state), dict(state)) == (3, True, 2, {"a": 1, "b": 2})
    assert len(State()) == 0


def test_state_repr_can_be_read_back() -> None:
    """Only what differs from the empty state is shown."""
    assert repr(State()) == "State()"
    assert repr(State({"a": 1}, working_dir="src", context_budget=3)) == (
        "State({'a': 1}, working_dir='src', context_budget=3)"
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: State([("a", 1)]),  # type: ignore[arg-type]
        lambda: State({1: 2}),  # type: ignore[dict-item]
        lambda: State(working_dir=3),  # type: ignore[arg-type]
        lambda: State(context_budget=-1),
        lambda: State(context_budget=True),
        lambda: State(error_signatures="abc"),  # type: ignore[arg-type]
        lambda: State().replace(nothing=1),
    ],
)
def test_state_refuses_what_cannot_be(make: Any) -> None:
    """The text says what was expected and got."""
    with pytest.raises(DefinitionRefused, match="expected"):
        make()


def test_state_can_be_copied_and_pickled() -> None:
    """Copies are equal states."""
    state = State({"a": [1]}, working_dir="src", context_budget=3)
    assert copy.copy(state) == state
    assert copy.deepcopy(state) == state
    assert pickle.loads(pickle.dumps(state)) == state


def test_update_takes_a_mapping() -> None:
    """Nothing else."""
    with pytest.raises(DefinitionRefused, match="a mapping of keys to values"):
        State().update(5)  # type: ignore[arg-type]


def test_state_with_a_field_alone_is_true() -> None:
    """A state is false where it equals an empty one, so that `state or State()` drops nothing."""
    assert State(context_budget=500)
    assert State({"k": None})
    assert not State()
    assert watched(State(context_budget=500), StateReads())
    reads = StateReads()
    assert not watched(State(), reads)
    assert reads.has_read(("field", "context_budget"))
