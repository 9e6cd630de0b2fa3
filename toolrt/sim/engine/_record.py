"""What is kept of one execution while it runs: its steps, what they touched, events, and choices that are no task's.

Rules.  A step is kept when it has ended; a choice that is made within a step divides it in two, with a step of its own
in between, so that a policy is asked once for each step that is kept.  What is no task's step has a name of its own
(`_paths`).  Once the execution is over nothing is kept.
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import trio

from toolrt.errors import DefinitionRefused
from toolrt.probe import ANYTHING, Resource
from toolrt.sim._paths import Path
from toolrt.sim._trio_internals import Seam, Things, begun_under
from toolrt.sim.engine._below import WATCHED_OUTSIDE, Contents
from toolrt.sim.engine._clock import VirtualClock
from toolrt.sim.engine._offers import Offers
from toolrt.sim.engine._roster import Actor, RawStep, Roster, in_order
from toolrt.sim.policies._policy import Policy

__all__ = ["Record", "checked_choice"]


class Record(Roster, ABC):
    """What is kept of one execution."""

    __slots__ = (
        "_clock",
        "_divided",
        "_making",
        "_others",
        "_policy",
        "_touched",
        "begun_under",
        "beside",
        "choices_within",
        "cut_within",
        "events",
        "fault",
        "given_up",
        "implied",
        "offers",
        "over",
        "rests",
        "steps",
        "things",
        "watched",
        "wild_since",
    )

    def __init__(
        self,
        seam: Seam,
        nursery: trio.Nursery,
        clock: VirtualClock,
        policy: Policy,
        steps: list[RawStep],
        things: Things,
    ) -> None:
        super().__init__(seam, nursery)
        self._clock = clock
        self._policy = policy
        #: What the policy raised, or why this execution means nothing; the caller gets it.
        self.fault: BaseException | None = None
        #: True once value, error, schedule and trace are what they will be.
        self.over = False
        #: True once the program was cancelled because it could not go on.
        self.given_up = False
        self.steps = steps
        self.events: list[tuple[int | None, float, str, str, Mapping[str, Any]]] = []

        self._touched: list[tuple[Resource, bool]] = things.touched
        #: What watched containers hold, and the step after which each may have done anything; None: none has.
        self.watched: list[Contents] = []
        self.wild_since: int | None = None
        if WATCHED_OUTSIDE:
            WATCHED_OUTSIDE[:] = [contents for contents in WATCHED_OUTSIDE if contents.thing() is not None]
            for contents in WATCHED_OUTSIDE:
                contents.look()
            self.watched += WATCHED_OUTSIDE
        #: For an explorer that swaps steps: the cancel status that each step began under, and what each read because
        #: of where it runs.
        self.things = things
        self.begun_under: list[Any] = []
        self.implied: dict[int, tuple[tuple[Resource, bool], ...]] = {}
        #: What else can happen, or None.
        self.offers: Offers | None = None
        # Those whose steps are no task's, by name.
        self._others: dict[str, Actor] = {}
        #: For an explorer that swaps steps: those that are choices within another, and whether one was being made when
        #: the execution was given up.
        self.choices_within: list[int] = []
        self.cut_within = False
        #: For an explorer that swaps steps: the numbers of the steps before which nothing could run.
        self.rests: list[int] = []
        #: The first system task or callback of the program's that ran, in words; None: none has.
        self.beside: str | None = None
        # The enabled list, the choice and the causes of the running step; and whether it is the rest of one.
        self._making: tuple[tuple[str, ...], int, tuple[int, ...]] = ((), 0, ())
        self._divided = False

    # ------------------------------------------------------------------ the probe's sink

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Keep an event, unless the execution is over."""
        if self.over:
            return
        running = self._running
        if running is None:
            self.events.append((None, self._clock.now, "system", kind, fields))
        else:
            self.events.append((len(self.steps), self._clock.now, running.name, kind, fields))

    def access(self, resource: Resource, write: bool) -> None:
        """Keep what the running step touched, unless the execution is over."""
        if not self.over:
            self._touched.append((resource, write))

    def imply(self, resource: Resource, write: bool) -> None:
        """Keep what the running step touches because of where it runs, unless the execution is over."""
        if not self.over:
            self.things.implied.append((resource, write))

    def reached_below(self) -> None:
        """Keep that the running step has in hand what is not watched: it may keep that for later."""
        if self.wild_since is None and not self.over:
            self.wild_since = len(self.steps)

    def look_at_watched(self) -> None:
        """See whether the step that has just run changed a watched container without a report."""
        touched = self._touched
        for contents in self.watched:
            if contents.look() and not contents.was_written(touched):
                touched.append((ANYTHING, True))

    def cell_name(self) -> tuple[Any, ...] | None:
        """Name something new by the task that makes it, so that it is called the same in every schedule."""
        actor = self._actors.get(self._seam.current_task())  # type: ignore[arg-type]
        if actor is None:
            return None
        actor.made += 1
        return (actor.name, actor.made - 1)

    # ------------------------------------------------------------------ what is no task's step

    def offer(self) -> Offers:
        """Give what else can happen, to add to it."""
        if self.offers is None:
            self.offers = Offers(self._seam, self.things)
        return self.offers

    def enters(self, scope: trio.CancelScope) -> str:
        """Offer to cancel a scope that the running step has entered; give what the choice is called."""
        task = self._actors[self._seam.current_task()].name  # type: ignore[index]
        return self.offer().enter(scope, task, len(self.steps))

    def choose(self, n: int) -> int:
        """Let the policy pick a number below `n` for the running step, which is divided there."""
        actor, steps, touched, implied = self._running, self.steps, self._touched, self.things.implied
        if actor is None or self.over:
            return 0
        enabled, choice, causes = self._making
        noted = in_order(touched) if touched else ()
        touched.clear()
        if implied:
            self.implied[len(steps)] = tuple(implied)
            implied.clear()
        steps.append((actor, enabled, choice, noted, self._clock.now, causes))
        self._making, self._divided = (actor.alone, 0, ()), True
        enabled = tuple(f"{actor.name}={number}" for number in range(n))
        try:
            chosen = checked_choice(self._policy.choose(enabled, len(steps)), enabled, self._policy)
            self._note_other(enabled[chosen], enabled, chosen)
            self.choices_within.append(len(steps) - 1)
            # The rest of the step is asked for too: a policy sees every step that is made.
            checked_choice(self._policy.choose(actor.alone, len(steps)), actor.alone, self._policy)
        except BaseException as error:  # noqa: ASYNC103
            self.fault = error
            self.cut_within = True
            self._give_up(None)
            return 0  # noqa: ASYNC104
        self.begun_under.append(begun_under(actor.task))
        self._origin = len(steps)
        return chosen

    def _note_other(self, name: str, enabled: tuple[str, ...], choice: int, causes: tuple[int, ...] = ()) -> None:
        """Keep a step that is no task's, with what it has reported."""
        actor = self._others.get(name)
        if actor is None:
            actor = self._others[name] = Actor(None, Path((), name), -1)  # type: ignore[arg-type]
        self.begun_under.append(None)
        touched = self._touched
        noted = in_order(touched) if touched else ()
        touched.clear()
        self.steps.append((actor, enabled, choice, noted, self._clock.now, causes))

    @abstractmethod
    def _give_up(self, error: BaseException | None) -> None:
        """End the execution: nothing is kept from here on."""


def checked_choice(choice: object, enabled: tuple[str, ...], policy: object) -> int:
    try:
        index = choice.__index__()  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        index = None
    if index is None or not 0 <= index < len(enabled):
        raise DefinitionRefused(
            f"{type(policy).__name__}.choose()", f"an index into the {len(enabled)} enabled tasks", choice
        )
    return int(index)
