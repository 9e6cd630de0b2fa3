"""Asks the real files and sockets of a program where Trio would ask the operating system, in the program's steps."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from toolrt.sim._trio_internals._decided import FILES, SOCKETS
from toolrt.sim._trio_internals._real_io import replace_real_io
from toolrt.sim._trio_internals._replacements import Replacements
from toolrt.sim._trio_internals._seam import OwnRun
from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.programs.network._state import NETWORKS
from toolrt.sim.programs.real._all import RealFiles


class RealStandIn:
    """Stands where programs wait for what is real."""

    def begin(self) -> None:
        """Do nothing: what is open belongs to its execution."""

    @contextmanager
    def installed(self, own_run: OwnRun) -> Iterator[None]:
        """Stand there inside the block."""
        replacements = Replacements()
        try:
            replace_real_io(replacements, partial(_seen, own_run))
            yield
        finally:
            replacements.put_back()


def _seen(own_run: OwnRun, fd: Any) -> RealFiles | None:
    """Give what is real of the execution, where a step of it uses a descriptor, or a socket, that is left real."""
    scheduler, seam = current_scheduler(), own_run.in_step()
    if scheduler is None or seam is None:
        return None
    caveats = scheduler.record.caveats
    if not any(f"real {kind}" in caveats for kind in (FILES, SOCKETS)) or seam.calls_back_on(fd):
        return None
    number = fd if isinstance(fd, int) else fd.fileno()
    if number < 0 or number in NETWORKS.fds:
        return None
    kind = SOCKETS if stat.S_ISSOCK(os.fstat(number).st_mode) else FILES
    if f"real {kind}" not in caveats:
        return None
    if scheduler.record.outside is None:
        scheduler.record.outside = RealFiles(seam, scheduler)
    return scheduler.record.outside  # type: ignore[no-any-return]
