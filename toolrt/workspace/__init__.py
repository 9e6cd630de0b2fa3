"""A workspace's files: what a name means, how the disk is reached, and the tools a model is given.

Sub-rooms; each imports only those named after it (`workspace_rooms` in ``pyproject.toml``): `tools` that a
model calls, `finding` files by name and content, `history`, `journal` and `rules` (none imports another), `change` of
files, `names` and `text`, `disk`.

The shell stands in `toolrt.services`, because it runs programs; code intelligence with its search over symbols is a
plugin (`toolrt.plugins.code`).  Both use a workspace through the names below.  `finding` has the text search.
"""

from toolrt.workspace._problem import FileProblem
from toolrt.workspace._workspace import Workspace
from toolrt.workspace.change._files import Files
from toolrt.workspace.change._held import held
from toolrt.workspace.change._limits import Limits
from toolrt.workspace.change._mutation import SIZE_LIMIT
from toolrt.workspace.change._revision import CallContext, Revised, noted, noted_no_change
from toolrt.workspace.change._version import Version
from toolrt.workspace.disk._disk import EXACT, Change, Disk, Entry, Folding, Kind, Revision, Snapshot, Stat, is_own
from toolrt.workspace.disk._disk_errors import Changed, Inseparable, NotRegular, TooLarge, Unsynced
from toolrt.workspace.disk._memory import Fault, MemoryDisk
from toolrt.workspace.disk._nodes import Directory, HardLink, Planted, Special, Symlink, User
from toolrt.workspace.disk._real import RealDisk
from toolrt.workspace.finding._walk import VISITED_MOST, Walk, ignored_above
from toolrt.workspace.history._history import History, Undone
from toolrt.workspace.journal._recovery import purged, state_directory
from toolrt.workspace.names._at_once import at_once
from toolrt.workspace.names._identity import Identity, Wanted, identify
from toolrt.workspace.names._mounts import MountedDisk, path_on, real_disks
from toolrt.workspace.names._naming import meant_path, shown_path
from toolrt.workspace.names._private import without_private_paths
from toolrt.workspace.rules._permissions import Grant, Permissions, Permit, Question
from toolrt.workspace.rules._rules import Rule
from toolrt.workspace.rules._withholding import Withholding, withheld_note, withholding
from toolrt.workspace.text._budget import Skeleton, TokenCount, estimated_tokens, head_and_tail

__all__ = [
    "EXACT",
    "SIZE_LIMIT",
    "VISITED_MOST",
    "CallContext",
    "Change",
    "Changed",
    "Directory",
    "Disk",
    "Entry",
    "Fault",
    "FileProblem",
    "Files",
    "Folding",
    "Grant",
    "HardLink",
    "History",
    "Identity",
    "Inseparable",
    "Kind",
    "Limits",
    "MemoryDisk",
    "MountedDisk",
    "NotRegular",
    "Permissions",
    "Permit",
    "Planted",
    "Question",
    "RealDisk",
    "Revised",
    "Revision",
    "Rule",
    "Skeleton",
    "Snapshot",
    "Special",
    "Stat",
    "Symlink",
    "TokenCount",
    "TooLarge",
    "Undone",
    "Unsynced",
    "User",
    "Version",
    "Walk",
    "Wanted",
    "Withholding",
    "Workspace",
    "at_once",
    "estimated_tokens",
    "head_and_tail",
    "held",
    "identify",
    "ignored_above",
    "is_own",
    "meant_path",
    "noted",
    "noted_no_change",
    "path_on",
    "purged",
    "real_disks",
    "shown_path",
    "state_directory",
    "withheld_note",
    "withholding",
    "without_private_paths",
]
