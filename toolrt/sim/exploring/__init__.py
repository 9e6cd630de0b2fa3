"""Many executions of one program: the search, its workers and checkpoints, and the report."""
