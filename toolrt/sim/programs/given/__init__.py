"""Worlds under a constraint on schedules: what a program would do if some of its lines were one step, or came later.

- `_constraints`: the values that a caller writes.
- `_weaving`: puts them into the code of living functions, and takes them out again.
"""
