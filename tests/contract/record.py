"""A record of what toolrt does, to be compared byte by byte before and after a change that changes no behaviour.

    python -m tests.contract.record                     compare with the record that is kept; exit 1 where it differs
    python -m tests.contract.record --write             keep a new one
    python -m tests.contract.record --seeds 3 17        these seeds alone
    python -m tests.contract.record --full DIR          also write everything that was printed, a file for each seed

For each of 50 seeds it draws a batch of file calls on the example project, and ways to run it.  Then it records what
these commands answer: `toolrt run` with the plan, the results, the exit code and the files that are left;
`toolrt explore --json`; `toolrt laws --json`.  Run it from the top of the checkout.  To see what differs, write
`--full` before the change and after it, and compare the two directories.

Rules.  Times, rates and places on this machine are left out, and nothing else is.  The batches are drawn here, by
`random.Random`, so that no change of toolrt's own generators changes them.

Limits.  Schedules are those of the installed versions of Trio and Python, which the record names.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import platform
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import trio

from toolrt.cli import main

__all__ = ["COMMANDS", "KEPT", "SEEDS", "digests_of", "kept"]

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "docs" / "examples" / "shop"
KEPT = Path(__file__).with_name("record.json")
SEEDS = range(50)
COMMANDS = ("run", "explore", "laws")

#: Schedules of each batch, and of each mutant.
_EXECUTIONS, _OF_LAWS = 20, 2

#: What is left out of JSON: what a clock, or this machine, decides.
_LEFT_OUT = ("seconds", "executions_per_second", "replay_file")

_FILES = (
    "shop/cart.py",
    "./shop/cart.py",
    "shop/basket.py",
    "shop/prices.py",
    "data/prices.csv",
    "README.md",
    "new.txt",
)
_DIRECTORIES = ("shop", "data", "made", "made/deep")

#: How a batch is run, for both commands, and what else `explore` lets happen.
_WAYS: Sequence[tuple[tuple[str, ...], tuple[str, ...]]] = (
    ((), ()),
    (("--lanes", "by_safety"), ()),
    (("--limit", "2"), ()),
    ((), ("--cancel-at", "any")),
    ((), ("--faults", "EIO")),
    (("--lanes", "parallel"), ()),
    ((), ("--timeout", "5", "--clock", "explored")),
    (("--lanes", "serial"), ()),
)


def _batch(seed: int) -> list[dict[str, Any]]:
    """Draw a batch of 3 to 9 calls."""
    draw = random.Random(seed)

    def file() -> str:
        return draw.choice(_FILES)

    def directory() -> str:
        return draw.choice(_DIRECTORIES)

    makers: list[Callable[[], tuple[str, dict[str, Any]]]] = [
        lambda: ("read_file", {"path": file()}),
        lambda: ("read_file", {"path": file(), "offset": draw.randint(1, 5), "limit": 2}),
        lambda: (
            "write_file",
            {"path": file(), "content": f"price {draw.randint(1, 9)}\nprice {draw.randint(1, 9)}\n"},
        ),
        lambda: ("write_file", {"path": f"{directory()}/new.txt", "content": "new\n"}),
        lambda: ("edit_file", {"path": file(), "old": "price", "new": f"cost{draw.randint(1, 9)}", "all": True}),
        lambda: ("edit_file", {"path": file(), "old": f"cost{draw.randint(1, 9)}", "new": "price", "all": True}),
        lambda: ("multi_edit", {"path": file(), "edits": [{"old": "price", "new": "rate"}]}),
        lambda: ("list_dir", {"path": directory()}),
        lambda: ("glob", {"pattern": "**/*.py"}),
        lambda: ("search", {"pattern": draw.choice(("price", "cost[0-9]", "new"))}),
        lambda: ("make_dir", {"path": directory()}),
        lambda: ("move_path", {"source": file(), "target": f"{directory()}/moved.txt"}),
        lambda: ("delete_path", {"path": file()}),
        lambda: ("change_dir", {"path": draw.choice(("shop", ".", "data"))}),
        lambda: ("edit_file", {"path": file(), "old": "price"}),  # invalid: it has no "new"
    ]
    named = [draw.choice(makers)() for _ in range(draw.randint(3, 9))]
    return [{"id": f"call_{number}", "name": name, "input": input} for number, (name, input) in enumerate(named)]


def _printed(*arguments: object) -> tuple[int, str]:
    """Run a command in this process; give its exit code and what it printed for programs."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    printed, told = (each.buffer.getvalue().decode() for each in (out, err))
    if code == 70 or (not printed and told):
        raise SystemExit(f"toolrt {' '.join(map(str, arguments))}\n{told}")
    return code, printed


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(each) for key, each in value.items() if key not in _LEFT_OUT}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


def _tree(root: Path) -> dict[str, str]:
    """What stands in a directory: the digest of each file, the target of each link."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        else:
            found[name] = "directory" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _run(response: Path, seed: int, place: Path) -> Any:
    """What `toolrt run` plans, answers and leaves."""
    way, _ = _WAYS[seed % len(_WAYS)]
    project = place / "project"
    shutil.copytree(PROJECT, project, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    planned, plan = _printed("run", response, "--workspace", project, *way, "--dry-run")
    code, answer = _printed("run", response, "--workspace", project, *way, "--format", "json")
    lines = plan.replace(str(project), "PROJECT").replace(str(response), "RESPONSE").splitlines()
    return {"plan": lines, "planned": planned, "code": code, "results": json.loads(answer), "files": _tree(project)}


def _explore(response: Path, seed: int, place: Path) -> Any:
    """What `toolrt explore` finds."""
    way, also = _WAYS[seed % len(_WAYS)]
    project = place / "looked-at"
    shutil.copytree(PROJECT, project, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    limits = ("--executions", _EXECUTIONS, "--seconds", "inf", "--seed", seed, "--save", place / "failure.json")
    code, answer = _printed("explore", response, "--workspace", project, *way, *also, *limits, "--json")
    return {"code": code, "found": _without_times(json.loads(answer))}


def _laws(response: Path, seed: int, place: Path) -> Any:
    """Which law catches which mutant."""
    code, answer = _printed("laws", "--executions", _OF_LAWS, "--seed", seed, "--json")
    return {"code": code, "found": _without_times(json.loads(answer))}


def digests_of(seed: int, commands: Iterable[str] = COMMANDS, full: Path | None = None) -> dict[str, str]:
    """Record one seed: a digest for each command; `full` is a directory for everything that was printed."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        response = place / "response.json"
        response.write_text(json.dumps(_batch(seed)), encoding="utf-8")
        before = os.environ.get("TOOLRT_STATE_DIR")
        os.environ["TOOLRT_STATE_DIR"] = str(place / "state")
        try:
            for command in commands:
                told = {"run": _run, "explore": _explore, "laws": _laws}[command](response, seed, place)
                text = json.dumps(told, indent=1, sort_keys=True)
                found[command] = hashlib.sha256(text.encode()).hexdigest()[:16]
                if full is not None:
                    (full / f"{seed:02}-{command}.json").write_text(f"{text}\n", encoding="utf-8")
        finally:
            if before is None:
                del os.environ["TOOLRT_STATE_DIR"]
            else:
                os.environ["TOOLRT_STATE_DIR"] = before
    return found


def kept() -> dict[str, Any]:
    """The record that is kept: versions, and digests by seed and command."""
    record: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
    return record


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), "trio": trio.__version__}


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.contract.record")
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS))
    parser.add_argument("--commands", nargs="*", choices=COMMANDS, default=COMMANDS)
    parser.add_argument("--write", action="store_true", help="keep what was found")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes share the seeds, 2 unless given")
    parser.add_argument("--full", type=Path, help="a directory for everything that was printed")
    given = parser.parse_args()
    if given.full is not None:
        given.full.mkdir(parents=True, exist_ok=True)
    found = {}
    record_one = partial(digests_of, commands=given.commands, full=given.full)
    with ProcessPoolExecutor(given.jobs) as pool:
        for seed, digests in zip(given.seeds, pool.map(record_one, given.seeds), strict=True):
            found[str(seed)] = digests
            print(f"{seed:>3}  " + "  ".join(f"{name} {digest}" for name, digest in digests.items()), flush=True)
    if given.write:
        record = kept() if KEPT.exists() else {"seeds": {}}
        for seed, digests in found.items():
            record["seeds"].setdefault(seed, {}).update(digests)
        text = json.dumps({"versions": _versions(), "seeds": record["seeds"]}, indent=1)
        KEPT.write_text(f"{text}\n", encoding="utf-8")
        return 0
    record = kept()
    if record["versions"] != _versions():
        print(f"note: the record is of {record['versions']}, and this is {_versions()}")
    differ = [
        f"{seed} {name}"
        for seed, digests in found.items()
        for name, digest in digests.items()
        if record["seeds"].get(seed, {}).get(name) != digest
    ]
    print(f"differ: {', '.join(differ)}" if differ else f"all {len(found)} seeds are as they were")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(_main())
