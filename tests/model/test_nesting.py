"""How deep an input may be nested."""

from __future__ import annotations

import pytest

from toolrt._plain import NESTING_MOST, json_copy


def nested(levels):
    value = "x"
    for number in range(levels):
        value = [value] if number % 2 else {"k": value}
    return value


def test_input_is_copied_to_a_fixed_depth():
    """Counted, so that it does not depend on how deep the caller's own stack is."""
    assert json_copy(nested(NESTING_MOST)) == nested(NESTING_MOST)
    with pytest.raises(RecursionError, match="nested too deeply"):
        json_copy(nested(NESTING_MOST + 1))


def test_input_that_holds_itself_is_no_endless_copy():
    """A list in itself is nested without end."""
    value = []
    value.append(value)
    with pytest.raises(RecursionError, match="nested too deeply"):
        json_copy(value)
