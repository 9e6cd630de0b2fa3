"""Programs with a bug that only some schedules show, and their correct counterparts.

Each is small async functions, written by us.  The litmus gallery of toolrt has many of the same shapes; they are
written again here, because every tool has to run the same text, and frontrun asks for the tasks apart from what they
share.  State is plain Python: attributes, lists and dictionaries.  Each has a checkpoint (`pause`) where the original
waits or can be interrupted.  A program is correct by its locks, and not because a step is atomic: so it is correct in
threads, too.

This module imports neither Trio nor toolrt: tools run it in environments of their own.
"""

from __future__ import annotations

from tests.benchmarks.head_to_head import cases, sctbench
from tests.benchmarks.head_to_head.shared import Shared

__all__ = ["PROGRAMS", "Shared", "buggy", "correct"]


def _made(shape: type[Shared], wrong: bool, n: int | None = None) -> type[Shared]:
    """Give a program of that shape."""
    fields = {"wrong": wrong, "__doc__": shape.__doc__, "__module__": shape.__module__}
    return type(shape.__name__, (shape,), fields if n is None else {**fields, "n": n})


#: The programs by name; the correct counterpart of a program is named after it.
PROGRAMS: dict[str, type[Shared]] = {
    "account": _made(sctbench.Account, True),
    "reorder_3": _made(sctbench.Reorder, True),
    "reorder_10": _made(sctbench.Reorder, True, 10),
    "deadlock01": _made(sctbench.Deadlock01, True),
    "dining_5": _made(sctbench.Dining, True, 5),
    "lazy01": _made(sctbench.Lazy01, True),
    "stack": _made(sctbench.Stack, True),
    "circular_buffer": _made(sctbench.CircularBuffer, True),
    "two_stages_4": _made(sctbench.TwoStages, True, 4),
    "token_ring": _made(sctbench.TokenRing, True),
    "wrong_lock": _made(sctbench.WrongLock, True),
    "bluetooth": _made(sctbench.Bluetooth, True),
    "sync01": _made(sctbench.Sync01, True),
    "bounded_buffer": _made(sctbench.BoundedBuffer, True),
    "fsbench": _made(sctbench.FsBench, True),
    "work_stealing": _made(sctbench.WorkStealing, True),
    "aba": _made(sctbench.Aba, True),
    "alternation": _made(cases.Alternation, True),
    "short_after_long": _made(cases.ShortAfterLong, True),
    "children": _made(cases.Children, True),
    "sleepers": _made(cases.Sleepers, True),
    "rooms": _made(cases.Rooms, True),
    "headers": _made(cases.Headers, True),
    "pool": _made(cases.Pool, True),
    "packet_ids": _made(cases.PacketIds, True),
    "account, locked": _made(sctbench.Account, False),
    "reorder_3, locked": _made(sctbench.Reorder, False),
    "deadlock01, in order": _made(sctbench.Deadlock01, False),
    "dining_3, one turns": _made(sctbench.Dining, False),
    "stack, locked": _made(sctbench.Stack, False),
    "circular_buffer, locked": _made(sctbench.CircularBuffer, False),
    "two_stages, nested": _made(sctbench.TwoStages, False),
    "token_ring, waiting": _made(sctbench.TokenRing, False),
    "wrong_lock, one lock": _made(sctbench.WrongLock, False),
    "bluetooth, counted first": _made(sctbench.Bluetooth, False),
    "sync01, under the lock": _made(sctbench.Sync01, False),
    "bounded_buffer, all woken": _made(sctbench.BoundedBuffer, False),
    "fsbench, locked": _made(sctbench.FsBench, False),
    "work_stealing, locked": _made(sctbench.WorkStealing, False),
    "aba, with a version": _made(sctbench.Aba, False),
    "children, own places": _made(cases.Children, False),
    "sleepers, one shorter": _made(cases.Sleepers, False),
    "poll": _made(cases.Poll, False),
    "rooms, setdefault": _made(cases.Rooms, False),
    "headers, copied": _made(cases.Headers, False),
    "pool, one lock": _made(cases.Pool, False),
    "packet_ids, locked": _made(cases.PacketIds, False),
}


def buggy() -> list[str]:
    """The names of those that some schedule breaks."""
    return [name for name, program in PROGRAMS.items() if program.wrong]


def correct() -> list[str]:
    """The names of those that none does."""
    return [name for name, program in PROGRAMS.items() if not program.wrong]
