"""Worker threads as actors of a simulation.

- `_worker`: one thread, which runs while the task that stands for it steps.
- `_locks`: locks of `threading`, taken where another thread may hold them.
- `_hooks`: what of Trio's threads is replaced while a simulation runs.
"""
