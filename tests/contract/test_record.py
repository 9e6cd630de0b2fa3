"""The record of what toolrt does: a sample of it is made anew, and has to be what is kept."""

from __future__ import annotations

import platform

import pytest
import trio

from tests.contract.record import COMMANDS, SEEDS, digests_of, kept

#: Seeds that are run again here; `python -m tests.contract.record` runs all.
_SAMPLE = (0, 3, 4, 6, 17)

_REMEDY = (
    "toolrt answers something else than the record has. If that is meant, say so in the changelog and run "
    "python -m tests.contract.record --write; to see what differs, compare --full of before and after"
)


def test_record_has_every_seed_and_command() -> None:
    """Fifty seeds, three commands each, and the batches differ from each other."""
    seeds = kept()["seeds"]
    assert list(seeds) == [str(seed) for seed in SEEDS]
    assert {tuple(digests) for digests in seeds.values()} == {COMMANDS}
    # A table of laws by mutants counts few executions, so several seeds may give the same one.
    for command, different in (("run", 40), ("explore", 40), ("laws", 5)):
        assert len({digests[command] for digests in seeds.values()}) >= different, command


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.parametrize("seed", _SAMPLE)
def test_record_is_made_again(seed: int) -> None:
    """Each command answers byte for byte what it answered when the record was made, but for times."""
    _compare(seed, "run", "explore")


@pytest.mark.slow
@pytest.mark.seldom
def test_record_of_laws_is_made_again() -> None:
    """So does the table of laws by mutants, which takes longest."""
    _compare(0, "laws")


def _compare(seed: int, *commands: str) -> None:
    record = kept()
    here = {"python": platform.python_version(), "trio": trio.__version__}
    if record["versions"]["trio"] != here["trio"]:
        pytest.skip(f"schedules differ between versions of Trio: the record is of {record['versions']['trio']}")
    assert digests_of(seed, commands) == {name: record["seeds"][str(seed)][name] for name in commands}, _REMEDY
