"""Replaces parts of Trio while a simulation runs, so that the scheduler decides every step.

Rules.  Everything replaced here acts on the simulation's own run alone, hands all else to what it replaced, and is put
back afterwards: Trio's module globals are shared by every thread.  A step of the program that would leave the
simulation (a thread of its own, a socket, a subprocess, real input or output, a Trio run of its own) is refused.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any

import attrs
import trio
from trio.lowlevel import Task

from toolrt.errors import NotSimulated
from toolrt.sim._trio_internals._decided import FILES, PROCESSES, SOCKETS, Decided
from toolrt.sim._trio_internals._forced_end import where_it_stands
from toolrt.sim._trio_internals._mock_clock import mock_clock
from toolrt.sim._trio_internals._order import Shuffler, expire_in_path_order, recalculate_in_path_order
from toolrt.sim._trio_internals._outside import END, FORK, LOOP, PROCESS, SOCKET, THREAD, refusals
from toolrt.sim._trio_internals._replacements import Replacements
from toolrt.sim._trio_internals._seam import OwnRun, Seam
from toolrt.sim._trio_internals._slim import (
    is_known,
    slim_checkpoint,
    slim_deadline,
    slim_enter,
    slim_recalculate,
    slim_spawn,
)
from toolrt.sim._trio_internals._stand_ins import StandIns

_core: Any = trio._core
_run: Any = _core._run
_socket: Any = sys.modules["trio._socket"]

# Real I/O: each waits for something outside the simulation.  Platforms have different ones.
_IO_WAITS = (
    "wait_readable",
    "wait_writable",
    "wait_kevent",
    "monitor_kevent",
    "wait_overlapped",
    "monitor_completion_key",
    "write_overlapped",
    "readinto_overlapped",
)


@contextmanager
def controlled(tick: Callable[[list[Task]], None], own_run: OwnRun, decided: Decided) -> Iterator[StandIns]:
    """Let `tick` schedule a run of ours inside the block; give the stand-ins that its programs enter.

    Args:
        tick: is given the runnable tasks of each pass of that run's loop.
        own_run: the run under control.
        decided: decides what the program asks of chance and of clocks.
    """

    def note_start(frame: FrameType) -> None:
        if (current := own_run.mine()) is not None:
            current.started[where_it_stands(frame)] += 1

    def refused(
        holder: Any,
        name: str,
        action: str,
        remedy: str,
        stays: Callable[..., bool] | None = None,
    ) -> tuple[Any, str, Any]:
        real = holder.__dict__[name]

        # What refuses in the place of another refusal has its `refuses`, too.
        @wraps(real)
        def refuse(*args: Any, **kwargs: Any) -> Any:
            # Before the run has begun, no step of the program runs.
            seam = None if own_run.seam is None else own_run.in_step()
            if seam is None or (stays is not None and stays(*args, **kwargs)):
                return real(*args, **kwargs)
            refusal = NotSimulated(action, remedy)
            # The program may swallow what is raised here: the execution ends all the same.
            seam.refused(refusal)
            raise refusal

        refuse.__dict__.setdefault("refuses", real)
        return holder, name, refuse

    thread = "use trio.to_thread.run_sync, which is simulated, or call the function directly"
    nested = "await the function itself; a simulation already is its Trio run"
    process = 'start one that sim.Process declares with trio.run_process, or say sim.leave_real("processes")'
    outside = "nothing outside the program is simulated: give it a memory stream or a stand-in"
    files = f'{outside}, or say sim.leave_real("{FILES}")'
    sockets = f'give it a memory stream or a stand-in, or say sim.leave_real("{SOCKETS}")'

    def is_no_socket(_: object, sock: object) -> bool:
        return decided.leaves_real(SOCKETS) or type(sock) is not socket.socket

    def calls_callbacks(_: object, waits_for: object, *__: object) -> bool:
        seam = own_run.seam
        return seam is not None and seam.calls_back_on(waits_for)

    def leaves_processes_real(*_: object, **__: object) -> bool:
        return decided.leaves_real(PROCESSES)

    def leaves_sockets_real(*_: object, **__: object) -> bool:
        return decided.leaves_real(SOCKETS)

    ways: dict[str, tuple[str, Callable[..., bool] | None]] = {
        SOCKET: (outside, leaves_sockets_real),
        THREAD: (thread, None),
        PROCESS: (process, leaves_processes_real),
        FORK: ('use trio.run_process with one that sim.Process declares, or say sim.leave_real("processes")', None),
        END: ("raise SystemExit, which ends the program alone", None),
        LOOP: (outside, None),
    }
    replacements = Replacements()
    had_hypothesis = "hypothesis" in sys.modules
    waits = [name for name in _IO_WAITS if name in _run.TheIOManager.__dict__]
    in_order = recalculate_in_path_order(own_run)
    slim = [
        (_run.Runner, "spawn_impl", slim_spawn(note_start)),
        (_run.CancelScope, "__enter__", slim_enter()),
        (_run.CancelScope, "_might_change_registered_deadline", slim_deadline()),
        (_run.CancelStatus, "recalculate", slim_recalculate(in_order)),
        (_run, "cancel_shielded_checkpoint", slim_checkpoint()),
    ]
    table = [
        (_run, "_r", Shuffler(_run._r, own_run, tick)),
        (_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True),
        (_run.CancelStatus, "recalculate", in_order),
        (_run.Deadlines, "expire", expire_in_path_order(own_run)),
        *(slim if is_known() else ()),
        (_run.EntryQueue, "run_sync_soon", _soon_in_turn(own_run)),
        (_run.Runner, "current_statistics", _statistics_of_the_program(own_run)),
        (signal, "raise_signal", _interrupts_the_program(own_run)),
        refused(threading.Thread, "start", THREAD, thread),
        # Both trio.run and guest mode begin here.
        refused(_run, "setup_runner", "start a Trio run of its own", nested),
        # Made outside the program: a socket of the network in memory does not get here.
        refused(_socket._SocketType, "__init__", "use a socket of the operating system", sockets, is_no_socket),
        *(refused(_run.TheIOManager, name, "wait for real input or output", files, calls_callbacks) for name in waits),
        *mock_clock(own_run),
        *(refused(holder, name, action, *ways[kind]) for holder, name, kind, action in list(refusals())),
    ]
    try:
        replacements.replace_all(table)
        stand_ins = StandIns(own_run)
        with decided.installed(own_run), stand_ins.ready():
            yield stand_ins
    finally:
        replacements.put_back()
        if "hypothesis" in sys.modules and not had_hypothesis:
            # Hypothesis was imported meanwhile and met our stand-ins; it must find the real ones.
            _run._hypothesis_plugin_setup()


def _statistics_of_the_program(own_run: OwnRun) -> Callable[[Any], Any]:
    """Make what counts tasks as a Trio run does that has the program for its main task."""
    real = _run.Runner.current_statistics

    @wraps(real)
    def current_statistics(runner: Any) -> Any:
        statistics, seam = real(runner), own_run.in_step()
        if seam is None:
            return statistics
        # The harness waits for the program; tasks that can run are in no queue of Trio's.  The one that calls callbacks
        # would wait for a socket until the loop looks at it.
        runnable = statistics.tasks_runnable + seam.count_runnable() - bool(seam.callbacks or seam.callbacks_once)
        living = statistics.tasks_living - 1 - seam.count_threads()
        return attrs.evolve(statistics, tasks_living=living, tasks_runnable=runnable)

    return current_statistics


def _soon_in_turn(own_run: OwnRun) -> Callable[..., None]:
    """Make what gives Trio's loop a callback wake the task that calls it at once, where a step of the program does."""
    real = _run.EntryQueue.run_sync_soon

    @wraps(real)
    def run_sync_soon(queue: Any, function: Callable[..., object], *args: Any, idempotent: bool = False) -> None:
        seam = None if queue.done else own_run.in_step()
        if seam is None or seam.runner.entry_queue is not queue:
            real(queue, function, *args, idempotent=idempotent)
            return
        if idempotent:
            queue.idempotent_queue[function, args] = None
        else:
            queue.queue.append((function, args))
        if not seam.call_soon():
            queue.wakeup.wakeup_thread_and_signal_safe()

    return run_sync_soon


def _interrupts_the_program(own_run: OwnRun) -> Callable[[int], None]:
    """Make what has the program's first task get an interrupt that the program itself raises, as Ctrl-C would."""
    real = signal.raise_signal

    @wraps(real)
    def raise_signal(number: int) -> None:
        if number == signal.SIGINT and (seam := own_run.in_step()) is not None:
            seam.interrupt_instead()
        real(number)

    return raise_signal


def outside_run(seam: Seam, call: Callable[[], None]) -> None:
    """Call `call` outside the run: `trio.run` and another simulation work in it as if the run were not there."""
    context = _run.GLOBAL_RUN_CONTEXT.__dict__
    inside = dict(context)
    hooks = sys.get_asyncgen_hooks()
    library = _run.sniffio_library.name
    context.clear()
    sys.set_asyncgen_hooks(*seam.runner.asyncgens.prev_hooks)
    _run.sniffio_library.name = None
    wakeup = signal.set_wakeup_fd(-1) if seam.in_main_thread else -1
    try:
        call()
    finally:
        if seam.in_main_thread:
            signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        _run.sniffio_library.name = library
        sys.set_asyncgen_hooks(*hooks)
        context.clear()
        context.update(inside)
