"""``toolrt laws``: hold the laws themselves to account.

Rules.  Every law is checked by itself against every mutant, a small broken variant of the runtime, and against the
runtime as it is.  A law that lets its mutant live is worth nothing; one that trips on the runtime as it is has
found a bug, or is one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Literal

from cyclopts import Parameter

from toolrt import invariants
from toolrt.cli._escape import on_one_line
from toolrt.cli._exit import Exit
from toolrt.cli._options import Whole, at_least_one
from toolrt.cli._screen import Screen, forgiving, print_json

__all__ = ["laws"]


def laws(
    *,
    executions: Annotated[Whole, Parameter(help="How many schedules of each workload to run, 1 or more.")] = 40,
    seed: Annotated[Whole, Parameter(help="Which sample of schedules; the same seed, the same table.")] = 0,
    strategy: Annotated[
        Literal["random", "dpor"],
        Parameter(help="random: mutants and workloads, a sample of schedules; dpor: all batches, all their traces."),
    ] = "random",
    calls: Annotated[Whole, Parameter(help="With dpor: batches of 1 to so many calls, 1 or more.")] = 2,
    json: Annotated[bool, Parameter(help="Print the table as JSON.", negative=())] = False,
) -> int:
    """Print which law catches which broken variant of the runtime.

    The rows are mutants, the columns laws, the numbers executions in which the law tripped. The exit code is 1 when a
    mutant is not caught by its law, or a law trips on the runtime as it is.
    """
    at_least_one("--executions", executions)
    at_least_one("--calls", calls)
    screen = Screen(forgiving(sys.stderr if json else sys.stdout))
    if strategy == "dpor":
        return _every_trace(screen, calls, json)
    screen.say(f"{len(invariants.LAWS)} laws, {len(invariants.MUTANTS)} mutants, {executions:,} schedules of each")
    found = invariants.table(executions, seed)
    if json:
        print_json(found.to_json())
    else:
        full = str(found).splitlines()
        for line in full if screen.fits(max(map(len, full))) else _narrow(found):
            screen.say(on_one_line(line))
    for mutant in found.survivors:
        screen.say(on_one_line(f"{mutant.law} does not catch {mutant.name}"), "red")
    if found.false_alarms:
        broken = sorted({alarm.violation.law for alarm in found.false_alarms})
        screen.say(f"broken by the runtime as it is: {', '.join(broken)}", "red")
    screen.say("PASS: every mutant is caught" if found.ok else "FAIL", "bold green" if found.ok else "bold red")
    return Exit.OK if found.ok else Exit.FAILED


def _every_trace(screen: Screen, calls: int, json: bool) -> int:
    """Hold the runtime as it is against all laws in every trace of every batch."""
    screen.say(
        f"{len(invariants.LAWS)} laws, {len(invariants.KINDS)} kinds of call, every batch of 1 to {calls}, every trace"
    )
    found = [invariants.exhaust(invariants.all_batches(length)) for length in range(1, calls + 1)]
    if json:
        print_json({str(length): each.to_json() for length, each in enumerate(found, 1)})
    for length, each in enumerate(found, 1):
        for line in [] if json else f"{length}: {each}".splitlines():
            screen.say(on_one_line(line))
    fine = all(each.ok for each in found)
    screen.say("PASS: all laws hold" if fine else "FAIL", "bold green" if fine else "bold red")
    return Exit.OK if fine else Exit.FAILED


def _narrow(table: invariants.Table) -> Iterator[str]:
    """The table for a window that it does not fit in: a few lines for each mutant."""
    for row in table.rows:
        others = [law for law, count in row.tripped.items() if count and law != row.mutant.law]
        yield f"{row.mutant.name}:"
        verb = "caught" if row.caught else "NOT CAUGHT"
        yield f"  {verb} by {row.mutant.law} ({row.tripped.get(row.mutant.law, 0)} of {row.executions})"
        if others:
            yield f"  also by {', '.join(others)}"
    yield f"{table.executions} executions of the runtime as it is: {len(table.false_alarms)} false alarms"
