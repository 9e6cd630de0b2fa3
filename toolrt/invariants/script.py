"""Scripted calls: one record for each action, and one for the call.

Each record is a value whose `repr` is the code that makes it.  A scripted call keeps its promises: its claims cover
what it does, its modifiers are pure, and without timing it ends in one way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.model import READ, WRITE, Claim, Rate
from toolrt.order import is_rule, policy_text

__all__ = [
    "Action",
    "AddCell",
    "AddCells",
    "AppendFile",
    "BreakState",
    "ChangeState",
    "Fail",
    "FailWhenCancelled",
    "FollowCell",
    "LeaveOpen",
    "Metered",
    "OverwriteState",
    "Pause",
    "Promise",
    "ReadCell",
    "ReadCells",
    "ReadFile",
    "Refuse",
    "Say",
    "Scripted",
    "SeeState",
    "Shield",
    "Sleep",
    "SubBatch",
    "TakePlace",
    "UseTool",
    "WriteFile",
]


#: What a call can leave open.
_LEFT_OPEN = ("nursery", "scope", "batch")


def _text(value: object) -> str:
    return policy_text(value) if callable(value) or is_rule(value) else repr(value)


def brief(record: Any) -> str:
    """The record as it would be written by hand: positions for actions, names for the rest, no defaults."""
    parts = []
    named = False
    for field in attrs.fields(type(record)):
        value = getattr(record, field.name)
        default = field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            default = default.factory()
        if default is not attrs.NOTHING and value == default:
            named = True
            continue
        text = f"[{', '.join(map(repr, value))}]" if isinstance(value, tuple) else _text(value)
        parts.append(f"{field.name}={text}" if named else text)
        named = named or default is not attrs.NOTHING
    return f"{type(record).__name__}({', '.join(parts)})"


class Brief:
    """A record whose `repr` is `brief`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return brief(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # What Hypothesis and IPython print.
        printer.text(brief(self))


@attrs.frozen(repr=False)
class Sleep(Brief):
    """Wait so many virtual seconds.  A sync call does only in a thread."""

    seconds: float


@attrs.frozen(repr=False)
class Pause(Brief):
    """Pass one checkpoint."""


@attrs.frozen(repr=False)
class Say(Brief):
    """Report progress with this text, so many times."""

    text: str
    times: int = 1


@attrs.frozen(repr=False)
class ReadCell(Brief):
    """Look at a shared cell; what is there is part of the answer.  A name may be a path: "t/a" is below "t"."""

    cell: str


@attrs.frozen(repr=False)
class ReadCells(Brief):
    """Look at the cell `under` and at all cells below it; what is there is part of the answer.

    The empty text is above all cells: the call claims everything then.
    """

    under: str


@attrs.frozen(repr=False)
class AddCell(Brief):
    """Add a text to what a cell holds, with a checkpoint between looking and writing."""

    cell: str
    text: str


@attrs.frozen(repr=False)
class AddCells(Brief):
    """Add a text to the cell `under` and to all cells below it that hold one.

    The empty text is above all cells.  A checkpoint stands between looking and writing.
    """

    under: str
    text: str


@attrs.frozen(repr=False)
class FollowCell(Brief):
    """Look at a cell, and add a text to what it points at, with a checkpoint between: which is known by then only."""

    cell: str
    text: str


@attrs.frozen(repr=False)
class ReadFile(Brief):
    """Look at a file; what is there is part of the answer."""

    file: str


@attrs.frozen(repr=False)
class WriteFile(Brief):
    """Replace what a file holds by a text, with a checkpoint between beginning and end."""

    file: str
    text: str


@attrs.frozen(repr=False)
class AppendFile(Brief):
    """Add a text to a file, with checkpoints between looking, writing and the end."""

    file: str
    text: str


@attrs.frozen(repr=False)
class SeeState(Brief):
    """Look at a key of the state; what the call sees is part of the answer."""

    key: str


@attrs.frozen(repr=False)
class ChangeState(Brief):
    """Return a modifier that adds a text to what the state has under a key."""

    key: str
    text: str


@attrs.frozen(repr=False)
class OverwriteState(Brief):
    """Look at a key of the state, and return a modifier that sets it to what was there and a text."""

    key: str
    text: str
    #: Whether the call claims the key; else the call is refused where an earlier one of its lane changed it.
    claimed: bool = False
    #: Whether it asks only if the key is there, and sets it to the text where it is not.
    unless_there: bool = False


@attrs.frozen(repr=False)
class BreakState(Brief):
    """Return a modifier that raises."""


@attrs.frozen(repr=False)
class Fail(Brief):
    """Raise an error with this text."""

    text: str = "no"
    #: Whether it comes in an exception group, beside another one.
    group: bool = False


@attrs.frozen(repr=False)
class FailWhenCancelled(Brief):
    """Wait so many virtual seconds in a nursery whose child raises an error with this text if it is cancelled."""

    seconds: float
    text: str = "no"


@attrs.frozen(repr=False)
class Refuse(Brief):
    """Return an error with this text; the modifiers still apply."""

    text: str = "not so"


@attrs.frozen(repr=False)
class LeaveOpen(Brief):
    """Enter something and never leave it: a nursery with a task that never ends, a cancel scope, or a sub-batch without
    calls.  No sync call does.
    """

    #: Which of them is entered.
    what: Literal["nursery", "scope", "batch"] = attrs.field(
        default="nursery", validator=attrs.validators.in_(_LEFT_OPEN)
    )


@attrs.frozen(repr=False)
class Shield(Brief):
    """Ignore every cancel and timeout for so many virtual seconds."""

    seconds: float


def _calls_of(given: Iterable[Scripted]) -> tuple[Scripted, ...]:
    calls = tuple(given)
    for call in calls:
        if not isinstance(call, Scripted):
            raise DefinitionRefused("a sub-batch's call", "a Scripted call", call)
        if call.uses is not None:
            raise DefinitionRefused("a sub-batch's call", "a call that uses no tool of a workspace", call)
    return calls


@attrs.frozen(repr=False)
class TakePlace(Brief):
    """Have a place of this resource while the call runs."""

    of: str
    #: How many places it has; None: the call has all of them.
    slots: int | None = None

    @property
    def claim(self) -> Claim:
        """What is claimed for it."""
        return Claim(("place", self.of), WRITE, slots=self.slots)


@attrs.frozen(repr=False)
class Metered(Brief):
    """Start no earlier than the rate of this name lets it."""

    of: str
    #: How many calls may start in a second.
    per_second: float = 1.0


@attrs.frozen(repr=False)
class SubBatch(Brief):
    """Run these calls as a sub-batch; how they end is part of the answer."""

    calls: tuple[Scripted, ...] = attrs.field(converter=_calls_of)
    #: Whether the call claims what they do; else they are refused as far as they claim something.
    claimed: bool = True
    #: Whether their modifiers are handed on.
    hands_on: bool = False
    #: Whether the call reads the sub-batch while it runs, and hands on its progress.
    reads: bool = False


@attrs.frozen(repr=False)
class UseTool(Brief):
    """Be a call of this tool of a workspace, with this input; the call does nothing else.

    The workspace is on a twin disk, which holds what `Mix.disk` says.  By default that is ``a.txt`` and its other name
    ``hard.txt``, ``d/b.txt``, the links ``link`` (to ``d/b.txt``), ``way`` (to ``d``) and ``dangling`` (to
    ``d/new.txt``), and the empty directory ``e``.
    """

    tool: str
    input: Mapping[str, Any] = attrs.field(factory=dict, converter=dict, hash=False)


#: What a scripted call does at one point of its script.
Action = (
    Sleep
    | Pause
    | Say
    | ReadCell
    | ReadCells
    | AddCell
    | AddCells
    | FollowCell
    | LeaveOpen
    | Metered
    | ReadFile
    | WriteFile
    | AppendFile
    | SeeState
    | ChangeState
    | OverwriteState
    | BreakState
    | Fail
    | FailWhenCancelled
    | Refuse
    | Shield
    | SubBatch
    | TakePlace
    | UseTool
)

#: What a call of a pure tool may do.
HARMLESS = (Sleep, Pause, ReadCell, ReadCells, ReadFile, SeeState, ChangeState, OverwriteState, BreakState, Refuse)

#: What a call of a batch may do that runs beside another one.
LEAVES_NOTHING = (Sleep, Pause, Say, Fail, TakePlace, Metered)

#: What one of an idempotent tool may do besides: done twice, it leaves what it leaves when done once.
_DONE_TWICE = (Say, WriteFile, SubBatch, TakePlace, Metered)

#: What the call's tool says: its claims; that it is safe; nothing; its claims and safety as functions of the input; or
#: its claims and what these look at.
Promise = Literal["claims", "safe", "nothing", "by input", "after"]

#: What cells point at, as a resource.
POINTED_AT = "pointed at"


def cell_resource(name: str) -> tuple[str, ...]:
    """The resource that is claimed for a cell: its path."""
    return ("cell", *name.split("/")) if name else ()


def _actions(given: Iterable[Action]) -> tuple[Action, ...]:
    actions = tuple(given)
    for action in actions:
        if not isinstance(action, Action):
            raise DefinitionRefused("a scripted call's action", "an action, such as Sleep(1)", action)
    return actions


@attrs.frozen(repr=False)
class Scripted(Brief):
    """One call of a mix.

    Raises:
        DefinitionRefused: `does` holds something that is no action, or a call that says "safe" touches something
            it would have to claim for writing.
    """

    #: What it does, in this order.
    does: tuple[Action, ...] = attrs.field(default=(), converter=_actions)
    #: What its tool promises.
    says: Promise = "claims"
    #: Seconds of its own execution, or None.
    timeout: float | None = None
    #: Whether its failure skips what follows.
    stops: bool = False
    #: "finish": a cancel waits for it.
    interrupt: Literal["cancel", "finish"] = "cancel"
    #: Whether it is a plain ``def``.
    sync: bool = False
    #: Whether that runs in a worker thread in the simulator, too, where it sleeps and no cancel ends it.
    thread: bool = False
    #: The call's id, or None for one of its own.
    call_id: str | None = None
    #: "unknown": it names a tool that does not exist; "input": its input does not fit.
    invalid: Literal["unknown", "input"] | None = None
    #: What the approval check says; None where the mix has none, or allows.  "misfit" and "wider" rewrite the input:
    #: to one that does not fit, and to one that claims more.  "narrow" leaves the call its claims without the last.
    approval: Literal["allow", "deny", "rewrite", "raise", "misfit", "wider", "narrow"] | None = None
    #: Seconds until the approval check answers; None answers at once, without waiting.
    approval_after: float | None = None
    #: Whether its tool is pure: it changes nothing but the state, and says nothing.
    pure: bool = False
    #: Whether its tool says that a call may run once more after a crash.
    idempotent: bool = False

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What covers all it may touch: each cell and file once, WRITE where it may change it."""
        modes: dict[tuple[tuple[Any, ...], bool], bool] = {}
        places: dict[Claim, None] = {}
        for action in self.does:
            if isinstance(action, SubBatch):
                for claim in (claim for call in action.calls if action.claimed for claim in call.claims):
                    key = claim.resource, claim.subtree
                    if claim.slots is not None:
                        places[claim] = None
                        continue
                    modes[key] = modes.get(key, False) or claim.mode is WRITE
                continue
            if isinstance(action, FollowCell):
                modes[(POINTED_AT,), True] = True
            if isinstance(action, ReadCell | AddCell | FollowCell):
                resource, writes = cell_resource(action.cell), isinstance(action, AddCell)
            elif isinstance(action, ReadCells | AddCells):
                resource, writes = cell_resource(action.under), isinstance(action, AddCells)
            elif isinstance(action, ReadFile | WriteFile | AppendFile):
                resource, writes = ("file", action.file), not isinstance(action, ReadFile)
            elif isinstance(action, OverwriteState) and action.claimed:
                resource, writes = ("state", action.key), True
            elif isinstance(action, TakePlace) and action.slots is not None:
                places[action.claim] = None
                continue
            elif isinstance(action, Metered):
                places[Rate(action.of, per_second=action.per_second)] = None
                continue
            elif isinstance(action, TakePlace):
                resource, writes = action.claim.resource, True
            else:
                continue
            key = resource, isinstance(action, ReadCells | AddCells)
            modes[key] = modes.get(key, False) or writes
        whole = (
            Claim(resource, WRITE if writes else READ, subtree=subtree) for (resource, subtree), writes in modes.items()
        )
        return (*whole, *places)

    @property
    def follows(self) -> tuple[str, ...]:
        """The cells that it must follow to know what it touches."""
        return tuple(dict.fromkeys(action.cell for action in self.does if isinstance(action, FollowCell)))

    @property
    def uses(self) -> UseTool | None:
        """The tool of a workspace that it is a call of, if any."""
        return next((action for action in self.does if isinstance(action, UseTool)), None)

    @property
    def is_of_a_script(self) -> bool:
        """Whether it is a valid call of a tool that follows a script."""
        return self.uses is None and self.invalid is None

    @property
    def seconds(self) -> float:
        """How long it runs, in virtual seconds, if nothing cuts it short."""
        return sum(action.seconds for action in self.does if isinstance(action, Sleep | Shield | FailWhenCancelled))

    @property
    def sub_batches(self) -> tuple[SubBatch, ...]:
        """The sub-batches that it opens."""
        return tuple(action for action in self.does if isinstance(action, SubBatch))

    @property
    def family(self) -> tuple[Scripted, ...]:
        """The call and, behind it, all that it opens, and so on."""
        return (self, *(one for batch in self.sub_batches for call in batch.calls for one in call.family))

    def __attrs_post_init__(self) -> None:
        if self.thread and not self.sync:
            raise DefinitionRefused("a scripted call in a thread", "sync=True as well", self)
        if self.sync and self.sub_batches:
            raise DefinitionRefused("a scripted call with a sub-batch", "an async call", "sync=True")
        if self.sync and any(isinstance(action, LeaveOpen) for action in self.does):
            raise DefinitionRefused("a scripted call that leaves something open", "an async call", "sync=True")
        if self.pure and not all(isinstance(action, HARMLESS) for action in self.does):
            raise DefinitionRefused("a scripted call of a pure tool", "actions that change nothing but the state", self)
        if self.idempotent and not all(isinstance(action, (*HARMLESS, *_DONE_TWICE)) for action in self.does):
            raise DefinitionRefused("a scripted call of an idempotent tool", "actions that may be done twice", self)
        fields = self.says, self.timeout, self.stops, self.interrupt, self.sync, self.pure, self.idempotent
        plain = fields == ("claims", None, False, "cancel", False, False, False)
        scripted = self.approval in ("rewrite", "wider", "narrow")
        if self.uses is not None and (scripted or not plain or len(self.does) != 1):
            raise DefinitionRefused("a scripted call of a workspace's tool", "one UseTool and nothing else", self)

    def lasting(self, seconds: float) -> Scripted:
        """The same call, sleeping so many seconds in one piece: where it first slept, or at its start.

        A call of a workspace's tool stays as it is.
        """
        if self.uses is not None:
            return self
        rest = [action for action in self.does if not isinstance(action, Sleep)]
        at = next((at for at, action in enumerate(self.does) if isinstance(action, Sleep)), 0)
        return attrs.evolve(self, does=(*rest[:at], Sleep(seconds), *rest[at:]))
