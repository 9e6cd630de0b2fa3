"""Builds the error of a stale write: the key, the change that it would undo, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable

from toolrt.model import State
from toolrt.model._watched_state import Part, part_name
from toolrt.order._merge import has_changed
from toolrt.order._record import MergedCall


def stale_text(part: Part, seen: State, earlier: Iterable[tuple[int, str, MergedCall | None]]) -> str:
    """The error of a call that would set `part` of the state from an old value.

    Args:
        part: a key or a field.
        seen: the state that the call's lane started with.
        earlier: index, name and merge of the calls of that lane before it.
    """
    changed = [
        f"call {index} ({name})"
        for index, name, merge in earlier
        if merge is not None and has_changed(part, merge.before, merge.after)
    ]
    who = changed[-1] if changed else "an earlier call"
    name = part_name(part)
    if isinstance(part, str):
        what, right = "key", f"lambda state: state.set({name}, <a value made from state.get({name})>)"
        remedy = f"Or let every tool that changes the key claim Claim(('state', {name}), WRITE)"
    else:
        what, right = "field", f"lambda state: state.replace({name}=<a value made from state.{name}>)"
        remedy = "Or let the tool run alone, with tool(alone=True)"
    return (
        f"stale write of state {what} {name}: {who} changed it after this call had read it from ctx.state, and a "
        f"modifier of this call sets it from the old value. No modifier of this call was applied. "
        f"Return a modifier that reads the {what} from the state that it is given: {right}. {remedy}."
    )
