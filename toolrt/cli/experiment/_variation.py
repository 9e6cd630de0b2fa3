"""What else may happen in an execution than tasks taking their steps: a cancel, time that passes, faults of the disk.

Rules.  Each is a choice of the explorer's, like any other.  The command prints what may happen, and the replay file
keeps it.  Where calls may time out or fail, later calls differ from the oracle's answer for good reason, so the laws
that compare with one call at a time are not checked there, and the report says so.  Where time moves early, no law
says at which instant something has to happen.  After a cancel, finished calls and files are still compared with the
oracle.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from toolrt import sim
from toolrt.cli.experiment._options import above_0
from toolrt.errors import InputRefused
from toolrt.events import DiskFailed, observer

#: The scope that an explored cancel cancels: all of the batch.
SCOPE = "batch"

#: So often the clock moves early in one execution, unless told otherwise.
_MOVES = 2

#: The faults that a disk can have, by their names.
_FAULTS = ("EIO", "ENOSPC", "EACCES", "EDQUOT", "EROFS", "EMFILE")


@attrs.frozen
class Variation:
    """What may happen beside the calls' own steps."""

    #: Seconds that each call may run; None is no limit.
    timeout: float | None = None
    #: How often the clock may move before it has to; None: it moves when nothing can run.
    clock_moves: int | None = None
    #: Whether the batch may be cancelled before any step.
    cancel: bool = False
    #: What may go wrong at each operation of the disk, as names of `errno`; nothing where there are none.
    faults: tuple[str, ...] = ()
    #: How many of them in one execution.
    faults_at_most: int = 1
    #: Which task may step next: "any" of those that can run, or "trio", each once per pass.
    order: str = "any"

    @property
    def actors(self) -> dict[str, Any]:
        """What `toolrt.sim` has to be told of it, to explore as to replay."""
        told: dict[str, Any] = {"cancel_at": SCOPE} if self.cancel else {}
        if self.clock_moves is not None:
            told |= {"clock": "explored", "clock_moves": self.clock_moves}
        return told if self.order == "any" else {**told, "order": self.order}

    @property
    def compares(self) -> bool:
        """Whether an execution can be compared with one call at a time: no call times out, and no fault comes."""
        return self.timeout is None and not self.faults

    def fault(self) -> Callable[..., None] | None:
        """What a disk asks before each of its operations; None: nothing goes wrong.

        What goes wrong is an event, ``disk.failed``.
        """
        if not self.faults:
            return None
        errors = [OSError(getattr(errno, name), os.strerror(getattr(errno, name))) for name in self.faults]
        may_fail = sim.faults(*errors, at_most=self.faults_at_most)

        def fault(effect: str, path: str) -> None:
            try:
                may_fail(effect, path)
            except OSError as error:
                if observer.records:
                    observer.tell(DiskFailed(effect, path, errno.errorcode[error.errno or 0]))
                raise

        return fault

    def in_words(self) -> str:
        """What may happen, for people; empty where nothing else may."""
        words = []
        if self.cancel:
            words.append("a cancel at any step")
        if self.timeout is not None:
            moves = "" if self.clock_moves is None else f", time moving early up to {self.clock_moves} times"
            words.append(f"calls time out after {self.timeout:g} s{moves}")
        if self.faults:
            words.append(f"up to {self.faults_at_most} of {', '.join(self.faults)} at any operation of the disk")
        if self.order == "trio":
            words.append("each task steps once per pass, as in Trio's loop")
        return "; ".join(words)

    def to_json(self) -> dict[str, Any]:
        """What of it is not as usual."""
        fields = attrs.asdict(self)
        usual = attrs.asdict(NOTHING_ELSE)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in fields.items()
            if value != usual[name]
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Variation:
        """What `to_json` gave.

        Raises:
            ValueError: it is none; the text says which field.
        """
        timeout, moves = fields.get("timeout"), fields.get("clock_moves")
        faults, most, cancel = fields.get("faults", []), fields.get("faults_at_most", 1), fields.get("cancel", False)
        if timeout is not None and not (_is_number(timeout) and 0 < timeout < math.inf):
            raise ValueError("timeout: expected seconds above 0")
        if moves is not None and not _is_count(moves):
            raise ValueError("clock_moves: expected a whole number, 1 or more")
        if not isinstance(cancel, bool):
            raise ValueError("cancel: expected true or false")
        if not isinstance(faults, list) or not all(name in _FAULTS for name in faults):
            raise ValueError(f"faults: expected some of {', '.join(_FAULTS)}")
        if not _is_count(most):
            raise ValueError("faults_at_most: expected a whole number, 1 or more")
        if (order := fields.get("order", "any")) not in ("any", "trio"):
            raise ValueError('order: expected "any" or "trio"')
        return cls(timeout, moves, cancel, tuple(faults), most, order)


#: The calls' own steps, and nothing else.
NOTHING_ELSE = Variation()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def variation_of(
    timeout: float | None,
    clock: str | None,
    clock_moves: int | None,
    cancel_at: str | None,
    faults: Sequence[str],
    faults_at_most: int | None,
    order: str = "any",
) -> Variation:
    """What the options ask for.

    Raises:
        InputRefused: a value is out of range, or an option says nothing without another one.
    """
    if timeout is not None:
        above_0("--timeout", timeout)
    if clock is not None and timeout is None:
        raise InputRefused("--clock explored", "no call has a deadline that time could reach", "Add --timeout SECONDS.")
    for option, value, needed in (
        ("--clock-moves", clock_moves, clock and "--clock explored"),
        ("--faults-at-most", faults_at_most, faults and "--faults NAME"),
    ):
        if value is not None and not needed:
            other = "--clock explored" if option == "--clock-moves" else "--faults NAME"
            raise InputRefused(option, f"it says nothing without {other}", f"Add {other}.")
        if value is not None and value < 1:
            raise InputRefused(option, f"expected a whole number, 1 or more, got {value}", "See --help.")
    for name in faults:
        if name not in _FAULTS:
            raise InputRefused(f"--faults {name!r:.40}", f"expected one of {', '.join(_FAULTS)}", "See --help.")
    moves = None if clock is None else clock_moves or _MOVES
    return Variation(timeout, moves, cancel_at is not None, tuple(dict.fromkeys(faults)), faults_at_most or 1, order)
