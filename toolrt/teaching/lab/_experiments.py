"""Experiments on searches: how many schedules each policy takes to a bug, and how the number of classes grows.

Rules.  An experiment runs the executions that its figures come from.  An experiment gives rows, plain dicts
whose columns its docstring names, which `toolrt.view.plot` draws and pandas and polars take.  The same arguments give
the same rows: what is counted is executions, never wall time.

Theory.  How many executions a randomised search needs until it finds a bug is a distribution, not a number: so each try
has its own seed, and each is a row.  A try that gave up is a row too, or the slow searches would look quick.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from toolrt import sim
from toolrt.errors import DefinitionRefused
from toolrt.sim.exploring._explore import Program
from toolrt.sim.exploring._judge import Check, judge

#: The policies that are compared unless others are given: each makes one of a seed.
_POLICIES: Mapping[str, Callable[[int], sim.Policy]] = {
    "random walk": lambda seed: sim.RandomWalk(seed=seed),
    "PCT, depth 2": lambda seed: sim.PCT(depth=2, seed=seed),
    "PCT, depth 3": lambda seed: sim.PCT(depth=3, seed=seed),
    "POS": lambda seed: sim.POS(seed=seed),
    "URW": lambda seed: sim.URW(seed=seed),
}


@attrs.frozen(repr=False)
class Collected:
    """An exploration and the executions it was made of."""

    #: What it found.
    report: sim.Report
    #: Its executions, in the order they were run.
    executions: tuple[sim.Execution, ...]

    def __repr__(self) -> str:
        return f"<Collected {len(self.executions):,} executions: {self.report.claim}>"


def collect(
    program: Program,
    strategy: sim.Strategy | None = None,
    check: Check | None = None,
    max_executions: int = 10_000,
    *,
    details: bool = False,
) -> Collected:
    """Explore `program` and keep every execution, for tables and sliders.

    Args:
        program: an async function without arguments.
        strategy: as `toolrt.sim.explore` takes it.
        check: the same.
        max_executions: stop after so many, 1 or more: all of them are kept in memory.
        details: run each once more for what its cells held, as `toolrt.sim.run` does; it takes several times as long.

    Returns:
        The report and the executions.

    Raises:
        DefinitionRefused: an argument is not what it must be; and whatever else `toolrt.sim.explore` raises.

    Checkpoint: never; call it outside Trio.

    Example:
        >>> from toolrt import sim, view
        >>> from toolrt.teaching import lab
        >>> from toolrt.teaching.litmus import LITMUS
        >>> found = lab.collect(LITMUS["lost_update_2x1"].program, sim.Exhaustive())
        >>> sorted(row["outcome"] for row in view.execution_rows(found.executions))
        ['1', '1', '1', '1', '2', '2']
    """
    kept: list[sim.Execution] = []

    def keep(execution: sim.Execution) -> Any:
        kept.append(execution)
        return None if check is None else check(execution)

    report = sim.explore(program, strategy, keep, max_executions)
    # A copy: a failure that is simplified later is judged again, and is none of the exploration's executions.
    executions = tuple(kept)
    if details:
        executions = tuple(sim.run(program, sim.Choices(one.choices, one.chance), details=True) for one in executions)
    return Collected(report, executions)


def schedules_to_bug(
    program: Program,
    check: Check | None = None,
    policies: Mapping[str, Callable[[int], sim.Policy]] | None = None,
    *,
    tries: int = 20,
    most: int = 1_000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Measure how many schedules each policy runs until one fails.

    Args:
        program: an async function without arguments, with a bug that some schedule shows.
        check: as `toolrt.sim.explore` takes it; None: an execution fails when it has an error.
        policies: by name, functions that make a policy of a seed; random walk, PCT of depth 2 and 3, POS and URW when
            None.
        tries: how often each is tried, with another seed each time, 1 or more.
        most: how many schedules a try runs before it gives up, 1 or more.
        seed: of the first try.

    Returns:
        A row for each try: `policy` (its name), `seed`, `schedules` (how many were run, the failing one included) and
        `gave_up` (true: none of them failed, so it would have been more).

    Raises:
        DefinitionRefused: a number is not what it must be, or there are no policies.

    And what `toolrt.sim.explore` raises.

    Checkpoint: never; call it outside Trio.

    Example:
        >>> from toolrt.teaching import lab
        >>> from toolrt.teaching.litmus import LITMUS
        >>> lost = LITMUS["lost_update_2x1"]
        >>> rows = lab.schedules_to_bug(lost.program, lost.check, tries=3)
        >>> len(rows), any(row["gave_up"] for row in rows)
        (15, False)
    """
    for name, number in (("tries", tries), ("most", most)):
        _checked("schedules_to_bug", name, number)
    policies = _POLICIES if policies is None else policies
    if not isinstance(policies, Mapping) or not policies or not all(map(callable, policies.values())):
        raise DefinitionRefused("schedules_to_bug(policies)", "functions of a seed, by name", policies)
    return [
        {"policy": name, "seed": each, "schedules": ran, "gave_up": gave_up}
        for name, make in policies.items()
        for each in range(seed, seed + tries)
        for ran, gave_up in [until_it_fails(program, check, sim.Random(make(each), most))]
    ]


class _FirstFailure(BaseException):
    """The first failing execution has come.  An `Exception` of a check counts for the error of its execution."""


def until_it_fails(
    program: Program, check: Check | None, strategy: sim.Strategy, step_limit: int = 10_000
) -> tuple[int, bool]:
    """How many executions ran until one failed, itself included, and whether none did."""

    def stop(execution: sim.Execution) -> bool:
        if judge(execution, check).failed:
            raise _FirstFailure(execution.index + 1)
        return True

    try:
        return sim.explore(program, strategy, stop, step_limit=step_limit).executions, True
    except _FirstFailure as found:
        return found.args[0], False


def classes_against_calls(
    program_of: Callable[[int], Program], calls: Iterable[int], *, most: int = 2_000, samples: int = 200
) -> list[dict[str, Any]]:
    """Measure how many schedules a program has, and how many classes of them, as it grows.

    Args:
        program_of: makes the program of so many calls, or tasks, or rounds.
        calls: the numbers.
        most: how many executions a search may run; what has more is estimated (schedules) or left out (classes).
        samples: how many random executions an estimate is made from.

    Returns:
        Two rows for each number, `calls`: one of `what` "schedules", one of "classes" (Mazurkiewicz classes, found by
        `DPOR`); `number` (None: more than `most` classes, or more schedules than a float holds) and `how`
        ("enumerated", "estimated" or "more than ...").

    Raises:
        DefinitionRefused: a number is not what it must be.

    And what `toolrt.sim.explore` raises.

    Checkpoint: never; call it outside Trio.

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> from toolrt.teaching import lab
        >>> def program_of(calls):
        ...     async def program():
        ...         async with trio.open_nursery() as nursery:
        ...             for number in range(calls):
        ...                 nursery.start_soon(one, sim.Cell(0, name=f"cell {number}"))
        ...     return program
        >>> async def one(cell):
        ...     cell.set(1)
        ...     await trio.lowlevel.checkpoint()
        ...     cell.set(2)
        >>> for row in lab.classes_against_calls(program_of, [2, 3]):
        ...     print(row["calls"], row["what"], row["number"], row["how"])
        2 schedules 6 enumerated
        2 classes 1 enumerated
        3 schedules 90 enumerated
        3 classes 1 enumerated
    """
    _checked("classes_against_calls", "most", most)
    rows = []
    for count in calls:
        program = program_of(count)
        every = sim.explore(program, sim.Exhaustive(), lambda execution: True, most)
        number: float | None = every.executions
        how = "enumerated"
        if not every.complete:
            estimated = sim.estimate(program, samples=samples).schedules
            number, how = (round(estimated) if math.isfinite(estimated) else None), "estimated"
        rows.append({"calls": count, "what": "schedules", "number": number, "how": how})
        classes = sim.explore(program, sim.DPOR(), lambda execution: True, most)
        number = classes.executions if classes.complete else None
        how = "enumerated" if classes.complete else f"more than {most:,}"
        rows.append({"calls": count, "what": "classes", "number": number, "how": how})
    return rows


def _checked(what: str, name: str, number: object) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise DefinitionRefused(f"{what}({name})", "a whole number, 1 or more", number)
