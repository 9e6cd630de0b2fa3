"""Child processes that a script, or a real command, answers for.

Its parts, from the ground up: `_pipes` (what a program and its child have in common), `_child` (one running child),
`_declared` (`sim.Process`), `_real` (a real command under a child's name), and `_installed` (what of Trio is replaced).
"""
