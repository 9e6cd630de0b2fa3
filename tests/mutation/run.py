"""Judge mutants by machine with property tests alone.

    python -m tests.mutation.run                    every mutant of every module below; some hours of processor time
    python -m tests.mutation.run --every 10         one in ten
    python -m tests.mutation.run --seconds 600      as many as that allows, drawn evenly
    python -m tests.mutation.run --write            keep the result in docs/explanation/mutation-by-machine.json, too
    python -m tests.mutation.run --only _slots      modules whose name ends so
    python -m tests.mutation.run --only _run --add  the same, added to what is kept of other modules
    python -m tests.mutation.run --survivors        those alone that survived the run that is kept
    python -m tests.mutation.run --by in_threads    those judges alone whose names have this in them
    python -m tests.mutation.run --resume FILE      go on with a run that was stopped: FILE has who killed which mutant

One process runs each property test and the shipped examples once, on the code as it is, and notes which functions they
run.  Then each mutant gets a process of its own, forked from that one, so that what it breaks stays there.  A mutant is
killed by the first property that does not hold, or when one of them takes too much processor time.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.mutation._judges import EXAMPLES, JUDGES, LATE, SHELL, Bench, bench
from tests.mutation._mutants import CodeMutant, applied_code, functions_by_place, mutants_of

__all__ = ["KEPT", "MODULES", "REASONS", "judged"]

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "explanation" / "mutation-by-machine.json"
#: Why a survivor cannot be told from the runtime as it is, by the mutant's name.
REASONS = Path(__file__).with_name("equivalent.json")
MODULES = (
    *(f"toolrt.order._{name}" for name in ("machine", "slots", "admission", "tickets", "claim_tree", "merge", "lanes")),
    *(f"toolrt.order._{name}" for name in ("record", "states", "stale", "circle", "partition")),
    *(f"toolrt.runtime._{name}" for name in ("run", "execution", "reader", "approval", "lease", "left_open")),
)
#: Seconds of processor time that one property test, or one example, may take beyond five times what it took at first.
_PATIENCE = 1
#: Seconds until one that waits for what never comes has taken too long.
_WAITS = 20


def _begins(seconds: float) -> None:
    """Let this process end where the next test, which took so many seconds at first, takes too long."""
    signal.setitimer(signal.ITIMER_PROF, _PATIENCE + 5 * seconds)
    signal.setitimer(signal.ITIMER_REAL, _WAITS)


def judge(mutant: CodeMutant, judges: Bench) -> tuple[int, str] | None:
    """Give who kills the mutant; None: none does.  The process ends where one takes too long."""
    with applied_code(mutant):
        return judges.judge(mutant, _begins)


def _fork(mutant: CodeMutant, judges: Bench) -> tuple[int, int]:
    """Start a process that judges a mutant; give its id and where its answer can be read."""
    reads, writes = os.pipe()
    child = os.fork()
    if child:
        os.close(writes)
        return child, reads
    code = 1
    try:
        os.close(reads)
        for ends in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(ends, signal.SIG_DFL)
        sys.unraisablehook = lambda unraisable: None
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        try:
            answer: Any = judge(mutant, judges)
        except LookupError as error:
            answer = str(error)
        os.write(writes, json.dumps(answer).encode())
        code = 0
    finally:
        os._exit(code)


def judged(mutants: Sequence[CodeMutant], judges: Bench, jobs: int) -> Iterator[tuple[CodeMutant, Any]]:
    """Give each mutant with its answer; a text says why it was not tried."""
    functions_by_place()
    gc.freeze()  # else each process would go through all that is there, and copy it
    left = list(reversed(mutants))
    running: dict[int, tuple[CodeMutant, int]] = {}
    while left or running:
        while left and len(running) < jobs:
            mutant = left.pop()
            child, reads = _fork(mutant, judges)
            running[child] = mutant, reads
        child, status = os.waitpid(next(iter(running)) if jobs == 1 else -1, 0)
        mutant, reads = running.pop(child)
        with os.fdopen(reads, "rb") as pipe:
            text = pipe.read()
        yield mutant, json.loads(text) if text else [0, "no end" if os.WIFSIGNALED(status) else "an error"]


def _kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {"survivors": []}
    return found


def resumed(file: Path | None) -> dict[str, Any]:
    """Give who killed each mutant in an earlier run, which a line of `file` tells for each; None: none did."""
    if file is None or not file.exists():
        return {}
    return dict(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())


def _with_resumed(
    answers: Iterator[tuple[CodeMutant, Any]], before: list[tuple[CodeMutant, Any]], file: Path | None
) -> Iterator[tuple[CodeMutant, Any]]:
    """Give the answers of an earlier run, then the new ones; each new one is added to `file`."""
    yield from before
    if file is None:
        yield from answers
        return
    with file.open("a", encoding="utf-8") as opened:
        for mutant, answer in answers:
            if not isinstance(answer, str):
                print(json.dumps([mutant.name, answer]), file=opened, flush=True)
            yield mutant, answer


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge, print the survivors, and give the exit code: 1 when one survives that no reason is kept for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.run")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--examples", type=int, default=EXAMPLES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append")
    parser.add_argument("--by", action="append")
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--add", action="store_true")
    asked = parser.parse_args(arguments)
    modules = [one for one in MODULES if asked.only is None or one.endswith(tuple(asked.only))]
    began = time.perf_counter()
    mutants = [one for module in modules for one in mutants_of(module)]
    chosen = mutants[:: asked.every]
    if asked.survivors:
        lived = set(_kept()["survivors"])
        chosen = [one for one in mutants if one.name in lived]
    Random(asked.seed).shuffle(chosen)  # so that a run that ends early is an even sample
    order = JUDGES if any(".order." in module for module in modules) else ()
    parts = [order + SHELL, LATE]
    if asked.by:
        parts = [tuple(one for one in part if any(name in one.name for name in asked.by)) for part in parts]
    judges = bench(asked.seed, asked.examples, *parts)
    print(f"{len(chosen)} of {len(mutants)} mutants, {len(judges.examples)} examples", flush=True)
    reasons: dict[str, str] = json.loads(REASONS.read_text(encoding="utf-8"))
    rows: dict[str, dict[str, int]] = {one: {"tried": 0, "killed": 0} for one in modules}
    survivors: list[str] = []
    killers: Counter[str] = Counter()
    known = resumed(asked.resume)
    if asked.by:  # some judges alone do not say that a mutant survives
        chosen = [one for one in chosen if one.name in known]
    before = [(one, known[one.name]) for one in chosen if known.get(one.name) is not None]
    # One that survived is judged again, last: a judge may have come since.
    again = [one for one in chosen if one.name in known and known[one.name] is None]
    answers = judged([one for one in chosen if one.name not in known] + again, judges, asked.jobs)
    for mutant, answer in _with_resumed(answers, before, asked.resume):
        if isinstance(answer, str):
            print(f"not tried: {answer}")
            continue
        if time.perf_counter() - began > asked.seconds:
            break
        row = rows[mutant.module]
        row["tried"] += 1
        if answer is not None:
            row["killed"] += 1
            killers[answer[1]] += 1
            if mutant.name in reasons:
                print(f"killed, and said to be equivalent: {mutant.name}", flush=True)
        else:
            survivors.append(mutant.name)
            if mutant.name not in reasons:
                print(f"survived: {mutant.name}  [line {mutant.line}]", flush=True)
    tried, killed = (sum(row[key] for row in rows.values()) for key in ("tried", "killed"))
    equivalent = len(reasons.keys() & set(survivors))
    seconds = time.perf_counter() - began
    score = killed / max(1, tried - equivalent)
    print(f"{killed} of {tried} killed, {equivalent} equivalent: {score:.1%} of the others, in {seconds:,.0f} s")
    if asked.write or asked.add:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        kept_before = _kept() if asked.add else {"mutants": 0, "modules": {}, "killers": {}, "survivors": []}
        kept = {
            "commit": commit.stdout.strip(),
            "mutants": kept_before["mutants"] + len(mutants),
            "examples": len(judges.examples),
            "seed": asked.seed,
            "modules": {**kept_before["modules"], **rows},
            "killers": dict((Counter(kept_before["killers"]) + killers).most_common()),
            "survivors": sorted([*kept_before["survivors"], *survivors]),
        }
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 1 if len(survivors) > equivalent else 0


if __name__ == "__main__":
    sys.exit(main())
