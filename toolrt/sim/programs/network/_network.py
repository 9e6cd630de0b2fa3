"""`sim.Network`: what the network in memory is like, in place of the default one.

Rules.  Each execution that enters it gets a network of its own, with nothing bound and nothing under way.  Outside a
simulation entering it does nothing: the program runs on real sockets.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._host import current_scheduler, enter_stand_in
from toolrt.sim.programs.network._settings import NetworkSettings
from toolrt.sim.programs.network._state import HOST, NETWORKS


class Network(NetworkSettings):
    """Hosts, and what lies between them.  A context manager: sockets made inside the block are in this network.

    Args:
        hosts: their names, one or more.  A task is on the first, unless it runs in a `host` block.
        latency: how long what is sent takes to another host, in virtual seconds; or a function that says so of the
            names of two hosts.
        buffer: how many bytes fit into one direction of a connection, or may wait in a socket of datagrams.
        ipv6: whether names have addresses of IPv6 too, which are then tried first.
        partial: in how many reads and writes of an execution a part of what could be moved may be: one byte, or all
            but one.  With TLS a read may end behind the first record instead.
        loss: how many datagrams of an execution may be lost.
        delays: how many sends of an execution may take `delay` longer.
        delay: how much longer, in virtual seconds.
        resets: how many connections of an execution may be reset, when something is sent.
        partitions: how many times in an execution two hosts may be parted, when something is sent.
        partition_seconds: for how long, in virtual seconds.

    What may happen is a choice like any other, 0 being that it does not.

    Raises:
        DefinitionRefused: an argument is not what it must be.

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> async def program():
        ...     with sim.Network(hosts=["client", "server"], latency=0.5) as network:
        ...         async with trio.open_nursery() as nursery:
        ...             with network.host("server"):
        ...                 async def answer(stream):
        ...                     await stream.send_all(b"hello")
        ...                 await nursery.start(trio.serve_tcp, answer, 80)
        ...             async with await trio.open_tcp_stream("server", 80) as stream:
        ...                 data = await stream.receive_some()
        ...             nursery.cancel_scope.cancel()
        ...     return data, trio.current_time()
        >>> sim.run(program).value
        (b'hello', 1.0)
    """

    def __enter__(self) -> Network:
        if current_scheduler() is not None:
            enter_stand_in("network")
            NETWORKS.enter(self)
        return self

    def __exit__(self, *_: object) -> None:
        NETWORKS.leave(self)

    @contextmanager
    def host(self, name: str) -> Iterator[None]:
        """Let the code in the block, and the tasks it starts, be on the host of this name.

        Raises:
            DefinitionRefused: there is none.
        """
        if name not in self.hosts:
            raise DefinitionRefused("host(name)", f"one of {', '.join(self.hosts)}", name)
        token = HOST.set(name)
        try:
            yield
        finally:
            HOST.reset(token)

    def partition(self, first: str, second: str) -> None:
        """Let nothing through between the hosts `first` and `second` from now on: streams wait, datagrams are lost.

        Checkpoint: never.
        """
        if (state := NETWORKS.of(self)) is not None:
            state.links.part(first, second)

    def heal(self, first: str, second: str) -> None:
        """Let everything through between the hosts `first` and `second` again.

        Checkpoint: never.
        """
        if (state := NETWORKS.of(self)) is not None:
            state.links.join(first, second)
