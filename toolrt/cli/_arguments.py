"""What the commands' arguments stand for, before a command sees them.  This module imports no room of toolrt."""

from __future__ import annotations

#: What stands for standard input among the arguments: ``-`` alone would be taken for an option, and no path has a NUL.
STANDARD_INPUT = "\0-"
