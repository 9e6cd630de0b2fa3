"""What lies between two hosts: delays, partitions, and time that the explorer moves."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import trio

from toolrt import sim

_WORDS = [b"one", b"two"]


async def _datagrams(network: sim.Network) -> list[tuple[bytes, float]]:
    """Send two words to the other host; give what arrived, and when."""
    got: list[tuple[bytes, float]] = []
    with network.host("there"):
        receiver = trio.socket.socket(type=socket.SOCK_DGRAM)
    with receiver, trio.socket.socket(type=socket.SOCK_DGRAM) as sender:
        await receiver.bind(("0.0.0.0", 53))
        for word in _WORDS:
            await sender.sendto(word, ("there", 53))
        with trio.move_on_after(9):
            while len(got) < len(_WORDS):
                got.append((await receiver.recv(10), trio.current_time()))
    return got


async def _stream(network: sim.Network, *, cut: bool = False) -> tuple[bytes, float]:
    """Send two words through a connection; `cut`: the hosts are parted for three seconds between the two."""

    async def hear(stream: trio.SocketStream) -> None:
        got = bytearray()
        while len(got) < len(b"".join(_WORDS)):
            got += await stream.receive_some(1)
        heard.append((bytes(got), trio.current_time()))
        nursery.cancel_scope.cancel()

    heard: list[tuple[bytes, float]] = []
    async with trio.open_nursery() as nursery:
        with network.host("there"):
            await nursery.start(trio.serve_tcp, hear, 80)
        async with await trio.open_tcp_stream("there", 80) as stream:
            await stream.send_all(_WORDS[0])
            if cut:
                network.partition("here", "there")
                await stream.send_all(_WORDS[1])
                await trio.sleep(3)
                network.heal("here", "there")
            else:
                await stream.send_all(_WORDS[1])
            await trio.sleep(100)
    return heard[0]


def test_delayed_datagram_is_overtaken() -> None:
    """One of two may take longer: it is late, and the first then comes after the second."""

    async def program() -> list[tuple[bytes, float]]:
        with sim.Network(["here", "there"], delays=1, delay=2.0) as network:
            return await _datagrams(network)

    in_time, late = ([(b"one", 0.0), (b"two", 0.0)], [(b"two", 0.0), (b"one", 2.0)])
    report = sim.explore(program, sim.Exhaustive(), outcomes=[in_time, late, [(b"one", 0.0), (b"two", 2.0)]])
    assert report.verdict is sim.PASS, report


@pytest.mark.parametrize("delays", [0, 1, 2])
def test_as_many_sends_are_delayed_as_the_network_says(delays: int) -> None:
    """Bytes of one connection stay in order: what comes behind a delayed part is late as well."""

    async def program() -> tuple[bytes, float]:
        with sim.Network(["here", "there"], delays=delays, delay=2.0, latency=0.5) as network:
            return await _stream(network)

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 12))
    # Half a second to get there and back for the connection, half a second for the words.
    assert set(report.outcomes) == ({(b"onetwo", 1.5)} if not delays else {(b"onetwo", 1.5), (b"onetwo", 3.5)})


def test_partition_holds_a_stream_and_heal_lets_it_go() -> None:
    """What is sent while two hosts are parted arrives once they are joined, in order, after the latency."""

    async def program(cut: bool) -> tuple[bytes, float]:
        with sim.Network(["here", "there"], latency=0.5) as network:
            return await _stream(network, cut=cut)

    assert sim.run(lambda: program(False)).value == (b"onetwo", 1.5)
    assert sim.run(lambda: program(True)).value == (b"onetwo", 4.5)


def test_partition_loses_datagrams_until_it_heals() -> None:
    """Datagrams are not held back, and two other hosts are not parted."""

    async def program() -> list[bytes]:
        got: list[bytes] = []
        with sim.Network(["here", "there", "elsewhere"]) as network:
            with network.host("there"):
                receiver = trio.socket.socket(type=socket.SOCK_DGRAM)
            with receiver, trio.socket.socket(type=socket.SOCK_DGRAM) as sender:
                await receiver.bind(("0.0.0.0", 53))
                network.partition("here", "there")
                await sender.sendto(b"lost", ("there", 53))
                network.heal("there", "here")
                network.partition("here", "elsewhere")
                await sender.sendto(b"word", ("there", 53))
                with trio.move_on_after(1):
                    while True:
                        got.append(await receiver.recv(10))
        return got

    assert sim.run(program).value == [b"word"]


def test_partition_keeps_a_connection_from_being_made() -> None:
    """A connection to a host that is cut off is neither made nor refused before the two are joined."""

    async def program() -> list[Any]:
        seen: list[Any] = []
        with sim.Network(["here", "there"]) as network:
            with network.host("there"):
                (listener,) = await trio.open_tcp_listeners(80, host="0.0.0.0")
            network.partition("here", "there")
            for healed in (False, True):
                with trio.move_on_after(5):
                    stream = await trio.open_tcp_stream("there", 80)
                    seen.append(trio.current_time())
                    await stream.aclose()
                if not healed:
                    network.heal("here", "there")
            await listener.aclose()
        return seen

    assert sim.run(program).value == [5.0]


def test_latency_under_an_explored_clock_loses_to_a_timeout() -> None:
    """Time moves to the arrival as to any deadline, and at any moment: an answer in time may be seen too late."""

    async def program() -> bytes | None:
        with sim.Network(["here", "there"], latency=0.5) as network:
            with network.host("there"):
                receiver = trio.socket.socket(type=socket.SOCK_DGRAM)
            with receiver, trio.socket.socket(type=socket.SOCK_DGRAM) as sender:
                await receiver.bind(("0.0.0.0", 53))
                await sender.sendto(b"word", ("there", 53))
                with trio.move_on_after(0.75):
                    for _ in range(2):
                        await trio.lowlevel.checkpoint()
                    return await receiver.recv(10)
        return None

    assert set(sim.explore(program, sim.Exhaustive()).outcomes) == {b"word"}
    report = sim.explore(program, sim.Exhaustive(), clock="explored", clock_moves=2)
    assert set(report.outcomes) == {b"word", None}
    assert report.complete
