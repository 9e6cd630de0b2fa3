"""Which failing litmus programs get a repair, its kind, and what it takes to find it.

python -m tests.benchmarks.repairs            # all of them, four minutes
python -m tests.benchmarks.repairs lost_update_2x1
"""

from __future__ import annotations

import sys
import time
from collections import Counter

from toolrt import sim
from toolrt.teaching.litmus import LITMUS


def repaired(name: str) -> tuple[str, str]:
    """Explore one program: the kind of its first repair, and the repair in words."""
    litmus = LITMUS[name]
    report = sim.explore(litmus.program, sim.DPOR(), litmus.check, seconds=20, **litmus.settings)
    if not report.failures:
        return "does not fail", ""
    began = time.perf_counter()
    repairs = report.failures[0].repairs()
    took = f"{time.perf_counter() - began:5.1f} s"
    if not repairs:
        return "none of these kinds", took
    return type(repairs[0].constraint).__name__.lower(), f"{took}  {repairs[0]}"


def main() -> None:
    """Print a row for each program and the sums."""
    names = sys.argv[1:] or [name for name, litmus in LITMUS.items() if litmus.wrong and "mutant" not in name]
    kinds = Counter[str]()
    for name in names:
        kind, said = repaired(name)
        kinds[kind] += 1
        print(f"{name:<26} {kind:<20} {said}", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:>4} {kind}")


if __name__ == "__main__":
    main()
