"""How many random examples it takes until a law catches each mutant.

Rules.
    1. An example is a mix and a schedule that the strategies draw.  Nothing here knows a mutant's own workload.
    2. All mutants of one seed see the same examples, in the same order, each until it is caught.
    3. A mutant is caught when a law trips, or the execution ends by an error, and the runtime as it is passes the same
       example.  Where that trips as well, the example is a false alarm, and counts for no mutant.
    4. Examples come in parts of `PART`, each drawn by Hypothesis from a seed of its own, as one property test draws
       them.  So every part is a value of the seed and its number, in whatever process it is run.

Theory.  Mutation analysis, as in `toolrt.invariants.mutants`.  There a workload is chosen for each mutant, and the laws
are under test.  Here the strategies are: a mutant that no example reaches shows what they never draw.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import attrs
import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st

from toolrt._plain import counted
from toolrt.errors import DefinitionRefused
from toolrt.invariants import MUTANTS, Mix, Mutant, Predicate, check, simulate
from toolrt.invariants._shared_out import shared_out
from toolrt.sim.exploring._interrupts import one_interrupt_noted
from toolrt.testing._strategies import schedules, tool_mixes

#: How many examples are drawn from one seed of Hypothesis.
PART = 100

#: Enough steps for what the strategies draw, few enough to tell a mutant that never ends.
_STEP_LIMIT = 5_000

#: One example in so many is run twice, for law 14: it would double the cost of all.
_REPLAYED = 4

#: The word for an execution that ended by an error and broke no law.
ERROR = "an error"

#: A mix, and the schedule it is run under.
Example = tuple[Mix, list[int]]


@attrs.frozen
class Catch:
    """The example on which a mutant was caught."""

    #: How many examples were run until then, this one included.
    examples: int
    #: The laws that tripped on it; ``an error``: none did, and the execution ended by an error.
    laws: tuple[str, ...]


@attrs.frozen
class MutantScore:
    """How one mutant fared."""

    #: The mutant's name.
    name: str
    #: Its catch for each seed; None: no example caught it.
    catches: tuple[Catch | None, ...]

    @property
    def median(self) -> float | None:
        """How many examples it took, the median over the seeds; None when half of them or more did not catch it."""
        if not self.catches:
            return None
        found = statistics.median_high(float("inf") if one is None else one.examples for one in self.catches)
        return None if found == float("inf") else found

    @property
    def laws(self) -> tuple[str, ...]:
        """Which laws tripped, those of most seeds first."""
        every = [law for one in self.catches if one is not None for law in one.laws]
        return tuple(sorted(dict.fromkeys(every), key=lambda law: -every.count(law)))


@attrs.frozen
class MutationScore:
    """How all mutants fared; `str()` of it is for people."""

    #: How many examples each seed has at most.
    examples: int
    #: The seeds.
    seeds: tuple[int, ...]
    #: One row for each mutant.
    rows: tuple[MutantScore, ...]
    #: How many examples were run for each seed: fewer where every mutant was caught before, or it was ended early.
    run: tuple[int, ...]
    #: How many executions of mutants that makes.
    executions: int
    #: Examples on which the runtime as it is broke a law: the laws, the mix and the schedule.
    false_alarms: tuple[str, ...]
    #: Whether it was ended early.
    interrupted: bool = False

    @property
    def survivors(self) -> tuple[str, ...]:
        """The mutants whose median is above the number of examples."""
        return tuple(row.name for row in self.rows if row.median is None)

    @property
    def median(self) -> float | None:
        """The median of the mutants' medians; None when half of the mutants or more survive."""
        found = statistics.median_high([float("inf") if row.median is None else row.median for row in self.rows] or [0])
        return None if found == float("inf") else found

    @property
    def ok(self) -> bool:
        """Whether all mutants were caught, and no law tripped on the runtime as it is."""
        return not (self.survivors or self.false_alarms or self.interrupted)

    @property
    def summary(self) -> str:
        """One line: how far it came."""
        caught = sum(one is not None for row in self.rows for one in row.catches)
        run = f"{counted(sum(self.run), 'example')} over {counted(len(self.seeds), 'seed')}"
        return (
            f"{run}, {counted(self.executions, 'execution')}, "
            f"{caught} of {len(self.rows) * len(self.seeds)} mutants caught"
        )

    def to_json(self) -> dict[str, Any]:
        """The score as a JSON object; `mutants` has, for each seed, the number of examples and the laws."""
        return {
            "examples": self.examples,
            "seeds": list(self.seeds),
            "mutants": {
                row.name: {
                    "median": row.median,
                    "by_seed": [None if one is None else [one.examples, *one.laws] for one in row.catches],
                }
                for row in self.rows
            },
            "median": self.median,
            "run": list(self.run),
            "executions": self.executions,
            "survivors": list(self.survivors),
            "false_alarms": list(self.false_alarms),
            "interrupted": self.interrupted,
            "ok": self.ok,
        }

    def __str__(self) -> str:
        width = max((len(row.name) for row in self.rows), default=0)
        lines = [f"{'':{width}}  median  examples by seed"]
        for row in self.rows:
            median = "-" if row.median is None else f"{row.median:,.0f}"
            by_seed = " ".join("-" if one is None else f"{one.examples:,}" for one in row.catches)
            lines.append(f"{row.name:{width}}  {median:>6}  {by_seed}  {', '.join(row.laws) or 'NOT CAUGHT'}")
        lines += [
            "",
            self.summary,
            f"median of the mutants: {'none' if self.median is None else f'{self.median:,.0f}'}",
        ]
        lines += [f"broken by the runtime as it is: {alarm}" for alarm in self.false_alarms[:3]]
        return "\n".join(lines)


@st.composite
def shipped_examples(draw: st.DrawFn, /, **options: Any) -> Example:
    """Draw what the property tests draw: a mix, cancelled or not, and a schedule.

    Args:
        options: of `tool_mixes`, such as `lanes` and `slots`.
    """
    return draw(tool_mixes(cancel=True, crash=True, **options) | tool_mixes(**options)), draw(schedules())


class _Enough(BaseException):
    """Ends a draw: Hypothesis takes any `Exception` for a failing test."""


def drawn(strategy: st.SearchStrategy[Example], seed: int, count: int, visit: Callable[[Example], bool]) -> None:
    """Hand `count` examples to `visit`, which returns whether it wants more.

    Args:
        strategy: what is drawn.
        seed: the same seed gives the same examples.
        count: how many, 1 or more.
        visit: must not raise.
    """

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @hypothesis.given(strategy)
    def one(example: Example) -> None:
        if not visit(example):
            raise _Enough

    with suppress(_Enough):
        one()


def tripped_by(example: Example, replayed: bool, laws: Mapping[str, Predicate] | None = None) -> tuple[str, ...]:
    """Run one example and name the laws that it breaks; ``an error``: none, and the execution ended by an error.

    Args:
        example: its mix has given its oracle (`Mix.serial`) before the runtime was broken.
        replayed: whether it is run twice, for law 14.
        laws: by name; ours when None.
    """
    mix, schedule = example
    try:
        execution = simulate(mix, schedule, replayed=replayed, step_limit=_STEP_LIMIT)
        tripped = tuple(dict.fromkeys(found.law for found in check(execution.trace, laws)))
    except Exception:  # a broken runtime may break anything, also what judges it
        return (ERROR,)
    return tripped or (() if execution.error is None else (ERROR,))


@contextmanager
def _unraisable_ignored() -> Iterator[None]:
    """Say nothing of errors in coroutines that a broken runtime leaves behind."""
    before, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
    try:
        yield
    finally:
        sys.unraisablehook = before


@attrs.frozen
class _ExampleChunk:
    """One part of one seed's examples."""

    seed: int
    number: int
    count: int
    #: The names of the mutants that are not caught yet.
    alive: tuple[str, ...]


@attrs.frozen
class _ChunkScore:
    """What one part showed."""

    part: _ExampleChunk
    #: How many examples were run.
    run: int
    executions: int
    catches: Mapping[str, Catch]
    false_alarms: tuple[str, ...]


@attrs.frozen
class _ScoreTask:
    mutants: Mapping[str, Mutant]
    strategy: st.SearchStrategy[Example]
    laws: Mapping[str, Predicate] | None


class _ChunkRunner:
    """Runs one part after the other."""

    def __init__(self, task: _ScoreTask, worker: int, told: Callable[[], int]) -> None:
        self._task = task
        self._told = told

    def do(self, part: _ExampleChunk) -> _ChunkScore:
        alive = {name: self._task.mutants[name] for name in part.alive}
        catches: dict[str, Catch] = {}
        alarms: list[str] = []
        run = executions = 0

        def visit(example: Example) -> bool:
            nonlocal run, executions
            if not alive or self._told():
                return False
            mix, schedule = example
            if mix.has_oracle:
                mix.serial()  # asked before anything is broken
            replayed = run % _REPLAYED == 0
            broken = None  # by the runtime as it is; asked once a mutant trips
            for name, mutant in list(alive.items()):
                with mutant.apply(), _unraisable_ignored():
                    laws = tripped_by(example, replayed, self._task.laws)
                executions += 1
                if laws and broken is None:
                    broken = tripped_by(example, replayed, self._task.laws)
                    if broken:
                        alarms.append(f"{', '.join(broken)}\n  mix: {mix!r}\n  schedule: {schedule}")
                if laws and not broken:
                    catches[name] = Catch(part.number * PART + run + 1, laws)
                    del alive[name]
                if self._told():
                    return False
            run += 1
            return True

        drawn(self._task.strategy, part.seed * 1_000_003 + part.number, part.count, visit)
        return _ChunkScore(part, run, executions, catches, tuple(alarms))


def mutation_score(
    examples: int = 2_000,
    mutants: Iterable[Mutant] | None = None,
    *,
    seeds: Sequence[int] = range(5),
    jobs: int = 1,
    strategy: st.SearchStrategy[Example] | None = None,
    laws: Mapping[str, Predicate] | None = None,
    progress: Callable[[MutationScore], object] | None = None,
) -> MutationScore:
    """Run random examples until a law catches each mutant.

    Args:
        examples: at most so many for each seed, 1 or more.
        mutants: ours when None; ``[mine]`` tries your own.
        seeds: of the examples; the same seeds give the same score.
        jobs: how many processes share the seeds, 1 or more.
        strategy: draws pairs of a mix and a schedule; `shipped_examples` when None.
        laws: by name; ours when None.
        progress: is called with the score so far whenever 100 examples of a seed are done.

    Returns:
        For each mutant and seed the number of examples, and the laws that tripped.  Ctrl-C ends it early: then it is
        the score so far, and `interrupted` is set.

    Raises:
        DefinitionRefused: an argument is not what it must be; nothing was run.

    Checkpoint: never (it is not async).
    """
    for what, number in (("examples", examples), ("jobs", jobs)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise DefinitionRefused(f"mutation_score({what})", "a whole number, 1 or more", number)
    chosen = {mutant.name: mutant for mutant in (MUTANTS.values() if mutants is None else mutants)}
    task = _ScoreTask(chosen, shipped_examples() if strategy is None else strategy, laws)
    return _Scoring(task, examples, tuple(seeds), progress).run(jobs)


class _Scoring:
    """Hands out parts, one of a seed at a time, and adds up what they show."""

    def __init__(
        self,
        task: _ScoreTask,
        examples: int,
        seeds: tuple[int, ...],
        progress: Callable[[MutationScore], object] | None,
    ) -> None:
        self._task = task
        self._examples = examples
        self._seeds = seeds
        self._progress = progress
        self._catches: dict[int, dict[str, Catch]] = {seed: {} for seed in seeds}
        self._run = dict.fromkeys(seeds, 0)
        self._executions = 0
        self._alarms: list[str] = []
        self._interrupted = False
        self._waiting = [self._part(seed, 0) for seed in reversed(seeds)]

    def run(self, jobs: int) -> MutationScore:
        jobs = max(1, min(jobs, len(self._seeds)))
        with one_interrupt_noted(self._interrupt):
            for _, found in shared_out(self._waiting, self._task, _ChunkRunner, jobs, lambda: self._interrupted):
                self._note(found)
        return self._score()

    def _interrupt(self) -> bool:
        before, self._interrupted = self._interrupted, True
        return before

    def _part(self, seed: int, number: int) -> _ExampleChunk:
        alive = tuple(name for name in self._task.mutants if name not in self._catches[seed])
        return _ExampleChunk(seed, number, min(PART, self._examples - number * PART), alive)

    def _note(self, found: _ChunkScore) -> None:
        seed = found.part.seed
        self._catches[seed].update(found.catches)
        self._run[seed] += found.run
        self._executions += found.executions
        self._alarms += found.false_alarms
        following = self._part(seed, found.part.number + 1)
        if following.alive and following.count > 0:
            self._waiting.insert(0, following)
        if self._progress is not None:
            self._progress(self._score())

    def _score(self) -> MutationScore:
        rows = [
            MutantScore(name, tuple(self._catches[seed].get(name) for seed in self._seeds))
            for name in self._task.mutants
        ]
        return MutationScore(
            self._examples,
            self._seeds,
            tuple(rows),
            tuple(self._run.values()),
            self._executions,
            tuple(self._alarms),
            self._interrupted,
        )
