"""Exercises whose answer judges or computes without running a program: properties, a law, a merge.

Rules.  A property has to hold on the right program and to fail on each mutant.  False alarms are looked for as hard as
misses.  A finding describes a mutant only when the property did not catch it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from toolrt import sim
from toolrt.events import EventRecord, FileRead, MutationBegan, MutationEnded
from toolrt.invariants import LAWS, MUTANTS, Mix
from toolrt.invariants.script import AppendFile, ReadFile, Scripted, Sleep, WriteFile
from toolrt.invariants.workloads import WORKLOADS
from toolrt.teaching.lab._exercise import Finding, Graders
from toolrt.trace import Trace, stable_text

# ---------------------------------------------------------------------- in_call_order

_Delivered = list[tuple[int, Any]]

#: Calls in the order in which they finish, each with its answer; two of them have the same one.
_FINISHED: tuple[tuple[tuple[int, Any], ...], ...] = (
    (),
    ((0, "a"),),
    ((0, "a"), (1, "b"), (2, "c")),
    ((2, "c"), (0, "a"), (1, "b")),
    ((1, "same"), (0, "same"), (3, None), (2, "d")),
)


def _last_missing(finished: Sequence[tuple[int, Any]]) -> _Delivered:
    return sorted(finished, key=_index)[:-1]


def _first_missing(finished: Sequence[tuple[int, Any]]) -> _Delivered:
    return sorted(finished, key=_index)[1:]


def _one_twice(finished: Sequence[tuple[int, Any]]) -> _Delivered:
    delivered = sorted(finished, key=_index)
    return delivered[:1] + delivered


def _one_in_place_of_another(finished: Sequence[tuple[int, Any]]) -> _Delivered:
    delivered = sorted(finished, key=_index)
    return delivered[:1] + delivered[:-1]


def _last_twice(finished: Sequence[tuple[int, Any]]) -> _Delivered:
    delivered = sorted(finished, key=_index)
    return delivered + delivered[-1:]


def _by_another(finished: Sequence[tuple[int, Any]]) -> _Delivered:
    delivered = sorted(finished, key=_index)
    answers = [answer for _, answer in delivered]
    return [(index, answer) for (index, _), answer in zip(delivered, answers[1:] + answers[:1], strict=True)]


def _named_wrong(finished: Sequence[tuple[int, Any]]) -> _Delivered:
    delivered = sorted(finished, key=_index)
    indices = [index for index, _ in delivered]
    return [(index, answer) for index, (_, answer) in zip(indices[1:] + indices[:1], delivered, strict=True)]


def _index(pair: tuple[int, Any]) -> int:
    return pair[0]


def _equal_to(answer: Any) -> Any:
    """Give an equal answer; of a text of several letters, another object."""
    return "".join(list(answer)) if isinstance(answer, str) else answer


_DELIVERIES: dict[str, Callable[[Sequence[tuple[int, Any]]], _Delivered]] = {
    "results come as calls finish": list,
    "the last result never comes": _last_missing,
    "the first result never comes": _first_missing,
    "the first result comes twice": _one_twice,
    "the last result comes twice": _last_twice,
    "the first result comes twice, and the last never": _one_in_place_of_another,
    "each result has the answer of the next call": _by_another,
    "each answer names the next call": _named_wrong,
    "results come backwards": lambda finished: sorted(finished, key=_index, reverse=True),
}


def _in_call_order(holds: Any) -> Iterator[Finding]:
    def said(answers: list[Any], delivered: _Delivered) -> bool:
        # Equal answers need not be one object.
        verdict = holds(list(answers), [(index, _equal_to(answer)) for index, answer in delivered])
        if not isinstance(verdict, bool):
            raise TypeError(f"a property gives True or False, this one gave {verdict!r:.60}")
        return verdict

    cases = [[answer for _, answer in sorted(finished, key=_index)] for finished in _FINISHED]
    wolf = next((answers for answers in cases if not said(answers, list(enumerate(answers)))), None)
    detail = "" if wolf is None else f"it is False for {wolf!r} delivered as {list(enumerate(wolf))!r}"
    yield Finding(wolf is None, "it holds on the right program", detail)
    for what, deliver in _DELIVERIES.items():
        caught = survives = False
        for finished, answers in zip(_FINISHED, cases, strict=True):
            delivered = deliver(finished)
            if delivered != list(enumerate(answers)):
                missed = said(answers, delivered)
                survives |= missed
                caught |= not missed
        yield Finding(caught and not survives, "a mutant is caught", f"not always caught: {what}" if survives else "")


# ---------------------------------------------------------------------- merge


def _sets(key: str, value: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda state: {**state, key: value}


def _adds(text: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda state: {**state, "said": state["said"] + text}


def _raises(state: dict[str, Any]) -> dict[str, Any]:
    raise ValueError("broken modifier")


def _misses(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "said": state["heard"]}


_MERGES: tuple[tuple[str, list[Any], dict[str, Any], list[Any]], ...] = (
    ("nothing to merge", [], {"said": ""}, []),
    ("modifiers in call order, not in that of the ends", [(1, 0, _adds("b")), (0, 0, _adds("a"))], {"said": "ab"}, []),
    (
        "those of one call in the order it gave them",
        [(0, 1, _adds("2")), (1, 0, _adds("b")), (0, 0, _adds("1"))],
        {"said": "12b"},
        [],
    ),
    ("the later call has the last word", [(3, 0, _sets("x", 3)), (2, 0, _sets("x", 2))], {"said": "", "x": 3}, []),
    (
        "one that raises changes nothing, and the rest goes on",
        [(2, 0, _adds("c")), (1, 0, _raises), (1, 1, _adds("b")), (0, 0, _adds("a"))],
        {"said": "abc"},
        [(1, 0)],
    ),
    ("all that raise are reported, in order", [(4, 0, _raises), (1, 2, _raises)], {"said": ""}, [(1, 2), (4, 0)]),
    (
        "whatever kind of error it is",
        [(1, 0, _misses), (0, 0, _raises), (2, 0, _adds("c"))],
        {"said": "c"},
        [(0, 0), (1, 0)],
    ),
    (
        "numbers are numbers: call 10 comes after call 9",
        [(10, 0, _adds("z")), (9, 0, _adds("y"))],
        {"said": "yz"},
        [],
    ),
)


def _merge(merge: Any) -> Iterator[Finding]:
    for what, finished, wanted, rejected in _MERGES:
        state, given = {"said": ""}, list(finished)
        try:
            found = merge(state, given)
        except Exception as error:
            yield Finding(False, what, f"it raised {type(error).__name__}: {error}")
            continue
        detail = ""
        if state != {"said": ""}:
            detail = f"the state that it was given was changed to {state!r}: others still look at it"
        elif found != (wanted, rejected):
            detail = f"expected {(wanted, rejected)!r}, got {stable_text(found)}"
        yield Finding(not detail, what, detail)
    yield _a_dirty_one(merge)


def _a_dirty_one(merge: Any) -> Finding:
    def half(state: dict[str, Any]) -> dict[str, Any]:
        state["said"] += "half"
        raise ValueError("broken in the middle")

    what = "one that changes what it is given, and then raises, changes nothing either"
    state = {"said": ""}
    found = merge(state, [(0, 0, half), (1, 0, _adds("b"))])
    detail = ""
    if found != ({"said": "b"}, [(0, 0)]):
        detail = f"expected ({{'said': 'b'}}, [(0, 0)]), got {stable_text(found)}"
    elif state != {"said": ""}:
        detail = f"the modifier was handed the caller's own state, which is {state!r} now"
    return Finding(not detail, what, detail)


# ---------------------------------------------------------------------- file_law

_READS_LATE = Mix([Scripted([AppendFile("f", "a"), Sleep(1)]), Scripted([ReadFile("f")])])
_WRITES = Mix([Scripted([WriteFile("f", "a")]), Scripted([WriteFile("g", "b")]), Scripted([AppendFile("f", "c")])])

#: The name of a mutant of the runtime, and a mix it is caught on.
_BROKEN: tuple[tuple[str, Mix], ...] = (
    ("files are not ordered", MUTANTS["files are not ordered"].workload),
    ("files are not ordered", _WRITES),
    ("readers of files do not wait", MUTANTS["readers of files do not wait"].workload),
    ("readers of files do not wait", _READS_LATE),
)
_WALKS = 20


def _has_files(mix: Mix) -> bool:
    actions = [action for call in mix.calls for one in call.family for action in one.does]
    return any(isinstance(action, AppendFile | ReadFile | WriteFile) for action in actions)


def _executions(mix: Mix, count: int) -> Iterator[sim.Execution]:
    for seed in range(count):
        yield sim.run(mix.program(), sim.RandomWalk(seed=seed) if seed else sim.Fifo(), step_limit=3_000)


def _traced(*events: str) -> Trace:
    """Make a trace by hand: what happened, the call, and the file and the batch where they are not f and b."""
    versions: dict[str, int] = {}
    made: list[tuple[int | None, float, str, str, EventRecord]] = []
    for place, event in enumerate(events):
        word, call, file, batch = (event.split() + ["f", "b"][event.count(" ") - 1 :])[:4]
        versions[file] = versions.get(file, 0) + (word == "ended")
        version = str(versions[file])
        record: EventRecord = MutationBegan(batch, int(call), file)
        if word == "ended":
            record = MutationEnded(batch, int(call), file, version, True)
        elif word == "read":
            record = FileRead(batch, int(call), file, version)
        made.append((None, float(place), f"main.{call}", record.kind, record))
    return Trace(made)


#: Traces that no mutant gives for certain, each with one thing wrong, written by hand.
_TOLD: tuple[tuple[str, Trace], ...] = (
    ("call 0 changes a file after call 1 has", _traced("began 1", "ended 1", "began 0", "ended 0")),
    ("two calls change a file at the same time", _traced("began 0", "began 1", "ended 0", "ended 1")),
    ("call 1 reads a file before call 0 changes it", _traced("read 1", "began 0", "ended 0")),
    ("call 1 reads a file while call 0 changes it", _traced("began 0", "read 1", "ended 0")),
)
#: And traces with nothing wrong.
_RIGHT: tuple[tuple[str, Trace], ...] = (
    ("calls of two batches change one file", _traced("began 1", "ended 1", "began 0 f c", "ended 0 f c")),
    ("two calls change a file each, at the same time", _traced("began 1 g", "began 0", "ended 0", "ended 1 g")),
    ("calls read in any order, then one changes", _traced("read 1", "read 0", "began 2", "ended 2", "read 3")),
    ("a call reads what it changes, twice", _traced("read 0", "began 0", "ended 0", "read 0", "began 0", "ended 0")),
)


def _file_law(answer: Any) -> Iterator[Finding]:
    def broken(trace: Trace) -> list[Any]:
        found = answer(trace)
        if not isinstance(found, Iterable):
            raise TypeError(
                f"a law gives the list of what is wrong, empty when nothing is; this one gave {found!r:.60}"
            )
        return list(found)

    wolf: tuple[sim.Execution, Any] | None = None
    for mix in (*filter(_has_files, WORKLOADS), _READS_LATE, _WRITES):
        for execution in _executions(mix, 3):
            if wolf is None and (found := broken(execution.trace)):
                wolf = execution, found[0]
    detail = "" if wolf is None else f"it complains of the right runtime: {stable_text(wolf[1])}"
    yield Finding(wolf is None, "the right runtime does not break it", detail, None if wolf is None else wolf[0])
    for name, mix in _BROKEN:
        shown: sim.Execution | None = None
        caught = False
        with MUTANTS[name].apply():
            for execution in _executions(mix, _WALKS):
                shown = execution if mix.check(execution, _LAW) else shown
                caught = caught or bool(broken(execution.trace))
        detail = "" if caught else f"not caught: {MUTANTS[name].sentence} The calls are {mix!r}"
        yield Finding(caught, "a mutant of the runtime is caught", detail, shown)
    for what, trace in _TOLD:
        caught = bool(broken(trace))
        yield Finding(caught, "a trace that breaks it is caught", "" if caught else f"not caught: {what}")
    for what, trace in _RIGHT:
        found = broken(trace)
        detail = f"{what}: it complains, {stable_text(found[0])}" if found else ""
        yield Finding(not found, "a trace that does not break it passes", detail)


#: The law itself: it finds an execution to show.
_LAW = {"same_file_in_call_order": LAWS["same_file_in_call_order"]}


#: What grades each exercise, by name.
BY_PROPERTY: Graders = {
    "in_call_order": _in_call_order,
    "merge": _merge,
    "file_law": _file_law,
}
