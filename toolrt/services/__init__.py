"""What a tool may be given beside files: a shell.

The shell stands here and not among the plugins: it needs nothing but the core, and the laws name what it may do.  The
search for text in files is a tool of `toolrt.workspace`.  Code intelligence with its search over symbols, language
servers and telemetry are plugins (`toolrt.plugins`); their former paths, `toolrt.services.code`,
`toolrt.services.lsp` and `toolrt.services.telemetry`, give the same names.
"""

import importlib
from typing import TYPE_CHECKING, Any

from toolrt.services._command import Command, Ended, Shell
from toolrt.services._environment import FIXED, INHERITED
from toolrt.services._parallel_edit import EditPart, parallel_edit_tool
from toolrt.services._processes import RealShell
from toolrt.services._reading import only_reads
from toolrt.services._recorded import Recorded, RecordedShell
from toolrt.services._shell import shell_tool

if TYPE_CHECKING:
    from toolrt.services import code, lsp, telemetry

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
    "telemetry",
]

#: Plugins that stood here, each with the name that it has in `toolrt.plugins`.
_MOVED = {"code": "code", "lsp": "lsp", "telemetry": "otel"}


def __getattr__(name: str) -> Any:
    """Import a plugin that stood here at its first use."""
    if name in _MOVED:
        return importlib.import_module(f"toolrt.plugins.{_MOVED[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
