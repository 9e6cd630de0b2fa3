"""All laws together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolrt.errors import DefinitionRefused, LawBroken
from toolrt.invariants._answers import answered_once, modifiers_in_call_order, results_in_call_order
from toolrt.invariants._ending import batch_ends, nothing_left
from toolrt.invariants._equality import same_as_oracle, same_schedule_same_trace
from toolrt.invariants._failure import cancel_truthful, failure_contained, timeout_own_time
from toolrt.invariants._law import Law, Predicate, Violation, laws_by_name
from toolrt.invariants._overlap import exclusive_alone, same_file_in_call_order
from toolrt.invariants._progress import progress_at_once
from toolrt.invariants._waiting import no_needless_wait
from toolrt.trace import Trace

__all__ = ["LAWS", "check", "require"]

#: The fourteen laws of the design, by name and in their order.
LAWS: Mapping[str, Law] = MappingProxyType(
    {
        law.name: law
        for law in (
            answered_once,
            results_in_call_order,
            modifiers_in_call_order,
            same_file_in_call_order,
            exclusive_alone,
            no_needless_wait,
            same_as_oracle,
            progress_at_once,
            failure_contained,
            cancel_truthful,
            timeout_own_time,
            nothing_left,
            batch_ends,
            same_schedule_same_trace,
        )
    }
)


def check(trace: Trace, laws: Mapping[str, Predicate] | None = None) -> list[Violation]:
    """Every violation in `trace`, law by law; an empty list when all laws hold.

    Args:
        trace: of a simulation or of a production run.
        laws: by name; the fourteen of the design when None.  ``{**LAWS, "mine": predicate}`` adds one: any
            function from a trace to a list of `Violation` will do.

    Raises:
        DefinitionRefused: `trace` is no trace, or `laws` no mapping from names to functions.
    """
    if not isinstance(trace, Trace):
        raise DefinitionRefused("check(trace)", "a trace, such as execution.trace", trace)
    return [found for law in laws_by_name(laws, LAWS).values() for found in law(trace)]


def require(trace: Trace, laws: Mapping[str, Predicate] | None = None, context: str = "") -> None:
    """Return if all laws hold in `trace`.

    Raises:
        LawBroken: they do not; its text has every violation, and `context` below them.
    """
    violations = check(trace, laws)
    if violations:
        raise LawBroken(violations, context)
