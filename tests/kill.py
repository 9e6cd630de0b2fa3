"""Kills real processes that run a batch with a journal, resumes it, and counts effects that are lost or come twice.

Run it with ``python tests/kill.py --kills 500 --seed 1``.  Each round runs one batch to its end in several processes.
SIGKILL ends each but the last: at an instant drawn over wall time, or before or behind a commit of the journal.  A
round has one kill or two, the second while the batch is resumed.  It prints how many effects were lost (a call is OK
and its effect is not there) and how many came twice; the exit code is 1 if there was one.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import attrs

if __name__ in ("__main__", "__mp_main__"):  # a script, and a process that it starts, find the checkout so
    sys.path.insert(0, str(Path(__file__).parents[1]))

from tests._forked import forked, pipe
from tests.store._killed import calls, effects, process

#: Wall seconds and moments over which kills are drawn: a little more than a batch takes.
_SECONDS = {False: 0.25, True: 0.8}
_MOMENTS = 60


@attrs.define
class Tally:
    """What all rounds came to."""

    kills: int = 0
    rounds: int = 0
    lost: int = 0
    twice: int = 0
    #: Calls that were INTERRUPTED, because they may have happened.
    interrupted: int = 0
    #: Anything else that should not be.
    wrong: list[str] = attrs.field(factory=list)

    def __str__(self) -> str:
        counts = f"kills={self.kills} rounds={self.rounds} interrupted={self.interrupted}"
        return "\n".join([f"{counts} lost={self.lost} twice={self.twice} wrong={len(self.wrong)}", *self.wrong])

    @property
    def failed(self) -> bool:
        """Whether something went wrong."""
        return bool(self.lost or self.twice or self.wrong)


def run_once(directory: Path, shell: bool, after: float | None, moment: int | None) -> Any:
    """Let one process work; what it sent, or None if it was killed.

    Args:
        after: kill it so many wall seconds behind its start; None: do not.
        moment: let it kill itself there; None: not.
    """
    ours, theirs = pipe()
    child = forked(process, str(directory), shell, moment, theirs)
    theirs.close()
    try:
        assert ours.recv() == "ready"
        if after is not None and not ours.poll(after):
            child.kill()
        return json.loads(ours.recv())
    except EOFError:
        return None
    finally:
        child.join()
        ours.close()


def check(directory: Path, shell: bool, found: Any, tally: Tally) -> None:
    """Hold what is there against what the calls say."""
    asked, results = calls(shell), found["results"]
    counts = collections.Counter(effects(directory).read_text().split()) if effects(directory).exists() else {}
    if [result["call_index"] for result in results] != list(range(len(asked))):
        tally.wrong.append(f"the results are not in call order: {results}")
    notes = []
    for call, result in zip(asked, results, strict=True):
        ok = result["outcome"] == "ok"
        tally.interrupted += result["outcome"] == "interrupted"
        if result["outcome"] not in ("ok", "interrupted"):
            tally.wrong.append(f"{call.name} is {result['outcome']}: {result['error']}")
        if result["outcome"] == "interrupted" and call.name in ("edit_file", "write_file", "keep", "several"):
            tally.wrong.append(f"{call.name} is interrupted, though it can tell or may run again")
        if call.name in ("note", "in_thread", "in_asyncio"):
            tally.lost += ok and not counts[call.input["what"]]
        if call.name == "run_command":
            tally.lost += ok and not counts["command"]
        if call.name == "several" and ok:
            done = zip(call.input["what"], result["content"], strict=True)
            tally.lost += sum(outcome == "ok" and not counts[one] for one, outcome in done)
        if call.name == "note" and ok:
            notes.append(call.input["what"])
    tally.twice += sum(times - 1 for times in counts.values() if times > 1)
    if found["state"].get("notes", []) != notes:
        tally.wrong.append(f"the state is {found['state']}, of {notes}")
    files = {path: (directory / "files" / path).read_text() for path in ("a.txt", "d/new.txt")}
    if files != {"a.txt": "one one one\n", "d/new.txt": "new\n"}:
        tally.lost += 1
        tally.wrong.append(f"the files are {files}")


def one_round(draw: random.Random, directory: Path, kills: int, tally: Tally) -> None:
    """Run one batch to its end, in one process for each of its `kills` and one more."""
    shell = draw.random() < 0.3
    (directory / "files").mkdir(parents=True)
    (directory / "files" / "a.txt").write_text("one\n")
    found = None
    for _ in range(kills):
        placed = draw.random() < 0.5
        after = None if placed else draw.uniform(0, _SECONDS[shell])
        found = run_once(directory, shell, after, draw.randrange(_MOMENTS) if placed else None)
        tally.kills += found is None
    if found is None:
        found = run_once(directory, shell, None, None)
    again = run_once(directory, shell, None, None)
    if again != found:
        tally.wrong.append(f"resumed once more it gives {again}, not {found}")
    tally.rounds += 1
    check(directory, shell, found, tally)


def run(kills: int, seed: int) -> Tally:
    """Go on until so many processes were killed."""
    tally, draw = Tally(), random.Random(seed)
    base = Path(tempfile.mkdtemp(prefix="toolrt-kill-"))
    try:
        while tally.kills < kills and len(tally.wrong) < 5:
            one_round(draw, base / str(tally.rounds), draw.choice((1, 2, 2)), tally)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return tally


def main() -> int:
    """Run what the command line asks for, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    print(f"seed={asked.seed}", flush=True)
    tally = run(asked.kills, asked.seed)
    print(tally)
    return int(tally.failed)


if __name__ == "__main__":
    sys.exit(main())
