"""Policies, laws and mutants by name: toolrt's own, or MODULE:NAME of a user's.

Rules.  A module is looked for in the current directory first, as `python -m` does.  It is imported when the option is
read, before anything is run.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.order import LANE_POLICIES, LanePolicy, SlotPolicy, checked_lanes, checked_slots


def lanes_named(name: str, option: str = "--lanes") -> LanePolicy:
    """The lane policy of this `name`, of toolrt or MODULE:NAME.

    Args:
        option: what the name was given as, for errors.

    Raises:
        InputRefused: there is none.
    """
    if name in LANE_POLICIES:
        return LANE_POLICIES[name]
    policy = own(option, name, f"one of {', '.join(LANE_POLICIES)}, or MODULE:NAME of your own")
    try:
        return checked_lanes(name, policy)
    except DefinitionRefused as error:
        raise InputRefused(option, str(error), "Name a lane policy.") from None


def slots_named(name: str | None, option: str = "--slots") -> SlotPolicy | None:
    """The slot policy MODULE:NAME; None for None.

    Args:
        option: what the name was given as, for errors.

    Raises:
        InputRefused: there is none.
    """
    if name is None:
        return None
    policy = own(option, name, "MODULE:NAME of your own")
    try:
        return checked_slots(name, policy)
    except DefinitionRefused as error:
        raise InputRefused(option, str(error), "Name a slot policy.") from None


def own(option: str, name: str, expected: str) -> Any:
    """What the name MODULE:NAME stands for.

    Args:
        option: what the name was given as, for errors.
        expected: what it may be, for errors.

    Raises:
        InputRefused: it is no such name, the module cannot be imported, or has nothing of that name.
    """
    module_name, colon, attribute = name.partition(":")
    if not (colon and module_name and attribute):
        raise InputRefused(option, f"expected {expected}, got {name!r:.60}", "See --help.")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        why = f"the module {module_name!r:.60} cannot be imported: {type(error).__name__}: {error}"
        raise InputRefused(option, why, "Run it in the module's directory, or install the module.") from error
    if not hasattr(module, attribute):
        why = f"the module {module_name!r:.60} has no {attribute!r:.60}"
        raise InputRefused(option, why, "Name something that stands in the module.")
    return getattr(module, attribute)
