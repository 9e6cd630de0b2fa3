"""How a command ends."""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """Exit codes; the same for all commands."""

    #: ``run``: every call is OK.  ``explore``, ``replay``, ``laws``, ``conformance``: all laws hold.
    #: ``litmus``: all is as stated.
    OK = 0
    #: ``run``: a call is not OK.  ``explore``, ``replay``, ``conformance``: a law is violated.
    #: ``laws``, ``litmus``: see their help.
    FAILED = 1
    #: Bad usage or input: nothing was run and nothing changed.  Or what came of it could not be written.
    USAGE = 2
    #: Nothing was shown: no law was seen broken, but not every execution came to its end, or a replay diverged.
    INCONCLUSIVE = 3
    #: A bug of toolrt's own; a traceback says where.
    BUG = 70
    #: SIGHUP: the terminal is gone.
    HUNG_UP = 129
    #: Ctrl-C.
    INTERRUPTED = 130
    #: SIGTERM: asked to end.
    TERMINATED = 143


#: The same for people, as ``--help`` shows it; docs/reference/exit-codes.md says it by command.
MEANINGS = (
    "Exit codes: 0 every call is OK, or all laws hold; 1 not so; 2 bad usage or input; 3 inconclusive; 70 a bug; "
    "130 Ctrl-C."
)
