"""Decides, when a workspace opens, the changes of killed writers.

Rules.  First the disk mends what was half written, where those changes were.  Then a change that stands alone happened
if the disk has what it was to leave, and did not if the disk has what it found.  Where the disk has neither, another
program has changed the file since: the next recorded change of the file decides, and without one the change happened.
A group that was not recorded as complete is taken back, except files that other programs have changed since.

Where history cannot tell what the killed writers were about to change (the state directory has none yet, cannot be
written, or the last writer could not record it), the start looks through the whole tree for what they left.

Limits.  It looks through the 10,000 directories nearest to the root.  A history does not know of writers that had
theirs in another state directory; `Disk.recover` mends what they left.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Iterable, Sequence

import trio

from toolrt.workspace.change._mutation import ChangeSet, standing_at
from toolrt.workspace.change._version import ChangeRow, ChangeStore, EntryState
from toolrt.workspace.disk._disk import Disk, Entry
from toolrt.workspace.disk._real import RealDisk
from toolrt.workspace.disk._real_recover import left_in
from toolrt.workspace.disk._seal import Seal, contains, private_directories, users_directory
from toolrt.workspace.journal._history_store import HistoryStore, Pending
from toolrt.workspace.journal._index import Place, SegmentIndex
from toolrt.workspace.journal._memory_store import MemoryStore
from toolrt.workspace.journal._segment import Segment, path_of, segments_in
from toolrt.workspace.names._mounts import located, real_disks, real_parts, reopened

#: How many directories and names are looked at where no history tells what to mend: some tenths of a second.
_MOST_DIRECTORIES = 10_000
_MOST_NAMES = 500_000


def settled(
    disk: Disk, pending: Sequence[Pending], history: HistoryStore, left_alone: set[str]
) -> Iterable[tuple[Place, bool]]:
    """Decide each of `pending`, and take back unfinished groups.

    Args:
        left_alone: is given the names that look like the disk's own and are not.

    Raises:
        OSError: the disk cannot be mended or looked at; nothing is decided.

    Checkpoint: never; it blocks.
    """
    touched = {entry[:-1] for _, row in pending for entry in (row.entry, row.target) if entry}
    disk.recover(sorted(touched))
    left_alone.update(disk.strangers(sorted(touched)))
    again = reopened(disk)
    made: list[list[tuple[Place, bool]]] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            made.append(trio.run(_decided, again, pending, history))
        except BaseException as error:  # noqa: ASYNC103  of a Trio run of its own; raised again below
            failed.append(error)

    # The disk's operations need Trio, and a workspace may be made inside of a Trio run.  So they run in a thread with
    # a Trio run of its own, on a disk object of its own.
    thread = threading.Thread(target=run, name="toolrt recovery")
    thread.start()
    thread.join()
    if failed:
        raise OSError(errno.EIO, "what dead writers left could not be decided") from failed[0]
    return made[0]


async def _decided(disk: Disk, pending: Sequence[Pending], history: HistoryStore) -> list[tuple[Place, bool]]:
    decided = [(at, row.group is None and await _happened(disk, at, row, history)) for at, row in pending]
    unfinished = [row for _, row in pending if row.group is not None]
    found = [row.before.digest for row in unfinished if row.before is not None and row.before.digest is not None]
    stored = [(digest, history.stored(digest)) for digest in found]
    contents = {digest: content for digest, content in stored if content is not None}
    changes = ChangeSet(disk, unfinished, contents)
    for row in reversed(unfinished):
        # A file that is not as the group left it was not reached, or another program has changed it since.
        if row.target is not None or await _standing(disk, row.entry) == row.after:
            await changes.take_back([row])
    return decided


def _mended(disk: Disk, left_alone: set[str]) -> bool:
    """What dead writers left on the real disks is gone, wherever it was; whether all of it is."""
    whole = True
    for root, part in real_parts(disk):
        directories = left_in(part.root, _MOST_DIRECTORIES, _MOST_NAMES)
        try:
            part.recover(directories)
        except OSError:
            whole = False
        left_alone.update("/".join((*root, path)) for path in part.strangers(directories))
    return whole


async def _happened(disk: Disk, at: Place, row: ChangeRow, history: HistoryStore) -> bool:
    if row.target is not None:
        return await _standing(disk, row.entry) is None and await _standing(disk, row.target) is not None
    following = history.next_of(at, row.key)
    if following is not None and following.before in (row.before, row.after):
        return following.before == row.after
    return await _standing(disk, row.entry) != row.before


async def _standing(disk: Disk, entry: Entry) -> EntryState | None:
    """What stands there; nothing where a link has come to stand on the way."""
    try:
        return (await standing_at(disk, entry)).standing
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return None


def opened_store(
    disk: Disk, state_dir: str | os.PathLike[str] | None, versions: int, size: int
) -> tuple[ChangeStore, tuple[str, ...]]:
    """Where the history of a workspace on `disk` is kept, after what dead writers left is settled.

    And the names that were met and look like the disk's own, but are not.

    A disk in memory has it in memory.  The real one has it in `state_dir`, or else in a directory of its own in the
    user's state directory (XDG Base Directory Specification 0.8): ``$TOOLRT_STATE_DIR``, ``$XDG_STATE_HOME/toolrt``
    or ``~/.local/state/toolrt``.  Inside the workspace only if `state_dir` or ``$TOOLRT_STATE_DIR`` says so.  Of a disk
    that is made of both each part has it in its place.

    Checkpoint: never; it blocks.
    """
    real = [part for _, part in real_parts(disk)]
    if not real:
        return MemoryStore(versions, size), ()
    place = state_directory(disk, state_dir)
    seal = Seal(private_directories([part.root for part in real], state_dir), place or "")
    for part in real:
        part.trust(seal)
    left_alone: set[str] = set()
    store = HistoryStore(
        place,
        versions,
        size,
        sync=any(part.fsync for part in real),
        lasts=(lambda key: isinstance(located(disk, key)[0], RealDisk)) if not real_disks(disk) else None,
    )
    store.start(lambda pending, store: settled(disk, pending, store, left_alone), lambda: _mended(disk, left_alone))
    return store, tuple(sorted(left_alone))


def state_directory(disk: Disk, state_dir: str | os.PathLike[str] | None) -> str | None:
    """Where to keep the history of what is on `disk`: in `state_dir`, or a place of its own; None: nowhere.

    What is mounted where belongs to its name: names in a history mean what they did.
    """
    given = os.environ.get("TOOLRT_STATE_DIR") if state_dir is None else os.fspath(state_dir)
    if given:
        base = os.path.abspath(given)
    else:
        base = users_directory()
        place = os.path.realpath(base)
        if not os.path.isabs(base) or any(contains(part.root, place) for _, part in real_parts(disk)):
            return None
    told = "\0".join((disk.root, *(f"{name}\0{root}" for name, root in sorted(disk.mounts.items()))))
    return os.path.join(base, hashlib.sha256(os.fsencode(told)).hexdigest()[:16])


def purged(directory: str, before_ns: int | None) -> tuple[int, int]:
    """Remove the parts of the history in a state directory.

    What was kept aside of removals goes with the next removal in the workspace, because no history tells of it.

    Args:
        directory: where the history is, as `state_directory` gives it.
        before_ns: only parts that were last written before this instant, in nanoseconds since the epoch; None: all.

    Returns:
        How many parts went, and how many stay, because a process writes them or the next start decides on them.

    Checkpoint: never; it blocks.
    """
    taken: dict[int, Segment] = {}
    held = 0
    for number in segments_in(directory) if os.path.isdir(directory) else ():
        if before_ns is not None and os.stat(path_of(directory, number)).st_mtime_ns >= before_ns:
            continue
        segment = Segment.taken(directory, number)
        if segment is None:
            held += 1
        else:
            taken[number] = segment
    index = SegmentIndex(directory)
    open_ended = {number: segment for number, segment in taken.items() if not segment.settled}
    index.read(open_ended)
    # A change that a killed process left without its end is decided by the next start, not here.
    undecided = {at[0] for at, _ in index.pending(open_ended)}
    for number, segment in taken.items():
        if number in undecided:
            segment.close()
        else:
            segment.remove()
    return len(taken) - len(undecided), held + len(undecided)
