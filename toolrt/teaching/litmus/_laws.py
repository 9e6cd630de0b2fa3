"""toolrt's own laws: a batch through the real runtime, and the same batch through a mutant that breaks one of them.

The number of schedules changes with every checkpoint that the runtime gains or loses; `toolrt litmus --verify` says
where `gallery.txt` has to follow.  The outcomes stay, because no schedule of the real runtime decides anything.  The
number of classes is not stated: some steps of the runtime read a queue before they report it.  The reduction notices
that, searches again by all that each step ever touched, and then gives a bound instead of a count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from toolrt import sim
from toolrt.events import BatchLeft, ResultDelivered
from toolrt.invariants.mixes._mix import Mix, MixEnding, judged
from toolrt.invariants.mutants import MUTANTS
from toolrt.invariants.predicates._check import LAWS as ALL_LAWS
from toolrt.invariants.script import AddCell, ChangeState, Pause, ReadCell, Scripted, Sleep
from toolrt.teaching.litmus._litmus import DESCRIBED, Litmus, Program, count, outcome_of, outcomes

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


def _broken(mix: Mix, mutant: str) -> Program:
    program = mix.program()

    async def broken() -> Any:
        with MUTANTS[mutant].apply():
            return await program()

    return broken


#: The batches of the pairs that do not run the mutant's own workload.
_BATCHES = {
    "results": Mix([Scripted([Pause()], says="safe"), Scripted(says="safe")]),
    "merge": Mix(
        [Scripted([Pause(), ChangeState("x", "a")], says="safe"), Scripted([ChangeState("x", "b")], says="safe")],
        state={"x": "0"},
    ),
    "cancel": Mix([Scripted([AddCell("a", "x"), Sleep(2)]), Scripted([AddCell("a", "y")])], cancel_after=1.25),
    "timeout": Mix([Scripted([AddCell("a", "x"), Sleep(2)]), Scripted([ReadCell("a"), Sleep(1)], timeout=1.5)]),
}

#: What is looked at of a pair; of the others, whether the law holds.
_LOOKED_AT = {
    **dict.fromkeys(("twins", "stop", "cancel", "timeout", "turns", "stale_write", "stale_claims"), _endings),
    "same_file": _file,
    "results": _results,
    "merge": _state,
}

#: Pairs whose mutant may have the right outcome, too, by chance.
_BY_CHANCE = ("results", "merge", "same_file", "read_after_write", "alone")

#: The pairs, in the order of the gallery; `gallery.txt` has their stories, outcomes and mutants.
_PAIRS = (
    *("twins", "results", "merge", "same_file", "read_after_write", "alone", "side_by_side", "fresh_state", "progress"),
    *("stop", "cancel", "timeout", "leaving", "turns", "one_key", "stale_write", "stale_claims"),
)


def _both(name: str) -> Iterator[Litmus]:
    """One batch with the runtime as it is, and the same with a mutant that breaks a law."""
    described = DESCRIBED[name]
    (right, wrong, kept, broken), story = described.cells, described.texts["story"]
    mutant = MUTANTS[mutant_name := described.texts["teaches"]]
    mix = _BATCHES.get(name, mutant.workload)
    look = _LOOKED_AT.get(name) or _law(mutant.law)

    def read(execution: sim.Execution) -> Any:
        return look(mix, execution)

    yield Litmus(
        name,
        f"{story} Law {mutant.law}.",
        mix.program(),
        right=outcomes(right),
        interleavings=count(kept),
        read=read,
        text=repr(mix),
        teaches=f"law {mutant.law}, kept",
    )
    yield Litmus(
        f"{name}_mutant",
        f"{story} The mutant: {mutant.sentence} Law {mutant.law}.",
        _broken(mix, mutant_name),
        right=outcomes(right) if name in _BY_CHANCE else (),
        wrong=outcomes(wrong),
        interleavings=count(broken),
        read=read,
        text=f"with MUTANTS[{mutant_name!r}].apply():\n    {mix!r}",
        teaches=f"law {mutant.law}, broken by a mutant",
    )


#: The laws, each kept and broken.
LAWS: tuple[Litmus, ...] = tuple(litmus for name in _PAIRS for litmus in _both(name))
