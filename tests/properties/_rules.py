"""All rules of the fields of a tool's context, and the variants that they catch."""

from __future__ import annotations

from collections.abc import Callable

from tests.properties import _error_rules, _event_rules, _identity_rules, _lane_change_rules, _read_rules
from tests.properties._rule import Variant

RULES: dict[str, Callable[[], None]] = {
    **_identity_rules.RULES,
    **_event_rules.RULES,
    **_lane_change_rules.RULES,
    **_read_rules.RULES,
    **_error_rules.RULES,
}

VARIANTS: dict[str, Variant] = {
    **_identity_rules.VARIANTS,
    **_event_rules.VARIANTS,
    **_lane_change_rules.VARIANTS,
    **_read_rules.VARIANTS,
    **_error_rules.VARIANTS,
}
