"""All laws in every trace of every small batch."""

from __future__ import annotations

import json

import pytest

from toolrt.errors import DefinitionRefused
from toolrt.invariants import KINDS, MUTANTS, Mix, all_batches, exhaust


def test_batches_are_all_there_are() -> None:
    """Every sequence of kinds, in order."""
    assert len(list(all_batches(2))) == len(KINDS) ** 2


def test_laws_hold_in_every_trace_of_one_call() -> None:
    """Ten batches of one call each."""
    found = exhaust(all_batches(1))
    assert found.ok, str(found)
    assert found.batches == len(KINDS)
    assert found.traces >= found.batches
    assert json.loads(json.dumps(found.to_json()))["ok"]


def test_laws_hold_in_every_trace_of_two_calls_of_some_kinds() -> None:
    """Calls that conflict, that are alone, and that stop the batch."""
    kinds = [KINDS[name] for name in ("reads a cell", "writes the cell", "alone", "fails and stops")]
    found = exhaust(all_batches(2, kinds))
    assert found.ok, str(found)
    assert found.batches == 16


def test_a_broken_runtime_is_found() -> None:
    """Where a claim does not wait for the one before it, some trace breaks a law."""
    calls = list(all_batches(2, [KINDS["appends to a file"]]))
    assert exhaust(calls).ok
    with MUTANTS["files are not ordered"].apply():
        found = exhaust(calls)
    assert not found.ok
    assert "same_file_in_call_order" in str(found)


def test_a_batch_that_is_cut_short_is_unfinished() -> None:
    """With a budget that is too small, nothing was shown."""
    found = exhaust([Mix([KINDS["says something"]])], most=1)
    assert not found.ok
    assert [why for _, why in found.unfinished] == ["the budget ran out"]


def test_the_number_of_calls_is_checked() -> None:
    """No batch has no call."""
    with pytest.raises(DefinitionRefused, match="1 or more"):
        all_batches(0)
