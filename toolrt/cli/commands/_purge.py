"""``toolrt purge``: remove what a journal and a directory's history keep of private things.

Rules.  What a living process holds stays, and is counted.  What is removed is overwritten or unlinked: a journal's
deleted records are zeros on the disk, and its file shrinks.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import attrs
from cyclopts import Parameter

from toolrt._plain import counted
from toolrt.cli._exit import Exit
from toolrt.cli.experiment._roots import Mounts, roots_of
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._screen import print_json
from toolrt.errors import InputRefused
from toolrt.workspace import Disk, MountedDisk, RealDisk, purged, state_directory

_DAY_NS = 24 * 60 * 60 * 10**9


@attrs.define
class _Purged:
    """What was removed, and what has to stay."""

    batches: int = 0
    history: int = 0
    held: int = 0


def purge(
    *,
    journal: Annotated[Path | None, Parameter(help="The journal's file.")] = None,
    workspace: Annotated[str | None, Parameter(help="The directory whose history is to go.")] = None,
    mount: Mounts = (),
    days: Annotated[float, Parameter(help="Only what is older than so many days; 0: all of it.")] = 0.0,
    unfinished: Annotated[
        bool, Parameter(help="Batches that were never brought to their end, too: they cannot be resumed.", negative=())
    ] = False,
    json: Annotated[bool, Parameter(help="Print what was removed as JSON.", negative=())] = False,
) -> int:
    """Remove what a journal keeps of batches that are over, and what a directory's history keeps of its files.

    After it, those batches give their outcomes no more, and what they changed cannot be undone. Processes that use
    the journal have to end first; parts of a history that a living process writes stay.
    """
    if journal is None and workspace is None:
        raise InputRefused("toolrt purge", "expected --journal or --workspace", "Name what is to go.")
    if days < 0:
        raise InputRefused("toolrt purge", f"expected --days of 0 or more, got {days:g}", "Give another number.")
    if journal is not None and not journal.is_file():
        raise InputRefused("toolrt purge", f"there is no journal {on_one_line(str(journal), 200)}", "Name its file.")
    before = time.time_ns() - int(days * _DAY_NS) if days else None
    found = _Purged()
    if journal is not None:
        from toolrt.store import Journal

        kept = Journal(journal)
        try:
            found.batches = kept.ask_now(lambda store: store.purge(before, unfinished=unfinished))
        finally:
            kept.close()
    if workspace is not None:
        roots = roots_of(workspace, mount)
        disk: Disk = RealDisk(roots.base)
        if roots.mounts:
            disk = MountedDisk(disk, {name: RealDisk(where) for name, where in roots.mounts.items()})
        directory = state_directory(disk, None)
        found.history, found.held = (0, 0) if directory is None else purged(directory, before)
    if json:
        print_json(attrs.asdict(found))
        return Exit.OK
    if journal is not None:
        print(f"{counted(found.batches, 'batch', 'batches')} removed from {on_one_line(str(journal), 200)}")
    if workspace is not None:
        print(f"{counted(found.history, 'part')} of the history of {on_one_line(workspace, 200)} removed")
    if found.held:
        print(f"{counted(found.held, 'part')} kept: a process writes it, or the next start has to look at it first")
    return Exit.OK
