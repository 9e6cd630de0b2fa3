"""toolrt's own laws: a batch through the real runtime, and the same batch through a mutant that breaks one of them.

The number of schedules changes with every checkpoint that the runtime gains or loses; `toolrt litmus --verify` says
where `_INTERLEAVINGS` has to follow.  The outcomes stay, because no schedule of the real runtime decides anything.  The
number of classes is not stated: some steps of the runtime read a queue before they report it.  The reduction notices
that, searches again by all that each step ever touched, and then gives a bound instead of a count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from toolrt import sim
from toolrt.events import BatchLeft, ResultDelivered
from toolrt.invariants.mixes._mix import Mix, MixEnding, judged
from toolrt.invariants.mutants import MUTANTS
from toolrt.invariants.predicates._check import LAWS as ALL_LAWS
from toolrt.invariants.script import AddCell, ChangeState, Pause, ReadCell, Scripted, Sleep
from toolrt.teaching.litmus._litmus import Count, Litmus, Program, outcome_of

Look = Callable[[Mix, sim.Execution], Any]


def _endings(mix: Mix, execution: sim.Execution) -> Any:
    """Each call's outcome, in call order."""
    return " ".join(execution.value.outcomes) if isinstance(execution.value, MixEnding) else outcome_of(execution)


def _file(mix: Mix, execution: sim.Execution) -> Any:
    """What the file f holds."""
    return dict(execution.value.files)["f"] if isinstance(execution.value, MixEnding) else outcome_of(execution)


def _results(mix: Mix, execution: sim.Execution) -> Any:
    """The calls in the order in which their results reached the reader."""
    return " ".join(str(event.fields["call"]) for event in execution.trace.of_kind(ResultDelivered))


def _state(mix: Mix, execution: sim.Execution) -> Any:
    """What the state's key x holds in the end."""
    left = execution.trace.of_kind(BatchLeft)
    return left[-1].fields["state"]["values"].get("x") if left else outcome_of(execution)


def _law(name: str) -> Look:
    """Whether the law holds."""

    def look(mix: Mix, execution: sim.Execution) -> Any:
        return "broken" if ALL_LAWS[name](judged(mix, execution).trace) else "kept"

    return look


@attrs.frozen
class _Pair:
    """One batch, with the runtime as it is and with a mutant."""

    name: str
    law: str
    mutant: str
    #: What the batch is, and what the runtime does with it.
    story: str
    look: Look
    #: What comes of it, with the runtime as it is: one outcome.
    right: Any
    #: What else comes of it with the mutant.
    wrong: set[Any]
    #: The mutant may have the right outcome too, by chance.
    by_chance: bool = False
    #: None is the mutant's own workload.
    batch: Mix | None = None

    def litmus(self) -> Iterator[Litmus]:
        """Both programs."""
        mutant = MUTANTS[self.mutant]
        mix = mutant.workload if self.batch is None else self.batch

        def read(execution: sim.Execution) -> Any:
            return self.look(mix, execution)

        law = f"Law {self.law}."
        kept, broken = map(Count, _INTERLEAVINGS[self.name])
        yield Litmus(
            self.name,
            f"{self.story} {law}",
            mix.program(),
            right={self.right},
            interleavings=kept,
            read=read,
            text=repr(mix),
        )
        yield Litmus(
            f"{self.name}_mutant",
            f"{self.story} The mutant: {mutant.sentence} {law}",
            _broken(mix, self.mutant),
            right={self.right} if self.by_chance else (),
            wrong=self.wrong,
            interleavings=broken,
            read=read,
            text=f"with MUTANTS[{self.mutant!r}].apply():\n    {mix!r}",
        )


def _broken(mix: Mix, mutant: str) -> Program:
    program = mix.program()

    async def broken() -> Any:
        with MUTANTS[mutant].apply():
            return await program()

    return broken


_PAUSING = Mix([Scripted([Pause()], says="safe"), Scripted(says="safe")])
_CHANGING = Mix(
    [Scripted([Pause(), ChangeState("x", "a")], says="safe"), Scripted([ChangeState("x", "b")], says="safe")],
    state={"x": "0"},
)

_PAIRS = (
    _Pair(
        "twins",
        "answered_once",
        "answers by id",
        "Two calls carry one id; one fails, the other does not, and each is answered for itself.",
        _endings,
        "error ok",
        {"ok ok"},
    ),
    _Pair(
        "results",
        "results_in_call_order",
        "results as they come",
        "Two calls, the first a step longer: results are in call order.",
        _results,
        "0 1",
        {"1 0"},
        by_chance=True,
        batch=_PAUSING,
    ),
    _Pair(
        "merge",
        "modifiers_in_call_order",
        "modifiers as they come",
        "Two calls each add a letter to the state, the first a step later: letters are in call order.",
        _state,
        "0ab",
        {"0ba"},
        by_chance=True,
        batch=_CHANGING,
    ),
    _Pair(
        "same_file",
        "same_file_in_call_order",
        "files are not ordered",
        "Two calls each append a letter to one file, by reading and writing it: tickets order them.",
        _file,
        "ab",
        {"ba", "a", "b"},
        by_chance=True,
    ),
    _Pair(
        "read_after_write",
        "same_file_in_call_order",
        "readers of files do not wait",
        "One call appends to a file, the next one reads it.",
        _law("same_file_in_call_order"),
        "kept",
        {"broken"},
        by_chance=True,
    ),
    _Pair(
        "alone",
        "exclusive_alone",
        "everything is claimed in vain",
        "A call that declares nothing beside one that declares what it touches, in one lane: they do not overlap.",
        _law("exclusive_alone"),
        "kept",
        {"broken"},
        by_chance=True,
    ),
    _Pair(
        "side_by_side",
        "no_needless_wait",
        "one at a time",
        "Two calls of one second that touch nothing in common: the batch takes one second.",
        _law("no_needless_wait"),
        "kept",
        {"broken"},
    ),
    _Pair(
        "fresh_state",
        "same_as_oracle",
        "stale state",
        "One call changes the state, the next one looks at it.",
        _law("same_as_oracle"),
        "kept",
        {"broken"},
    ),
    _Pair(
        "progress",
        "progress_at_once",
        "newest progress first",
        "A call that reports five times beside one that reports once: each call's progress is in order.",
        _law("progress_at_once"),
        "kept",
        {"broken"},
    ),
    _Pair(
        "stop",
        "failure_contained",
        "keeps what a stop discards",
        "A call fails after a second and stops what follows; the next one, a read, has long finished.",
        _endings,
        "error skipped",
        {"error ok"},
    ),
    _Pair(
        "cancel",
        "cancel_truthful",
        "denies that it ran",
        "A batch is cancelled while its first call runs and its second waits for it.",
        _endings,
        "interrupted not_started",
        {"not_started not_started"},
        batch=Mix([Scripted([AddCell("a", "x"), Sleep(2)]), Scripted([AddCell("a", "y")])], cancel_after=1.25),
    ),
    _Pair(
        "timeout",
        "timeout_own_time",
        "timeouts count waiting",
        "A call of one second waits two seconds for its turn; its timeout of 1.5 seconds counts its own time only.",
        _endings,
        "ok ok",
        {"ok timed_out"},
        batch=Mix([Scripted([AddCell("a", "x"), Sleep(2)]), Scripted([ReadCell("a"), Sleep(1)], timeout=1.5)]),
    ),
    _Pair(
        "leaving",
        "nothing_left",
        "tickets are kept",
        "Two calls with a claim each: no ticket outlives its call.",
        _law("nothing_left"),
        "kept",
        {"broken"},
    ),
    _Pair(
        "turns",
        "batch_ends",
        "forgets who waits",
        "Two calls with one claim: when the first ends, the second starts.",
        _endings,
        "ok ok",
        {"Deadlock"},
    ),
    _Pair(
        "one_key",
        "same_as_serial",
        "state keys share a lane",
        "Two calls claim one key of the state; each reads it and sets it to a letter more, as one after the other.",
        _law("same_as_serial"),
        "kept",
        {"broken"},
    ),
    _Pair(
        "stale_write",
        "no_write_lost",
        "stale writes apply",
        "Two calls read one key of the state and set it to a letter more; the second would undo the first.",
        _endings,
        "ok error",
        {"ok ok"},
    ),
    _Pair(
        "stale_claims",
        "claims_hold",
        "stale claims run",
        "A call changes a cell that tells what the next one touches; the next one waits for it, and is refused.",
        _endings,
        "ok error",
        {"ok ok"},
    ),
)

#: In how many orders the steps of each can come, with the runtime as it is and with the mutant.
_INTERLEAVINGS = {
    "twins": (54, 54),
    "results": (108, 137),
    "merge": (80, 80),
    "same_file": (155, 1_549),
    "read_after_write": (50, 186),
    "alone": (76, 200),
    "side_by_side": (144, 27),
    "fresh_state": (105, 105),
    "progress": (456, 456),
    "stop": (40, 40),
    "cancel": (160, 160),
    "timeout": (36, 76),
    "leaving": (304, 304),
    "turns": (76, 12),
    "one_key": (105, 30),
    "stale_write": (46, 46),
    "stale_claims": (16, 76),
}

#: The laws, each kept and broken.
LAWS: tuple[Litmus, ...] = tuple(litmus for pair in _PAIRS for litmus in pair.litmus())
