"""The table law x mutant: which law catches which mutant, and the false alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from toolrt import sim
from toolrt._plain import counted
from toolrt.errors import DefinitionRefused, errors_in
from toolrt.invariants.mixes._mix import Mix, judged
from toolrt.invariants.mutants import MUTANTS
from toolrt.invariants.mutants._mutant import Mutant
from toolrt.invariants.predicates._check import LAWS, found_by_law
from toolrt.invariants.predicates._equality import trace_digest
from toolrt.invariants.predicates._law import Predicate, Violation, laws_by_name
from toolrt.invariants.workloads import WORKLOADS

#: The laws that may always see what another one sees: they look at the end of everything.
_OF_THE_END = ("same_as_oracle", "same_as_serial")

#: Enough steps for every workload of ours, few enough to tell a mutant that never ends.
_STEP_LIMIT = 3_000


@attrs.frozen
class MutantRow:
    """One mutant, and in how many executions each law tripped on it."""

    mutant: Mutant
    #: How many executions of the mutant's workload were run.
    executions: int
    #: For each law the number of executions in which it tripped.
    tripped: Mapping[str, int]
    #: How many executions ended by an error, by its text: a runtime that crashes hides what its law would see.
    errors: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def caught(self) -> bool:
        """Whether its law, checked by itself, tripped at least once."""
        return self.tripped.get(self.mutant.law, 0) > 0

    @property
    def alone(self) -> bool:
        """Whether its law caught it and no other law did, those that look at the end of everything apart."""
        others = [law for law, count in self.tripped.items() if count and law not in (self.mutant.law, *_OF_THE_END)]
        return self.caught and not others


@attrs.frozen
class FalseAlarm:
    """A law tripped on the runtime as it is."""

    #: What was run.
    mix: Mix
    #: The choices of the execution, one for each step.
    schedule: tuple[int, ...]
    #: What the law says.
    violation: Violation

    def __str__(self) -> str:
        return (
            f"{self.violation}\n  mix: {self.mix!r}\n  schedule: {list(self.schedule)}\n"
            "  run it again: toolrt.invariants.simulate(mix, schedule)"
        )


@attrs.frozen
class Table:
    """Law x mutant; `str()` of it is for people."""

    #: The laws' names, in order.
    laws: tuple[str, ...]
    #: One row for each mutant.
    rows: tuple[MutantRow, ...]
    #: How many executions of the runtime as it is were checked.
    executions: int
    #: Where a law tripped on it; the first ones.
    false_alarms: tuple[FalseAlarm, ...]

    @property
    def survivors(self) -> tuple[Mutant, ...]:
        """Mutants that the law they are meant for did not catch."""
        return tuple(row.mutant for row in self.rows if not row.caught)

    @property
    def shadowed(self) -> tuple[str, ...]:
        """Laws without a mutant that they alone catch (laws 7 and 15 apart): another law could take their place."""
        seen = {row.mutant.law for row in self.rows if row.alone}
        return tuple(law for law in self.laws if law not in seen)

    @property
    def ok(self) -> bool:
        """Whether every mutant is caught and no law trips on the runtime as it is."""
        return not self.survivors and not self.false_alarms

    def to_json(self) -> dict[str, Any]:
        """The table as a JSON object."""
        return {
            "laws": list(self.laws),
            "mutants": [
                {
                    "name": row.mutant.name,
                    "law": row.mutant.law,
                    "sentence": row.mutant.sentence,
                    "executions": row.executions,
                    "tripped": dict(row.tripped),
                    "caught": row.caught,
                    "alone": row.alone,
                }
                for row in self.rows
            ],
            "executions": self.executions,
            "false_alarms": [str(alarm) for alarm in self.false_alarms],
            "survivors": [mutant.name for mutant in self.survivors],
            "shadowed": list(self.shadowed),
            "ok": self.ok,
        }

    def findings(self) -> list[str]:
        """What stands below the table, in lines: crashes, false alarms, laws without a mutant, and what to do next."""
        lines = [
            f"{row.mutant.name}: {count} of {counted(row.executions, 'execution')} ended by {error}"
            for row in self.rows
            for error, count in row.errors.items()
            if not row.caught
        ]
        number = counted(len(self.false_alarms), "false alarm")
        lines.append(f"{counted(self.executions, 'execution')} of the runtime as it is: {number}")
        first_of_each = {alarm.violation.law: alarm for alarm in reversed(self.false_alarms)}
        lines += [str(first_of_each[law]) for law in self.laws if law in first_of_each]
        if self.false_alarms:
            lines.append(
                "A false alarm: the law asks for what the runtime does not promise (mend the law), or it found a bug."
            )
        with_mutant = {row.mutant.law for row in self.rows}
        if own := [law for law in self.laws if law not in LAWS and law not in with_mutant]:
            lines.append(
                f"laws without a mutant, which nothing tests: {', '.join(own)}. Write an invariants.Mutant for each."
            )
        if shadowed := [law for law in self.shadowed if law in with_mutant]:
            lines.append(f"laws that catch no mutant alone: {', '.join(shadowed)}")
        return lines

    def __str__(self) -> str:
        width = max([len(row.mutant.name) for row in self.rows], default=0)
        numbers = "".join(f"{number:>5}" for number in range(1, len(self.laws) + 1))
        lines = [f"{number:>3}  {law}" for number, law in enumerate(self.laws, 1)]
        lines += ["", f"{'':{width}} {numbers}"]
        for row in self.rows:
            cells = ""
            for law in self.laws:
                count = row.tripped.get(law, 0)
                mark = "*" if law == row.mutant.law else " "
                cells += f"{count or ('-' if law == row.mutant.law else '.'):>4}{mark}"
            lines.append(f"{row.mutant.name:{width}} {cells}{'' if row.caught else '  SURVIVED'}")
        lines += [
            "",
            f"executions in which a law tripped, of {self.rows[0].executions if self.rows else 0} each; * its law",
        ]
        lines += self.findings()
        return "\n".join(lines)


def table(
    executions: int = 40,
    seed: int = 0,
    mutants: Iterable[Mutant] | None = None,
    laws: Mapping[str, Predicate] | None = None,
    workloads: Iterable[Mix] | None = None,
) -> Table:
    """Try every mutant against every law, each by itself, and the runtime as it is against all.

    Args:
        executions: how many schedules of each workload are run, 1 or more: the simplest and random walks.
        seed: of the random walks; the same seed gives the same table.
        mutants: ours when None; ``(*MUTANTS.values(), mine)`` adds one.
        laws: by name; ours when None.
        workloads: what the runtime as it is runs; ours, and those of the mutants, when None.

    Returns:
        In how many executions each law tripped on each mutant, and where one tripped on the runtime as it is.

    Raises:
        DefinitionRefused: an argument is not what it must be, or a mutant names a law that is not there.
    """
    if not isinstance(executions, int) or isinstance(executions, bool) or executions < 1:
        raise DefinitionRefused("table(executions)", "a whole number, 1 or more", executions)
    laws = laws_by_name(laws, LAWS)
    chosen = list(MUTANTS.values() if mutants is None else mutants)
    for mutant in chosen:
        if mutant.law not in laws:
            known = f"a law that is checked here, and your own is added by laws= or --law: one of {', '.join(laws)}"
            raise DefinitionRefused(f"mutant {mutant.name!r}", known, mutant.law)
    rows = []
    for mutant in chosen:
        mutant.workload.oracle()  # asked before anything is broken
        tripped: Counter[str] = Counter()
        errors: Counter[str] = Counter()
        with mutant.apply():
            for execution, found in _executions(mutant.workload, executions, seed, laws):
                tripped.update(found.keys())
                if execution.error is not None:
                    errors[_innermost(execution.error)] += 1
        rows.append(MutantRow(mutant, executions, {law: tripped[law] for law in laws}, errors))
    mixes = list(workloads) if workloads is not None else [*WORKLOADS, *(mutant.workload for mutant in chosen)]
    alarms = []
    for mix in mixes:
        for execution, found in _executions(mix, executions, seed, laws):
            alarms += [FalseAlarm(mix, execution.choices, violations[0]) for violations in found.values()]
    return Table(tuple(laws), tuple(rows), len(mixes) * executions, tuple(alarms))


def _executions(
    mix: Mix, executions: int, seed: int, laws: Mapping[str, Predicate]
) -> Iterable[tuple[sim.Execution, dict[str, list[Violation]]]]:
    """Each execution, with what each law that tripped has found."""
    for number in range(executions):
        policy = sim.Fifo() if number == 0 else sim.RandomWalk(seed=seed * 1_000_003 + number)
        execution = judged(mix, sim.run(mix.program(), policy, step_limit=_STEP_LIMIT))
        again = sim.run(mix.program(), sim.Choices(execution.choices), step_limit=_STEP_LIMIT)
        execution.trace.notes["replay_digest"] = trace_digest(again.trace)
        yield execution, found_by_law(execution.trace, laws)


def _innermost(error: BaseException) -> str:
    """The first line of the first error that is no group."""
    error = errors_in(error)[0]
    return f"{type(error).__name__}: {error}".partition("\n")[0]
