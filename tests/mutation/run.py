"""Judge mutants by machine with the shipped strategy's random examples.

    python -m tests.mutation.run                    every mutant of every module below; some hours of processor time
    python -m tests.mutation.run --every 10         one in ten
    python -m tests.mutation.run --write            keep the result in docs/explanation/mutation.json, too
    python -m tests.mutation.run --only _slots      modules whose name ends so

One process draws the examples, asks the oracle of each, and leaves out those on which the runtime as it is breaks a
law.  Then each mutant gets a process of its own, forked from that one, so that what it breaks stays there.  A mutant is
killed when a law trips, when the execution ends by an error, or when one example takes ten seconds of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.mutation._mutants import CodeMutant, applied_code, mutants_of
from toolrt.testing import shipped_examples
from toolrt.testing._mutation_score import Example, drawn, tripped_by

__all__ = ["MODULES", "examples_of", "judge"]

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "explanation" / "mutation.json"
#: Why a survivor cannot be told from the runtime as it is, by the mutant's name.
REASONS = Path(__file__).with_name("equivalent.json")
MODULES = (
    *(f"toolrt.order._{name}" for name in ("machine", "slots", "admission", "tickets", "claim_tree", "merge", "lanes")),
    *(f"toolrt.order._{name}" for name in ("record", "states", "stale", "circle")),
    *(f"toolrt.runtime._{name}" for name in ("run", "execution", "reader", "approval", "lease", "left_open")),
)
#: Seconds of processor time that one example may take.
_PATIENCE = 10
_SURVIVED, _KILLED, _REFUSED = 0, 1, 2


def examples_of(seed: int, count: int) -> list[Example]:
    """Draw examples that the runtime as it is passes; each has given its oracle."""
    found: list[Example] = []

    def visit(example: Example) -> bool:
        if example[0].has_oracle:
            example[0].serial()
        if not tripped_by(example, replayed=False):
            found.append(example)
        return True

    drawn(shipped_examples(), seed, count, visit)
    return found


def judge(mutant: CodeMutant, examples: Sequence[Example]) -> tuple[int, tuple[str, ...]] | None:
    """Give the number of the example that kills the mutant, from 1, and the laws; None: none does."""
    with applied_code(mutant):
        for number, example in enumerate(examples, 1):
            signal.setitimer(signal.ITIMER_PROF, _PATIENCE)
            laws = tripped_by(example, replayed=False)
            if laws:
                return number, laws
    return None


def _fork(mutant: CodeMutant, examples: Sequence[Example]) -> tuple[int, int]:
    """Start a process that judges a mutant; give its id and where its answer can be read."""
    reads, writes = os.pipe()
    child = os.fork()
    if child:
        os.close(writes)
        return child, reads
    code = 1
    try:
        os.close(reads)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        sys.unraisablehook = lambda unraisable: None
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            answer: Any = judge(mutant, examples)
        except LookupError as error:
            answer = str(error)
        os.write(writes, json.dumps(answer).encode())
        code = 0
    finally:
        os._exit(code)


def judged(mutants: Sequence[CodeMutant], examples: Sequence[Example], jobs: int) -> Iterator[tuple[CodeMutant, Any]]:
    """Give each mutant with its answer; a text says why it was not tried."""
    left = list(reversed(mutants))
    running: dict[int, tuple[CodeMutant, int]] = {}
    while left or running:
        while left and len(running) < jobs:
            mutant = left.pop()
            child, reads = _fork(mutant, examples)
            running[child] = mutant, reads
        child, status = os.waitpid(next(iter(running)) if jobs == 1 else -1, 0)
        mutant, reads = running.pop(child)
        with os.fdopen(reads, "rb") as pipe:
            text = pipe.read()
        yield mutant, json.loads(text) if text else [0, ["no end" if os.WIFSIGNALED(status) else "an error"]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge, print the survivors, and give the exit code: 1 when one survives that no reason is kept for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.run")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--examples", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args(arguments)
    modules = [one for one in MODULES if asked.only is None or one.endswith(tuple(asked.only))]
    began = time.perf_counter()
    mutants = [one for module in modules for one in mutants_of(module)]
    chosen = mutants[:: asked.every]
    examples = examples_of(asked.seed, asked.examples)
    print(f"{len(chosen)} of {len(mutants)} mutants, {len(examples)} examples", flush=True)
    reasons: dict[str, str] = json.loads(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}
    rows: dict[str, dict[str, int]] = {one: {"tried": 0, "killed": 0, "equivalent": 0} for one in modules}
    survivors: list[str] = []
    by_law: dict[str, int] = {}
    until: list[int] = []
    for mutant, answer in judged(chosen, examples, asked.jobs):
        if isinstance(answer, str):
            print(f"not tried: {answer}")
            continue
        row = rows[mutant.module]
        row["tried"] += 1
        if answer is not None:
            row["killed"] += 1
            until.append(answer[0])
            for law in answer[1]:
                by_law[law] = by_law.get(law, 0) + 1
        elif mutant.name in reasons:
            row["equivalent"] += 1
        else:
            survivors.append(mutant.name)
            print(f"survived: {mutant.name}  [line {mutant.line}]", flush=True)
    tried, killed, equivalent = (sum(row[key] for row in rows.values()) for key in ("tried", "killed", "equivalent"))
    seconds = time.perf_counter() - began
    score = killed / max(1, tried - equivalent)
    print(f"{killed} of {tried} killed, {equivalent} equivalent: {score:.1%} of the others, in {seconds:,.0f} s")
    if asked.write:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
        kept["machine"] = {
            "commit": commit.stdout.strip(),
            "every": asked.every,
            "mutants": len(mutants),
            "examples": len(examples),
            "seed": asked.seed,
            "seconds": round(seconds),
            "modules": rows,
            "by_law": dict(sorted(by_law.items(), key=lambda each: -each[1])),
            "median": sorted(until)[len(until) // 2] if until else None,
            "survivors": survivors,
        }
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
