"""Real processes: a program and all that it starts, of which nothing is left."""

from toolrt.processes._supervised import Halted, Supervised, drain, program_at

__all__ = ["Halted", "Supervised", "drain", "program_at"]
