"""Tells of a call that a crash caught whether its change of files is there.

Rules.  A file tool makes one change of one or several entries, all or none.  Before its first touch of the disk it
notes what stands at each entry, and what is to stand there, by content hash (`Files`).  If all entries are as they were
to be, the change landed; if all are as they were, nothing happened; else another program has been there, and it is not
known.

Limits.  A change that another program made later back to what was there looks like one that did not happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolrt.workspace.change._held import FileAccess
from toolrt.workspace.change._mutation import standing_at
from toolrt.workspace.change._version import ChangeRow


async def landed(workspace: FileAccess, notes: Sequence[Any]) -> str | bool | None:
    """What is so of the change that was noted: what the call answers, if it landed; False: nothing happened.

    Args:
        notes: the rows of each change that the call was about to make.

    Returns: None where that cannot be known.

    Checkpoint: always.
    """
    if len(notes) != 1:
        return None
    rows = [ChangeRow.from_json(values) for values in notes[0]]
    made = [await _is_made(workspace, row) for row in rows]
    if all(one is True for one in made):
        shown = ", ".join(row.path for row in rows if not row.makes_directory) or rows[-1].path
        return f"{shown}: changed, before the process ended that ran this call"
    return False if all(one is False for one in made) else None


async def _is_made(workspace: FileAccess, row: ChangeRow) -> bool | None:
    here = (await standing_at(workspace.disk, row.entry)).standing
    if row.target is not None:
        there = (await standing_at(workspace.disk, row.target, content=False)).standing
        return None if (here is None) == (there is None) else here is None
    if here == row.after:
        return True
    return False if here == row.before else None
