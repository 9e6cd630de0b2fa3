"""The self-test: compares every private name that the simulator uses with the installed Trio.

Rules.  A name that this package reads and Trio does not document is in `REQUIRED`.  It is looked for before every
simulation: a Trio whose internals moved is refused with the list of what moved, never half controlled.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from typing import Any

import trio

from toolrt.errors import UnsupportedTrio

#: For each module or class of Trio its names, separated by spaces.
REQUIRED: dict[str, str] = {
    "trio._core._run": (
        "_r _ALLOW_DETERMINISTIC_SCHEDULING GLOBAL_RUN_CONTEXT CONTEXT_RUN_TB_FRAMES TheIOManager setup_runner "
        "sniffio_library unrolled_run _hypothesis_plugin_setup"
    ),
    "trio._core._run.Runner": (
        "runq tasks deadlines entry_queue asyncgens instruments waiting_for_idle main_task main_task_outcome "
        "ki_pending _locals reschedule task_exited spawn_impl is_guest current_clock current_time current_statistics "
        "wait_all_tasks_blocked"
    ),
    "trio.lowlevel": "in_trio_run in_trio_task",
    "trio.lowlevel.Task": (
        "coro context custom_sleep_data _counter _next_send_fn _next_send _abort_func _cancel_status _schedule_points "
        "_cancel_points _attempt_delivery_of_pending_ki _attempt_delivery_of_any_pending_cancel _parent_nursery "
        "_child_nurseries _activate_cancel_status parent_nursery eventual_parent_nursery child_nurseries "
        "iter_await_frames"
    ),
    "trio._core._run.CancelStatus": (
        "_scope _parent _tasks _children effectively_cancelled parent_cancellation_is_visible_to_us recalculate "
        "effective_deadline abandoned_by_misnesting"
    ),
    "trio.CancelScope": (
        "_cancel_status _registered_deadline _might_change_registered_deadline _deadline _relative_deadline "
        "_has_been_entered cancel_called __attrs_post_init__ __enter__ _close _cancel _cancel_called deadline "
        "relative_deadline is_relative cancelled_caught shield _shield"
    ),
    "trio._core._run.Deadlines": "_heap _active next_deadline expire add remove",
    "trio.Nursery": (
        "_closed _children __init__ _add_exc _child_finished _check_nursery_closed child_tasks _parent_task "
        "_cancel_status"
    ),
    "trio._core._run.EntryQueue": "queue idempotent_queue task",
    "trio._core._run.AsyncGenerators": "alive prev_hooks _finalize_one",
    "trio._core._traps": "CancelShieldedCheckpoint WaitTaskRescheduled PermanentlyDetachCoroutineObject",
    "trio._threads": "_send_message_to_trio PARENT_TASK_DATA",
    "trio.lowlevel.TrioToken": "_reentry_queue run_sync_soon",
    "trio._socket": "_SocketType _resolver set_custom_hostname_resolver",
    "trio.socket": "set_custom_hostname_resolver",
    "trio._socket._SocketType": (
        "__init__ _nonblocking_helper _resolve_address_nocp bind connect is_readable _sock _did_shutdown_SHUT_WR"
    ),
    "trio._subprocess": "create_pipe_from_child_output create_pipe_to_child_stdin os trio wait_child_exiting",
    "trio._core._thread_cache.ThreadCache": "start_thread_soon",
    "trio.Event": "__init__ set wait is_set statistics _flag",
    "trio._sync._LockImpl": "__init__ acquire_nowait release locked statistics _lot",
    "trio.Condition": "__init__ statistics _lock",
    "trio.Semaphore": "__init__ acquire_nowait release value statistics _value _lot",
    "trio._util.ConflictDetector": "__init__ __enter__ __exit__",
    "trio.CapacityLimiter": (
        "__init__ acquire_on_behalf_of_nowait release_on_behalf_of total_tokens borrowed_tokens available_tokens "
        "statistics _borrowers _lot"
    ),
    "trio._core._parking_lot": "GLOBAL_PARKING_LOT_BREAKER",
    "trio.lowlevel.ParkingLot": "__init__ park unpark repark break_lot statistics __len__ __bool__ _parked",
    "trio._channel.MemoryChannelState": "__init__",
    "trio.MemorySendChannel": "send_nowait clone close statistics _state",
    "trio.MemoryReceiveChannel": "receive_nowait clone close statistics _state",
    "trio._core._run._TaskStatus": "started _old_nursery _new_nursery",
    "trio.lowlevel.RunVar": "get set reset _name",
    # Loaded by programs that use it.
    "trio.testing._memory_streams._UnboundedByteQueue": "put close close_and_wipe get_nowait get",
    **({"trio._unix_pipes": "_FdHolder os"} if os.name == "posix" else {}),
}


def required() -> Iterator[tuple[str, Any, list[str]]]:
    """Give each module or class that is loaded, by its path, with the names in it; None: this Trio has none."""
    for path, names in REQUIRED.items():
        module, _, name = path.rpartition(".")
        if path in sys.modules:
            yield path, sys.modules[path], names.split()
        elif module in sys.modules:
            yield path, getattr(sys.modules[module], name, None), names.split()


def check_supported() -> None:
    """Hold the installed Trio against every private name used.

    Raises:
        UnsupportedTrio: some are not there; nothing was changed.
    """
    differences = []
    for path, holder, names in required():
        if holder is None:
            differences.append(f"{path} is gone")
            continue
        # A plain class sets its attributes in __init__.
        made = getattr(inspect.unwrap(getattr(holder, "__init__", object)), "__code__", None)
        set_there = made.co_names if made is not None else ()
        differences += [
            f"{path}.{name} is gone" for name in names if not hasattr(holder, name) and name not in set_there
        ]
    if not differences and not callable(getattr(trio._core._run._r, "shuffle", None)):
        differences.append("trio._core._run._r has no shuffle()")
    if differences:
        raise UnsupportedTrio(trio.__version__, differences)
