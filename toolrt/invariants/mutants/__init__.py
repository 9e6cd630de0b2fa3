"""The mutants: small broken variants of the runtime, which show that each law can fail.

Rules.
    1. A mutant breaks one thing, by replacing one or two functions of the runtime or of its order while it is
       applied.  It names the law that catches it when checked by itself, and the workload it is caught on.
    2. Each law has a mutant that trips no other law.  Laws 7 and 15 compare the end of everything and may trip too; law
       7 has a mutant that trips only law 7 (RULE 33).  So each law catches something that the others do not.
    3. On the unchanged runtime no law trips: that would be a false alarm.

Theory.  Mutation analysis (DeMillo, Lipton, Sayward, "Hints on test data selection", IEEE Computer 1978), turned
round: here the program is known, and the laws are under test.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolrt.invariants.mutants._mutant import Mutant, patched
from toolrt.invariants.mutants._of_crashes import CRASHES
from toolrt.invariants.mutants._of_order import ORDER
from toolrt.invariants.mutants._of_runtime import RUNTIME
from toolrt.invariants.mutants._of_state import STATE
from toolrt.invariants.mutants._of_sub_batches import SUB_BATCHES

__all__ = ["MUTANTS", "Mutant", "patched"]

#: Every mutant of ours, by name: in the order of the laws, then those of sub-batches and of crashes.
MUTANTS: Mapping[str, Mutant] = MappingProxyType(
    {mutant.name: mutant for mutant in (*ORDER, *RUNTIME, *STATE, *SUB_BATCHES, *CRASHES)}
)
