"""The connection to the cluster that ``--cluster`` names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.sim.exploring._executors import ClusterClient, cluster_at


@contextmanager
def cluster_of(address: str | None, jobs: int = 1) -> Iterator[ClusterClient | None]:
    """Connect for the time of the block; None without an address.

    Raises:
        InputRefused: no scheduler answers there, or `jobs` asks for processes of this machine.
        MissingExtra: the extra ``cluster`` is not installed.
    """
    if address is None:
        yield None
        return
    if jobs != 1:
        raise InputRefused("--cluster", "it does not go with --jobs", "Leave one of the two out.")
    try:
        client = cluster_at(address)
    except DefinitionRefused as error:
        why = f"no scheduler answers at {address:.60}: {error.got}"[:300]
        raise InputRefused(
            "--cluster", why, "Start one with `dask scheduler`, and workers with `dask worker`."
        ) from None
    try:
        yield client
    finally:
        client.close()
