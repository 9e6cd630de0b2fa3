"""What may go wrong on the way: choices like any other, each so many times in an execution.

Rules.  Choice 0 is that nothing goes wrong.  None is offered that `sim.Network` was not asked for.
Two sockets of one host are never parted.
"""

from __future__ import annotations

from typing import NamedTuple

from toolrt.sim.programs._chances import choose
from toolrt.sim.programs.network._links import Host, Links
from toolrt.sim.programs.network._settings import NetworkSettings


class SendFault(NamedTuple):
    """What happens to something that is sent."""

    resets: bool = False
    loses: bool = False
    delay: float = 0.0


_NONE = SendFault()


class Faults:
    """What may still go wrong in one execution."""

    def __init__(self, settings: NetworkSettings, links: Links) -> None:
        self._settings = settings
        self._links = links
        self._parts = settings.partial
        self._left = {
            "reset": settings.resets,
            "loss": settings.loss,
            "delay": settings.delays,
            "partition": settings.partitions,
        }

    def part_of(self, count: int, ends: tuple[int, ...] | None) -> int:
        """Choose how many of `count` bytes a read or a write moves; `ends`: it may be cut there alone."""
        if not self._parts or count < 2:
            return count
        cuts = tuple(dict.fromkeys((1, count - 1))) if ends is None else ends[:1]
        chosen = choose(1 + len(cuts)) if cuts else 0
        if not chosen:
            return count
        self._parts -= 1
        return cuts[chosen - 1]

    def of_stream(self, source: Host, target: Host) -> SendFault:
        """Choose what happens to bytes of a connection."""
        return self._chosen(source, target, "reset", "delay", "partition")

    def of_datagram(self, source: Host, target: Host) -> SendFault:
        """Choose what happens to a datagram."""
        return self._chosen(source, target, "loss", "delay", "partition")

    def _chosen(self, source: Host, target: Host, *kinds: str) -> SendFault:
        offered = [kind for kind in kinds if self._left[kind] and (kind != "partition" or source is not target)]
        if not offered:
            return _NONE
        chosen = choose(1 + len(offered))
        if not chosen:
            return _NONE
        kind = offered[chosen - 1]
        self._left[kind] -= 1
        if kind == "partition":
            self._links.part(source.name, target.name)
            self._links.join_after(self._settings.partition_seconds, source.name, target.name)
            return _NONE
        return SendFault(kind == "reset", kind == "loss", self._settings.delay if kind == "delay" else 0.0)
