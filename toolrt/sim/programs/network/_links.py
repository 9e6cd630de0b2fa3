"""Hosts, and when what is sent between them arrives.

Rules.  What is sent arrives in the same step where there is no latency.  Where there is some, it arrives when virtual
time gets there; a deadline that Trio has stands for the earliest arrival, so that time moves to it like to any other.
Two things sent at one time arrive in the order they were sent in.  What is sent while two hosts are parted waits until
they are joined again, and then takes its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any

from toolrt import probe
from toolrt.probe import Resource
from toolrt.sim._trio_internals._sockets import Arrivals, SocketRun


def touch(resource: Resource, write: bool) -> None:
    """Report that the running step read or wrote `resource`."""
    if probe.sink is not None:
        probe.sink.access(resource, write)


class Host:
    """One machine: its name, its addresses, and what is bound to its ports."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.address = f"10.0.{number >> 8}.{number & 255}"
        self.address6 = f"fd00::{number:x}"
        #: The sockets bound to a port, by protocol and port.
        self.bound: dict[tuple[str, int], list[Any]] = {}

    def owns(self, address: str) -> bool:
        """Say whether `address` is one of this machine's, or any of them."""
        return address in (self.address, self.address6, "::1", "0.0.0.0", "::") or address.startswith("127.")


class Links:
    """What lies between the hosts of one execution."""

    def __init__(self, run: SocketRun, latency: Callable[[str, str], float]) -> None:
        #: The Trio run it happens in.
        self.run = run
        self._latency = latency
        self._timer = Arrivals(run, self.arrive, self.arriving_at)
        self._sent = 0
        # When, in which order, what it changes, and how.
        self._underway: list[tuple[float, int, Resource, Callable[[], None]]] = []
        # What waits for two hosts to be joined: who sent it, to whom, and the rest.
        self._held: dict[frozenset[str], list[tuple[Host, Host, Resource, Callable[[], None], float]]] = {}
        #: True once the execution is over: nothing arrives any more.
        self.over = False

    def send(
        self, source: Host, target: Host, changes: Resource, arrive: Callable[[], None], delay: float = 0.0, *,
        may_be_lost: bool = False, not_before: float = 0.0,
    ) -> float:  # fmt: skip
        """Have `arrive` called, which changes a resource, once what was sent has got there.

        Returns:
            When that will be, in virtual seconds.
        """
        pair = frozenset((source.name, target.name))
        if source is not target:
            touch(("link", *sorted(pair)), False)
        if pair in self._held:
            if not may_be_lost:
                self._held[pair].append((source, target, changes, arrive, not_before))
            return 0.0
        delay += 0.0 if source is target else self._latency(source.name, target.name)
        if delay <= 0 and not_before <= 0:
            arrive()
            return 0.0
        now = self.run.now()
        when = max(now + delay, not_before)
        if when <= now:
            arrive()
            return 0.0
        self._sent += 1
        heappush(self._underway, (when, self._sent, changes, arrive))
        self._timer.register(self._underway[0][0])
        return when

    def part(self, first: str, second: str) -> None:
        """Let nothing through between two hosts."""
        pair = frozenset((first, second))
        touch(("link", *sorted(pair)), True)
        self._held.setdefault(pair, [])

    def join(self, first: str, second: str) -> None:
        """Let everything through again, and what was held back first."""
        pair = frozenset((first, second))
        touch(("link", *sorted(pair)), True)
        for source, target, changes, arrive, not_before in self._held.pop(pair, []):
            touch(changes, True)
            self.send(source, target, changes, arrive, not_before=not_before)

    def join_after(self, seconds: float, first: str, second: str) -> None:
        """Join two hosts again when so much virtual time has passed."""
        self._sent += 1
        when = self.run.now() + seconds
        name = ("link", *sorted((first, second)))
        heappush(self._underway, (when, self._sent, name, lambda: self.join(first, second)))
        self._timer.register(self._underway[0][0])

    def arrive(self, now: float) -> None:
        """Let everything arrive that is due."""
        underway = self._underway
        # Between two steps: the moment is no step's, so nothing is reported.
        sink, probe.sink = probe.sink, None
        try:
            while underway and underway[0][0] <= now and not self.over:
                heappop(underway)[3]()
        finally:
            probe.sink = sink
        if underway and not self.over:
            self._timer.register(underway[0][0])

    def arriving_at(self, when: float) -> Iterator[Resource]:
        """Give what changes when time gets to `when`."""
        return (changes for due, _, changes, _ in sorted(self._underway, key=_by_time) if due <= when)


def _by_time(entry: tuple[float, int, Resource, Callable[[], None]]) -> tuple[float, int]:
    return entry[:2]
