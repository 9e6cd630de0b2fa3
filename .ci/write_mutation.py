"""The tables of docs/explanation/mutation.md, from the results that docs/explanation/mutation*.json keep.

    python .ci/write_mutation.py                     write the tables anew
    python .ci/write_mutation.py --score 2000 5      first count the examples until each mutant is caught (long)
    python .ci/write_mutation.py --last 2000 5       the same for the ten runtimes that were written last
    python .ci/write_mutation.py --interactions 1000 5    and for those that are wrong only where features meet
    python .ci/write_mutation.py --alarms 4000 5     run so many examples of the runtime as it is
    python .ci/write_mutation.py --rows 10000 5      let them say which rows of two conflicting calls can meet

A test holds the page against the results.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "explanation" / "mutation.md"
KEPT = ROOT / "docs" / "explanation" / "mutation.json"
REASONS = ROOT / "tests" / "mutation" / "equivalent.json"
ROWS = ROOT / "tests" / "known_rows.json"
#: After so many examples it is noted how many pairs of rows were reached.
STOPS = (25, 100, 1_000, 10_000)
BY_MACHINE = ROOT / "docs" / "explanation" / "mutation-by-machine.json"


def kept() -> dict[str, Any]:
    """Give the results that are kept."""
    found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def tables() -> dict[str, Any]:
    """Give the results of every table."""
    beside = {"machine": BY_MACHINE, "rows": ROWS}
    return {**kept(), **{name: json.loads(path.read_text(encoding="utf-8")) for name, path in beside.items()}}


def score_table(score: dict[str, Any]) -> str:
    """Give a row for each mutant, with what each seed took."""
    run = ", ".join(f"{count:,}" for count in score["run"])
    lives = any(None in row["by_seed"] for row in score["mutants"].values())
    early = ", ended early" if score["interrupted"] or (lives and max(score["run"]) < score["examples"]) else ""
    asked = f"{run} examples, by seed{early}, at commit `{score['commit']}`"
    caught = sum(row["median"] is not None for row in score["mutants"].values())
    median = "none" if score["median"] is None else f"{score['median']:,}"
    lines = [
        f"{asked}: {caught} of {len(score['mutants'])} caught, the median mutant after {median} examples.",
        f"On {len(score['false_alarms'])} of the examples a law tripped on the runtime as it is; "
        "they count for no mutant.",
        "",
        "| mutant | median | examples, by seed | laws |",
        "|---|---|---|---|",
    ]
    for name, row in score["mutants"].items():
        found = [one for one in row["by_seed"] if one is not None]
        laws = dict.fromkeys(law for one in found for law in one[1:])
        by_seed = ", ".join("-" if one is None else f"{one[0]:,}" for one in row["by_seed"])
        middle = "not caught" if row["median"] is None else f"{row['median']:,}"
        lines.append(f"| {name} | {middle} | {by_seed} | {', '.join(f'`{law}`' for law in laws)} |")
    return "\n".join(lines)


def alarm_line(score: dict[str, Any]) -> str:
    """Say how often a law tripped on the runtime as it is."""
    seeds = f"{len(score['seeds'])} other seeds, at commit `{score['commit']}`"
    return f"{sum(score['run']):,} random examples of {seeds}: {len(score['false_alarms'])} false alarms."


def machine_table(found: dict[str, Any]) -> str:
    """Give a row for each module."""
    reasons = json.loads(REASONS.read_text(encoding="utf-8"))
    rows = {module: row for module, row in found["modules"].items() if row["tried"]}
    alike = reasons.keys() & set(found["survivors"])
    equal = {module: sum(name.startswith(f"{module} ") for name in alike) for module in rows}
    tried, killed = (sum(row[key] for row in rows.values()) for key in ("tried", "killed"))
    others = max(1, tried - sum(equal.values()))
    some = f"{tried} of {found['mutants']:,} mutants, drawn evenly in each module"
    sample = "Every mutant" if tried == found["mutants"] else some
    killers = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in found["killers"].items())
    lines = [
        f"{sample}, at commit `{found['commit']}`: {killed} of {tried} killed, {sum(equal.values())} equivalent; "
        f"{killed / others:.0%} of those that are not. "
        f"Besides the other properties each met those of {found['examples']} shipped examples that run its function.",
        "",
        f"Killed by each property: {killers}.",
        "",
        "| module | tried | killed | equivalent | survived |",
        "|---|---|---|---|---|",
    ]
    for module, row in rows.items():
        left = row["tried"] - row["killed"] - equal[module]
        lines.append(f"| `{module}` | {row['tried']} | {row['killed']} | {equal[module]} | {left} |")
    return "\n".join(lines)


def rows_table(found: dict[str, Any]) -> str:
    """Say how many pairs of rows are known, and how many of them so many examples reach."""
    counts = [count for others in found["pairs"].values() for count in others.values()]
    once = sum(count == 1 for count in counts)
    lines = [
        f"{found['examples']:,} examples at commit `{found['commit']}` let {len(counts)} pairs of rows meet, "
        f"{once} of them in one batch alone.",
        "",
        "| examples | pairs reached, by seed |",
        "|---|---|",
    ]
    lines += [f"| {examples} | {', '.join(map(str, by_seed))} |" for examples, by_seed in found["reached"].items()]
    return "\n".join(lines)


def written(text: str, results: dict[str, Any]) -> str:
    """Give the page with its tables made anew."""
    makers = {
        "score": score_table,
        "interactions": score_table,
        "alarms": alarm_line,
        "last": score_table,
        "earlier": score_table,
        "machine": machine_table,
        "rows": rows_table,
    }
    for name, make in makers.items():
        table = make(results[name]) if name in results else "Not measured yet."
        marks = f"<!-- {name}: begin -->\n", f"\n<!-- {name}: end -->"
        pattern = re.compile(f"{re.escape(marks[0])}.*?{re.escape(marks[1])}", re.DOTALL)
        text = pattern.sub(lambda _, table=table, marks=marks: f"{marks[0]}{table}{marks[1]}", text)
    return text


def commit() -> str:
    """Give the commit that is measured."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def measure(name: str, examples: int, seeds: int) -> None:
    """Count examples, and keep what came of it."""
    sys.path.insert(0, str(ROOT))
    from toolrt.testing import mutation_score

    mutants = None
    if name == "last":
        from tests.invariants._ten_last import TEN_LAST

        mutants = TEN_LAST
    elif name == "interactions":
        from tests.invariants._interactions import INTERACTIONS

        mutants = INTERACTIONS
    elif name == "alarms":
        from toolrt.invariants import Mix, Mutant

        mutants = [Mutant("idle", "batch_ends", "Nothing is broken.", nullcontext, Mix())]
    at = commit()

    def keep(so_far: Any) -> None:
        print(so_far.summary, flush=True)
        results = kept() if KEPT.exists() else {}
        results[name] = {"commit": at, **so_far.to_json()}
        KEPT.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")

    first = 100 if name == "alarms" else 0
    score = mutation_score(examples, mutants, seeds=range(first, first + seeds), jobs=2, progress=keep)
    keep(score)
    print(score)


def measure_rows(examples: int, seeds: int) -> None:
    """Note which rows of conflicting calls meet in random examples, and after how many how many have."""
    sys.path.insert(0, str(ROOT))
    from tests._rows import RowWatch
    from toolrt import sim
    from toolrt.testing import shipped_examples
    from toolrt.testing._mutation_score import Example, drawn

    every: dict[str, dict[str, int]] = {}
    reached: dict[str, list[int]] = {}
    for seed in range(seeds):
        watch = RowWatch()

        def run(example: Example, watch: RowWatch = watch) -> bool:
            sim.run(example[0].program(), sim.Choices(example[1]))
            if watch.batches in STOPS:
                reached.setdefault(f"{watch.batches:,}", []).append(len(watch.pairs))
            return True

        with watch:
            drawn(shipped_examples(), seed, examples, run)
        for pair, count in watch.pairs.items():
            row, other = pair.split(" | ")
            every.setdefault(row, {}).setdefault(other, 0)
            every[row][other] += count
        print(f"seed {seed}: {len(watch.pairs)}, of all {sum(map(len, every.values()))}", flush=True)
    pairs = {row: dict(sorted(others.items())) for row, others in sorted(every.items())}
    found = {"commit": commit(), "examples": examples * seeds, "reached": reached, "pairs": pairs}
    ROWS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rows"]:
        measure_rows(int(sys.argv[2]), int(sys.argv[3]))
    elif len(sys.argv) > 1:
        measure(sys.argv[1].removeprefix("--"), int(sys.argv[2]), int(sys.argv[3]))
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), tables()), encoding="utf-8")
