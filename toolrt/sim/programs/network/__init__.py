"""The network in memory under every simulated program.

Its parts, from the ground up: `_links` (hosts, what lies between them, and when things arrive), `_endpoints` (what the
operating system calls a socket), `_pipes`, `_streams` and `_datagrams` (its two kinds), `_addresses` (names, ports and
files), `_sockets` (stands in for `socket.socket`), `_waiting`, `_installed`, and `_network` (`sim.Network`).
"""
