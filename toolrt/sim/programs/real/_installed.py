"""Asks the real files and sockets of a program where Trio would ask the operating system, in the program's steps."""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
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

    def __init__(self) -> None:
        self._own_run = OwnRun()

    def begin(self) -> None:
        """Do nothing: what is open belongs to its execution."""

    @contextmanager
    def installed(self, own_run: OwnRun) -> Iterator[None]:
        """Stand there inside the block."""
        replacements = Replacements()
        self._own_run = own_run
        try:
            replace_real_io(replacements, self)
            yield
        finally:
            replacements.put_back()

    def sees(self, fd: Any) -> bool:
        """Say whether a step of the program uses a descriptor, or a socket, that is left real."""
        scheduler, seam = current_scheduler(), self._own_run.in_step()
        if scheduler is None or seam is None:
            return False
        caveats = scheduler.record.caveats
        if not any(f"real {kind}" in caveats for kind in (FILES, SOCKETS)) or seam.calls_back_on(fd):
            return False
        number = fd if isinstance(fd, int) else fd.fileno()
        if number < 0 or number in NETWORKS.fds:
            return False
        kind = SOCKETS if stat.S_ISSOCK(os.fstat(number).st_mode) else FILES
        return f"real {kind}" in caveats

    def _files(self) -> RealFiles:
        scheduler, seam = current_scheduler(), self._own_run.mine()
        assert scheduler is not None
        assert seam is not None
        files = scheduler.record.outside
        if files is None:
            files = scheduler.record.outside = RealFiles(seam, scheduler)
        return files  # type: ignore[no-any-return]

    def waits_for(self, fd: int, what: str) -> Awaitable[None]:
        """Give an awaitable that waits until a descriptor can be read ("r") or written ("w")."""
        return self._files().waits_for(fd, what)

    def reading(self, fd: int, operation: Callable[..., Any]) -> Callable[..., Any]:
        """Make an operation read only what a wait has found."""
        made: Callable[..., Any] = self._files().reading(fd, operation)
        return made

    def writing(self, fd: int, operation: Callable[..., Any]) -> Callable[..., Any]:
        """Make an operation that writes known."""
        made: Callable[..., Any] = self._files().writing(fd, operation)
        return made

    def connects(self, fd: int) -> None:
        """Take note that a socket is about to be connected."""
        self._files().connects(fd)

    def closes(self, fd: int) -> None:
        """Wake the tasks that wait for a descriptor which is about to be closed."""
        self._files().closes(fd)
