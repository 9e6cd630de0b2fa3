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


#: The same for people, as ``--help`` shows it.
MEANINGS = """\
Exit codes: 0 every call is OK, or all laws hold, or all litmus programs are as stated; 1 a call is not OK, or a law is
violated, or a litmus program is not as stated; 2 bad usage or input, nothing was run, or what came of it could not be
written; 3 inconclusive: nothing was shown; 70 a bug of toolrt; 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP."""
