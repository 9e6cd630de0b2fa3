"""A mix that was edited, run again under the schedule of the mix it was.

Rules.  `toolrt.sim.Follow` follows the schedule as far as it applies, and the `Rerun` names the step at which the two
executions part.  Every law checks the new execution.
"""

from __future__ import annotations

import attrs

from toolrt import sim
from toolrt._plain import counted
from toolrt.errors import DefinitionRefused
from toolrt.invariants.mixes._mix import Mix, judged
from toolrt.invariants.predicates._check import check
from toolrt.invariants.predicates._law import Violation
from toolrt.trace import stable_text

_STEP_LIMIT = 20_000


@attrs.frozen(repr=False)
class Rerun:
    """What came of running a mix under the schedule of another; `str()` of it is for people."""

    #: The execution, its trace ready for `check`.
    execution: sim.Execution
    #: The schedule that was followed.
    followed: sim.Schedule
    #: Where they part; None: it went as recorded from beginning to end.
    strayed: sim.Strayed | None
    #: The tasks of the recorded steps that did not come, in order.
    left: tuple[str, ...]
    #: What the laws say of it.
    violations: tuple[Violation, ...]

    @property
    def same(self) -> int:
        """How many steps went as they were recorded."""
        return len(self.followed) if self.strayed is None else self.strayed.step

    def __str__(self) -> str:
        steps = len(self.execution.choices)
        lines = [f"{self.same} of {len(self.followed)} recorded steps went as they were; the execution has {steps}"]
        if self.strayed is not None:
            lines.append(str(self.strayed))
        if self.left:
            lines.append(f"recorded steps that did not come: {len(self.left)}")
        ended = self.execution.value if self.execution.error is None else stable_text(self.execution.error)
        lines.append(f"it ended: {ended}")
        lines += [str(violation) for violation in self.violations] or ["no law is broken"]
        return "\n".join(lines)

    def __repr__(self) -> str:
        steps, found = counted(len(self.followed), "step"), counted(len(self.violations), "violation")
        return f"<Rerun {self.same} of {steps}, {found}>"


def rerun(mix: Mix, schedule: sim.Schedule | sim.Execution | str) -> Rerun:
    """Run `mix` under the schedule of another mix, as far as it applies.

    Args:
        mix: what to run: usually the mix that the schedule was recorded of, with one call changed
            (`Mix.with_call`, `Mix.without_call`).
        schedule: a schedule, its JSON, its short form, or an execution, whose schedule it is.

    Returns:
        What came of it.

    Raises:
        DefinitionRefused: `mix` is no mix.
        ScheduleRefused: `schedule` is none.

    Checkpoint: never; call it outside Trio.

    Example:
        >>> from toolrt import invariants, sim
        >>> from toolrt.invariants.script import AppendFile, Scripted
        >>> mix = invariants.Mix([Scripted([AppendFile("f", "a")]), Scripted([AppendFile("f", "b")])])
        >>> recorded = invariants.simulate(mix, [0, 1, 0, 1])
        >>> again = invariants.rerun(mix, recorded)
        >>> again.strayed is None, again.execution.schedule == recorded.schedule
        (True, True)
        >>> again = invariants.rerun(mix.with_call(1, does=[AppendFile("f", "b"), AppendFile("g", "c")]), recorded)
        >>> print(again)
        11 of 19 recorded steps went as they were; the execution has 21
        they part at step 11: the schedule has main, the program could run main.0.0.0
        it ended: ok ok; f='ab', g='c'
        no law is broken
    """
    if not isinstance(mix, Mix):
        raise DefinitionRefused("rerun(mix)", "a Mix", mix)
    follow = sim.Follow(schedule.schedule if isinstance(schedule, sim.Execution) else schedule)
    execution = judged(mix, sim.run(mix.program(), follow, step_limit=max(_STEP_LIMIT, 2 * len(follow.schedule))))
    return Rerun(execution, follow.schedule, follow.strayed, follow.left, tuple(check(execution.trace)))
