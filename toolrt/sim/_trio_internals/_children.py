"""Says where Trio has what starts child processes and talks to them."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import trio


class ProcessNames(NamedTuple):
    """Where Trio has what leads to child processes."""

    #: The module of it all, and the one of streams over pipes; None: this system has no such streams.
    module: Any
    streams: Any


def process_names() -> ProcessNames:
    """Give where Trio has them."""
    streams = sys.modules["trio._unix_pipes"] if "FdStream" in trio.lowlevel.__dict__ else None
    return ProcessNames(sys.modules["trio._subprocess"], streams)
