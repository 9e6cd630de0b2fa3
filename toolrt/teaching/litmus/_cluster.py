"""Verifies litmus programs on a cluster: each program is one task there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toolrt.sim.exploring._executors import JobsArgument, workers_of
from toolrt.teaching.litmus._litmus import Litmus
from toolrt.teaching.litmus._verify import MOST, Verified, verify

# Wall seconds between two looks for answers.
_LOOK = 0.5


class _Verifier:
    """Verifies one program after the other, in a worker; the task is how many executions a search may take."""

    def __init__(self, most: int, worker: int, told: Callable[[], int]) -> None:
        self._most = most

    def do(self, order: str) -> tuple[Any, ...]:
        from toolrt.teaching.litmus import LITMUS

        one = verify(LITMUS[order], self._most)
        return one.method, one.executions, one.seen, one.classes, one.problems, one.claim, None


def verified_on(workers: JobsArgument | None, programs: Sequence[Litmus], most: int = MOST) -> Iterator[Verified]:
    """Verify programs of the gallery, and give what came of each in their order.

    Args:
        workers: as `toolrt.sim.explore` takes `jobs`; None: in this process.
        programs: of `LITMUS`.
        most: as `verify` takes it.

    What came of a program on a worker has no failing execution: that stays there.  A program whose workers were lost
    is verified here.
    """
    if workers is None:
        for program in programs:
            yield verify(program, most)
        return
    pool = workers_of(workers, most, 0, _Verifier)
    try:
        left, lent = list(enumerate(programs)), dict[int, int]()
        found: dict[int, Verified] = {}
        for number in range(len(programs)):
            while number not in found:
                for worker in list(pool.idle)[: len(left)]:
                    lent[worker], program = left.pop(0)
                    pool.give(worker, program.name)
                for worker, answer in pool.answers(_LOOK):
                    place = lent.pop(worker)
                    program = programs[place]
                    is_lost = isinstance(answer, str)
                    found[place] = verify(program, most) if is_lost else Verified(program, *answer)
            yield found.pop(number)
    finally:
        pool.close()
