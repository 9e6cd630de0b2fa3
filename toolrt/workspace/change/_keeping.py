"""Keeps removed files that are too large for history aside, within bounds.

Rules.  A removal that fits into history is stored there.  Any other is kept aside by the disk (`Disk.keep`), and
history records where, with device, inode number, digest and size.  The bytes kept aside are bounded, and their age may
be: the oldest go for the newest, but never those of the same batch, which could not be undone then; such a removal is
refused.  What history no longer lists goes, too, unless a living writer holds it.

Theory.  A removal that is kept aside is the move of one entry.  So undo, redo and recovery treat it as a move.
"""

from __future__ import annotations

import contextlib

from toolrt.workspace._problem import FileProblem
from toolrt.workspace.change._limits import Limits
from toolrt.workspace.change._mutation import in_thread
from toolrt.workspace.change._version import ChangeStore
from toolrt.workspace.disk._disk import Disk, Entry
from toolrt.workspace.disk._disk_errors import Unsynced
from toolrt.workspace.names._mounts import path_on, real_parts, stat_or_none


async def make_room(disk: Disk, store: ChangeStore, batch_id: str, path: str, size: int, limits: Limits) -> None:
    """There is room to keep `size` bytes more; what is not needed any more is gone.

    Args:
        path: what is to be removed, as messages show it.
        limits: how many bytes may be kept, and for how long.

    Raises:
        FileProblem: there is no room; nothing was removed of what this batch can put back.

    Checkpoint: always.
    """
    most = limits.kept_bytes
    if size > most:
        raise _too_large(path, size, most)
    unlisted = await in_thread(lambda: _unlisted(disk, store), blocks=store.blocks)
    kept = [
        row
        for row in await in_thread(store.kept, blocks=store.blocks)
        if row.target and stat_or_none(disk, path_on(disk, row.target))
    ]
    latest = {row.target: row for row in kept if row.target is not None}
    sizes = {entry: 0 if row.before is None else row.before.size for entry, row in latest.items()}
    going = [entry for entry, row in latest.items() if row.batch_id != batch_id]
    since = 0 if limits.kept_seconds is None else disk.now_ns() - int(limits.kept_seconds * 1e9)
    total = size + sum(sizes.values())
    if total - sum(sizes[entry] for entry in going) > most:
        raise _too_large(path, size, most)
    for entry in going:
        if total > most or latest[entry].time_ns < since:
            unlisted.append(entry)
            total -= sizes[entry]
    for entry in unlisted:
        with contextlib.suppress(OSError, Unsynced):
            await disk.remove_tree(entry[:-1])


def _unlisted(disk: Disk, store: ChangeStore) -> list[Entry]:
    """What no history tells of, and no living writer holds.

    What was being deleted of that when its process died goes now: no history tells of it, either.
    """
    for _, part in real_parts(disk):
        with contextlib.suppress(OSError):
            part.recover([()])
    boxes = _boxes(disk)
    if boxes:
        # A writer makes its box, locks it, and then tells history: so it is seen by one of two looks.
        for _ in range(2):
            listed = {row.target for row in store.kept()}
            boxes = [entry for entry in _boxes(disk) if entry in boxes and entry not in listed]
    listed = {row.target for row in store.kept()} if boxes else set()
    return [entry for entry in boxes if entry not in listed]


def _boxes(disk: Disk) -> list[Entry]:
    return [(*root, *entry) for root, part in real_parts(disk) for entry in part.boxes()]


def _too_large(path: str, size: int, most: int) -> FileProblem:
    return FileProblem(
        path,
        f"at most {most} bytes that one batch removes and can put back",
        f"{size} more",
        "Nothing was removed; delete it in another batch, raise Limits(kept_bytes=), or delete it outside of toolrt.",
    )
