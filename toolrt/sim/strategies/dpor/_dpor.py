"""The strategy `DPOR`: what a caller says of a reduction; its search is begun here."""

from __future__ import annotations

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.sim.policies._seeds import checked_seed
from toolrt.sim.strategies.dpor._search import DPORSearch
from toolrt.sim.strategies.dpor._spread import SpreadSearch


@attrs.frozen
class DPOR:
    """One execution of each Mazurkiewicz trace.

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> async def program():
        ...     cells = [sim.Cell(0), sim.Cell(0)]
        ...     async def add(cell):
        ...         seen = cell.get()
        ...         await trio.lowlevel.checkpoint()
        ...         cell.set(seen + 1)
        ...     async with trio.open_nursery() as nursery:
        ...         for cell in cells:
        ...             nursery.start_soon(add, cell)
        ...     return tuple(cell.get() for cell in cells)
        >>> sim.explore(program, sim.DPOR()).claim
        'exhaustive(traces=1)'
    """

    #: "reported": a step that reported nothing may have done anything.  "declared": the caller's word that such a
    #: step did nothing others could see.
    accesses: str = attrs.field(default="reported")
    #: So many random schedules are run beside the traces, and each is compared with one that should be equal; see
    #: `_samples`.  None: one for each hundred traces, at least 4 and at most 100; with "declared" 100.  0 or more.
    samples: int | None = attrs.field(default=None, kw_only=True)
    #: In which order branches are run.  "depth-first": from the simplest schedule on.  "random": several parts of the
    #: tree in turn, and tasks at random where nothing is planned, which leaves the corner of the simplest schedules.
    #: When all is run, both have one execution of each trace.
    branches: str = attrs.field(default="depth-first", kw_only=True)
    #: An integer; with "random" each seed is another order.
    seed: int = attrs.field(default=0, kw_only=True)

    @branches.validator
    def _check_branches(self, _: object, value: object) -> None:
        if value not in ("depth-first", "random"):
            raise DefinitionRefused("DPOR(branches)", '"depth-first" or "random"', value)

    @seed.validator
    def _check_seed(self, _: object, value: object) -> None:
        checked_seed("DPOR(seed)", value)

    @accesses.validator
    def _check_accesses(self, _: object, value: object) -> None:
        if value not in ("reported", "declared"):
            raise DefinitionRefused("DPOR(accesses)", '"reported" or "declared"', value)

    @samples.validator
    def _check_samples(self, _: object, value: object) -> None:
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            raise DefinitionRefused("DPOR(samples)", "a number of executions, 0 or more, or None", value)

    def begin(self) -> DPORSearch:
        """Begin an exploration."""
        if self.branches == "random":
            return SpreadSearch(self.accesses == "declared", self.samples, self.seed)
        return DPORSearch(self.accesses == "declared", self.samples)
