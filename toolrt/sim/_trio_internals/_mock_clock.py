"""Has a `trio.testing.MockClock` that a program runs with tell and move the virtual time of the simulation.

Rules.  Only the clock that the program was given for its run (`VirtualClock.face`) does: what it tells is virtual time,
a jump moves that, and `trio.lowlevel.current_clock` gives it.  Any other mock clock keeps a time of its own.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import trio

from toolrt import probe
from toolrt.sim._trio_internals._seam import OwnRun
from toolrt.sim._trio_internals._things import TIME

_core: Any = trio._core
_Runner: Any = _core._run.Runner


def mock_clock(own_run: OwnRun) -> list[tuple[Any, str, Any]]:
    """Give what stands in for what a mock clock does: the class, the name there, and the value."""
    mock_class: Any = _core.MockClock
    real_time, real_jump, real_clock = mock_class.current_time, mock_class.jump, _Runner.current_clock

    def shown_by(mock: Any) -> Any:
        seam = own_run.mine()
        return seam.runner.clock if seam is not None and seam.runner.clock.face is mock else None

    def touch(writes: bool) -> None:
        if probe.implied is not None:
            probe.implied(TIME, writes)

    @wraps(real_time)
    def current_time(mock: Any) -> Any:
        clock = shown_by(mock)
        if clock is None:
            return real_time(mock)
        touch(writes=False)
        return clock.now

    @wraps(real_jump)
    def jump(mock: Any, seconds: float) -> None:
        clock = shown_by(mock)
        if clock is None or seconds < 0:
            real_jump(mock, seconds)
            return
        touch(writes=True)
        clock.now += seconds

    @wraps(real_clock)
    def current_clock(runner: Any) -> Any:
        face = getattr(runner.clock, "face", None)
        return real_clock(runner) if face is None else face

    return [
        (mock_class, "current_time", current_time),
        (mock_class, "jump", jump),
        (_Runner, "current_clock", current_clock),
    ]
