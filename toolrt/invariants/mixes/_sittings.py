"""Many batches, each held against the laws in all of its traces: by several processes, over several sittings.

Rules.  The result does not depend on which process searches a batch, or when: each batch has a search of its own and
a place of its own in the counts.  The order mixes the kinds of calls, so that the batches done so far predict how long
the rest takes.  A process sends the choices of the first broken execution, and the main process runs it again.

The file that a search is kept in says whose it is: the batches, the laws, and all of toolrt's code that decides what a
batch does and whether it is right.  With other code the file is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from toolrt import probe, sim
from toolrt._plain import counted
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.invariants._shared_out import shared_out
from toolrt.invariants.mixes._mix import Mix, judged
from toolrt.invariants.predicates._check import check
from toolrt.invariants.predicates._law import Predicate
from toolrt.sim.exploring._estimate import duration
from toolrt.sim.exploring._executors import JobsArgument, checked_workers
from toolrt.sim.exploring._interrupts import one_interrupt_noted

# Another one for each change of what is kept.
_VERSION = 1

# Wall seconds between two calls of `progress`, and between two writings of the file.
_TELL, _SAVE = 0.5, 5.0

# The rooms whose code decides what a batch does and what a law says of it.
_ROOMS = ("model", "order", "trace", "runtime", "sim", "invariants")


@attrs.frozen
class BatchProgress:
    """How far it has come; `str()` of it is for people."""

    #: How many batches were done, those of earlier sittings included, and of how many.
    batches: int
    of: int
    #: How many traces they have together.
    traces: int
    #: In how many of them a law tripped.
    failed: int
    #: Wall seconds since this sitting began, and until all are probably done; None when too few are done to tell.
    seconds: float
    left: float | None

    def __str__(self) -> str:
        text = f"{self.batches:,} of {counted(self.of, 'batch', 'batches')}, {counted(self.traces, 'trace')}"
        if self.left is not None:
            text += f", {duration(self.left)} left"
        return text + (f", {self.failed:,} failed" if self.failed else "")


@attrs.frozen
class ShownBatch:
    """What was shown of one batch."""

    #: How many traces were run.
    traces: int
    #: The choices of the first execution that broke a law or ended by an error; None: there was none.
    broken: tuple[int, ...] | None = None
    #: Why not all traces were run; None: they were.
    unfinished: str | None = None


@attrs.frozen
class _Task:
    """What every search is of."""

    batches: Sequence[Mix]
    laws: Mapping[str, Predicate]
    most: int | None


class _BatchSearcher:
    """Does one batch after the other."""

    def __init__(self, task: _Task, worker: int, told: Callable[[], int]) -> None:
        self._task = task

    def do(self, order: int) -> ShownBatch:
        mix, laws = self._task.batches[order], self._task.laws

        def broken(execution: sim.Execution) -> Any:
            return check(judged(mix, execution).trace, laws)

        report = sim.explore(mix.program(), sim.DPOR(), broken, max_executions=self._task.most)
        choices = report.failures[0].execution.choices if report.failures else None
        unfinished = None
        if choices is None and not report.complete:
            unfinished = report.unfinished or next(iter(report.reasons), "no execution was run")
        return ShownBatch(report.executions, choices, unfinished)


def search_all(
    batches: Sequence[Mix],
    laws: Mapping[str, Predicate],
    most: int | None,
    jobs: JobsArgument,
    progress: Callable[[BatchProgress], object] | None,
    checkpoint: str | os.PathLike[str] | None,
) -> dict[int, ShownBatch]:
    """Search every batch, and give what was shown of each, by its place; one that is missing was not reached.

    See `toolrt.invariants.exhaust`.
    """
    checked_workers(jobs)
    if progress is not None and not callable(progress):
        raise DefinitionRefused("progress", "a function of a BatchProgress, or None", progress)
    if checkpoint is not None and not isinstance(checkpoint, str | os.PathLike):
        raise DefinitionRefused("checkpoint", "a path, or None", checkpoint)
    sitting = _Sitting(_Task(batches, laws, most), jobs, progress, None if checkpoint is None else Path(checkpoint))
    return sitting.run()


class _Sitting:
    """One sitting of one search."""

    def __init__(
        self, task: _Task, jobs: JobsArgument, progress: Callable[[BatchProgress], object] | None, file: Path | None
    ) -> None:
        self._task = task
        self._jobs = jobs
        self._progress = progress
        self._file = file
        self._whose = "" if file is None else _whose(task)
        self._done: dict[int, ShownBatch] = {} if file is None else _load(file, self._whose)
        self._before = len(self._done)
        self._left = [place for place in _mixed(len(task.batches)) if place not in self._done]
        self._interrupted = False
        self._began = self._saved = time.perf_counter()
        self._told = 0.0

    def run(self) -> dict[int, ShownBatch]:
        # With one job and no file Ctrl-C is the caller's.
        callers = self._jobs == 1 and self._file is None
        try:
            with contextlib.nullcontext() if callers else one_interrupt_noted(self._interrupt):
                for place, shown in shared_out(
                    self._left, self._task, _BatchSearcher, self._jobs, lambda: self._interrupted
                ):
                    self._note(place, shown)
        finally:
            self._save()
        self._tell(always=True)
        if self._file is not None and len(self._done) == len(self._task.batches):
            self._file.unlink(missing_ok=True)
        return self._done

    def _interrupt(self) -> bool:
        before, self._interrupted = self._interrupted, True
        return before

    def _note(self, place: int, shown: ShownBatch) -> None:
        self._done[place] = shown
        self._tell()
        if time.perf_counter() - self._saved > _SAVE:
            self._save()

    def _tell(self, always: bool = False) -> None:
        now = time.perf_counter()
        if self._progress is None or not (always or now - self._told > _TELL):
            return
        self._told = now
        done, of, spent = len(self._done), len(self._task.batches), now - self._began
        here = done - self._before
        left = (of - done) * spent / here if here else None
        shown = self._done.values()
        failed = sum(each.broken is not None for each in shown)
        self._progress(BatchProgress(done, of, sum(each.traces for each in shown), failed, spent, left))

    def _save(self) -> None:
        if self._file is None:
            return
        kept = {str(place): attrs.astuple(shown) for place, shown in sorted(self._done.items())}
        beside = self._file.with_name(f"{self._file.name}.{os.getpid()}.new")
        try:
            beside.write_text(json.dumps({"version": _VERSION, "whose": self._whose, "done": kept}), "utf-8")
            os.replace(beside, self._file)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
        self._saved = time.perf_counter()


def _mixed(count: int) -> Iterable[int]:
    """Give the numbers below `count` in an order in which neighbours are far apart."""
    stride = max(1, round(count * 0.618))
    while count > 1 and not all(stride % factor or count % factor for factor in range(2, stride + 1)):
        stride += 1
    return [place * stride % count for place in range(count)]


def _whose(task: _Task) -> str:
    """Say which search this is, in figures that are the same in every process."""
    digest = hashlib.sha256()
    for mix in task.batches:
        digest.update(repr(mix).encode())
    digest.update(repr((sorted(task.laws), task.most, trio.__version__, sys.version_info[:3])).encode())
    home = Path(probe.__file__).parent
    for file in sorted([*home.glob("*.py"), *(file for room in _ROOMS for file in (home / room).rglob("*.py"))]):
        digest.update(str(file.relative_to(home)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _load(file: Path, whose: str) -> dict[int, ShownBatch]:
    """Give what was done; nothing when there is no file."""
    try:
        content = file.read_text("utf-8")
    except FileNotFoundError:
        if not file.parent.is_dir():
            raise InputRefused(f"checkpoint {file.name}", "its directory is not there", "Make it first.") from None
        return {}
    except UnicodeDecodeError:
        content = ""
    try:
        kept = json.loads(content)
        version, mine = kept["version"], kept["whose"]
        done = {int(place): _shown(*fields) for place, fields in kept["done"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        why = "it is no file that a search of batches was kept in"
        raise InputRefused(f"checkpoint {file.name}", why, "Name another file.") from None
    if (version, mine) != (_VERSION, whose):
        why = "it is of other batches, other laws, or other code of toolrt, Trio or Python than this"
        raise InputRefused(f"checkpoint {file.name}", why, "Name another file, or remove it to begin anew.")
    return done


def _shown(traces: int, broken: list[int] | None, unfinished: str | None) -> ShownBatch:
    return ShownBatch(int(traces), None if broken is None else tuple(map(int, broken)), unfinished)
