"""Makes Trio take tasks in the order that the scheduler decides, and cancel them in the order of their paths.

Rules.  Trio keeps the tasks and children of a cancel scope in sets, and breaks ties between equal deadlines by
address.  While simulating, both are put in path order first, so what is cancelled first is the same in every process
(RULE 30).

Theory.  Trio has one hook for deterministic scheduling: under Hypothesis it sorts each tick's runnable tasks and
hands them to ``_r.shuffle``.  Our object in the place of ``_r`` empties that list and has the tasks stepped one at a
time, so every order of steps can happen; Trio then finds nothing left to run and goes round its loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import trio
from trio.lowlevel import Task

from toolrt.sim._trio_internals._seam import OwnRun

_run: Any = trio._core._run


class Shuffler:
    """Stands in for Trio's random generator: `shuffle` schedules our run, all else is the real one's."""

    def __init__(self, real: Any, own_run: OwnRun, tick: Callable[[list[Task]], None]) -> None:
        self._real = real
        self._own_run = own_run
        self._tick = tick

    def shuffle(self, batch: list[Task]) -> None:
        seam = self._own_run.seam
        if seam is not None and seam.is_current():
            self._tick(batch)
        else:
            self._real.shuffle(batch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Ordered(dict[Any, None]):
    """Stands in for a set of Trio's whose iteration order would be that of memory addresses."""

    def add(self, item: Any) -> None:
        self[item] = None

    def remove(self, item: Any) -> None:
        del self[item]

    def discard(self, item: Any) -> None:
        self.pop(item, None)


def recalculate_in_path_order(own_run: OwnRun) -> Callable[[Any], None]:
    real = _run.CancelStatus.recalculate

    @wraps(real)
    def recalculate(status: Any) -> None:
        if status._tasks or status._children:
            is_cancelled = status._scope._cancel_called or status.parent_cancellation_is_visible_to_us
            # Trio walks the tree only where this changes; each task that ends cancels its nursery again.
            if is_cancelled != status.effectively_cancelled and (seam := own_run.mine()) is not None:
                _sort_tree(status, seam.key_of)
        real(status)

    return recalculate


def _sort_tree(root: Any, key_of: Callable[[Task], tuple[int, ...]]) -> tuple[int, ...]:
    """Sort the tasks and children of every status at or below `root`; give the lowest path among its tasks."""
    tree = [root]
    for status in tree:
        tree.extend(status._children)
    lowest: dict[Any, tuple[int, ...]] = {}
    for status in reversed(tree):
        tasks = sorted(status._tasks, key=key_of)
        # Trio takes the last child first, so the lowest path goes last.
        children = sorted(status._children, key=lowest.__getitem__, reverse=True)
        status._tasks = _Ordered.fromkeys(tasks)
        status._children = _Ordered.fromkeys(children)
        keys = [lowest[child] for child in children]
        if tasks:
            keys.append(key_of(tasks[0]))
        lowest[status] = min(keys, default=())
    return lowest[root]


def expire_in_path_order(own_run: OwnRun) -> Callable[[Any, float], bool]:
    real = _run.Deadlines.expire

    @wraps(real)
    def expire(deadlines: Any, now: float) -> bool:
        heap = deadlines._heap
        if heap and heap[0][0] <= now and (seam := own_run.mine()) is not None and seam.runner.deadlines is deadlines:
            if seam.holds_deadlines:
                return False
            due = [entry for entry in heap if entry[0] <= now]
            if len(due) > 1:
                _rank_due(deadlines, due, seam.key_of)
        return bool(real(deadlines, now))

    return expire


def in_path_order(scopes: Iterable[Any], key_of: Callable[[Task], tuple[int, ...]]) -> list[Any]:
    """Sort scopes by the lowest path among their tasks, the outer scope first."""
    order: dict[Any, tuple[tuple[int, ...], int]] = {}
    for scope in scopes:
        status = scope._cancel_status
        if status is None:
            order[scope] = ((), 0)
            continue
        depth, above = 0, status._parent
        while above is not None:
            depth, above = depth + 1, above._parent
        order[scope] = (_sort_tree(status, key_of), depth)
    return sorted(order, key=order.__getitem__)


def _rank_due(deadlines: Any, due: list[Any], key_of: Callable[[Task], tuple[int, ...]]) -> None:
    """Replace the address that breaks a tie between equal deadlines by a rank in path order."""
    scopes = in_path_order((scope for _, _, scope in due), key_of)
    rank = {scope: place for place, scope in enumerate(scopes)}
    heap = [(deadline, rank.get(scope, address), scope) for deadline, address, scope in deadlines._heap]
    # A sorted list is a heap.
    heap.sort(key=lambda entry: entry[:2])
    deadlines._heap[:] = heap
