"""What one scripted call of a mix is, drawn from the features that its mix has.

Rules.
    1. A mix has a random subset of the features (swarm testing).  A call draws nothing of a feature that its mix does
       not have, so the features of a mix meet often, and the rare ones are not drowned by the rest.
    2. A scripted call keeps its promises: it claims what it touches, and a pure one changes nothing but the state.
    3. Every draw has its simplest value first: no action, no timeout, no failure.

Theory.  Many bugs need two features together and the absence of a third, which hides them: a batch in which half of all
calls are invalid starts few others (Groce et al., "Swarm Testing", ISSTA 2012).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import attrs
from hypothesis import strategies as st

from toolrt.invariants import script
from toolrt.invariants.script import Action, Scripted

__all__ = ["DOING", "FEATURES", "IDLE", "Palette", "call_of", "calls_of"]

#: How many of twenty mixes have each feature of calls.
FEATURES: Mapping[str, int] = {
    # What they do: three or four of these, and one more that every mix has.
    "say": 4,
    "cells": 9,
    "paths": 5,
    "follow": 5,
    "files": 6,
    "state": 9,
    "overwrite": 6,
    "broken": 2,
    "fail": 5,
    "leave": 2,
    "shield": 4,
    "protest": 3,
    # What they are.
    "readers": 10,
    "exclusive": 7,
    "safe": 12,
    "by input": 4,
    "after": 6,
    "sync": 4,
    "finish": 4,
    "timeouts": 6,
    "stops": 8,
    "approvals": 5,
    "invalid": 4,
    "twins": 2,
    "pure": 8,
    "sub-batches": 6,
}

#: Whole seconds for what a call does, halves for its timeout: never a tie.
_SECONDS = st.sampled_from((1.0, 2.0, 3.0))
_TIMEOUT = st.sampled_from((None, 1.5, 0.5, 2.5))

_TEXT = st.sampled_from("pqrs")
_TIMES = st.integers(1, 3)
_EITHER = st.booleans()
#: One of three, and one of six.
_OFTEN = st.sampled_from((False, False, True))
_SELDOM = st.sampled_from((False,) * 5 + (True,))
_APPROVAL = st.sampled_from(("allow", "allow", "allow", "rewrite", "deny", "raise", "misfit", "wider"))
_APPROVAL_AFTER = st.sampled_from((None, 1.0, 0.0, 2.0))
_INVALID = st.sampled_from((None, None, None, None, "unknown", "input"))
#: One of eight does nothing, or is alone.
IDLE = st.sampled_from((True,) + (False,) * 7)
_LEFT = st.sampled_from(("scope", "nursery", "batch"))


@attrs.frozen
class Palette:
    """What calls are drawn from."""

    features: frozenset[str]
    #: The names of cells, files and keys of the state; few, so that calls meet.
    cells: tuple[str, ...] = ("a", "b")
    files: tuple[str, ...] = ("f", "g")
    keys: tuple[str, ...] = ("x", "y")
    max_actions: int = 4
    #: Whether a call may fail for no other reason than that it stops its batch then.
    fails: bool = True
    #: How deep calls open sub-batches; 0: none does.
    depth: int = 0


@cache
def _below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


_Draw = Callable[[st.SearchStrategy[Any]], Any]
_Kind = Callable[[_Draw, Palette], Action]


def _one(draw: _Draw, names: tuple[str, ...]) -> str:
    return names[draw(_below(len(names)))]


def _sleep(draw: _Draw, palette: Palette) -> Action:
    return script.Sleep(draw(_SECONDS))


def _pause(draw: _Draw, palette: Palette) -> Action:
    return script.Pause()


def _say(draw: _Draw, palette: Palette) -> Action:
    return script.Say(draw(_TEXT), draw(_TIMES))


def _read_cell(draw: _Draw, palette: Palette) -> Action:
    return script.ReadCell(_one(draw, palette.cells))


def _add_cell(draw: _Draw, palette: Palette) -> Action:
    return script.AddCell(_one(draw, palette.cells), draw(_TEXT))


#: Cells below a common one.
_PATHS = ("t/a", "t/b", "t", "t/a/c")


def _below_path(draw: _Draw, palette: Palette) -> Action:
    return script.AddCell(_one(draw, _PATHS), draw(_TEXT))


def _read_cells(draw: _Draw, palette: Palette) -> Action:
    return script.ReadCells(_one(draw, ("t", "t/a")))


def _add_cells(draw: _Draw, palette: Palette) -> Action:
    return script.AddCells(_one(draw, ("t", "t/a")), draw(_TEXT))


def _follow(draw: _Draw, palette: Palette) -> Action:
    return script.FollowCell(_one(draw, palette.cells), draw(_TEXT))


def _read_file(draw: _Draw, palette: Palette) -> Action:
    return script.ReadFile(_one(draw, palette.files))


def _write_file(draw: _Draw, palette: Palette) -> Action:
    return script.WriteFile(_one(draw, palette.files), draw(_TEXT))


def _append_file(draw: _Draw, palette: Palette) -> Action:
    return script.AppendFile(_one(draw, palette.files), draw(_TEXT))


def _see_state(draw: _Draw, palette: Palette) -> Action:
    return script.SeeState(_one(draw, palette.keys))


def _change_state(draw: _Draw, palette: Palette) -> Action:
    return script.ChangeState(_one(draw, palette.keys), draw(_TEXT))


def _overwrite_state(draw: _Draw, palette: Palette) -> Action:
    return script.OverwriteState(_one(draw, palette.keys), draw(_TEXT), draw(_EITHER))


def _overwrite_unclaimed(draw: _Draw, palette: Palette) -> Action:
    return script.OverwriteState(_one(draw, palette.keys), draw(_TEXT))


def _break_state(draw: _Draw, palette: Palette) -> Action:
    return script.BreakState()


def _fail(draw: _Draw, palette: Palette) -> Action:
    return script.Fail(draw(_TEXT), draw(_OFTEN))


def _refuse(draw: _Draw, palette: Palette) -> Action:
    return script.Refuse(draw(_TEXT))


def _leave_open(draw: _Draw, palette: Palette) -> Action:
    return script.LeaveOpen(draw(_LEFT))


def _shield(draw: _Draw, palette: Palette) -> Action:
    return script.Shield(draw(_SECONDS))


def _protest(draw: _Draw, palette: Palette) -> Action:
    return script.FailWhenCancelled(draw(_SECONDS), draw(_TEXT))


#: What a call may do by feature, each beside what it can meet.
_KINDS: Mapping[str, tuple[_Kind, ...]] = {
    "say": (_say,),
    "state": (_see_state, _change_state, _change_state),
    "cells": (_read_cell, _add_cell, _add_cell),
    "overwrite": (_overwrite_state, _overwrite_state, _change_state),
    "files": (_read_file, _write_file, _append_file),
    "paths": (_below_path, _read_cells, _add_cells),
    "follow": (_follow, _add_cell),
    "fail": (_fail, _refuse),
    "broken": (_break_state,),
    "shield": (_shield,),
    "protest": (_protest,),
    "leave": (_leave_open,),
}


#: The features that say what calls do.
DOING = tuple(_KINDS)

#: What a call may do that only looks: no step of it keeps a later one out, but by the state.
_LOOKS = frozenset((_pause, _sleep, _say, _see_state, _change_state, _read_cell, _read_cells, _read_file, _shield))

#: Of these what claims: a call that only reads is kept out by nothing that stops the batch.
_READS = frozenset((_read_cell, _read_cells, _read_file))

#: What a call of a pure tool may do.  It claims nothing: it keeps its tickets until it is known that it need not run
#: again, and no event says so to the law on needless waits.
_PURE = frozenset((_pause, _sleep, _see_state, _change_state, _overwrite_unclaimed, _break_state, _refuse))


@lru_cache(10_000)
def _kinds(features: frozenset[str], only: frozenset[_Kind] | None) -> tuple[_Kind, ...]:
    found = [kind for name, kinds in _KINDS.items() if name in features for kind in kinds * 2]
    if only is _LOOKS:
        found += [_sleep, *(kind for kind in found if kind in _READS)]
    if only is _PURE:
        found = [_overwrite_unclaimed if kind is _overwrite_state else kind for kind in found]
    return tuple(kind for kind in (_pause, _sleep, *found) if only is None or kind in only)


@st.composite
def _action(draw: st.DrawFn, palette: Palette, only: frozenset[_Kind] | None) -> Action:
    kinds = _kinds(palette.features, only)
    return kinds[draw(_below(len(kinds)))](draw, palette)


def _actions(palette: Palette, only: frozenset[_Kind] | None) -> st.SearchStrategy[list[Action]]:
    return st.lists(_action(palette, only), min_size=min(1, palette.max_actions), max_size=palette.max_actions)


def _promises(bare: Scripted, features: frozenset[str]) -> tuple[str, ...]:
    """What the tool of such a call may promise, simplest first."""
    alone = ("nothing",) if "exclusive" in features else ()
    if bare.follows:
        # A call whose claims look at what others change keeps its promises if it says so, or runs alone.
        return ("after", "after", *alone)
    if bare.claims:
        by_input = ("by input",) if "by input" in features else ()
        return ("claims", "claims", *by_input, *alone, *(("after",) if "after" in features else ()))
    return (*(("safe", "safe") if "safe" in features else ()), "claims", *alone)


@st.composite
def _call(draw: st.DrawFn, palette: Palette, actions: Any, looks: Any, pures: Any, children: Any) -> Scripted:
    features = palette.features
    does: list[Action] = []
    pure = "pure" in features and draw(_OFTEN)
    if not draw(IDLE):
        does = draw(pures if pure else looks if "readers" in features and draw(_EITHER) else actions)
    if pure:
        children = None
    if children is not None and draw(_OFTEN):
        sub_batch = script.SubBatch(draw(children), not draw(_SELDOM), draw(_OFTEN), draw(_OFTEN))
        does = [*does, sub_batch] if draw(_EITHER) else [sub_batch, *does]
    fields: dict[str, Any] = {"pure": pure}
    if "stops" in features and draw(_OFTEN):
        fields["stops"] = True
        if palette.fails and not pure and draw(_EITHER):
            does = [*does, *([script.Sleep(draw(_SECONDS))] if draw(_EITHER) else []), _fail(draw, palette)]
    bare = Scripted(does)
    is_async = bare.sub_batches or any(isinstance(action, script.LeaveOpen) for action in does)
    fields["says"] = _one(draw, _promises(bare, features - {"exclusive"} if pure else features))
    if "sync" in features and not is_async and draw(_OFTEN):
        fields["sync"] = True
    if "finish" in features and draw(_OFTEN):
        fields["interrupt"] = "finish"
    if "timeouts" in features:
        fields["timeout"] = draw(_TIMEOUT)
    if "invalid" in features:
        fields["invalid"] = draw(_INVALID)
    if "twins" in features and draw(_OFTEN):
        fields["call_id"] = "twice"
    if "approvals" in features and not draw(_OFTEN):
        fields["approval"] = draw(_APPROVAL)
        fields["approval_after"] = draw(_APPROVAL_AFTER)
    return Scripted(does, **fields)


@lru_cache(10_000)
def calls_of(palette: Palette, min_calls: int, max_calls: int) -> st.SearchStrategy[list[Scripted]]:
    """Batches of so many calls, drawn from `palette`."""
    return st.lists(call_of(palette), min_size=min_calls, max_size=max_calls)


@lru_cache(10_000)
def call_of(palette: Palette) -> st.SearchStrategy[Scripted]:
    """One call, drawn from `palette`."""
    children = None
    if palette.depth > 0 and "sub-batches" in palette.features:
        inner = attrs.evolve(palette, max_actions=min(2, palette.max_actions), depth=palette.depth - 1)
        # Mostly several, and few more than there are slots: one child alone meets no other.
        children = calls_of(inner, 1, 3) | calls_of(inner, 2, 4)
    actions, looks, pures = (_actions(palette, only) for only in (None, _LOOKS, _PURE))
    return _call(palette, actions, looks, pures, children)
