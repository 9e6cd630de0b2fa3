"""Names of hosts, looked up in the network.

Rules.  A host has the name it was given, and "localhost" is whatever host asks.  A name under ``.invalid`` is no
host's.  Any other name is refused where the program has not said which hosts there are, and unknown where it has.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

import trio

from toolrt.errors import NotSimulated
from toolrt.sim._trio_internals._sockets import real_getaddrinfo, real_getnameinfo
from toolrt.sim.programs.network._state import NetworkState, refuse

_NUMERIC = socket.AI_NUMERICHOST


def _unknown(number: int = socket.EAI_NONAME) -> socket.gaierror:
    words = {socket.EAI_NONAME: "Name or service not known", socket.EAI_ADDRFAMILY: "Address family not supported"}
    return socket.gaierror(number, words[number])


def _is_number(host: str) -> bool:
    with suppress(OSError, UnicodeError):
        return bool(real_getaddrinfo(host, None, flags=_NUMERIC))
    return False


def _hosts_named(net: NetworkState, name: str) -> list[str]:
    """Give the addresses of a host, the one of IPv4 first."""
    name = name.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return ["127.0.0.1", "::1"]
    host = net.addresses.hosts.get(name)
    if host is not None:
        return [host.address, host.address6]
    if not net.is_declared and not name.endswith(".invalid"):
        refuse(NotSimulated(f"look up a host ({name})", "say which hosts there are: with sim.Network(hosts=[...])"))
    raise _unknown()


def addresses_of(
    net: NetworkState, host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
) -> list[Any]:
    """Do what `socket.getaddrinfo` does."""
    text = host.decode("ascii") if isinstance(host, bytes) else host
    if text is None or flags & _NUMERIC:
        return real_getaddrinfo(host, port, family, type, proto, flags)
    if _is_number(text):
        return real_getaddrinfo(host, port, family, type, proto, flags | _NUMERIC)
    addresses = _hosts_named(net, text)
    # With `ipv6=True` a program that names no family gets the IPv6 address first.
    if family == socket.AF_INET:
        wanted = addresses[:1]
    elif family == socket.AF_INET6:
        wanted = [f"::ffff:{addresses[0]}"] if flags & socket.AI_V4MAPPED and not net.settings.ipv6 else addresses[1:]
    else:
        wanted = addresses[::-1] if net.settings.ipv6 else addresses[:1]
    # Not AI_ADDRCONFIG: what the machine has is not what the network has.
    flags = flags & ~getattr(socket, "AI_ADDRCONFIG", 0) | _NUMERIC
    found = [entry for each in wanted for entry in real_getaddrinfo(each, port, family, type, proto, flags)]
    if flags & socket.AI_CANONNAME and found:
        found[0] = (*found[0][:3], text, found[0][4])
    return found


def names_of(net: NetworkState, address: Any, flags: int) -> tuple[str, str]:
    """Do what `socket.getnameinfo` does."""
    numeric = real_getnameinfo(address, flags | socket.NI_NUMERICHOST)
    if flags & socket.NI_NUMERICHOST:
        return numeric
    host = address[0]
    if host.startswith("127.") or host == "::1":
        return "localhost", numeric[1]
    for each in net.addresses.hosts.values():
        if host in (each.address, each.address6):
            return each.name, numeric[1]
    if flags & socket.NI_NAMEREQD:
        raise _unknown()
    return numeric


def numeric_address(net: NetworkState, family: int, address: Any) -> Any:
    """Give an address of a socket with a number for its host, as the operating system has it."""
    if family not in (socket.AF_INET, socket.AF_INET6):
        return address
    called = "AF_INET" if family == socket.AF_INET else "AF_INET6"
    if not isinstance(address, tuple):
        raise TypeError(f"{called} address must be tuple, not {type(address).__name__}")
    host, port, *rest = address
    if not 0 <= port <= 65535:
        raise OverflowError("port must be 0-65535.")
    if isinstance(host, bytes | bytearray):
        host = host.decode("ascii")
    if host == "":
        host = "0.0.0.0" if family == socket.AF_INET else "::"
    if host == "<broadcast>":
        host = "255.255.255.255"
    try:
        socket.inet_pton(family, host)
    except OSError:
        host = addresses_of(net, host, port, family)[0][4][0]
    return (host, port) if family == socket.AF_INET else (host, port, *rest, 0, 0)[:4]


class Resolver:
    """Looks names up for Trio, which asks in no thread then."""

    async def getaddrinfo(
        self, host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[Any]:
        """Give the addresses of a name.

        Checkpoint: always, before.
        """
        await trio.lowlevel.checkpoint()
        # The name in the module: a program may have put one of its own there.
        return socket.getaddrinfo(host, port, family, type, proto, flags)

    async def getnameinfo(self, sockaddr: Any, flags: int) -> tuple[str, str]:
        """Give the name of an address.

        Checkpoint: always, before.
        """
        await trio.lowlevel.checkpoint()
        return socket.getnameinfo(sockaddr, flags)
