"""The laws as predicates over traces, the oracle, and the mutants that test the laws.

A law looks at one trace, of a simulation or of a production run alike, and names every place where it does not
hold::

    from toolrt import invariants

    for violation in invariants.check(execution.trace):
        print(violation)

`LAWS` has the seventeen laws of the design by name; it is never changed.  Laws of your own are made with `law` and
handed to `check`.  The mutants (`toolrt.invariants.mutants`) test the laws: they are
small broken variants of the runtime, at least one for each law, which that law must catch by itself.
"""

from toolrt.invariants import script
from toolrt.invariants._exhaustive import KINDS, Exhausted, all_batches, exhaust, exhaust_each
from toolrt.invariants._matrix import FalseAlarm, MutantRow, Table, table
from toolrt.invariants.mixes._executed_by import Executor, executed_by
from toolrt.invariants.mixes._mix import Mix, MixCheck, MixEnding, simulate
from toolrt.invariants.mixes._rerun import Rerun, rerun
from toolrt.invariants.mixes._sittings import BatchProgress
from toolrt.invariants.mutants import MUTANTS
from toolrt.invariants.mutants._mutant import Mutant, patched
from toolrt.invariants.predicates._check import LAWS, check, require, verdicts
from toolrt.invariants.predicates._equality import trace_digest
from toolrt.invariants.predicates._law import Law, LawVerdict, Predicate, Violation, law

__all__ = [
    "KINDS",
    "LAWS",
    "MUTANTS",
    "BatchProgress",
    "Executor",
    "Exhausted",
    "FalseAlarm",
    "Law",
    "LawVerdict",
    "Mix",
    "MixCheck",
    "MixEnding",
    "Mutant",
    "MutantRow",
    "Predicate",
    "Rerun",
    "Table",
    "Violation",
    "all_batches",
    "check",
    "executed_by",
    "exhaust",
    "exhaust_each",
    "law",
    "patched",
    "require",
    "rerun",
    "script",
    "simulate",
    "table",
    "trace_digest",
    "verdicts",
]
