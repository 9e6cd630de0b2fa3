"""Two executions as words: how far they go the same way, where they part, and the race that decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from toolrt._plain import counted
from toolrt.trace import Race, Step, Trace, parting_of, race_between
from toolrt.view._columns import done_in, names_in, resource_text
from toolrt.view._short import one_line
from toolrt.view._source import HasTrace, check_names, trace_of
from toolrt.view._words import told

#: How many steps of each side are shown after they part.
_TOLD = 4


def diff(source: Trace | HasTrace, other: Trace | HasTrace, *, names: Sequence[str] = ("one", "other")) -> str:
    """Say where two executions of one program differ; `show` draws the same.

    Args:
        source: an execution, or a trace.
        other: another.
        names: what they are called.

    Returns:
        Lines, each ended by a line break: how many steps are the same at the beginning, what each does from there, the
        pair of accesses that came the other way round, and how each ended.  Of recordings, which have no steps, the
        events are compared.

    Raises:
        DefinitionRefused: one of the two is no trace and has none, or there are not two names.

    Checkpoint: never.

    Example:
        >>> import trio
        >>> from toolrt import sim, view
        >>> async def program():
        ...     cell = sim.Cell(0, name="x")
        ...     async def put(value):
        ...         cell.set(value)
        ...     async with trio.open_nursery() as nursery:
        ...         nursery.start_soon(put, 1)
        ...         nursery.start_soon(put, 2)
        ...     return cell.get()
        >>> print(view.diff(sim.run(program, sim.Choices()), sim.run(program, sim.Choices([0, 1]))))
        one: 4 steps; other: 4 steps; the first 1 are the same
        step 1
          one    main.0 writes x
          other  main.1 writes x
        step 2
          one    main.1 writes x
          other  main.0 writes x
        the race: main.0 writes x before main.1 writes x in one, after it in other
        <BLANKLINE>
    """
    one, two = trace_of(source, "diff(source)"), trace_of(other, "diff(other)")
    check_names("diff(names)", names, 2)
    labels = [one_line(name, 30) for name in names]
    lines = _of_steps(one, two, labels) if one.steps and two.steps else _of_events(one, two, labels)
    return "\n".join([*lines, *_endings(one, two, labels), ""])


def _of_steps(one: Trace, two: Trace, names: list[str]) -> Iterator[str]:
    mine, theirs = [step.task for step in one.steps], [step.task for step in two.steps]
    parting = parting_of(mine, theirs)
    sizes = f"{names[0]}: {counted(len(mine), 'step')}; {names[1]}: {counted(len(theirs), 'step')}"
    if mine == theirs:
        yield f"{sizes}; the same tasks ran in the same order"
        yield from _touched_otherwise(one, two, names)
        return
    yield f"{sizes}; the first {parting.before} are the same"
    width = max(map(len, names))
    end = max(len(mine), len(theirs)) - parting.after
    for index in range(parting.before, min(end, parting.before + _TOLD)):
        yield f"step {index}"
        yield f"  {names[0]:{width}}  {_step(one, index)}"
        yield f"  {names[1]:{width}}  {_step(two, index)}"
    if end > parting.before + _TOLD:
        yield f"… and so on to step {end - 1}"
    race = race_between(one.steps, two.steps)
    if race is not None:
        yield _race(race, names, names_in(one))


def _touched_otherwise(one: Trace, two: Trace, names: list[str]) -> Iterator[str]:
    for mine, theirs in zip(one.steps, two.steps, strict=True):
        if (mine.accesses, mine.time) != (theirs.accesses, theirs.time):
            yield f"step {mine.index} differs: {_told(one, mine)} in {names[0]}, {_told(two, theirs)} in {names[1]}"
            return


def _step(trace: Trace, index: int) -> str:
    return _told(trace, trace.steps[index]) if index < len(trace.steps) else "has ended"


def _told(trace: Trace, step: Step) -> str:
    return one_line(f"{step.task} {done_in(step, trace)}", 90)


def _race(race: Race, names: list[str], called: Mapping[str, str]) -> str:
    (first, left), (second, right) = race.first, race.second
    before = f"{first.task} {'writes' if left.write else 'reads'} {resource_text(left.resource, called)}"
    after = f"{second.task} {'writes' if right.write else 'reads'} {resource_text(right.resource, called)}"
    return f"the race: {one_line(before, 80)} before {one_line(after, 80)} in {names[0]}, after it in {names[1]}"


def _of_events(one: Trace, two: Trace, names: list[str]) -> Iterator[str]:
    sizes = f"{names[0]}: {counted(len(one.events), 'event')}; {names[1]}: {counted(len(two.events), 'event')}"
    for mine, theirs in zip_longest(one.events, two.events):
        said = [None if event is None else (event.task, told(event)) for event in (mine, theirs)]
        if said[0] != said[1]:
            place = (mine or theirs).seq
            yield f"{sizes}; the first {place} are the same"
            yield f"event {place}"
            width = max(map(len, names))
            for name, pair in zip(names, said, strict=True):
                yield f"  {name:{width}}  {'has ended' if pair is None else one_line(' '.join(pair), 90)}"
            return
    yield f"{sizes}; they are the same"


def _endings(one: Trace, two: Trace, names: list[str]) -> Iterator[str]:
    ended = [one_line(str(trace.meta.get("ended", "")), 60) for trace in (one, two)]
    if ended[0] != ended[1]:
        for name, end in zip(names, ended, strict=True):
            yield f"{name} ended: {end or 'not known how'}"
