"""Explores a program by many executions: the search, its workers and checkpoints, and the report."""
