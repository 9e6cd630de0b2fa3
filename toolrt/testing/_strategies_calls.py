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

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import attrs
from hypothesis import strategies as st

from toolrt.invariants import script
from toolrt.invariants.script import Action, Scripted

#: How many of twenty mixes have each feature of calls.
FEATURES: Mapping[str, int] = {
    # What they do: three or four of these, and one more that every mix has.
    "say": 4,
    "cells": 9,
    "paths": 5,
    "places": 5,
    "rates": 3,
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
_SECONDS = (1.0, 2.0, 3.0)
_TIMEOUT = (None, 1.5, 0.5, 2.5)

_TEXT = tuple("pqrs")
_TIMES = (1, 2, 3)
_EITHER = (False, True)
#: Two of three, one of three, and one of six.
_MOSTLY = (False, True, True)
_OFTEN = (False, False, True)
_SELDOM = (False,) * 5 + (True,)
_APPROVAL = ("allow", "allow", "narrow", "rewrite", "deny", "raise", "misfit", "wider")
_APPROVAL_AFTER = (None, 1.0, 0.0, 2.0)
_INVALID = (None, None, None, None, "unknown", "input")
#: One of eight does nothing, or is alone.
IDLE = (True,) + (False,) * 7
_LEFT = ("scope", "nursery", "batch")


@attrs.frozen
class Palette:
    """What calls are drawn from."""

    features: frozenset[str]
    #: The names of cells, files and keys of the state; few, so that calls meet.
    cells: tuple[str, ...] = ("a", "b")
    files: tuple[str, ...] = ("f", "g")
    keys: tuple[str, ...] = ("x", "y")
    #: How many places a thing has, as calls say it; calls that do not agree never meet.
    places: tuple[int | None, ...] = (2,)
    max_actions: int = 4
    #: The family of actions: each call that does something does one of it first; None: as drawn.
    first: str | None = None
    #: Whether a call may fail for no other reason than that it stops its batch then.
    fails: bool = True
    #: How deep calls open sub-batches; 0: none does.
    depth: int = 0
    #: How many calls a sub-batch has, at least and at most, but for the simplest.
    children: tuple[int, int] = (1, 3)
    #: Whether calls last at least a second, each as long as the others or longer or shorter.
    uneven: bool = False
    #: The features that most calls have; of the others one call in three has each.
    often: frozenset[str] = frozenset()


@cache
def _below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


#: When calls end: as drawn, in one instant, in reversed order, in call order, in any order.
_ENDS = (None, None, None, "tied", "reversed", "forward", "any")
_UNEVEN_ENDS = (None, "tied", "reversed", "forward", "any", "any")
_RARELY = (False, False, False, True)
_RANKS = st.binary(max_size=8)

Draw = Callable[[st.SearchStrategy[Any]], Any]
_Calls = st.SearchStrategy[list[Scripted]]

#: Takes one of the options.
_Pick = Callable[[Sequence[Any]], Any]

#: One number is one action: which kind it is, times so many, and which of that kind.
_OF_A_KIND = 48


class _Digits:
    """Takes one option after the other by the digits of a number."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, options: Sequence[Any]) -> Any:
        self._left, place = divmod(self._left, len(options))
        return options[place]


def can_be_beside(call: Scripted, others: Sequence[Scripted]) -> bool:
    """Whether a call may be in a batch beside the one of the `others`.

    It leaves nothing behind, all say what they touch, and none gives a rate or a resource with places another number.
    """
    family = [each for one in others for each in one.family]
    counted = {claim for each in family for claim in each.claims if claim.slots}
    agree = len(counted) == len({claim.resource for claim in counted})
    says = agree and not call.thread and all(each.says != "nothing" for each in family)
    return says and all(isinstance(action, script.LEAVES_NOTHING) for action in call.does)


def one_of(draw: Draw, options: Sequence[Any]) -> Any:
    """One of the options, simplest first.

    All small draws are integers.  Hypothesis makes five of six examples by copying one draw over another of the same
    label, and takes the label at random; so these take no more than their share.
    """
    return options[draw(_below(len(options)))]


@attrs.frozen(eq=False)
class _Kind:
    """One kind of action: the record that it is, and the options for each of its fields, simplest first."""

    record: Callable[..., Action]
    #: For each field the options, or the name of those that the palette has.
    fields: tuple[str | tuple[Any, ...], ...] = ()

    def of(self, pick: _Pick, palette: Palette) -> Action:
        """One action of this kind; a field with a single option takes nothing from `pick`."""
        options = [getattr(palette, field) if isinstance(field, str) else field for field in self.fields]
        return self.record(*map(pick, options))


#: Cells below a common one.
_PATHS = ("t/a", "t/b", "t", "t/a/c")

#: What is above some of them; the last is above everything.
_ABOVE = ("t", "t/a", "t", "")

_PAUSE = _Kind(script.Pause)
_SLEEP = _Kind(script.Sleep, (_SECONDS,))
_SAY = _Kind(script.Say, (_TEXT, _TIMES))
_READ_CELL = _Kind(script.ReadCell, ("cells",))
_ADD_CELL = _Kind(script.AddCell, ("cells", _TEXT))
_ADD_BELOW = _Kind(script.AddCell, (_PATHS, _TEXT))
_READ_CELLS = _Kind(script.ReadCells, (_ABOVE,))
_ADD_CELLS = _Kind(script.AddCells, (_ABOVE, _TEXT))
_FOLLOW = _Kind(script.FollowCell, ("cells", _TEXT))
_TAKE_PLACE = _Kind(script.TakePlace, ("cells", "places"))
_METERED = _Kind(script.Metered, ("cells", (1.0, 2.0, 0.5, 1.0, 1.0, 3.0)))
_READ_FILE = _Kind(script.ReadFile, ("files",))
_WRITE_FILE = _Kind(script.WriteFile, ("files", _TEXT))
_APPEND_FILE = _Kind(script.AppendFile, ("files", _TEXT))
_SEE_STATE = _Kind(script.SeeState, ("keys",))
_CHANGE_STATE = _Kind(script.ChangeState, ("keys", _TEXT))
_OVERWRITE = _Kind(script.OverwriteState, ("keys", _TEXT, _EITHER))
_OVERWRITE_UNCLAIMED = _Kind(script.OverwriteState, ("keys", _TEXT))
_FILL = _Kind(script.OverwriteState, ("keys", _TEXT, _EITHER, (True,)))
_FILL_UNCLAIMED = _Kind(script.OverwriteState, ("keys", _TEXT, (False,), (True,)))
_BREAK_STATE = _Kind(script.BreakState)
_FAIL = _Kind(script.Fail, (_TEXT, _OFTEN))
_REFUSE = _Kind(script.Refuse, (_TEXT,))
_LEAVE_OPEN = _Kind(script.LeaveOpen, (_LEFT,))
_SHIELD = _Kind(script.Shield, (_SECONDS,))
_PROTEST = _Kind(script.FailWhenCancelled, (_SECONDS, _TEXT))


#: What the twin disk has, and what it has not, by several names.
_NAMES = ("a.txt", "link", "d/b.txt", "hard.txt", "way/b.txt", "d/new.txt", "dangling", "./a.txt", "new.txt")
_DIRECTORIES = ("d", "way", ".", "e")
_TARGETS = ("moved", "d/b.txt", "way/new.txt", "e/x")
_OLDS = ("one", "two", "p", "one")


def _use_tool(pick: _Pick, palette: Palette) -> Action:
    """A call of a tool of a workspace: a file that others may have by another name."""
    tool = pick(_USED)
    path, text = pick(_NAMES), pick(_TEXT)
    if tool == "read_file":
        return script.UseTool(tool, {"path": path})
    if tool == "write_file":
        return script.UseTool(tool, {"path": path, "content": f"one {text}\n"})
    if tool == "edit_file":
        return script.UseTool(tool, {"path": path, "old": pick(_OLDS), "new": f"one {text}"})
    if tool == "multi_edit":
        edits = [{"old": "one", "new": text}, {"old": pick(_OLDS), "new": "two"}]
        return script.UseTool(tool, {"path": path, "edits": edits})
    if tool == "move_path":
        return script.UseTool(tool, {"source": pick((path, pick(_DIRECTORIES))), "target": pick(_TARGETS)})
    if tool == "delete_path":
        return script.UseTool(tool, {"path": pick((path, pick(_DIRECTORIES))), "recursive": True})
    if tool == "make_dir":
        return script.UseTool(tool, {"path": pick(_TARGETS)})
    pattern = {"glob": {"pattern": "**/*"}, "search": {"pattern": "one"}}.get(tool, {})
    return script.UseTool(tool, {**pattern, "path": pick(_DIRECTORIES)})


#: Those tools of a workspace that calls use, the ones that meet at files most often.
_USED = (
    *("read_file", "edit_file", "write_file", "read_file", "edit_file", "write_file", "multi_edit"),
    *("move_path", "delete_path", "make_dir", "list_dir", "glob", "search", "change_dir"),
)
_USES = st.integers(0, len(_USED) * len(_NAMES) * len(_TEXT) * 64 - 1)


#: What a call may do by feature, each beside what it can meet.
_KINDS: Mapping[str, tuple[_Kind, ...]] = {
    "say": (_SAY,),
    "state": (_SEE_STATE, _CHANGE_STATE, _CHANGE_STATE),
    "cells": (_READ_CELL, _ADD_CELL, _ADD_CELL),
    "overwrite": (_OVERWRITE, _OVERWRITE, _FILL, _CHANGE_STATE),
    "files": (_READ_FILE, _WRITE_FILE, _APPEND_FILE),
    "paths": (_ADD_BELOW, _READ_CELLS, _ADD_CELLS),
    "rates": (_METERED, _METERED, _SLEEP),
    "places": (_TAKE_PLACE, _TAKE_PLACE, _SLEEP),
    "follow": (_FOLLOW, _ADD_CELL),
    "fail": (_FAIL, _REFUSE),
    "broken": (_BREAK_STATE,),
    "shield": (_SHIELD,),
    "protest": (_PROTEST,),
    "leave": (_LEAVE_OPEN,),
}


#: The features that say what calls do.
DOING = tuple(_KINDS)

#: What a call may do that only looks: no step of it keeps a later one out, but by the state.
_LOOKS = frozenset((_PAUSE, _SLEEP, _SAY, _SEE_STATE, _CHANGE_STATE, _READ_CELL, _READ_CELLS, _READ_FILE, _SHIELD))

#: Of these what claims: a call that only reads is kept out by nothing that stops the batch.
_READS = frozenset((_READ_CELL, _READ_CELLS, _READ_FILE))

#: What a call of a pure tool may do.  It claims nothing: it keeps its tickets until it is known that it need not run
#: again, and no event says so to the law on needless waits.
_PURE = frozenset(
    (_PAUSE, _SLEEP, _SEE_STATE, _CHANGE_STATE, _OVERWRITE_UNCLAIMED, _FILL_UNCLAIMED, _BREAK_STATE, _REFUSE)
)

#: What claims a key, and the same without the claim.
_UNCLAIMED: Mapping[_Kind, _Kind] = {_OVERWRITE: _OVERWRITE_UNCLAIMED, _FILL: _FILL_UNCLAIMED}


@lru_cache(10_000)
def _kinds(features: frozenset[str], only: frozenset[_Kind] | None) -> tuple[_Kind, ...]:
    found = [kind for name, kinds in _KINDS.items() if name in features for kind in kinds * 2]
    if only is _LOOKS:
        found += [_SLEEP, *(kind for kind in found if kind in _READS)]
    if only is _PURE:
        found = [_UNCLAIMED.get(kind, kind) for kind in found]
    return tuple(kind for kind in (_PAUSE, _SLEEP, *found) if only is None or kind in only)


@lru_cache(100_000)
def _action(palette: Palette, only: frozenset[_Kind] | None, number: int) -> Action:
    kind, which = divmod(number, _OF_A_KIND)
    return _kinds(palette.features, only)[kind].of(_Digits(which), palette)


@cache
def _numbers(count: int, most: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, count * _OF_A_KIND - 1), min_size=min(1, most), max_size=most)


def _actions(draw: Draw, palette: Palette, only: frozenset[_Kind] | None) -> list[Action]:
    numbers = draw(_numbers(len(_kinds(palette.features, only)), palette.max_actions))
    return [_action(palette, only, number) for number in numbers]


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
def _children(draw: st.DrawFn, inner: Palette, few: _Calls, several: _Calls) -> list[Scripted]:
    drawn: list[Scripted] = draw(several if one_of(draw, _MOSTLY if inner.uneven else _EITHER) else few)
    return lasting(draw, drawn, True) if inner.uneven else drawn


@st.composite
def _call(draw: st.DrawFn, palette: Palette, children: Any) -> Scripted:
    features, often = palette.features, palette.often

    def has(feature: str) -> bool:
        return feature in features and bool(one_of(draw, _MOSTLY if feature in often else _OFTEN))

    if "workspace" in features and one_of(draw, _EITHER):
        invalid = one_of(draw, _INVALID) if "invalid" in features else None
        use = Scripted([_use_tool(_Digits(draw(_USES)), palette)], invalid=invalid)
        return attrs.evolve(use, approval="deny") if "approvals" in features and one_of(draw, _SELDOM) else use
    does: list[Action] = []
    pure = has("pure")
    if not one_of(draw, IDLE):
        only = _PURE if pure else _LOOKS if "readers" in features and one_of(draw, _EITHER) else None
        does = _actions(draw, palette, only)
        if palette.first is not None:
            kind = _KINDS[palette.first][0]
            does = [kind.of(_Digits(draw(_below(_OF_A_KIND))), palette), *does]
    if pure:
        children = None
    if children is not None and has("sub-batches"):
        sub_batch = script.SubBatch(
            draw(children), not one_of(draw, _SELDOM), one_of(draw, _OFTEN), one_of(draw, _OFTEN)
        )
        does = [*does, sub_batch] if one_of(draw, _EITHER) else [sub_batch, *does]
    fields: dict[str, Any] = {"pure": pure}
    if has("stops"):
        fields["stops"] = True
        if palette.fails and not pure and one_of(draw, _EITHER):
            does = [
                *does,
                *([script.Sleep(one_of(draw, _SECONDS))] if one_of(draw, _EITHER) else []),
                _FAIL.of(lambda options: one_of(draw, options), palette),
            ]
    bare = Scripted(does)
    is_async = bare.sub_batches or any(isinstance(action, script.LeaveOpen) for action in does)
    fields["says"] = one_of(draw, _promises(bare, features - {"exclusive"} if pure else features))
    if not is_async and has("sync"):
        fields["sync"], fields["thread"] = True, bool(one_of(draw, _EITHER))
    if has("finish"):
        fields["interrupt"] = "finish"
    if "timeouts" in features:
        fields["timeout"] = one_of(draw, _TIMEOUT)
    if "invalid" in features:
        fields["invalid"] = one_of(draw, _INVALID)
    if has("twins"):
        fields["call_id"] = "twice"
    if "approvals" in features and not one_of(draw, _OFTEN):
        fields["approval"] = one_of(draw, _APPROVAL)
        fields["approval_after"] = one_of(draw, _APPROVAL_AFTER)
    return Scripted(does, **fields)


def lasting(draw: Draw, calls: list[Scripted], uneven: bool) -> list[Scripted]:
    """The calls, some of them ending at other times than they were drawn; if `uneven`, more of them."""
    ends = one_of(draw, _UNEVEN_ENDS if uneven else _ENDS)
    if ends is None or not calls:
        return calls
    late = one_of(draw, _RARELY)
    if ends == "tied":
        seconds = [1] * len(calls)
    elif ends in ("reversed", "forward"):
        seconds = list(range(1, len(calls) + 1))[:: -1 if ends == "reversed" else 1]
    else:
        ranks = draw(_RANKS)
        seconds = [rank % 4 + 1 for rank in ranks[: len(calls)]] + [1] * (len(calls) - len(ranks))
    # Where calls of sub-batches last, what opens them does not: they are to begin beside what waits for a slot.
    return [
        call if uneven and call.sub_batches else _lasting(call, each, late)
        for call, each in zip(calls, seconds, strict=True)
    ]


def _lasting(call: Scripted, seconds: int, late: bool) -> Scripted:
    if (call.sync and not call.thread) or call.uses is not None:
        return call
    if not late:
        return call.lasting(seconds)
    rest = [action for action in call.does if not isinstance(action, script.Sleep)]
    return attrs.evolve(call, does=(*rest, script.Sleep(seconds)))


@lru_cache(10_000)
def calls_of(palette: Palette, min_calls: int, max_calls: int) -> st.SearchStrategy[list[Scripted]]:
    """Batches of so many calls, drawn from `palette`."""
    return st.lists(_call_of(palette), min_size=min_calls, max_size=max_calls)


@lru_cache(10_000)
def _call_of(palette: Palette) -> st.SearchStrategy[Scripted]:
    """One call, drawn from `palette`."""
    children = None
    if palette.depth > 0 and "sub-batches" in palette.features:
        inner = attrs.evolve(
            palette,
            features=palette.features - {"workspace"},
            max_actions=min(2, palette.max_actions),
            depth=palette.depth - 1,
        )
        # Mostly several, and few more than there are slots: one child alone meets no other.
        fewest, most = palette.children
        children = _children(inner, calls_of(inner, 1, most), calls_of(inner, fewest + 1, most + 1))
    return _call(palette, children)
