"""Real files and sockets, where a program leaves them real.

Its parts, from the ground up: `_polls` (what the operating system is asked), `_opened` (one open file or socket),
`_waits` (a wait for one, which is an actor), `_all` (all of an execution), and `_installed` (what of Trio is replaced).
"""
