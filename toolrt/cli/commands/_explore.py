"""``toolrt explore``: run a recorded response under many schedules, on a copy in memory.

Rules.  The directory is read once and never written to; nor is the replay file ever put into it.  Each execution is
judged by all laws, with the oracle's answer.  The verdict says how many executions there were.  The first violation
ends in a replay file: one command repeats it.
"""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs
from cyclopts import Parameter

from toolrt import invariants, sim, view
from toolrt._plain import counted
from toolrt.cli._exit import Exit
from toolrt.cli.experiment._about import about_batch, title_of
from toolrt.cli.experiment._cluster import cluster_of
from toolrt.cli.experiment._experiment import Experiment, ExperimentEnding
from toolrt.cli.experiment._exploration import Exploration
from toolrt.cli.experiment._failure import FailureFile
from toolrt.cli.experiment._input import LoadedResponse, checked_target, load_response, write_target
from toolrt.cli.experiment._options import LIMIT, Cluster, Lanes, Slots, Whole, above_0, at_least_one
from toolrt.cli.experiment._policies import lanes_named, slots_named
from toolrt.cli.experiment._roots import Mounts, Roots, roots_of
from toolrt.cli.experiment._variation import variation_of
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._screen import Screen, forgiving, print_json
from toolrt.cli.screen._timeline import print_timeline, print_violations
from toolrt.errors import InputRefused

StrategyName = Literal["sample", "hybrid", "dpor", "exhaustive", "bounded"]

#: A simpler schedule is looked for when this one has at most so many steps: that takes up to 400 executions.  Not
#: a matter of seconds, so that the same failure is always kept alike.
_SIMPLIFIED = 1_000

#: Of different endings so many are printed.
_ENDINGS = 5


def explore(
    response: Annotated[str, Parameter(help="The recorded response, as JSON; - reads standard input.")],
    /,
    *,
    workspace: Annotated[str, Parameter(help="The directory to copy; it is only read.")],
    mount: Mounts = (),
    executions: Annotated[Whole, Parameter(help="How many schedules to run, 1 or more.")] = 1_000,
    seed: Annotated[Whole, Parameter(help="Which sample of schedules; the same seed, the same sample.")] = 0,
    seconds: Annotated[float, Parameter(help="Wall seconds after which no further schedule is begun.")] = 60.0,
    jobs: Annotated[Whole, Parameter(help="How many processes share the schedules, 1 or more.")] = 1,
    cluster: Cluster = None,
    checkpoint: Annotated[
        str | None, Parameter(help="A file that keeps what was run, to be gone on with next time.")
    ] = None,
    lanes: Lanes = "by_claims",
    slots: Slots = None,
    limit: Annotated[Whole, Parameter(help="How many calls run at once, 1 or more.")] = LIMIT,
    strategy: Annotated[
        StrategyName,
        Parameter(
            help="sample: by policies in turn; hybrid: then around a failure; dpor: each trace; exhaustive; bounded."
        ),
    ] = "sample",
    preemptions: Annotated[
        Whole | None, Parameter(help="With bounded: schedules with at most so many preemptions, 2 unless given.")
    ] = None,
    timeout: Annotated[
        float | None, Parameter(help="Virtual seconds each call may run; no limit unless given.")
    ] = None,
    clock: Annotated[
        Literal["explored"] | None, Parameter(help="Let time pass before any step, not only when nothing can run.")
    ] = None,
    clock_moves: Annotated[
        Whole | None, Parameter(help="With --clock: how often in one execution, 2 unless given.")
    ] = None,
    cancel_at: Annotated[Literal["any"] | None, Parameter(help="Cancel the batch before any step, or never.")] = None,
    faults: Annotated[
        tuple[str, ...],
        Parameter(
            help="Let the disk fail at any operation, with this error: EIO, ENOSPC, EACCES, EDQUOT, EROFS or EMFILE.",
            negative=(),
            consume_multiple=False,
        ),
    ] = (),
    faults_at_most: Annotated[
        Whole | None, Parameter(help="With --faults: how often in one execution, 1 unless given.")
    ] = None,
    order: Annotated[
        Literal["any", "trio"],
        Parameter(help="Which task may step next: any that can run, or each once per pass, as in Trio's loop."),
    ] = "any",
    step_limit: Annotated[
        Whole | None, Parameter(help="Stop an execution after so many steps; many more than it needs unless given.")
    ] = None,
    json: Annotated[bool, Parameter(help="Print what was shown as JSON.", negative=())] = False,
    save: Annotated[
        str | None,
        Parameter(help="Where to write the replay file; toolrt-failure-<hash>.json in this directory unless given."),
    ] = None,
    html: Annotated[
        str | None, Parameter(help="Write a page: the failure beside the nearest schedule that passes.")
    ] = None,
) -> int:
    """Run a recorded response under many schedules on a copy in memory, and check every law.

    Every execution has to keep all laws and to end like the oracle, which runs the calls one at a time. Nothing is
    written to the workspace. A violation is printed with its simplest schedule, and kept in a file that toolrt
    replay repeats exactly. When the executions would take longer than --seconds, fewer are run; the verdict says
    how many. With --strategy dpor, exhaustive or bounded the verdict is PASS only when all of them were run. What else
    may happen, a cancel, a timeout, a fault of the disk, is explored where it is asked for.
    """
    loaded = load_response(response)
    at_least_one("--executions", executions)
    at_least_one("--jobs", jobs)
    at_least_one("--limit", limit)
    if seconds != math.inf:
        above_0("--seconds", seconds)
    chosen = _strategy_of(strategy, executions, seed, preemptions)
    variation = variation_of(timeout, clock, clock_moves, cancel_at, faults, faults_at_most, order)
    if step_limit is not None:
        at_least_one("--step-limit", step_limit)
    lanes_named(lanes)
    slots_named(slots)
    roots = roots_of(workspace, mount)
    target = None if save is None else checked_target(save, "--save", outside=roots.all)
    page = None if html is None else checked_target(html, "--html", outside=roots.all)
    sittings = None if checkpoint is None else checked_target(checkpoint, "--checkpoint", outside=roots.all)
    screen = Screen(forgiving(sys.stderr if json else sys.stdout))
    experiment = Experiment.on(roots, loaded.calls, lanes, limit, variation, slots)
    if step_limit is not None:
        experiment = attrs.evolve(experiment, steps=step_limit)
    screen.say(title_of(loaded.name, experiment), "bold")
    if words := variation.in_words():
        screen.say(words, indent=2)
    with cluster_of(cluster, jobs) as client:
        exploration = Exploration(experiment, chosen, executions, seconds, jobs, sittings, screen, client)
        exploration.run()
    failure = None
    if exploration.report.failures:
        failure = _keep(exploration, loaded, roots, target, screen)
    _print_report(exploration, screen)
    if failure is not None:
        _print_failure(failure, experiment, screen)
    if page is not None:
        write_target(page, _page(exploration, failure, loaded.name).html.rstrip(), "--html")
    if json:
        print_json(_as_json(exploration, failure))
    if exploration.interrupted:
        return Exit.INTERRUPTED
    return {sim.PASS: Exit.OK, sim.FAIL: Exit.FAILED}.get(exploration.report.verdict, Exit.INCONCLUSIVE)


def _strategy_of(name: StrategyName, executions: int, seed: int, preemptions: int | None) -> sim.Strategy:
    """The strategy that the options ask for.

    Raises:
        InputRefused: an option says nothing of this strategy.
    """
    if seed and name not in ("sample", "hybrid"):
        raise InputRefused("--seed", f"--strategy {name} draws no sample", "Leave it out.")
    if preemptions is not None and name != "bounded":
        raise InputRefused("--preemptions", "it says nothing without --strategy bounded", "Add --strategy bounded.")
    if preemptions is not None and preemptions < 0:
        raise InputRefused("--preemptions", f"expected a whole number, 0 or more, got {preemptions}", "See --help.")
    if name == "hybrid":
        return sim.Hybrid(executions, seed)
    if name == "dpor":
        return sim.DPOR()
    if name == "exhaustive":
        return sim.Exhaustive()
    if name == "bounded":
        return sim.Bounded(preemptions=2 if preemptions is None else preemptions)
    return sim.Portfolio(executions, seed)


@attrs.frozen
class _Kept:
    """The first failure, made simple, and where it is kept."""

    execution: sim.Execution
    violations: tuple[invariants.Violation, ...]
    #: None: it could not be written, and why was said.
    path: Path | None

    @property
    def command(self) -> str | None:
        """The command that repeats it; None when it is not kept."""
        return None if self.path is None else f"toolrt replay {_quoted(self.path)}"


def _keep(exploration: Exploration, loaded: LoadedResponse, roots: Roots, target: Path | None, screen: Screen) -> _Kept:
    experiment, failure = exploration.experiment, exploration.report.failures[0]
    schedule = failure.schedule
    if len(schedule) <= _SIMPLIFIED:
        screen.say("looking for a simpler schedule that fails the same way")
        try:
            schedule = failure.minimal
        except KeyboardInterrupt:
            exploration.interrupted = True
    execution = experiment.replay(schedule)
    violations = tuple(experiment.check(execution, twice=True))
    kept = FailureFile(
        loaded.name,
        loaded.text,
        str(roots.base),
        experiment.tree_digest,
        experiment.lanes,
        experiment.limit,
        schedule,
        tuple(str(violation) for violation in violations),
        experiment.variation,
        {name: str(where) for name, where in roots.mounts.items()},
        experiment.slots,
    )
    path = kept.saved_beside(roots) if target is None else target
    try:
        write_target(path, kept.to_json(), "--save")
    except InputRefused as error:
        screen.say(on_one_line(f"the replay file is not kept: {error}"), "yellow")
        return _Kept(execution, violations, None)
    return _Kept(execution, violations, path)


def _page(exploration: Exploration, failure: _Kept | None, name: str) -> view.Page:
    """The failure beside the nearest schedule that passes; without a failure, an execution of the first schedule."""
    report, experiment = exploration.report, exploration.experiment
    title = f"{on_one_line(name, 200)}: {report.claim}"
    shown = experiment.run() if failure is None else failure.execution
    about = about_batch(
        name,
        experiment,
        shown,
        () if failure is None else failure.violations,
        report.verdict,
        "; ".join(filter(None, [report.claim, report.unfinished])),
        None if failure is None else failure.command,
    )
    if failure is None:
        return view.show(shown, names=["passes"], title=title, about=about)
    if len(shown.choices) > _SIMPLIFIED or exploration.interrupted:
        return view.show(shown, names=["fails"], title=title, about=about)
    failing, passing = report.failures[0].compared
    names = ["fails", "passes"][: 1 if passing is None else 2]
    return view.show(failing, passing, names=names, title=title, about=about)


def _print_report(exploration: Exploration, screen: Screen) -> None:
    report = exploration.report
    style = {sim.PASS: "bold green", sim.FAIL: "bold red"}.get(report.verdict, "bold yellow")
    if exploration.interrupted and report.verdict is sim.PASS:
        screen.say(f"INTERRUPTED: {report.claim}, none of them fails", "bold yellow")
    else:
        screen.say(f"{report.verdict.name}: {report.claim}", style)
    endings = sorted(report.outcomes.items(), key=lambda item: -item[1])
    for ending, count in endings[:_ENDINGS]:
        screen.say(f"{count:,} x {_in_words(ending)}", indent=2)
    if len(endings) > _ENDINGS:
        screen.say(f"... and {len(endings) - _ENDINGS:,} more endings", indent=2)
    if report.unfinished:
        screen.say(on_one_line(f"not all was run: {report.unfinished}"), "yellow", indent=2)
    unchecked = exploration.unchecked
    laws = f"{len(invariants.LAWS) - len(unchecked)} laws checked on each, {exploration.twice} run twice"
    screen.say(laws + (f"; not checked: {', '.join(unchecked)}" if unchecked else ""), indent=2)
    for what in exploration.experiment.left_out:
        screen.say(f"left out: {on_one_line(what)}", indent=2)
    if report.failed:
        screen.say(f"{report.failed:,} of {counted(report.executions, 'execution')} broke a law", "red", indent=2)
    if report.undecided:
        text = f"stopped before the end: {report.undecided:,} of {counted(report.executions, 'execution')}"
        screen.say(text, "yellow", indent=2)
    rate, here = exploration.rate, exploration.executed
    shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
    earlier = f" ({report.executions - here:,} in earlier sittings)" if here < report.executions else ""
    screen.say(f"{counted(here, 'execution')} in {exploration.took:.1f} s ({shown}/s){earlier}", indent=2)
    if exploration.goes_on:
        screen.say("kept: the same command goes on from here", indent=2)
    if exploration.interrupted:
        screen.say("interrupted: the sample is smaller than asked for", "yellow", indent=2)


def _in_words(ending: object) -> str:
    """How an execution ended: an `ExperimentEnding`, or the name of an error's type."""
    return on_one_line(repr(ending) if isinstance(ending, ExperimentEnding) else str(ending))


def _print_failure(failure: _Kept, experiment: Experiment, screen: Screen) -> None:
    screen.say()
    print_violations(failure.violations, failure.execution.error, screen)
    screen.say()
    print_timeline(failure.execution, experiment.calls, failure.violations, screen)
    screen.say("The schedule:", "bold")
    screen.say(failure.execution.schedule.short, indent=2)
    if failure.command is not None:
        screen.say("Repeat it:", "bold")
        screen.say(failure.command, indent=2)


def _quoted(path: Path) -> str:
    """The path as a shell takes it, from the current directory if it is there."""
    here = Path.cwd().resolve()
    return on_one_line(shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path)))


def _as_json(exploration: Exploration, failure: _Kept | None) -> dict[str, Any]:
    report = exploration.report
    document: dict[str, Any] = {
        "verdict": report.verdict.value,
        "claim": report.claim,
        "executions": report.executions,
        "distinct": report.distinct,
        "complete": report.complete,
        "failed": report.failed,
        "undecided": report.undecided,
        "interrupted": exploration.interrupted,
        "goes_on": exploration.goes_on,
        "outcomes": [{"count": count, "ending": _in_words(ending)} for ending, count in report.outcomes.items()],
        "laws": [law for law in invariants.LAWS if law not in exploration.unchecked],
        "not_checked": list(exploration.unchecked),
        **({"left_out": list(left_out)} if (left_out := exploration.experiment.left_out) else {}),
        "also": exploration.experiment.variation.to_json(),
        "unfinished": report.unfinished,
        "run_twice": exploration.twice,
        "seconds": round(exploration.took, 3),
        "executions_per_second": round(exploration.rate, 1),
        "failure": None,
    }
    if failure is not None:
        document["failure"] = {
            "violations": [violation.to_json() for violation in failure.violations],
            "error": None if failure.execution.error is None else repr(failure.execution.error),
            "schedule": failure.execution.schedule.short,
            "replay_file": None if failure.path is None else str(failure.path),
        }
    return document
