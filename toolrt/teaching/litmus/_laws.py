"""toolrt's own laws: a batch through the real runtime, and the same batch through a mutant that breaks one of them.

The number of schedules changes with every checkpoint that the runtime gains or loses; `toolrt litmus --verify` says
where `_TABLE` has to follow.  The outcomes stay, because no schedule of the real runtime decides anything.  The
number of classes is not stated: some steps of the runtime read a queue before they report it.  The reduction notices
that, searches again by all that each step ever touched, and then gives a bound instead of a count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from toolrt import sim
from toolrt.events import BatchLeft, ResultDelivered
from toolrt.invariants.mixes._mix import Mix, MixEnding, judged
from toolrt.invariants.mutants import MUTANTS
from toolrt.invariants.predicates._check import LAWS as ALL_LAWS
from toolrt.invariants.script import AddCell, ChangeState, Pause, ReadCell, Scripted, Sleep
from toolrt.teaching.litmus._litmus import Litmus, Program, count, outcome_of, outcomes, rows_of

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


#: What is looked at of an execution.
_LOOKS: Mapping[str, Look] = {"endings": _endings, "file": _file, "results": _results, "state": _state}


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


#: What is looked at of each pair; what comes of it with the runtime as it is, and what else with the mutant; whether
#: the mutant may have the right outcome too, by chance; and in how many orders the steps of the two can come.
_TABLE = """
    pair             | looks at | right                     | wrong                     | by chance | schedules | mutant
    twins            | endings  | "error ok"                | "ok ok"                   |           | 54        | 54
    results          | results  | "0 1"                     | "1 0"                     | yes       | 108       | 137
    merge            | state    | "0ab"                     | "0ba"                     | yes       | 80        | 80
    same_file        | file     | "ab"                      | "ba", "a", "b"            | yes       | 155       | 1,549
    read_after_write | law      | "kept"                    | "broken"                  | yes       | 50        | 186
    alone            | law      | "kept"                    | "broken"                  | yes       | 76        | 200
    side_by_side     | law      | "kept"                    | "broken"                  |           | 144       | 27
    fresh_state      | law      | "kept"                    | "broken"                  |           | 105       | 105
    progress         | law      | "kept"                    | "broken"                  |           | 456       | 456
    stop             | endings  | "error skipped"           | "error ok"                |           | 40        | 40
    cancel           | endings  | "interrupted not_started" | "not_started not_started" |           | 160       | 160
    timeout          | endings  | "ok ok"                   | "ok timed_out"            |           | 36        | 76
    leaving          | law      | "kept"                    | "broken"                  |           | 304       | 304
    turns            | endings  | "ok ok"                   | "Deadlock"                |           | 76        | 12
    one_key          | law      | "kept"                    | "broken"                  |           | 105       | 30
    stale_write      | endings  | "ok error"                | "ok ok"                   |           | 46        | 46
    stale_claims     | endings  | "ok error"                | "ok ok"                   |           | 16        | 76
    """

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

#: For each pair the mutant, whose law it is, and what the batch is, and what the runtime does with it.
_PAIRS = {
    "twins": (
        "answers by id",
        "Two calls carry one id; one fails, the other does not, and each is answered for itself.",
    ),
    "results": ("results as they come", "Two calls, the first a step longer: results are in call order."),
    "merge": (
        "modifiers as they come",
        "Two calls each add a letter to the state, the first a step later: letters are in call order.",
    ),
    "same_file": (
        "files are not ordered",
        "Two calls each append a letter to one file, by reading and writing it: tickets order them.",
    ),
    "read_after_write": ("readers of files do not wait", "One call appends to a file, the next one reads it."),
    "alone": (
        "everything is claimed in vain",
        "A call that declares nothing beside one that declares what it touches, in one lane: they do not overlap.",
    ),
    "side_by_side": (
        "one at a time",
        "Two calls of one second that touch nothing in common: the batch takes one second.",
    ),
    "fresh_state": ("stale state", "One call changes the state, the next one looks at it."),
    "progress": (
        "newest progress first",
        "A call that reports five times beside one that reports once: each call's progress is in order.",
    ),
    "stop": (
        "keeps what a stop discards",
        "A call fails after a second and stops what follows; the next one, a read, has long finished.",
    ),
    "cancel": ("denies that it ran", "A batch is cancelled while its first call runs and its second waits for it."),
    "timeout": (
        "timeouts count waiting",
        "A call of one second waits two seconds for its turn; its timeout of 1.5 seconds counts its own time only.",
    ),
    "leaving": ("tickets are kept", "Two calls with a claim each: no ticket outlives its call."),
    "turns": ("forgets who waits", "Two calls with one claim: when the first ends, the second starts."),
    "one_key": (
        "state keys share a lane",
        "Two calls claim one key of the state; each reads it and sets it to a letter more, as one after the other.",
    ),
    "stale_write": (
        "stale writes apply",
        "Two calls read one key of the state and set it to a letter more; the second would undo the first.",
    ),
    "stale_claims": (
        "stale claims run",
        "A call changes a cell that tells what the next one touches; the next one waits for it, and is refused.",
    ),
}


def _both(name: str, mutant_name: str, story: str, cells: Sequence[str]) -> Iterator[Litmus]:
    """One batch with the runtime as it is, and the same with a mutant that breaks a law."""
    looks_at, right, wrong, by_chance, kept, broken = cells
    mutant = MUTANTS[mutant_name]
    mix = _BATCHES.get(name, mutant.workload)
    look = _law(mutant.law) if looks_at == "law" else _LOOKS[looks_at]

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
        right=outcomes(right) if by_chance else (),
        wrong=outcomes(wrong),
        interleavings=count(broken),
        read=read,
        text=f"with MUTANTS[{mutant_name!r}].apply():\n    {mix!r}",
        teaches=f"law {mutant.law}, broken by a mutant",
    )


#: The laws, each kept and broken.
LAWS: tuple[Litmus, ...] = tuple(
    litmus for name, cells in rows_of(_TABLE).items() for litmus in _both(name, *_PAIRS[name], cells)
)
