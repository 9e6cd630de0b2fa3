"""The disk port, the real disk behind it, and the disk in memory.

`_disk` is the port.  `_real*` carry it out on POSIX, relative to open directories; `_memory*` do the same on a tree of
nodes, where a test injects failures.  `_seal` signs the names and copies that a later start believes.
"""
