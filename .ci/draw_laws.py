"""How each law fails: timelines of mutants, made by running them, for the pages of docs/explanation/laws.

Run it with the Python of a development environment after a change to the runtime's events; it writes what stands on
each page between ``<!-- timeline: begin -->`` and ``<!-- timeline: end -->``.  A test holds the pages against what this
gives.

A timeline has a row for each event and a column for each call; ``!!`` is the place where the law does not hold.  It is
of the first schedule that breaks the law: the simplest one, else the first of a fixed series of random ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from toolrt import invariants, sim
from toolrt.trace import TraceEvent
from toolrt.view._words import told

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "explanation" / "laws"
#: For each law, the mutant that its page tells of.
SHOWN = {
    "answered_once": "answers by id",
    "results_in_call_order": "results as they come",
    "modifiers_in_call_order": "modifiers as they come",
    "same_file_in_call_order": "files are not ordered",
    "exclusive_alone": "everything is claimed in vain",
    "no_needless_wait": "one at a time",
    "same_as_oracle": "stale state",
    "progress_at_once": "newest progress first",
    "failure_contained": "keeps what a stop discards",
    "cancel_truthful": "denies that it ran",
    "timeout_own_time": "timeouts count waiting",
    "nothing_left": "tickets are kept",
    "batch_ends": "waits for more calls",
    "same_schedule_same_trace": "starts by chance",
    "same_as_serial": "state keys share a lane",
    "no_write_lost": "stale writes apply",
    "claims_hold": "stale claims run",
}

#: What says nothing about any law that is shown.
_LEFT_OUT = {"batch.opened", "batch.sealed", "lane.started", "reader.asked", "merge.delivered", "call.submitted"}
_BLOCK = re.compile(r"(<!-- timeline: begin -->\n).*?(<!-- timeline: end -->)", re.DOTALL)
_MOST_TRIES = 50
_WIDTH = 100


def failing(law: str) -> sim.Execution:
    """An execution of the law's mutant that breaks the law."""
    mutant = invariants.MUTANTS[SHOWN[law]]
    mutant.workload.oracle()  # asked before anything is broken
    with mutant.apply():
        for seed in range(_MOST_TRIES):
            choices = None if seed == 0 else sim.run(mutant.workload.program(), sim.RandomWalk(seed=seed)).choices
            execution = invariants.simulate(mutant.workload, choices, replayed=law == "same_schedule_same_trace")
            if invariants.LAWS[law](execution.trace):
                return execution
    raise SystemExit(f"{law}: {mutant.name!r} broke it in none of {_MOST_TRIES} executions")


def timeline(law: str) -> str:
    """What stands on the law's page."""
    lines = _sides(law) if law == "same_schedule_same_trace" else _rows(law, failing(law))
    return "\n".join(["```text", *(line.rstrip() for line in lines), "```", ""])


def _rows(law: str, execution: sim.Execution) -> Iterator[str]:
    violations = invariants.LAWS[law](execution.trace)
    events = execution.trace.events
    calls = len(invariants.MUTANTS[SHOWN[law]].workload.calls)
    columns = ["the batch", *(f"call {call}" for call in range(calls))]
    shown = [event for event in events if event.kind not in _LEFT_OUT and event.fields.get("effect") != "returns"]
    cells = [(event, _column(event), _words(event)) for event in shown]
    wide = max(len(words) for _, _, words in cells)
    width = min(max(wide, 12) + 2, (_WIDTH - 9) // len(columns))
    yield "    time  " + "".join(f"{name:{width}}" for name in columns)
    for event, column, words in cells:
        found = [violation for violation in violations if violation.seq == event.seq]
        parts = wrap(words, width - 1)
        for number, part in enumerate(parts):
            time = f"{event.time:g}" if number == 0 else ""
            mark = "!!" if found and number == 0 else "  "
            yield f"{mark}  {time:>4}  " + " " * (column * width) + part
        yield from _told(found)
    yield from _told([violation for violation in violations if violation.seq is None])


def _told(violations: list[invariants.Violation]) -> Iterator[str]:
    for violation in violations:
        yield from wrap(violation.detail, _WIDTH, initial_indent="!!        ", subsequent_indent="          ")


def _column(event: TraceEvent) -> int:
    call = event.fields.get("call")
    return call + 1 if isinstance(call, int) and event.fields.get("batch") == "mix" else 0


def _words(event: TraceEvent) -> str:
    return re.sub(r"^\[\d+\] ", "", told(event))


def _sides(law: str) -> Iterator[str]:
    """One schedule run twice, side by side."""
    mutant = invariants.MUTANTS[SHOWN[law]]
    with mutant.apply():
        runs = [sim.run(mutant.workload.program(), sim.Choices([])) for _ in range(2)]
    yield "the same schedule, twice"
    yield ""
    starts = [[f"call {event.fields['call']} starts" for event in run.trace.of_kind("call.started")] for run in runs]
    for first, again in zip(*starts, strict=True):
        yield f"{'  ' if first == again else '!!'}  {first:20}{again}"


def pages() -> dict[Path, str]:
    """Every page of a law as it should be."""
    found = {}
    for law in SHOWN:
        (path,) = PAGES.glob(f"{invariants.LAWS[law].number:02}-*.md")
        text = path.read_text(encoding="utf-8")
        found[path] = _BLOCK.sub(lambda block, law=law: block[1] + timeline(law) + block[2], text)  # type: ignore[misc]
    return found


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
