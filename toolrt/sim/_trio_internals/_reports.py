"""The reports of Trio's primitives about the running step, for an explorer that swaps steps.

Rules.  While a simulation runs, each operation on a primitive reports what it touched, as `toolrt.probe` wants it.
Two operations that may be swapped without a difference never both touch one resource with one of them writing;
an operation's report depends on nothing but what it reports, or a swap would change it.  A primitive is named by
its kind, the task that made it, and how many of its kind that task had made before: the same in every schedule.
Everything replaced here acts on the program's own steps alone, and is put back afterwards.

The tables of what each kind of primitive reports: `_reports_sync` (events, locks, channels
and the like), `_reports_scopes` (cancelling, deadlines, nurseries) and `_reports_implied` (what follows from where
code runs).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolrt.probe import Resource
from toolrt.sim._trio_internals._reporter import Reporter
from toolrt.sim._trio_internals._reports_implied import implied
from toolrt.sim._trio_internals._reports_scopes import scopes
from toolrt.sim._trio_internals._reports_sync import memory_streams, sync
from toolrt.sim._trio_internals._things import Primitives

# After so many executions without reports, Trio's own primitives are put back.
_UNWANTED_MOST = 20


#: The reporters of simulations that are over.
_spare: list[Reporter] = []


class Reports:
    """The reporting primitives, and the execution they report to; one for each simulation."""

    def __init__(self) -> None:
        self._reporter = _spare.pop() if _spare else Reporter()
        # What was made outside any execution has one name for the whole simulation.
        self._outside: dict[int, Resource] = {}
        self._kept: list[Any] = []
        # Whether any primitive reports, and whether what is implied is reported too.
        self._reporting = self._implying = False
        # So many executions in a row have not wanted to know.
        self._unwanted = 0

    def begin(self, are_wanted: bool) -> Primitives:
        """Begin the next execution: give what Trio's primitives report to from here on, if reports are wanted.

        What replaces Trio's own is put in when it is first wanted, and taken out when it was not for a while: both
        take as long as a small execution.
        """
        reporter = self._reporter
        if are_wanted:
            reporter.things = things = Primitives(self._outside, self._kept)
            self._unwanted = 0
            if not self._reporting:
                self._reporting = True
                reporter.report((*sync(), *memory_streams(), *scopes()))
            return things
        reporter.things = None
        if self._reporting:
            self._unwanted += 1
            if self._unwanted == _UNWANTED_MOST:
                self._put_back()
        return Primitives({}, [])

    def imply_too(self) -> None:
        """Report what is implied as well, until the end of the block: a third of all the cost, so only on request."""
        if not self._implying:
            self._implying = True
            self._reporter.report(implied())

    def end(self) -> None:
        """Stop the reports of Trio's primitives."""
        self._reporter.things = None

    @contextmanager
    def confined(self) -> Iterator[None]:
        """Take out at the end of the block whatever was put in."""
        try:
            yield
        finally:
            self.end()
            self._put_back()

    def hand_on(self) -> None:
        """Leave the reporter to the next simulation: this one is over.  Not before: a check may simulate in between."""
        _spare.append(self._reporter)

    def _put_back(self) -> None:
        self._reporting = self._implying = False
        self._reporter.put_back()
