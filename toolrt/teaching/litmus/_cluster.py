"""Verifies litmus programs on a cluster: each program is one task there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toolrt.invariants._shared_out import shared_out
from toolrt.sim.exploring._executors import JobsArgument
from toolrt.teaching.litmus._litmus import Litmus
from toolrt.teaching.litmus._verify import MOST, Verified, verify


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
    answers = shared_out([program.name for program in reversed(programs)], most, _Verifier, workers)
    found: dict[str, tuple[Any, ...]] = {}
    for program in programs:
        while program.name not in found:
            name, answer = next(answers)
            found[name] = answer
        yield Verified(program, *found.pop(program.name))
