"""All laws on all traces of all batches of a few calls.

Rules.  A batch is a sequence of calls, each of one of the kinds below.  Every batch of a given length is run once for
each of its Mazurkiewicz traces (`toolrt.sim.DPOR`), and every execution is held against every law.  Scripts and reader
declare that they report all they touch, and the runtime reports what its bookkeeping touches
(`toolrt.order._footprints`); a step without such a declaration conflicts with every other.

    A dimension gives variants of each batch, one of them at a time; what is left out is named (`left_out`).

Limits.  One execution stands for all of its trace.  A law that looks at the order of two events which no access and no
cause orders may trip on one of them and not on another; the random executions of `table` look at those.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import attrs

from toolrt import sim
from toolrt._plain import counted, stable_text
from toolrt.errors import DefinitionRefused
from toolrt.invariants._matrix import FalseAlarm
from toolrt.invariants.mixes._mix import Mix, judged
from toolrt.invariants.mixes._sittings import BatchProgress, ShownBatch, search_all
from toolrt.invariants.predicates._check import LAWS, check
from toolrt.invariants.predicates._law import Predicate, Violation, laws_by_name
from toolrt.invariants.script import AddCell, AppendFile, ChangeState, Fail, ReadCell, Say, Scripted, SeeState, Sleep
from toolrt.order import LanePolicy, SlotPolicy, gives_up, policy_name
from toolrt.sim.exploring._executors import JobsArgument

#: The kinds of call that batches are made of.
KINDS: Mapping[str, Scripted] = {
    "reads a cell": Scripted([ReadCell("a")]),
    "writes the cell": Scripted([AddCell("a", "x")]),
    "writes another cell": Scripted([AddCell("b", "y")]),
    "appends to a file": Scripted([AppendFile("f", "c")]),
    "says something": Scripted([Say("hi")], says="safe"),
    "sees and changes the state": Scripted([SeeState("x"), ChangeState("x", "a")], says="safe"),
    "alone": Scripted([SeeState("x"), ChangeState("x", "d")], says="nothing"),
    "fails and stops": Scripted([Fail("broken")], stops=True),
    "sleeps, then writes the cell": Scripted([Sleep(1), AddCell("a", "z")]),
    "unknown": Scripted(invalid="unknown"),
}


#: Calls whose time is over before they end; they stand for the dimension "timeouts".
_TIMED = (
    Scripted([AddCell("a", "q"), Sleep(2)], timeout=1.5),
    Scripted([Sleep(2)], timeout=1.5, stops=True),
)

#: Calls that stop their batch when others are queued or run; they stand for the dimension "stops".
_STOPPING = (
    Scripted([AddCell("a", "s"), Sleep(1), Fail("late")], stops=True),
    Scripted([ReadCell("a"), Fail("at once")], stops=True),
)

#: Ways in which each batch may be run besides: at once, without a cancel, with calls that have all the time they need.
#: Virtual seconds of a cancel are between the instants at which something ends: what sleeps is running, what waits for
#: it is queued.
_VARIANTS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "cancels": (
        {"cancel_after": 0.5},
        {"cancel_after": 0.5, "cancel_outside": True},
        {"cancel_after": 0.5, "cancel_call": 0},
        {"cancel_after": 0.5, "cancel_call": 1},
    ),
    "timeouts": ({},),
    "streams": ({"delays": (0.0, 1.0)},),
    "stops": ({},),
    "crashes": ({"crash_after": 0.5, "reader": "none"},),
}

#: A batch of one call crashes before every step, too: so many traces has a batch of two that it takes a minute.
_OF_ONE_CALL: Mapping[str, Mapping[str, Any]] = {"crashes": {"crash_after": 0.0, "reader": "none"}}

#: The kinds of call that a dimension adds; each of its batches has one of them at least.
_ADDED: Mapping[str, tuple[Scripted, ...]] = {"timeouts": _TIMED, "stops": _STOPPING}

#: What the batches can have besides.
DIMENSIONS: tuple[str, ...] = tuple(_VARIANTS)

#: What no batch here has; random mixes do.
NEVER = (
    "approvals",
    "sub-batches",
    "slow readers",
    "a cancel or a crash at every step",
    "two dimensions at once",
)


def left_out(dimensions: Iterable[str] = ()) -> str:
    """What batches with these `dimensions` leave out, for people."""
    chosen = set(dimensions)
    return ", ".join([*(name for name in DIMENSIONS if name not in chosen), *NEVER])


@attrs.frozen
class Exhausted:
    """What came of all batches of a few calls."""

    #: How many batches there were.
    batches: int
    #: How many traces they have together.
    traces: int
    #: The most that one batch has.
    most: int
    #: The first execution of each batch that broke a law.
    alarms: tuple[FalseAlarm, ...]
    #: The batches whose traces were not all run, and why.
    unfinished: tuple[tuple[Mix, str], ...]
    #: How many batches were not reached, because it was ended early.
    left: int = 0
    #: What of the laws was not checked because of the batches' policies, each as a text.
    left_out: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all traces of all batches were run, and no law tripped."""
        return not self.alarms and not self.unfinished and not self.left

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return {
            "batches": self.batches,
            "traces": self.traces,
            "most": self.most,
            "alarms": list(map(str, self.alarms)),
            "unfinished": [f"{why}: {mix!r}" for mix, why in self.unfinished],
            "left": self.left,
            **({"left_out": list(self.left_out)} if self.left_out else {}),
            "ok": self.ok,
        }

    def __str__(self) -> str:
        sizes = f"{counted(self.batches, 'batch', 'batches')}, {counted(self.traces, 'trace')}"
        lines = [
            f"{sizes}, at most {self.most:,} of one batch; each run once",
            f"{counted(len(self.alarms), 'batch', 'batches')} in which a law tripped",
        ]
        lines += [f"left out: {what}" for what in self.left_out]
        lines += map(str, self.alarms[:3])
        lines += [f"not all traces were run ({why}): {mix!r}" for mix, why in self.unfinished[:3]]
        if self.left:
            lines.append(f"not reached: {counted(self.left, 'batch', 'batches')}")
        return "\n".join(lines)


def all_batches(
    calls: int,
    kinds: Iterable[Scripted] | None = None,
    *,
    lanes: str | LanePolicy = "by_claims",
    slots: SlotPolicy | None = None,
    limit: int | None = 10,
    dimensions: Iterable[str] = (),
) -> Iterator[Mix]:
    """Give every batch of exactly so many calls.

    Args:
        calls: how many, 1 or more.
        kinds: the kinds of calls; those of `KINDS` when None.
        lanes: the lane policy, as of `Mix`.
        slots: the slot policy, as of `Mix`.
        limit: how many calls run at once, as of `Mix`; a slot policy has a choice where it is below `calls`.
        dimensions: names of `DIMENSIONS`, how batches are run besides.  "cancels": cancelled half a second after they
            began, from inside and from outside, where a call sleeps.  "timeouts": with at least one call whose time is
            over before it ends.  "streams": the second call comes a second after the first.  "stops": with at least one
            call that fails after a second, or behind a read, and stops the batch.  "crashes": the process crashes half
            a second after they began, where a call sleeps, and before every step, where there is one call; another goes
            on with the batch.

    Raises:
        DefinitionRefused: an argument is not what it must be.
    """
    if not isinstance(calls, int) or isinstance(calls, bool) or calls < 1:
        raise DefinitionRefused("all_batches(calls)", "a whole number, 1 or more", calls)
    wanted = list(dimensions)
    for name in wanted:
        if name not in DIMENSIONS:
            raise DefinitionRefused("all_batches(dimensions)", f"names of {', '.join(DIMENSIONS)}", name)
    chosen = tuple(KINDS.values() if kinds is None else kinds)
    like = Mix(lanes=lanes, limit=limit, files={"f": "start "}, state={"x": "0"}, slots=slots)
    return (mix for name in ("", *wanted) for mix in _with_dimension(name, like, calls, chosen))


def _with_dimension(name: str, like: Mix, calls: int, kinds: tuple[Scripted, ...]) -> Iterator[Mix]:
    """Give every batch as the dimension has it; the empty name stands for none."""
    added = _ADDED.get(name, ())
    for batch in product((*kinds, *added), repeat=calls):
        has = {
            "": True,
            "cancels": any(call.seconds for call in batch),
            "crashes": any(call.seconds for call in batch),
            "streams": calls > 1,
        }.get(name, any(call in added for call in batch))
        for changes in _VARIANTS.get(name, ({},)) if has else ():
            yield attrs.evolve(like, calls=batch, **changes)
        if calls == 1 and name in _OF_ONE_CALL:
            yield attrs.evolve(like, calls=batch, **_OF_ONE_CALL[name])


def exhaust(
    batches: Iterable[Mix],
    laws: Mapping[str, Predicate] | None = None,
    most: int | None = None,
    *,
    jobs: JobsArgument = 1,
    progress: Callable[[BatchProgress], object] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Exhausted:
    """Run every trace of every batch and hold it against the laws.

    Args:
        batches: such as ``all_batches(2)``.
        laws: by name; ours when None.
        most: how many traces of one batch are run at most; all when None.
        jobs: how many processes share the batches, 1 or more; or an executor, or the client of a cluster, as
            `toolrt.sim.explore` takes them.  What is shown is what one shows.
        progress: is called twice a second or so with a `BatchProgress`, and once at the end.
        checkpoint: a file in which the search is kept every 5 wall seconds and when it ends early; when the file is
            there, it is gone on with.  It is removed when all batches were done.

    Returns:
        What was shown.  With several jobs or a checkpoint Ctrl-C ends it early, and it is that of what was done.

    Raises:
        DefinitionRefused: an argument is not what it must be; nothing was run.
        InputRefused: the checkpoint is another search's, or was made by other code; it is left as it was.

    Checkpoint: never (it is not async).
    """
    return exhaust_each([batches], laws, most, jobs=jobs, progress=progress, checkpoint=checkpoint)[0]


def exhaust_each(
    groups: Iterable[Iterable[Mix]],
    laws: Mapping[str, Predicate] | None = None,
    most: int | None = None,
    *,
    jobs: JobsArgument = 1,
    progress: Callable[[BatchProgress], object] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> list[Exhausted]:
    """What `exhaust` shows of each of several groups of batches, in one search; see `exhaust` for the rest.

    Raises:
        DefinitionRefused: as `exhaust`; also a lane policy gives up a law that there is not.
    """
    laws = laws_by_name(laws, LAWS)
    every = [list(group) for group in groups]
    for mix in (one for group in every for one in group):
        unknown = [name for name in gives_up(mix.lane_policy) or () if name not in {**LAWS, **laws}]
        if unknown:
            what = f"gives_up of {policy_name(mix.lane_policy)}"
            raise DefinitionRefused(what, f"names of laws: {', '.join({**LAWS, **laws})}", unknown)
    shown = search_all([mix for group in every for mix in group], laws, most, jobs, progress, checkpoint)
    found, place = [], 0
    for group in every:
        found.append(_summary(group, [shown.get(place + number) for number in range(len(group))], laws))
        place += len(group)
    return found


def _summary(batches: list[Mix], shown: list[ShownBatch | None], laws: Mapping[str, Predicate]) -> Exhausted:
    done = [(mix, each) for mix, each in zip(batches, shown, strict=True) if each is not None]
    counts = [each.traces for _, each in done]
    return Exhausted(
        batches=len(done),
        traces=sum(counts),
        most=max(counts, default=0),
        alarms=tuple(_alarm(mix, each.broken, laws) for mix, each in done if each.broken is not None),
        unfinished=tuple((mix, each.unfinished) for mix, each in done if each.unfinished is not None),
        left=len(batches) - len(done),
        left_out=tuple(dict.fromkeys(what for mix in batches for what in mix.left_out)),
    )


def _alarm(mix: Mix, choices: tuple[int, ...], laws: Mapping[str, Predicate]) -> FalseAlarm:
    """Run a broken execution once more, and say what it breaks."""
    execution = judged(mix, sim.run(mix.program(), sim.Choices(choices)))
    violations = check(execution.trace, laws)
    if not violations:
        violations = [Violation("no law", "An execution ends without an error.", stable_text(execution.error))]
    return FalseAlarm(mix, choices, violations[0])
