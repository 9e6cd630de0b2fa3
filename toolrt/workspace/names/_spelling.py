"""Finds the disk's spelling of a name that the caller spelled differently, where directories fold names.

Theory.  Any spelling of a name finds its file, so most code never needs the disk's own.  A removal or a move does: undo
must bring the entry back under the name that the directory listed.
"""

from __future__ import annotations

from toolrt.workspace.disk._disk import EXACT, Disk, Entry
from toolrt.workspace.names._mounts import path_on


def as_on_disk(disk: Disk, entry: Entry) -> Entry:
    """The same entry as the disk spells it; a part that is not there stays as it is.

    Costs a listing of each directory on the way that folds names, and nothing where none does.

    Raises:
        OSError: a directory cannot be listed.

    Checkpoint: never.
    """
    spelled: Entry = ()
    for part in entry:
        above = path_on(disk, spelled)
        folding = disk.folds(above)
        if folding is not EXACT:
            names = disk.listdir(above)
            if part not in names:
                part = next((name for name in names if folding.fold(name) == folding.fold(part)), part)
        spelled = (*spelled, part)
    return spelled
