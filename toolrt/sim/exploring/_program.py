"""What every execution of an exploration is: the program, what may happen to it, and what judges it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

import attrs

from toolrt.sim.exploring._judge import Check
from toolrt.sim.programs._actors import Actors
from toolrt.sim.programs.given._weaving import GivenWorld
from toolrt.sim.programs.tracking._tracking import Tracking


@attrs.frozen
class ExploredProgram:
    """What every execution of an exploration is."""

    #: The program, as the caller gave it.
    program: Callable[[], Awaitable[Any]]
    #: What judges an execution.
    check: Check | None
    #: The number of steps after which it is stopped.
    step_limit: int
    #: What may happen beside its tasks, and in which orders these step.
    actors: Actors
    #: What is rewritten so that plain objects report; None: nothing is.
    tracking: Tracking | None = None
    #: The constraints under which it is run; None: there are none.
    world: GivenWorld | None = None

    def bound(self) -> Callable[[], Awaitable[Any]]:
        """Give the program with all that can happen to it."""
        program = self.program if self.tracking is None else self.tracking.bind()
        program = program if self.world is None else self.world.bind(program)
        return self.actors.around(program)

    def bound_with(self, modules: Collection[str]) -> Callable[[], Awaitable[Any]]:
        """Give the same with the plain objects of `modules` seen besides."""
        known = () if self.tracking is None else self.tracking.modules
        names = dict.fromkeys((*known, *modules))
        return attrs.evolve(self, tracking=Tracking(self.program, tuple(names), own=False)).bound()

    @property
    def arguments(self) -> str:
        """What a call that runs the program again needs besides, as a caller writes it."""
        tracked = "" if self.tracking is None else self.tracking.argument
        given = "" if self.world is None else f", given=[{', '.join(one.code for one in self.world.given)}]"
        return f"{self.actors.as_arguments}{tracked}{given}"
