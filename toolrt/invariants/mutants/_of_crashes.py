"""Mutants of a journal: what a process does that goes on with a batch whose process crashed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolrt.invariants.mixes._mix import Mix
from toolrt.invariants.mutants._mutant import Function, Mutant, MutantList, patched
from toolrt.invariants.script import AddCell, Scripted, Sleep
from toolrt.model import Outcome
from toolrt.order import CallRecord
from toolrt.runtime._journal import BatchJournal

_CAUGHT = Mix([Scripted([AddCell("a", "x"), Sleep(1)])], crash_after=0.5)

_RETURNED = Mix([Scripted([AddCell("a", "x")]), Scripted([Sleep(1)], says="safe")], crash_after=0.5)

_declared = MutantList()


@_declared.instead("an intent is written late", "answered_once", BatchJournal, "intend").on(_CAUGHT)
async def _starts_unseen(intend: Function, self: BatchJournal, call: CallRecord) -> None:  # noqa: ASYNC124  the same kind
    """That a call starts is written with what it returns."""
    self._shared.notes.append(["start", list(self._place_of(call))])


@_declared.instead("a result is written late", "answered_once", BatchJournal, "returned").on(_RETURNED)
async def _delivers_first(returned: Function, self: BatchJournal, call: CallRecord, value: Any) -> Any:  # noqa: ASYNC124
    """A result is handed out that is not written."""
    return value


@_declared.instead("what has returned runs again", "answered_once", BatchJournal, "function_of").on(_RETURNED)
def _runs_again(function_of: Function, self: BatchJournal, call: CallRecord) -> Any:
    """A batch that goes on calls the tool of a call that has its result."""
    if call.call_index in self._instead:
        return function_of(self, call)
    tool: Any = call.tool
    return tool.function


def _denying(raising: staticmethod[[Any, Any], Any]) -> Callable[..., Any]:
    def denying(tool: Any, error: Any) -> Any:
        if getattr(error, "outcome", None) is Outcome.INTERRUPTED:
            error.outcome = Outcome.NOT_STARTED
        return raising.__func__(tool, error)

    return staticmethod(denying)


_declared.add(
    "denies what a crash caught",
    "cancel_truthful",
    "A call that a crash caught is reported as not started, though its effects may have landed.",
    lambda: patched(BatchJournal, "_raising", _denying),
    _CAUGHT,
)


#: What laws have to see across a crash.
CRASHES: tuple[Mutant, ...] = tuple(_declared.mutants)
