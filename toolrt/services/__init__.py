"""What a tool may be given beside files: a shell."""

from toolrt.services import code, lsp
from toolrt.services._command import Command, Ended, Shell
from toolrt.services._environment import FIXED, INHERITED
from toolrt.services._parallel_edit import EditPart, parallel_edit_tool
from toolrt.services._processes import RealShell
from toolrt.services._reading import only_reads
from toolrt.services._recorded import Recorded, RecordedShell
from toolrt.services._shell import shell_tool

__all__ = [
    "FIXED",
    "INHERITED",
    "Command",
    "EditPart",
    "Ended",
    "RealShell",
    "Recorded",
    "RecordedShell",
    "Shell",
    "code",
    "lsp",
    "only_reads",
    "parallel_edit_tool",
    "shell_tool",
]
