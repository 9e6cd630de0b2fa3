"""Which failing programs get a repair, its kind, and what it takes to find it; of some a right one is known.

python -m tests.benchmarks.repairs            # the litmus programs, four minutes
python -m tests.benchmarks.repairs lost_update_2x1
python -m tests.benchmarks.repairs --own      # programs that the proposer was not written for: is the first one right?
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.sim._racy import HEAD, RACY, explored, judged, module_of
from toolrt import sim
from toolrt.sim.exploring._repairs import Repair
from toolrt.teaching.litmus import LITMUS


def repaired(report: sim.Report) -> tuple[Repair | None, str]:
    """The first repair of what failed, and what it took."""
    began = time.perf_counter()
    repairs = report.failures[0].repairs()
    took = f"{time.perf_counter() - began:5.1f} s"
    return (repairs[0], f"{took}  {repairs[0]}") if repairs else (None, took)


def of_litmus(names: list[str]) -> Iterator[tuple[str, str, str]]:
    """For each program its name, the kind of its first repair, and the repair in words."""
    for name in names or [name for name, litmus in LITMUS.items() if litmus.wrong and "mutant" not in name]:
        litmus = LITMUS[name]
        report = sim.explore(litmus.program, sim.DPOR(), litmus.check, seconds=20, **litmus.settings)
        if not report.failures:
            yield name, "does not fail", ""
            continue
        first, said = repaired(report)
        yield name, "none of these kinds" if first is None else type(first.constraint).__name__.lower(), said


def of_own() -> Iterator[tuple[str, str, str]]:
    """The same for programs whose right repair is known: in place of the kind, whether the first one is right."""
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, (right, text)) in enumerate(RACY.items()):
            first, said = repaired(explored(module_of(HEAD + text, Path(folder, f"racy_{number}.py"))))
            verdict = judged(None if first is None else first.constraint.code, right)
            yield name, verdict + ", said" * (first is not None and first.may_overfit), said


def main() -> None:
    """Print a row for each program and the sums."""
    names = sys.argv[1:]
    kinds = Counter[str]()
    for name, kind, said in of_own() if names == ["--own"] else of_litmus(names):
        kinds[kind] += 1
        print(f"{name:<28} {kind:<22} {said}", flush=True)
    for kind, count in kinds.most_common():
        print(f"{count:>4} {kind}")


if __name__ == "__main__":
    main()
