"""The passes of ``order="trio"``: every task that can run steps once per pass, in any order within it.

Rules.
- The tasks that can run when a pass begins are the pass's.  The enabled list has those of them that have not stepped
  yet.  A task that goes on after its step, or that a step of the pass spawns or wakes, is in the next pass.
- The enabled list is in the order of paths; none is the one to go on.
- Deadlines expire between two passes.
- A task that has yielded (`_fairness`) steps once per pass like any other, because Trio's loop would step it.  Only
  when all that can run have yielded no pass begins.
- A worker thread steps whenever it likes, so it is in every pass and keeps none from ending.  What it wakes before the
  first task of a pass has stepped joins that pass.
- What happens beside the program (the clock that moves early, the cancel of a scope, the idle-only task, a deadline
  that comes apart from others) is offered between two passes: until the first task of a pass has stepped.  What it
  wakes joins that pass.

Theory.  Trio's loop takes all tasks out of its run queue, shuffles them and steps each once, then looks at deadlines
and at input and output; so these are its orders.  Two steps of one pass can be exchanged, because the set of the tasks
they wake does not depend on their order; two steps of different passes cannot.  So for a reduction the begin of a pass
is what a moment is at which nothing could run: all after it comes after all before it.

Limits.  Outside Hypothesis Trio shuffles nothing: it reverses its list or not.  The order before that is the order in
which tasks were woken, and sets of waiting tasks decide that by address.
"""

from __future__ import annotations

from trio.lowlevel import Task

from toolrt.sim._trio_internals._seam import Seam
from toolrt.sim._trio_internals._step import DUE, ENDED, GOES_ON, PARKED
from toolrt.sim.engine._clock import VirtualClock
from toolrt.sim.engine._record import ExecutionRecord
from toolrt.sim.engine._roster import Actor, Roster


class Passes:
    """The passes of one execution.

    Args:
        roster: its tasks.
        seam: the Trio run it happens in; its deadlines wait for the end of a pass from now on.
        record: what is kept of it.
        clock: the Trio run's clock.
    """

    def __init__(self, roster: Roster, seam: Seam, record: ExecutionRecord, clock: VirtualClock) -> None:
        self._roster = roster
        self._seam = seam
        self._record = record
        self._clock = clock
        record.order = "trio"
        seam.holds_deadlines = True
        # As Trio's statistics count during a pass: its tasks are in the run queue no more.
        seam.count_runnable = roster.later.__len__
        #: True until the first task of a pass steps.
        self.is_between = False

    def begin(self) -> bool:
        """Let deadlines expire, or else begin a pass; False: nothing is due and nothing can run."""
        roster, now = self._roster, self._clock.now
        if self._seam.has_due(now):
            # No step of the pass has brought it about alone.
            roster.origin = -1
            self._seam.expire(now)
            return True
        others = [actor for actor in roster.later if actor not in roster.yielded]
        if not others:
            return False
        if roster.yielded and [actor.name for actor in others] == [self._record.canceller]:
            # All others are in circles: the clock may move, or the program be cancelled.
            roster.later.remove(others[0])
            roster.insert(others[0])
            self.is_between = True
            return True
        self._record.passes.append(len(self._record.steps))
        for actor in roster.later:
            roster.insert(actor)
        roster.later.clear()
        self.is_between = True
        return True

    def reopen(self) -> None:
        """Take back a pass in which no task has stepped: something happens before it."""
        roster = self._roster
        self._record.passes.append(len(self._record.steps))
        roster.later += roster.ready
        roster.clear_ready()

    def enter(self, actor: Actor) -> None:
        """Let `actor` step: mostly, what may happen between two passes is over."""
        if not self.is_between:
            return
        self.is_between = False
        roster = self._roster
        if actor.task in roster.threads or self._waits_for_a_pass_to_end(actor):
            self.reopen()
            return
        if self._record.canceller is None and not roster.deadlines:
            return
        for other in filter(self._waits_for_a_pass_to_end, [*roster.ready]):
            roster.remove(other)
            roster.later.append(other)

    def _waits_for_a_pass_to_end(self, actor: Actor) -> bool:
        """Say whether what an actor does happens between two passes."""
        return actor.name == self._record.canceller or actor.task in self._roster.deadlines

    def step(self, task: Task) -> int:
        """Run a step, and say how it went: deadlines wait for the end of the pass."""
        actor = self._roster.actors[task]
        if self.is_between:
            self.enter(actor)
        how = self._seam.step(task) % DUE
        return how if not self._roster.threads else self._beside_threads(actor, how)

    def _beside_threads(self, actor: Actor, how: int) -> int:
        """Give how a step went; where only threads are left of a pass, and others could step in the next, end it."""
        roster, seam = self._roster, self._seam
        if actor.task in roster.threads:
            if how == GOES_ON:
                roster.go_on_with(actor)
                how = PARKED
            elif how == ENDED:
                del roster.threads[actor.task]
        others = how == GOES_ON or roster.later or seam.runq or seam.has_due(self._clock.now)
        if others and all(each.task in roster.threads for each in roster.ready):
            roster.later += roster.ready
            roster.clear_ready()
        return how
