"""Saves an exploration to a file, and continues it from there.

Rules.  The file has what was shown, what is left to run, and which exploration it belongs to: the strategy, the
program's name, and the first schedule with its enabled lists.  The first schedule is run again before the file is
trusted.  It is replaced as a whole, so a crash leaves the one before.  It is a pickle that may name classes of
policies, searches and tallies, and nothing else: a foreign file cannot run code.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.sim.exploring import _tally
from toolrt.sim.exploring._tally import Tally
from toolrt.sim.strategies._strategy import Shared

# Another one for each change of what is kept.
_VERSION = 8

# What a search, and what was shown, are made of.
_MODULES = ("toolrt.sim.policies.", "toolrt.sim.strategies.", _tally.__name__)


@attrs.frozen
class CheckpointState:
    """What a checkpoint holds."""

    #: What is left to run, and what was learned.
    search: Shared
    #: What was shown.
    tally: Tally
    #: The first execution's choices.
    choices: tuple[int, ...]
    #: The tasks that could run at each of its steps.
    enabled: tuple[tuple[str, ...], ...]
    #: Its stream of random numbers.
    chance: int


class Checkpoint:
    """A file to keep an exploration in.

    Args:
        path: the file; its directory must be there.
        whose: says which exploration this is.

    Raises:
        DefinitionRefused: the path is no path.
    """

    def __init__(self, path: object, whose: str) -> None:
        if not isinstance(path, str | os.PathLike):
            raise DefinitionRefused("checkpoint", "a path, or None", path)
        self._path = Path(path)
        self._whose = whose

    def load(self) -> CheckpointState | None:
        """Give what is in the file; None when there is none.

        Raises:
            InputRefused: it is no checkpoint, or another exploration's.
            OSError: it cannot be read.
        """
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            if not self._path.parent.is_dir():
                raise self._refused("its directory is not there", "Make it first.") from None
            return None
        try:
            version, whose, search, lent, *rest = _Unpickler(io.BytesIO(content)).load()
            state = CheckpointState(search, *rest)
            if not isinstance(search, Shared) or not isinstance(state.tally, Tally):
                raise TypeError
        except Exception:
            raise self._refused("it is no checkpoint of this version of toolrt", "Name another file.") from None
        if (version, whose) != (_VERSION, self._whose):
            raise self._refused(f"expected one of {self._whose}, got one of {whose}", "Name another file.")
        for part in lent:
            search.take_back(part)
        return state

    def save(self, state: CheckpointState, lent: list[Shared]) -> None:
        """Replace the file.

        Args:
            state: what is to be kept.
            lent: the parts that are lent out, as they were when they were: they will be run again.

        Raises:
            OSError: it cannot be written.
        """
        kept = (_VERSION, self._whose, state.search, lent, state.tally, state.choices, state.enabled, state.chance)
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        try:
            beside.write_bytes(pickle.dumps(kept))
            os.replace(beside, self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise

    def remove(self) -> None:
        """Remove the file: nothing is left to run."""
        self._path.unlink(missing_ok=True)

    def changed(self) -> InputRefused:
        """Give the error for a program that is not what it was."""
        return self._refused("the program no longer does what it did on the first schedule", "Remove it to begin anew.")

    def _refused(self, why: str, remedy: str) -> InputRefused:
        return InputRefused(f"checkpoint {self._path.name}", why, remedy)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = getattr(sys.modules.get(module), name, None) if module.startswith(_MODULES) else None
        # What such a module has imported is another one's.
        if not isinstance(found, type) or found.__module__ != module:
            raise pickle.UnpicklingError(f"{module}.{name}")
        return found
