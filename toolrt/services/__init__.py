"""What a tool may be given beside files: a shell.

The shell stands here and not among the plugins: it needs nothing but the core, and the laws name what it may do.  The
search for text in files is a tool of `toolrt.workspace`.  Code intelligence with its search over symbols, language
servers and telemetry are plugins (`toolrt.plugins`).
"""

from toolrt.services._command import Command, Ended, Shell
from toolrt.services._environment import FIXED, INHERITED
from toolrt.services._parallel_edit import EditPart, parallel_edit_tool
from toolrt.services._processes import RealShell
from toolrt.services._reading import only_reads
from toolrt.services._recorded import Recorded, RecordedShell
from toolrt.services._sandbox import Sandbox
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
    "Sandbox",
    "Shell",
    "only_reads",
    "parallel_edit_tool",
    "shell_tool",
]
