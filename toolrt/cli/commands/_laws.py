"""``toolrt laws``: hold the laws themselves to account.

Rules.  Every law is checked by itself against every mutant, a small broken variant of the runtime, and against the
runtime as it is.  A law that lets its mutant live is worth nothing; one that trips on the runtime as it is has
found a bug, or is one.  With ``--generated`` the examples are under test instead: those that the strategies draw.
"""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from toolrt import invariants
from toolrt._plain import counted
from toolrt.cli._exit import Exit
from toolrt.cli.experiment._cluster import cluster_of
from toolrt.cli.experiment._options import LIMIT, Cluster, Slots, Whole, at_least_one
from toolrt.cli.experiment._policies import lanes_named, own, slots_named
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._screen import Screen, forgiving, print_json
from toolrt.errors import InputRefused
from toolrt.invariants._exhaustive import DIMENSIONS, left_out
from toolrt.sim.exploring._executors import JobsArgument

if TYPE_CHECKING:
    from toolrt.testing import MutationScore

# Wall seconds between two lines of progress where there is no terminal.
_EVERY = 30.0

# So many mutants that are left are named.
_FEW = 3

# What is run unless told otherwise: schedules of each workload, calls in a batch, and samples of random examples.
_EXECUTIONS, _CALLS, _SEEDS = 40, 2, 5


#: Of a name so many letters are compared with those of mutants.
_MOST_COMPARED = 200


def laws(
    *,
    executions: Annotated[
        Whole | None, Parameter(help="With random: how many schedules of each workload to run, 40 unless given.")
    ] = None,
    generated: Annotated[
        Whole | None,
        Parameter(help="Run at most so many random examples, of no chosen workload, until a law catches each mutant."),
    ] = None,
    seeds: Annotated[
        Whole | None, Parameter(help="With --generated: how many samples of examples, 5 unless given.")
    ] = None,
    mutant: Annotated[
        list[str] | None,
        Parameter(
            help="Try only this mutant: a name of toolrt's own, or MODULE:NAME of yours. May be repeated.",
            negative=(),
        ),
    ] = None,
    seed: Annotated[
        Whole | None,
        Parameter(help="With random or --generated: which (first) sample, 0 unless given; the same, the same table."),
    ] = None,
    strategy: Annotated[
        Literal["random", "dpor"],
        Parameter(help="random: mutants and workloads, a sample of schedules; dpor: all batches, all their traces."),
    ] = "random",
    calls: Annotated[Whole | None, Parameter(help="With dpor: batches of 1 to so many calls, 2 unless given.")] = None,
    dimensions: Annotated[
        str | None,
        Parameter(help="With dpor: how each batch is run besides: cancels, timeouts, streams, stops, crashes."),
    ] = None,
    jobs: Annotated[Whole, Parameter(help="With dpor or --generated: how many processes share the work.")] = 1,
    cluster: Cluster = None,
    checkpoint: Annotated[
        Path | None, Parameter(help="With dpor: a file that keeps what was done, to be gone on with next time.")
    ] = None,
    lanes: Annotated[
        str | None,
        Parameter(
            help="With dpor or --generated: which calls may overlap, by_claims, by_safety, parallel, serial, or your "
            "MODULE:NAME; by_claims unless given, and with --generated each of the four."
        ),
    ] = None,
    slots: Slots = None,
    limit: Annotated[
        Whole | None,
        Parameter(help="With dpor or --generated: how many calls run at once; 10 unless given, with --generated any."),
    ] = None,
    law: Annotated[
        tuple[str, ...],
        Parameter(help="Check your own law as well, MODULE:NAME.", negative=(), consume_multiple=False),
    ] = (),
    json: Annotated[bool, Parameter(help="Print the table as JSON.", negative=())] = False,
) -> int:
    """Print which law catches which broken variant of the runtime.

    The rows are mutants, the columns laws, the numbers executions in which the law tripped. The exit code is 1 when a
    mutant is not caught by its law, or a law trips on the runtime as it is; with dpor it is 3 when no law tripped and
    not all traces were run, 130 after Ctrl-C. With --generated the rows say how many random examples it took until
    which law caught each mutant; the exit code is 1 when half of the seeds do not catch one, 130 after Ctrl-C.
    """
    at_least_one("--jobs", jobs)
    if generated is not None:
        others: dict[str, object] = {
            "--executions": executions,
            "--calls": calls,
            "--checkpoint": checkpoint,
            "--cluster": cluster,
            "--dimensions": dimensions,
        }
        for option, value in {**others, "--strategy dpor": None if strategy == "random" else strategy}.items():
            if value is not None:
                raise InputRefused(option, "it does not go with --generated", "Leave one of the two out.")
        many = at_least_one("--seeds", _SEEDS if seeds is None else seeds)
        first = seed or 0
        at_least_one("--generated", generated)
        options: dict[str, object] = {} if lanes is None else {"lanes": lanes_named(lanes)}
        if slots is not None:
            options["slots"] = slots_named(slots)
        if limit is not None:
            options["limit"] = at_least_one("--limit", limit)
        return _generated(generated, range(first, first + many), mutant, jobs, json, options, _laws_with(law))
    if seeds is not None:
        raise InputRefused("--seeds", "it is for --generated", "Add --generated N, or leave it out.")
    of_dpor: dict[str, object] = {
        "--calls": calls,
        "--dimensions": dimensions,
        "--jobs": None if jobs == 1 else jobs,
        "--checkpoint": checkpoint,
        "--cluster": cluster,
        "--lanes": lanes,
        "--slots": slots,
        "--limit": limit,
    }
    of_random: dict[str, object] = {"--executions": executions, "--seed": seed, "--mutant": mutant}
    for option, value in (of_random if strategy == "dpor" else of_dpor).items():
        if value is not None:
            other = "random" if strategy == "dpor" else "dpor"
            raise InputRefused(option, f"it is for --strategy {other}", f"Add --strategy {other}, or leave it out.")
    executions = at_least_one("--executions", _EXECUTIONS if executions is None else executions)
    calls = at_least_one("--calls", _CALLS if calls is None else calls)
    every = _laws_with(law)
    screen = Screen(forgiving(sys.stderr if json else sys.stdout))
    if strategy == "dpor":
        limit = at_least_one("--limit", LIMIT if limit is None else limit)
        policies = {
            "lanes": lanes_named("by_claims" if lanes is None else lanes),
            "slots": slots_named(slots),
            "limit": limit,
        }
        named = _dimensions_named(dimensions)
        batches = [
            invariants.all_batches(length, dimensions=named, **policies)  # type: ignore[arg-type]
            for length in range(1, calls + 1)
        ]
        if named:
            screen.say(f"each batch also with {', '.join(named)}, one of them at a time")
        screen.say(f"left out: {left_out(named)}")
        with cluster_of(cluster, jobs) as client:
            return _every_trace(screen, batches, every, jobs if client is None else client, checkpoint, json)
    mutants = _mutants_named(mutant)
    screen.say(
        f"{counted(len(every), 'law')}, {counted(len(mutants), 'mutant')}, {counted(executions, 'schedule')} of each"
    )
    found = invariants.table(executions, seed or 0, mutants, every)
    if json:
        print_json(found.to_json())
    else:
        full = str(found).splitlines()
        for line in full if screen.fits(max(map(len, full))) else _narrow(found):
            screen.say(on_one_line(line))
    for one in found.survivors:
        screen.say(on_one_line(f"{one.law} does not catch {one.name}"), "red")
    if found.false_alarms:
        broken = sorted({alarm.violation.law for alarm in found.false_alarms})
        screen.say(f"broken by the runtime as it is: {', '.join(broken)}", "red")
    screen.say("PASS: every mutant is caught" if found.ok else "FAIL", "bold green" if found.ok else "bold red")
    return Exit.OK if found.ok else Exit.FAILED


def _dimensions_named(dimensions: str | None) -> tuple[str, ...]:
    """Give the names of dimensions in `dimensions`, each once."""
    names = () if dimensions is None else tuple(dict.fromkeys(name.strip() for name in dimensions.split(",")))
    for name in names:
        if name not in DIMENSIONS:
            raise InputRefused("--dimensions", f"no dimension is called {name!r}", f"Name {', '.join(DIMENSIONS)}.")
    return names


def _laws_with(own_laws: Sequence[str]) -> dict[str, invariants.Predicate]:
    """The laws, and those of the user's own that are named MODULE:NAME."""
    found: dict[str, invariants.Predicate] = dict(invariants.LAWS)
    for name in own_laws:
        law = own("--law", name, "MODULE:NAME")
        if not isinstance(law, invariants.Law):
            why = f"expected a law, made with toolrt.invariants.law, got {on_one_line(repr(law), 60)}"
            raise InputRefused(f"--law {name}", why, 'Put @invariants.law("name", "sentence.") above the function.')
        if law.name in found:
            raise InputRefused(f"--law {name}", f"there is a law {law.name!r:.60} already", "Give it another name.")
        found[law.name] = law
    return found


def _mutants_named(names: Sequence[str] | None) -> list[invariants.Mutant]:
    """The mutants of these names, toolrt's own and then the user's, MODULE:NAME; all of toolrt's own for None."""
    yours = []
    for name in names or ():
        if ":" in name:
            mutant = own("--mutant", name, "MODULE:NAME")
            if not isinstance(mutant, invariants.Mutant):
                why = f"expected a toolrt.invariants.Mutant, got {on_one_line(repr(mutant), 60)}"
                raise InputRefused(f"--mutant {name}", why, "Name what toolrt.invariants.Mutant(...) has made.")
            yours.append(mutant)
        elif name not in invariants.MUTANTS:
            near = difflib.get_close_matches(name[:_MOST_COMPARED], invariants.MUTANTS, n=3, cutoff=0.4)
            meant = f"Did you mean {' or '.join(map(repr, near))}?" if near else "`toolrt laws` names all of them."
            raise InputRefused("--mutant", f"no mutant is called {name!r}", f"{meant} Your own is MODULE:NAME.")
    return [one for name, one in invariants.MUTANTS.items() if names is None or name in names] + yours


def _every_trace(
    screen: Screen,
    batches: list[Iterator[invariants.Mix]],
    every: Mapping[str, invariants.Predicate],
    jobs: JobsArgument,
    checkpoint: Path | None,
    json: bool,
) -> int:
    """Hold the runtime as it is against all laws in every trace of every batch."""
    screen.say(
        f"{len(every)} laws, {len(invariants.KINDS)} kinds of call, every batch of 1 to {len(batches)}, every trace"
    )
    progress = _ProgressPrinter(screen if screen.is_live else Screen(forgiving(sys.stderr)))
    found = invariants.exhaust_each(batches, every, jobs=jobs, progress=progress, checkpoint=checkpoint)
    screen.wipe()
    if json:
        print_json({str(length): each.to_json() for length, each in enumerate(found, 1)})
    for length, each in enumerate(found, 1):
        for line in [] if json else f"{length}: {each}".splitlines():
            screen.say(on_one_line(line))
    if any(each.alarms for each in found):
        screen.say("FAIL", "bold red")
        return Exit.FAILED
    if not all(each.ok for each in found):
        again = " The same command goes on from here." if checkpoint is not None else ""
        screen.say(f"INCONCLUSIVE: no law tripped, and not all traces were run.{again}", "bold yellow")
        return Exit.INTERRUPTED if any(each.left for each in found) else Exit.INCONCLUSIVE
    screen.say("PASS: all laws hold", "bold green")
    return Exit.OK


def _generated(
    examples: int,
    seeds: Sequence[int],
    names: list[str] | None,
    jobs: int,
    json: bool,
    options: Mapping[str, object],
    every: Mapping[str, invariants.Predicate],
) -> int:
    """Count the random examples until a law catches each mutant."""
    from toolrt.testing import mutation_score, shipped_examples  # they need Hypothesis

    mutants = _mutants_named(names)
    screen = Screen(forgiving(sys.stderr if json else sys.stdout))
    sizes = f"{counted(len(seeds), 'seed')} of {counted(examples, 'example')} each"
    screen.say(f"{counted(len(every), 'law')}, {counted(len(mutants), 'mutant')}, {sizes}")
    falls = _MutantsAsTheyFall(screen)
    found = mutation_score(
        examples,
        mutants,
        seeds=seeds,
        jobs=jobs,
        strategy=shipped_examples(**options),
        laws=every,
        progress=falls,
    )
    screen.wipe()
    if json:
        print_json(found.to_json())
    else:
        for line in str(found).splitlines():
            screen.say(on_one_line(line))
    for name in found.survivors:
        screen.say(on_one_line(f"not caught: {name}"), "red")
    if found.interrupted:
        screen.say("INTERRUPTED: the report so far", "bold yellow")
        return Exit.INTERRUPTED
    screen.say("PASS: every mutant is caught" if found.ok else "FAIL", "bold green" if found.ok else "bold red")
    return Exit.OK if found.ok else Exit.FAILED


class _MutantsAsTheyFall:
    """Says a line for each mutant once every seed has caught it, and how fast the search goes and what is left."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._progress = _ProgressPrinter(screen if screen.is_live else Screen(forgiving(sys.stderr)))
        self._began = time.perf_counter()
        self._fallen: set[str] = set()

    def __call__(self, score: MutationScore) -> None:
        for row in score.rows:
            if row.name not in self._fallen and row.median is not None and None not in row.catches:
                self._fallen.add(row.name)
                self._screen.wipe()
                text = f"caught: {row.name}, the median after {counted(int(row.median), 'example')}"
                self._screen.say(on_one_line(f"{text}, by {', '.join(row.laws)}"))
        left = [row.name for row in score.rows if row.name not in self._fallen]
        rate = score.executions / max(time.perf_counter() - self._began, 0.001)
        named = f": {', '.join(left)}" if 0 < len(left) <= _FEW else ""
        self._progress(f"{score.summary}, {rate:,.0f} executions a second, {counted(len(left), 'mutant')} left{named}")


class _ProgressPrinter:
    """Shows how far a search has come: over and over on a terminal, else a line now and then."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._next = time.perf_counter() + _EVERY

    def __call__(self, progress: object) -> None:
        if self._screen.is_live:
            self._screen.draw(str(progress))
        elif time.perf_counter() >= self._next:
            self._next += _EVERY
            self._screen.say(str(progress))


def _narrow(table: invariants.Table) -> Iterator[str]:
    """The table for a window that it does not fit in: a few lines for each mutant."""
    for row in table.rows:
        others = [law for law, count in row.tripped.items() if count and law != row.mutant.law]
        yield f"{row.mutant.name}:"
        verb = "caught" if row.caught else "NOT CAUGHT"
        yield f"  {verb} by {row.mutant.law} ({row.tripped.get(row.mutant.law, 0)} of {row.executions})"
        if others:
            yield f"  also by {', '.join(others)}"
    yield from table.findings()
