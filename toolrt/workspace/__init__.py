"""A workspace's files: what a name means, how the disk is reached, and the tools a model is given."""

from toolrt.workspace._budget import Skeleton, TokenCount, estimated_tokens, head_and_tail
from toolrt.workspace._disk import (
    EXACT,
    Change,
    Changed,
    Disk,
    Entry,
    Folding,
    Inseparable,
    Kind,
    NotRegular,
    Revision,
    Snapshot,
    Stat,
    TooLarge,
    Unsynced,
    is_own,
)
from toolrt.workspace._files import SIZE_LIMIT, CallContext, Files, Limits, Revised
from toolrt.workspace._held import held
from toolrt.workspace._history import History, Undone
from toolrt.workspace._identity import Identity, Wanted, identify
from toolrt.workspace._memory import Fault, MemoryDisk
from toolrt.workspace._mounts import MountedDisk, path_on, real_disks
from toolrt.workspace._naming import meant_path, shown_path
from toolrt.workspace._nodes import Directory, HardLink, Planted, Special, Symlink, User
from toolrt.workspace._permissions import Grant, Permissions, Permit, Question
from toolrt.workspace._private import without_private_paths
from toolrt.workspace._problem import FileProblem
from toolrt.workspace._real import RealDisk
from toolrt.workspace._recovery import state_directory
from toolrt.workspace._revision import noted, noted_no_change
from toolrt.workspace._rules import Rule
from toolrt.workspace._version import Version
from toolrt.workspace._walk import VISITED_MOST, Found, Walk, ignored_above
from toolrt.workspace._withholding import Withholding, withheld_note, withholding
from toolrt.workspace._workspace import Workspace

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
    "Found",
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
    "real_disks",
    "shown_path",
    "state_directory",
    "withheld_note",
    "withholding",
    "without_private_paths",
]
