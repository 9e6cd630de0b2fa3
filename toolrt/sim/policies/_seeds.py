"""Checks seeds, and derives a different one for each execution of a sample."""

from __future__ import annotations

from toolrt.errors import DefinitionRefused

# An odd constant whose multiples are spread over all 64 bits (2**64 divided by the golden ratio): neighbouring
# seeds give samples that share no seed.
_SPREAD = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def checked_seed(what: str, seed: object) -> int:
    """Give the seed.

    Raises:
        DefinitionRefused: it is not an integer.
    """
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise DefinitionRefused(what, "an integer for a seed", seed)
    return seed


def seed_of(seed: int, index: int) -> int:
    """Give the seed of execution `index` of a sample that starts from `seed`."""
    return ((seed + 1) * _SPREAD + index) & _MASK


def seeds_of(seed: int, count: int) -> list[int]:
    """Give the seeds of the first `count` executions of such a sample."""
    return [seed_of(seed, index) for index in range(count)]


def stream_of(seed: int, index: int) -> int:
    """Give the stream of random numbers for the program of execution `index` of a sample that starts from `seed`."""
    return (seed & 0xFFFF_FFFF) * 1_000_003 + index
