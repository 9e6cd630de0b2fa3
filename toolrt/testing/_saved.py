"""Schedules that failed, kept for the next time.

Rules.  What is kept is the short form: the tasks in the order of their steps.  So a schedule survives every edit that
moves no scheduling point, and one that no longer fits its program is dropped without a word.  One that fits and passes
is kept: the next edit may bring the bug back.  Keeping is a convenience: a place that cannot be written to is not an
error.

Where.  In a directory, one text file for each schedule, which may be committed; or in Hypothesis' database, beside
the examples.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from hypothesis.database import ExampleDatabase

# So many are kept for one test, the newest or all that a directory holds.
_MOST = 10


class ScheduleStore(Protocol):
    """Where schedules are kept, by the name of their test."""

    def load(self, test: str) -> Iterable[str]:
        """Give what is kept."""

    def add(self, test: str, schedule: str) -> None:
        """Keep one."""

    def drop(self, test: str, schedule: str) -> None:
        """Forget one."""


class ScheduleDirectory:
    """A directory of text files: a line that names the test, and the schedule."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _file(self, test: str, schedule: str) -> Path:
        slug = re.sub(r"[^A-Za-z0-9_.-]+", "-", test).strip("-.")[-80:]
        return self.path / f"{slug}-{_digest(test)}" / f"{_digest(schedule)}.schedule"

    def load(self, test: str) -> Iterable[str]:
        """Give the schedules of `test`, by file name."""
        files = sorted(self._file(test, "").parent.glob("*.schedule"))
        for file in files:
            with suppress(OSError, UnicodeDecodeError):
                lines = file.read_text(encoding="utf-8").splitlines()
                yield " ".join(line for line in lines if not line.startswith("#"))

    def add(self, test: str, schedule: str) -> None:
        """Write one; a file that is there is left as it is."""
        file = self._file(test, schedule)
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"# {test}\n{schedule}\n", encoding="utf-8")

    def drop(self, test: str, schedule: str) -> None:
        """Remove one, and its directory when it was the last."""
        file = self._file(test, schedule)
        with suppress(OSError):
            file.unlink()
            file.parent.rmdir()


class ScheduleDatabase:
    """Hypothesis' database."""

    def __init__(self, database: ExampleDatabase) -> None:
        self._database = database

    def load(self, test: str) -> Iterable[str]:
        """Give the schedules of `test`, in one order in every process."""
        return sorted(value.decode("utf-8", "replace") for value in self._database.fetch(_key(test)))

    def add(self, test: str, schedule: str) -> None:
        """Save one."""
        with suppress(OSError):
            self._database.save(_key(test), schedule.encode())

    def drop(self, test: str, schedule: str) -> None:
        """Delete one."""
        with suppress(OSError):
            self._database.delete(_key(test), schedule.encode())


class SavedSchedules:
    """The kept schedules of one test, for the time it runs.

    What was there at the start is what is replayed, however often the test is called: Hypothesis relies on a call
    with the same input doing the same.
    """

    def __init__(self, place: ScheduleStore | None, test: str) -> None:
        self._place = place
        self._test = test
        #: What is replayed first.
        self.schedules: tuple[str, ...] = ()
        if place is not None:
            self.schedules = tuple(dict.fromkeys(place.load(test)))[:_MOST]
        self._fitted: set[str] = set()
        self._tried = False

    def fits(self, schedule: str) -> None:
        """Note that `schedule` still fits the program."""
        self._fitted.add(schedule)

    @property
    def fitted(self) -> bool:
        """Say whether any schedule fitted."""
        return bool(self._fitted)

    def tried(self) -> None:
        """Note that all were tried."""
        self._tried = True

    def add(self, schedule: str) -> None:
        """Keep `schedule`."""
        self._fitted.add(schedule)
        if self._place is not None:
            self._place.add(self._test, schedule)

    def settle(self) -> None:
        """Drop what was tried and fitted never."""
        if self._place is not None and self._tried:
            for schedule in self.schedules:
                if schedule not in self._fitted:
                    self._place.drop(self._test, schedule)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _key(test: str) -> bytes:
    return b"toolrt.explore\0" + test.encode()
