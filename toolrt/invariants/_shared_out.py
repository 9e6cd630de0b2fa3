"""Orders that several processes share: batches to search, samples to draw, programs to verify.

Rules.  Every order is done once, whatever becomes of a worker: one whose workers were lost is done in this process, so
that what breaks there breaks for the caller to see.  Once it is over nothing is begun, and workers get ten wall seconds
to answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from toolrt.sim.exploring._executors import JobsArgument, workers_of
from toolrt.sim.exploring._workers import BenchMaker

# Wall seconds between two looks at the workers, and that they have to answer once it is over.
_LOOK, _LAST_WORDS = 0.1, 10.0


def shared_out(
    orders: list[Any],
    task: Any,
    bench: BenchMaker,
    jobs: JobsArgument,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Any, Any]]:
    """Do the orders, the last one first, and give each with its answer as it comes.

    Args:
        orders: are taken from this list; the caller may add more while it takes the answers.
        task: what every order is of.
        bench: makes what does an order, from the task, a worker's number, and a function that reads its word.
        jobs: how many processes share them, as `toolrt.sim.explore` takes it; 1: this one alone.
        is_over: whether nothing more is to be begun.
    """
    if jobs != 1:
        yield from _by_workers(orders, task, bench, jobs, is_over)
    here = bench(task, 0, is_over)
    while orders and not is_over():
        order = orders.pop()
        yield order, here.do(order)


def _by_workers(
    orders: list[Any], task: Any, bench: BenchMaker, jobs: JobsArgument, is_over: Callable[[], bool]
) -> Iterator[tuple[Any, Any]]:
    """The same by workers alone; what they lost is among the orders again."""
    workers = workers_of(jobs, task, 0, bench)
    lent: dict[int, Any] = {}
    lost: list[Any] = []
    until: float | None = None
    try:
        while True:
            if is_over() and until is None:
                until = time.perf_counter() + _LAST_WORDS
                workers.stop()
            if until is None:
                for worker in list(workers.idle)[: len(orders)]:
                    lent[worker] = orders.pop()
                    workers.give(worker, lent[worker])
            if not lent or (until is not None and time.perf_counter() > until):
                break
            for worker, answer in workers.answers(_LOOK):
                order = lent.pop(worker)
                if isinstance(answer, str):
                    lost.append(order)
                else:
                    yield order, answer
    finally:
        workers.close()
    orders += lost
