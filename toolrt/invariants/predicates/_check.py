"""All laws together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolrt.errors import DefinitionRefused, LawBroken
from toolrt.invariants.predicates._answers import answered_once, modifiers_in_call_order, results_in_call_order
from toolrt.invariants.predicates._claims import claims_hold
from toolrt.invariants.predicates._ending import batch_ends, nothing_left
from toolrt.invariants.predicates._equality import same_as_oracle, same_schedule_same_trace
from toolrt.invariants.predicates._failure import cancel_truthful, failure_contained, timeout_own_time
from toolrt.invariants.predicates._law import Law, LawVerdict, Predicate, Violation, laws_by_name, not_given_up
from toolrt.invariants.predicates._overlap import exclusive_alone, same_file_in_call_order
from toolrt.invariants.predicates._progress import progress_at_once
from toolrt.invariants.predicates._serial import no_write_lost, same_as_serial
from toolrt.invariants.predicates._waiting import no_needless_wait
from toolrt.trace import Trace

#: The seventeen laws of the design, by name and in their order.
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
            same_as_serial,
            no_write_lost,
            claims_hold,
        )
    }
)

# An execution's trace is an attribute, a recorder's is made when it is asked for.
_A_TRACE = "a trace, such as execution.trace or recorder.trace()"


def check(trace: Trace, laws: Mapping[str, Predicate] | None = None) -> list[Violation]:
    """Every violation in `trace`, law by law; an empty list when no law is broken.

    A law that the lane policy of a batch declares that it gives up does not count in that batch: `verdicts` says so.

    Args:
        trace: of a simulation or of a production run.
        laws: by name; the seventeen of the design when None.  ``{**LAWS, "mine": predicate}`` adds one: any
            function from a trace to a list of `Violation` will do.

    Raises:
        DefinitionRefused: `trace` is no trace, or `laws` no mapping from names to functions.
    """
    if not isinstance(trace, Trace):
        raise DefinitionRefused("check(trace)", _A_TRACE, trace)
    return [found for of_law in found_by_law(trace, laws_by_name(laws, LAWS)).values() for found in of_law]


def found_by_law(trace: Trace, laws: Mapping[str, Predicate]) -> dict[str, list[Violation]]:
    """For each of the `laws` that is broken in `trace` its violations, those apart that a lane policy gives up."""
    found = {name: not_given_up(name, trace, law(trace)) for name, law in laws.items()}
    return {name: violations for name, violations in found.items() if violations}


def verdicts(trace: Trace, laws: Mapping[str, Predicate] | None = None) -> dict[str, LawVerdict]:
    """What each law says of `trace`, by its name: held, broken, given up, or not checked.

    A law is not checked where the trace lacks what it compares with: `same_as_oracle` without the oracle's answer,
    `same_schedule_same_trace` without a second run, `same_as_serial` without the serial run.

    Args:
        trace: of a simulation or of a production run.
        laws: by name; the seventeen of the design when None.

    Raises:
        DefinitionRefused: as `check`.

    Example:
        >>> from toolrt import invariants
        >>> invariants.verdicts(invariants.simulate(invariants.Mix()).trace)["same_schedule_same_trace"]
        NOT_CHECKED
    """
    if not isinstance(trace, Trace):
        raise DefinitionRefused("verdicts(trace)", _A_TRACE, trace)
    return {name: _verdict(name, law, trace) for name, law in laws_by_name(laws, LAWS).items()}


def _verdict(name: str, law: Predicate, trace: Trace) -> LawVerdict:
    return (law if isinstance(law, Law) else Law(name, "", law)).verdict(trace)


def require(trace: Trace, laws: Mapping[str, Predicate] | None = None, context: str = "") -> None:
    """Return if none of the `laws` is broken in `trace`.

    Raises:
        LawBroken: they do not; its text has every violation, and `context` below them.
    """
    violations = check(trace, laws)
    if violations:
        raise LawBroken(violations, context)
