"""What a network is like; `sim.Network` says what each of it means."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from toolrt.errors import DefinitionRefused


class NetworkSettings:
    """What a network is like, checked."""

    def __init__(
        self,
        hosts: Iterable[str] = ("localhost",),
        *,
        latency: float | Callable[[str, str], float] = 0.0,
        buffer: int = 65_536,
        ipv6: bool = False,
        partial: int = 0,
        loss: int = 0,
        delays: int = 0,
        delay: float = 1.0,
        resets: int = 0,
        partitions: int = 0,
        partition_seconds: float = 60.0,
    ) -> None:
        names = hosts if isinstance(hosts, str) else tuple(hosts)
        if (
            isinstance(names, str)
            or not names
            or not all(isinstance(name, str) and name and name == name.lower() for name in names)
            or len(set(names)) < len(names)
        ):
            raise DefinitionRefused("Network(hosts)", "different names in lower case, one or more", hosts)
        for what, number in (
            ("partial", partial),
            ("loss", loss),
            ("delays", delays),
            ("resets", resets),
            ("partitions", partitions),
        ):
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                raise DefinitionRefused(f"Network({what})", "a number of times, 0 or more", number)
        if not isinstance(buffer, int) or isinstance(buffer, bool) or buffer < 1:
            raise DefinitionRefused("Network(buffer)", "a number of bytes, 1 or more", buffer)
        for what, seconds in (("delay", delay), ("partition_seconds", partition_seconds)):
            if not _is_time(seconds):
                raise DefinitionRefused(f"Network({what})", "virtual seconds, 0 or more", seconds)
        if not callable(latency) and not _is_time(latency):
            raise DefinitionRefused("Network(latency)", "virtual seconds, 0 or more, or a function", latency)
        self.hosts = names
        self.latency = latency
        self.buffer = buffer
        self.ipv6 = ipv6
        self.partial = partial
        self.loss = loss
        self.delays = delays
        self.delay = delay
        self.resets = resets
        self.partitions = partitions
        self.partition_seconds = partition_seconds

    def latency_between(self, source: str, target: str) -> float:
        """Give how long what is sent from one host to another takes, in virtual seconds.

        Args:
            source: the name of the host that sends.
            target: the name of the other.
        """
        return self.latency(source, target) if callable(self.latency) else self.latency


def _is_time(seconds: object) -> bool:
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0
