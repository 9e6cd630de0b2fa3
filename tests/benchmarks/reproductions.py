"""Which failing litmus programs become a program that needs Trio alone, and of which kind it is.

python -m tests.benchmarks.reproductions            # all of them, about ten minutes
python -m tests.benchmarks.reproductions lost_update_2x1
"""

from __future__ import annotations

import sys
from collections import Counter

from toolrt import sim
from toolrt.errors import NotReproducible
from toolrt.teaching.litmus import LITMUS


def kind_of(name: str) -> str:
    """Explore one program, write its first failure as a file, and say how the file orders its tasks."""
    litmus = LITMUS[name]
    report = sim.explore(litmus.program, sim.DPOR(), litmus.check, max_executions=2000, **litmus.settings)
    if not report.failures:
        return "does not fail"
    try:
        reproduction = report.failures[0].reproduce()
    except NotReproducible as refused:
        return f"not reproducible: {refused}"
    coins = "Trio's own coins" if reproduction.is_of_trio else "which task takes each step"
    return f"{coins}, failed in {reproduction.failed} of {reproduction.runs} runs"


def main() -> None:
    """Print a row for each program and the sums."""
    names = sys.argv[1:] or [name for name, litmus in LITMUS.items() if litmus.wrong and "mutant" not in name]
    kinds = Counter[str]()
    for name in names:
        kind = kind_of(name)
        kinds[kind.partition(":")[0]] += 1
        print(f"{name:<40} {kind.splitlines()[0]}", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:>4} {kind}")


if __name__ == "__main__":
    main()
