"""The report of an exploration: verdict, counts, failures."""

from __future__ import annotations

import html
import importlib
import inspect
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import attrs

from toolrt._plain import counted
from toolrt.errors import DefinitionRefused, NotSimulated, RealTimeout
from toolrt.sim._schedule import Schedule
from toolrt.sim.engine._execution import Execution
from toolrt.sim.engine._host import simulate
from toolrt.sim.engine._job import Driver, Job
from toolrt.sim.engine._source_lines import SourceLines
from toolrt.sim.engine._watchdog import end_of_limit
from toolrt.sim.exploring._compare import passing_beside
from toolrt.sim.exploring._explain import FailureStory, about, explain, headline_of
from toolrt.sim.exploring._judge import Judgement, judge
from toolrt.sim.exploring._program import ExploredProgram
from toolrt.sim.exploring._repairs import Repair, repairs_of
from toolrt.sim.exploring._repeats import another_outcome
from toolrt.sim.exploring._reproduction import Reproduction, reproduce
from toolrt.sim.exploring._shrink import fewer_preemptions
from toolrt.sim.exploring._told import tell
from toolrt.sim.policies._choices import Choices
from toolrt.sim.policies._policy import Policy
from toolrt.sim.programs.given._constraints import Constraint
from toolrt.sim.programs.tracking._tracking import can_be_seen
from toolrt.sim.strategies._pairs import PairCoverage
from toolrt.sim.strategies._simplify import shrink
from toolrt.trace import Trace, stable_text

Program = Callable[[], Awaitable[Any]]

#: Wall seconds of a search behind which a first repair is looked for unasked.
QUICK = 2.0

# A sample in which a world may be believed has so many executions.
_ENOUGH = 300

# A page has so many repairs.
_MOST_REPAIRS = 3


class Verdict(StrEnum):
    """What an exploration has shown: as text its name; its `value` is the name in lower case, which JSON has."""

    def __new__(cls, value: str) -> Verdict:
        member = str.__new__(cls, value.upper())
        member._value_ = value
        return member

    #: No execution failed; `Report.claim` says of how many.
    PASS = "pass"
    #: At least one failed.
    FAIL = "fail"
    #: None failed, but some decided nothing, not all that had to be run were, or none was run.
    INCONCLUSIVE = "inconclusive"


#: Nothing failed, as far as the report's claim goes.
PASS = Verdict.PASS
#: At least one execution failed.
FAIL = Verdict.FAIL
#: Nothing failed, and nothing was shown: `Report.unfinished` says why.
INCONCLUSIVE = Verdict.INCONCLUSIVE


class Failure:
    """One failing execution.

    `minimal` and `explain()` run the program again, the first time they are asked for.
    """

    def __init__(self, task: ExploredProgram, execution: Execution, judgement: Judgement) -> None:
        self._task = task
        self._program = task.bound()
        #: The program as the caller gave it.
        self.source = task.program
        #: The execution itself.
        self.execution = execution
        self._judgement = judgement
        # Executions that were run once more with their source lines.
        self._noted: dict[tuple[int, int], tuple[Program, Execution, SourceLines, Execution | None]] = {}
        #: The report that it stands in, and what explores its program again under constraints; None: not known.
        self.found_by: tuple[Report, Callable[[Sequence[Constraint]], Report]] | None = None
        #: Whether the search was quick, so that to tell the failure may take as long again.
        self.may_explore = False
        execution._again = lambda: self._detailed(execution)

    @property
    def error(self) -> BaseException | None:
        """What the program raised, a `Deadlock`, a `StepLimit`, or None when only the check complained."""
        return self.execution.error

    @property
    def violations(self) -> tuple[Any, ...]:
        """What the check complained of, in order."""
        return self._judgement.violations

    @cached_property
    def reproduced(self) -> bool:
        """Whether the same choices failed with the same outcome when they were run again.

        Raises:
            NotSimulated: asked for inside a running Trio loop.
        """
        again, judgement = simulate(self._run(Choices(self.execution.choices)))
        is_same = again.choices == self.execution.choices and judgement.failed
        return is_same and another_outcome(self.execution.outcome, again.outcome) is None

    def fails_again(self) -> bool:
        """Say whether the same choices fail when they are run once more, with whatever outcome."""
        return simulate(self._run(Choices(self.execution.choices)))[1].failed

    @property
    def schedule(self) -> Schedule:
        """The schedule as it was found."""
        return self.execution.schedule

    @property
    def trace(self) -> Trace:
        """The trace as it was found."""
        return self.execution.trace

    def detailed(self) -> Trace:
        """The trace as it was found, made again with lines and values: what pictures are drawn from.

        Checkpoint: never.
        """
        return self.execution.detailed()

    @property
    def minimal(self) -> Schedule:
        """A simpler schedule that fails the same way: fewer preemptions, then shorter; else the one that was found.

        One that was not `reproduced` is the one that was found: nothing can be simplified that chance decides.

        Raises:
            NotSimulated: asked for inside a running Trio loop.
        """
        return self._simplest[0].schedule

    def explain(
        self, verbose: bool = False, *, again: str | None = None, more: Sequence[str] = (), heads: int = 0
    ) -> str:
        """Give in at most 20 lines what went wrong and why, in the minimal schedule.

        These are the pattern in a sentence, what is wrong, the steps on which that depends with values and source
        lines, the nearest schedule that passes, what runs it again, and a repair, if a search of two seconds at most
        found the failure, and as many executions find one.  Lines are as wide as the terminal, 60 to 200 letters.

        Args:
            verbose: adds every step, who waits for whom, the race, and a test that fails as long as the bug is there.
            again: what runs it again, where that is not `toolrt.sim.replay`.
            more: lines that are to stand before that, such as repairs.
            heads: how many lines of the screen something else takes.

        Raises:
            NotSimulated: asked for inside a running Trio loop.
        """
        if not more and self.first_repair is not None:
            more = ["What would mend it:", f"    {self.first_repair}"]
        return explain(self._told, verbose, again, more, heads)

    @cached_property
    def first_repair(self) -> Repair | None:
        """A repair that costs no more executions to find than the search had; None: there is none, or it was long."""
        if self.found_by is None or not self.may_explore or not self.reproduced:
            return None
        if not self.found_by[0].claim.startswith("exhaustive") and self.found_by[0].executions < _ENOUGH:
            return None  # a world that passes so few may fail the next
        found = self.__dict__.get("_repairs") or self._repaired(self.found_by[0].executions)
        return found[0] if found else None

    @cached_property
    def _told(self) -> FailureStory:
        """The story of the minimal schedule, with its source lines and the nearest execution found that passes."""
        execution, judgement, fewest = self._simplest
        places, again = self._with_places(self._program, execution)
        # A program that does something else this time says so when it is replayed.
        story = self._story(execution, judgement, places if again else None, self._passing, fewest)
        return story if story.is_decided else self._closer_look(story)

    def _closer_look(self, story: FailureStory) -> FailureStory:
        """Tell the same with the plain objects seen that the modules of its steps touch, where that changes nothing."""
        passing = story.passing
        if story.places is None or passing is None:
            return story
        modules = can_be_seen(story.places.modules)
        if not modules:
            return story
        program = self._task.bound_with(modules)
        places, failing = self._with_places(program, story.execution)
        _, other = self._with_places(program, passing)
        if failing is None or other is None or another_outcome(story.execution.outcome, failing.outcome) is not None:
            return story
        return attrs.evolve(story, execution=failing, passing=other, places=places, looked_into=tuple(modules))

    @cached_property
    def _seen_program(self) -> Program:
        """The program, with the plain objects seen that its story needs."""
        modules = self._told.looked_into
        return self._task.bound_with(modules) if modules else self._program

    def _with_places(self, program: Program, execution: Execution) -> tuple[SourceLines, Execution | None]:
        """Run `execution` once more with its source lines; None: it took another course.

        Only now are they collected: while exploring, that would slow every execution.
        """
        key = id(program), id(execution)
        if key not in self._noted:
            places = SourceLines()
            again, _ = simulate(self._run(Choices(execution.choices), places, program))
            is_same = again.choices == execution.choices
            # Kept with what it is about, so that their ids stay theirs.
            self._noted[key] = program, execution, tell(places, again), again if is_same else None
        return self._noted[key][2:]

    def _story(
        self,
        execution: Execution,
        judgement: Judgement,
        places: SourceLines | None = None,
        passing: Execution | None = None,
        fewest: bool = False,
    ) -> FailureStory:
        return FailureStory(
            execution,
            judgement.violations,
            places,
            passing,
            fewest,
            self._task.arguments,
            _called(self._program, "program"),
            None if self._task.check is None else _called(self._task.check, "check"),
            self.reproduced,
        )

    @property
    def about(self) -> tuple[tuple[str, str], ...]:
        """What a page says of the execution as it was found: pairs of a name and a text, the verdict first.

        The others are each violation or the error, the value, the program, the schedule, and how to run it again.
        """
        return about(self._story(self.execution, self._judgement), _where(self._program))

    @property
    def about_minimal(self) -> tuple[tuple[str, str], ...]:
        """The same of the minimal schedule, which `compared` and `show()` have, and the pattern, if it has one.

        Once `repairs()` was called, the first three of these, too.

        Raises:
            NotSimulated: asked for inside a running Trio loop.
        """
        repairs = self.__dict__.get("_repairs", ())[:_MOST_REPAIRS]
        return about(self._told, _where(self._program), [str(repair) for repair in repairs])

    @property
    def headline(self) -> str:
        """What heads the page of the minimal schedule: "lost update of counter", else what is wrong, in one line.

        A pattern is named where the steps leave no doubt: lost update, check-then-act, lost wake-up, lock inversion or
        leaked cancel.

        Raises:
            NotSimulated: asked for inside a running Trio loop.
        """
        return headline_of(self._told)

    @cached_property
    def _passing(self) -> Execution | None:
        """The nearest execution found that passes."""
        execution = self._simplest[0]
        if not self.reproduced:
            return None
        return simulate(passing_beside(execution, lambda choices: self._run(Choices(choices))))

    @cached_property
    def compared(self) -> tuple[Trace, Trace | None]:
        """The trace of the minimal schedule, and that of the nearest one found that passes, or None.

        Both have in their notes what ``details=True`` collects.

        Raises:
            NotSimulated: asked for inside a running Trio loop.
        """
        failing, passing = self._simplest[0], self._passing
        return self._detailed(failing), None if passing is None else self._detailed(passing)

    def _detailed(self, execution: Execution) -> Trace:
        """The trace of `execution`, with details unless its program does something else this time."""
        places, again = self._with_places(self._seen_program, execution)
        if again is None:
            return execution.trace
        again._notes = places.notes()
        return again.trace

    def repairs(self) -> list[Repair]:
        """Give what would mend it, each explored as the failure was found, the one that holds back least first.

        A repair is a constraint on schedules, such as atomic lines, under which nothing fails and nothing comes out
        that the program never gave.  Without one of these kinds the list is empty.

        Raises:
            NotSimulated: asked for inside a running Trio loop.
        """
        return list(self._repairs)

    @cached_property
    def _repairs(self) -> list[Repair]:
        return self._repaired()

    def _repaired(self, most: int | None = None) -> list[Repair]:
        if self.found_by is None:
            return []
        story = self._told

        def passing() -> SourceLines | None:
            return None if story.passing is None else self._with_places(self._seen_program, story.passing)[0]

        return repairs_of(story, passing, *self.found_by, most)

    def reproduce(self, how: Literal["plain_trio"] = "plain_trio") -> Reproduction:
        """Give the text of a program that fails in the same way without toolrt, on plain Trio.

        It was run 20 times in processes of its own: `Reproduction.failed` says how often it failed.

        Args:
            how: "plain_trio", the one there is.

        Raises:
            DefinitionRefused: `how` is another one.
            NotReproducible: there is no such program; the reason says why.
            NotSimulated: asked for inside a running Trio loop.
        """
        if how != "plain_trio":
            raise DefinitionRefused("reproduce(how)", "'plain_trio'", how)
        return reproduce(self.source, self._simplest[0], self.headline)

    def show(self) -> Any:
        """Give a page that shows `compared` side by side, below what failed and how to run it again.

        A notebook displays it, ``.save(path)`` writes it.

        Raises:
            NotSimulated: asked for inside a running Trio loop.
        """
        failing, passing = self.compared
        names = ("fails",) if passing is None else ("fails", "passes")
        title = f"{_called(self._program, 'program')}: {self.headline}"
        draw = importlib.import_module("toolrt.view").show
        return draw(failing, passing, names=names, title=title, about=self.about_minimal)

    def _repr_html_(self) -> str:
        """What a notebook shows: the story, or inside a running Trio loop, where it cannot be told, the schedule."""
        try:
            return _preformatted(self.explain())
        except NotSimulated:
            return _preformatted(f"{self!r}\n{self.schedule.short}")

    def _run(
        self, policy: Policy, places: SourceLines | None = None, program: Program | None = None
    ) -> Driver[tuple[Execution, Judgement]]:
        left, seconds = end_of_limit()
        if not left:
            # Each of the many that may follow would be ended one by one.
            raise RealTimeout("the story of a failure", seconds, "tell the failure as it was found")
        # All that is tried to tell it draws as it did.
        chance = self.execution.chance or 0
        execution = yield Job(program or self._program, policy, self._task.step_limit, places=places, chance=chance)
        return execution, judge(execution, self._task.check)

    @cached_property
    def _simplest(self) -> tuple[Execution, Judgement, bool]:
        """The simplest execution found, what is to be said of it, and whether none has fewer preemptions."""
        if not self.reproduced:
            return self.execution, self._judgement, False
        judgements = {id(self.execution): self._judgement}

        def same(execution: Execution, judgement: Judgement) -> bool:
            if not judgement.same_kind(self._judgement, execution.error, self.error):
                return False
            judgements[id(execution)] = judgement
            kept.append(execution)
            return True

        def attempt(choices: tuple[int, ...]) -> Driver[Execution | None]:
            execution, judgement = yield from self._run(Choices(choices))
            return execution if same(execution, judgement) else None

        def simplest() -> Driver[tuple[Execution, bool]]:
            best: Execution = yield from shrink(self.execution, attempt)
            fewer, fewest = yield from fewer_preemptions(best, self._run, same)
            if fewer is not None:
                best = yield from shrink(fewer, attempt)
            return best, fewest

        # What was judged stays alive, or an id could come twice.
        kept: list[Execution] = []
        best, fewest = simulate(simplest())
        return best, judgements[id(best)], fewest

    def __repr__(self) -> str:
        what = stable_text(self.error) if self.error is not None else counted(len(self.violations), "violation")
        return f"<Failure {what}, schedule {self.schedule.short!r}>"


@attrs.define(repr=False)
class Report:
    """What an exploration found; `str()` of it is for people."""

    #: `Verdict.PASS`, `FAIL` or `INCONCLUSIVE`.
    verdict: Verdict
    #: What exactly was shown, in words and figures: ``sampled(n=1000, distinct=417)``.
    claim: str
    #: How many executions were run.
    executions: int
    #: How many different schedules were among them.
    distinct: int
    #: True when the whole space of the claim was run.
    complete: bool
    #: How often each value, or the name of the error's type, came out.
    outcomes: dict[Any, int]
    #: How many executions failed.
    failed: int
    #: How many decided nothing: `reasons` says why.
    undecided: int
    #: The first failing executions, in the order they were found; at most 100.
    failures: list[Failure]
    #: Why the space that was to be run was not; None when it was, or when a sample was all that was wanted.
    unfinished: str | None = None
    #: True when Ctrl-C ended it: this is what was seen so far.
    interrupted: bool = False
    #: False when there was no check: then an execution failed only when it had an error.
    checked: bool = True
    #: What the check leaves out, each as a text: its own `leaves_out`.
    leaves_out: tuple[str, ...] = ()
    #: The outcomes that ``outcomes=`` expects and no execution made, as they are counted in `outcomes`.
    missing: tuple[Any, ...] = ()
    #: In which orders tasks stepped: "any", or "trio".
    order: str = "any"
    #: Which racing pairs were seen in which orders; None unless the strategy counts them, as `Guided` does.
    pairs: PairCoverage | None = None
    #: Why executions decided nothing, each with its remedy, and how many for each reason; the most frequent first.
    reasons: dict[str, int] = attrs.Factory(dict)
    #: How many second runs of the same choices there were beside the executions, to see that schedules decide.
    repeated: int = 0

    @property
    def summary(self) -> str:
        """The same as `str()`."""
        return str(self)

    def to_frame(self, library: str | None = None) -> Any:
        """Give a data frame of pandas or polars with a row for each outcome, in the order of `outcomes`.

        Its columns: ``outcome``, as text; ``executions``, how many had it; ``share``, from 0 to 1, of all executions.
        An outcome that was expected and never came has a row with 0 executions.  A row for each execution that failed:
        ``toolrt.view.frame(toolrt.view.execution_rows(report.failures))``.

        Args:
            library: "pandas" or "polars"; None: as `toolrt.view.frame` takes it.

        Raises:
            DefinitionRefused: `library` is another one.
            MissingExtra: the library is not installed.
        """
        counts = [*self.outcomes.items(), *((value, 0) for value in self.missing)]
        rows = [
            {"outcome": stable_text(value), "executions": count, "share": count / max(self.executions, 1)}
            for value, count in counts
        ]
        make = importlib.import_module("toolrt.view").frame
        return make(rows, library, ("outcome", "executions", "share"))

    def __str__(self) -> str:
        lines = [f"{self._head}: {self.claim}"]
        lines += [f"Left out: {what}." for what in self.leaves_out]
        if self.interrupted:
            lines.append("Interrupted: this is what was seen so far.")
        if self.unfinished:
            lines.append(f"Not finished: {self.unfinished}.")
        if self.distinct == 1 and self.executions > 1:
            lines.append("Only one schedule came up: nothing was explored.")
        lines += [f"  {count:>7}  {stable_text(value)}" for value, count in self.outcomes.items()]
        lines += [f"  {'never':>7}  {stable_text(value)}, which is expected" for value in self.missing]
        if self.pairs is not None:
            lines.append(f"Pairs: {self.pairs}.".replace("Pairs: racing", "Racing", 1))
        every = counted(self.executions, "execution")
        if self.failed:
            lines.append(f"{self.failed} of {every} failed; failures[0].explain() shows one.")
        lines += [f"{count} of {every} decided nothing: {why}." for why, count in self.reasons.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What a notebook shows: the report, and below it the first failure, told step by step."""
        shown = _preformatted(str(self))
        return shown + self.failures[0]._repr_html_() if self.failures else shown

    @property
    def _head(self) -> str:
        """The verdict; a PASS of several outcomes that nothing judged is not called one."""
        if self.verdict is Verdict.PASS and not self.checked and len(self.outcomes) > 1:
            return f"{counted(len(self.outcomes), 'outcome')}, nothing was checked"
        return self.verdict.name

    def __repr__(self) -> str:
        return f"<Report {self._head} {self.claim}>"


def _where(program: Any) -> str:
    """Give the name of a program, and the file and line where it begins."""
    while isinstance(program, partial):
        program = program.func
    program = inspect.unwrap(program)
    code = getattr(program, "__code__", None)
    name = getattr(program, "__qualname__", type(program).__qualname__)
    return name if code is None else f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})"


def _called(function: Any, otherwise: str) -> str:
    """Give the name a test can use for `function`."""
    if (argument := getattr(function, "as_argument", None)) is not None:
        return str(argument)
    name = getattr(function, "__name__", otherwise)
    return name if name.isidentifier() else otherwise


def _preformatted(text: str) -> str:
    return f"<pre>{html.escape(text)}</pre>"
