"""Waits for Trio's I/O and timers in the event loop itself.

Rules.
    1. Trio in guest mode waits in a thread.  Each way there and back costs two switches between threads, more than all
       else that one call costs.  So the event loop waits: it watches the one file descriptor by which Trio learns of
       all I/O, and of threads that wake it, and it has a timer for Trio's next deadline.
    2. Trio runs its own ticks and decides by itself what they do.  All that changes is who waits between two of them.
    3. A loop that watches no file descriptors (that of asyncio on Windows) and a Trio whose names have moved get what
       Trio does by itself: the thread.

Names of Trio that it does not document: of its guest state `runner`, `unrolled_run_gen` and `unrolled_run_next_send`;
of the runner `guest_tick_scheduled` and `io_manager`; of that `get_events`, and `_epoll` or `_kqueue`.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable
from typing import Any

import outcome

#: Trio names no longer time to wait than this, in seconds; then it has no deadline.
_NO_DEADLINE = 24 * 60 * 60


class LoopWait:
    """Holds back Trio's next tick until there is something for it to do.

    It stands where Trio's guest state has the generator of its run, and tells the guest state that no tick waits: then
    Trio asks for its next tick at once, in place of a thread.

    Args:
        state: the guest state of Trio's run.
        loop: the event loop.
        tick: runs Trio's next tick.

    Raises:
        NotImplementedError: the loop watches no file descriptors.
        AttributeError: this Trio has other names.
    """

    def __init__(self, state: Any, loop: asyncio.AbstractEventLoop, tick: Callable[[], object]) -> None:
        self._state = state
        self._runner = state.runner
        self._get_events: Callable[[float], Any] = self._runner.io_manager.get_events
        self._loop = weakref.ref(loop)
        self._tick = tick
        self._run = state.unrolled_run_gen
        #: Seconds that Trio may wait before its next tick.
        self._timeout = 0.0
        #: When the tick that is held back is due, by the loop's clock.
        self._due = 0.0
        #: Rings at `_due` or before it, by the loop's clock at `_rings_at`; None: there is none.
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0
        #: Whether a tick is held back.
        self.is_holding = False
        manager = self._runner.io_manager
        watched = manager._epoll if hasattr(manager, "_epoll") else manager._kqueue
        # A descriptor of its own: it is no other file's as long as the loop watches it.
        self._descriptor = os.dup(watched.fileno())
        try:
            loop.add_reader(self._descriptor, self._readable)
        except BaseException:
            os.close(self._descriptor)
            raise
        state.unrolled_run_gen = self

    def send(self, events: Any) -> float:
        """Run a tick of Trio's, which is given its `events`; say that the next one waits for nothing."""
        self._timeout = self._run.send(events)
        return 0.0

    def throw(self, error: BaseException) -> float:
        """The same with an error in place of events."""
        self._timeout = self._run.throw(error)
        return 0.0

    def hold(self) -> bool:
        """Hold the next tick back if Trio has nothing to do; says whether it is held back.

        Checkpoint: never.
        """
        if not self._is_idle():
            return False
        self.is_holding = True
        self._runner.guest_tick_scheduled = False  # what makes a task of Trio's runnable then writes to the descriptor
        if self._timeout < _NO_DEADLINE:
            self._set_timer()
        return True

    def wake(self) -> None:
        """Run the tick that is held back, if one is, in the loop's next turn: a task is about to become runnable.

        Checkpoint: never.
        """
        loop = self._loop()
        if self.is_holding and loop is not None and not loop.is_closed():
            self._let_go()
            loop.call_soon(self._tick)

    def wait(self) -> None:
        """Wait here, in place of a loop that does not run, until Trio has something to do.

        Checkpoint: never.  It blocks.
        """
        if self._is_idle():
            self._let_go()
            self._state.unrolled_run_next_send = outcome.capture(self._get_events, self._timeout)

    def close(self) -> None:
        """Watch nothing any more.

        Checkpoint: never.
        """
        loop = self._loop()
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        if self._timer is not None:
            self._timer.cancel()

    def _is_idle(self) -> bool:
        arrived = self._state.unrolled_run_next_send
        return self._timeout > 0 and not isinstance(arrived, outcome.Error) and not arrived.value

    def _let_go(self) -> None:
        self.is_holding = False
        self._runner.guest_tick_scheduled = True

    def _readable(self) -> None:
        if self.is_holding:
            arrived = outcome.capture(self._get_events, 0)
            if isinstance(arrived, outcome.Error) or arrived.value:
                self._let_go()
                self._state.unrolled_run_next_send = arrived
                self._tick()

    def _set_timer(self) -> None:
        loop = self._loop()
        if loop is not None:
            self._due = loop.time() + self._timeout
            if self._timer is None or self._rings_at > self._due:
                if self._timer is not None:
                    self._timer.cancel()
                self._ring_when_due(loop)

    def _ring_when_due(self, loop: asyncio.AbstractEventLoop) -> None:
        # What uvloop gives for an instant that has passed does not tell it.
        self._rings_at = self._due
        self._timer = loop.call_at(self._due, self._rang)

    def _rang(self) -> None:
        self._timer = None
        loop = self._loop()
        if not self.is_holding or loop is None:
            return
        if loop.time() < self._due:  # the deadline for which it was set is no more
            self._ring_when_due(loop)
            return
        self._let_go()
        self._tick()
