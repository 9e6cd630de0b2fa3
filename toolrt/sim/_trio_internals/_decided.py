"""Random numbers and clocks of the standard library, decided by the execution.

Rules.
    1. While a step of the program runs, ``random``, ``secrets``, ``uuid`` and ``os.urandom`` draw from a generator that
       begins anew in every execution, in the stream that the execution is given, and ``time`` and ``datetime`` tell
       virtual time, from an epoch on.
       Elsewhere (checks, the explorer, other threads and runs) they are the real ones.
    2. A draw is a write of the generator, and a look at a clock a read of the time: a reduction keeps their order.
    3. ``time.sleep`` moves virtual time, and blocks the loop: meanwhile nothing runs but a part of one worker thread.
       In a worker thread it blocks that thread alone.
    4. `leave_real` leaves a kind real for the rest of an execution.  Child processes, files and sockets are kinds too.

Limits.  A function in C that was imported from its module beforehand (``from time import time``,
``from random import random``) is not met, nor is code in C that asks the machine itself.  ``random.Random`` with a seed
of the program's own needs nothing.
"""

from __future__ import annotations

import ctypes
import datetime
import functools
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from toolrt import probe
from toolrt.probe import Resource
from toolrt.sim._trio_internals._lent import lent
from toolrt.sim._trio_internals._seam import OwnRun, Seam
from toolrt.sim._trio_internals._things import TIME

#: What an execution can decide, and what it can leave real besides.
RANDOM, CLOCKS, PROCESSES, FILES, SOCKETS = "random", "clocks", "processes", "files", "sockets"

#: What an execution's random numbers are drawn from.
_GENERATOR: Resource = ("random numbers",)

#: Wall clocks begin here: 2001-09-09 01:46:40 UTC.
_EPOCH = 1_000_000_000

_NANOSECONDS = 1_000_000_000

#: As they are outside of a simulation, for rooms that are loaded while a program runs.
real_monotonic, real_sleep = time.monotonic, time.sleep

_hidden: Any = random.__dict__["_inst"]


class Decided:
    """The random numbers and clocks of the executions of one simulation."""

    def __init__(self) -> None:
        self._generator: random.Random | None = None
        # The number of the stream, and whether a program has seeded the generator: then nothing comes from it.
        self._stream = 0
        self._seeded = False
        #: The stream of random numbers that the execution has drawn from; None: it has drawn none.
        self.drawn_from: int | None = None
        self._real: frozenset[str] = frozenset()
        self._seam: Seam | None = None

    def begin(self, stream: int = 0) -> None:
        """Begin another execution, with this stream of random numbers."""
        self._generator, self._stream = None, stream
        self._seeded, self.drawn_from = False, None
        if self._real:
            self._real = frozenset()

    def leave_real(self, kinds: frozenset[str]) -> None:
        """Leave these kinds real until the execution has ended."""
        self._real |= kinds

    def leaves_real(self, kind: str) -> bool:
        """Say whether this kind is left real."""
        return kind in self._real

    @contextmanager
    def installed(self, own_run: OwnRun) -> Iterator[None]:
        """Decide inside the block, in the steps of the program's tasks."""

        def seam_for(kind: str) -> Seam | None:
            return None if kind in self._real else own_run.in_step()

        undo: list[Callable[[], None]] = []

        def replace(holder: Any, name: str, kind: str, decided: Callable[..., Any]) -> None:
            real = getattr(holder, name)
            there = holder.__dict__.get(name, undo)

            @functools.wraps(real)
            def stand_in(*args: Any, **kwargs: Any) -> Any:
                seam = seam_for(kind)
                return real(*args, **kwargs) if seam is None else decided(seam, *args, **kwargs)

            setattr(holder, name, stand_in)
            undo.append(
                functools.partial(delattr, holder, name)
                if there is undo
                else functools.partial(setattr, holder, name, there)
            )

        try:
            self._install_random(replace)
            self._install_clocks(replace)
            undo.append(_install_datetime(seam_for))
            yield
        finally:
            for put_back in reversed(undo):
                put_back()

    def _drawn(self) -> random.Random:
        if probe.implied is not None:
            probe.implied(_GENERATOR, True)
        if self._generator is None:
            self._generator = random.Random(self._stream)
            _hidden.gauss_next = None
        if not self._seeded:
            self.drawn_from = self._stream
        return self._generator

    def _install_random(self, replace: Callable[..., None]) -> None:
        # What is in Python in `random` asks its hidden instance for these; the module has bound methods of the same.
        for holder in (_hidden, random):
            for name in ("random", "getrandbits", "seed", "getstate", "setstate"):
                replace(holder, name, RANDOM, functools.partial(self._draw, name))
        for holder, name in ((os, "urandom"), (random, "_urandom")):
            replace(holder, name, RANDOM, lambda _, count: self._drawn().randbytes(count))
        replace(random.Random, "seed", RANDOM, self._seed)
        if (ids := sys.modules.get("uuid")) is not None and ids.__dict__.get("_generate_time_safe") is not None:
            replace(ids, "_generate_time_safe", RANDOM, self._time_and_node)

    def _draw(self, name: str, _: Seam, *args: Any, **kwargs: Any) -> Any:
        self._seeded |= name == "setstate" or (name == "seed" and (*args, *kwargs.values())[:1] not in ((), (None,)))
        return getattr(self._drawn(), name)(*args, **kwargs)

    def _seed(self, _: Seam, generator: random.Random, a: Any = None, version: int = 2) -> None:
        """Seed a generator of the program's; one without a seed takes one of this execution's."""
        _SEED(generator, self._drawn().getrandbits(128) if a is None else a, version)

    def _time_and_node(self, seam: Seam) -> tuple[bytes, None]:
        """Give a UUID of version 1: the virtual time, then a clock sequence and a node that are drawn."""
        ticks = int(_looked(seam) * 10_000_000) + _EPOCH * 10_000_000 + 0x01B21DD213814000
        low, middle, high = ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 & 0x0FFF | 0x1000
        rest = self._drawn().getrandbits(62) | 1 << 63
        return (low << 96 | middle << 80 | high << 64 | rest).to_bytes(16, "big"), None

    def _install_clocks(self, replace: Callable[..., None]) -> None:
        for name, epoch in (("time", _EPOCH), ("monotonic", 0), ("perf_counter", 0)):
            replace(time, name, CLOCKS, lambda seam, epoch=epoch: epoch + _looked(seam))
            replace(time, f"{name}_ns", CLOCKS, lambda seam, epoch=epoch: int((epoch + _looked(seam)) * _NANOSECONDS))
        for name in ("localtime", "gmtime", "ctime"):
            real = getattr(time, name)
            replace(time, name, CLOCKS, functools.partial(_of_now, real))
        replace(time, "sleep", CLOCKS, _sleep)


_SEED = random.Random.seed


def _looked(seam: Seam) -> float:
    """Give virtual time; the step that asks has looked at it."""
    if probe.implied is not None:
        probe.implied(TIME, False)
    now: float = seam.runner.clock.current_time()
    return now


def _of_now(real: Callable[..., Any], seam: Seam, seconds: float | None = None) -> Any:
    return real(_EPOCH + _looked(seam) if seconds is None else seconds)


def _sleep(seam: Seam, seconds: float) -> None:
    if not isinstance(seconds, int | float) or seconds < 0:
        raise (ValueError if isinstance(seconds, int | float) else TypeError)("sleep length must be non-negative")
    # As the real one tells: who listens for calls that block a loop hears of this one.
    sys.audit("time.sleep", seconds)
    if (holder := lent.here()) is not None:
        holder.sleep(seconds)
        return
    if probe.implied is not None:
        probe.implied(TIME, True)
    seam.runner.clock.now += seconds
    lent.blocks()


def _install_datetime(seam_for: Callable[[str], Seam | None]) -> Callable[[], None]:
    """Replace the methods of the classes in C that ask for the time; give what puts them back."""
    undo: list[Callable[[], None]] = []

    def stand_in(owner: type, name: str, decided: Callable[..., Any]) -> None:
        # No attribute of a class in C can be set: its dict is reached as the collector of garbage does.
        attributes = gc.get_referents(owner.__dict__)[0]
        real = attributes[name]

        def method(cls: Any, *args: Any, **kwargs: Any) -> Any:
            seam = seam_for(CLOCKS)
            asked = real.__get__(None, cls)
            return asked(*args, **kwargs) if seam is None else decided(cls, _EPOCH + _looked(seam), *args, **kwargs)

        def put_back() -> None:
            attributes[name] = real
            ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))

        attributes[name] = classmethod(method)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
        undo.append(put_back)

    stand_in(datetime.datetime, "now", lambda cls, now, tz=None: cls.fromtimestamp(now, tz))
    stand_in(datetime.datetime, "utcnow", lambda cls, now: cls.fromtimestamp(now, datetime.UTC).replace(tzinfo=None))
    stand_in(datetime.date, "today", lambda cls, now: cls.fromtimestamp(now))

    def put_back() -> None:
        for one in reversed(undo):
            one()

    return put_back
