"""The kill test in short: some processes are killed; ``python -m tests.kill`` kills hundreds."""

from __future__ import annotations

import pytest

from tests import kill
from tests._profile import FULL


@pytest.mark.process
def test_killed_processes_lose_nothing_and_do_nothing_twice() -> None:
    """Killed over wall time and at commits, also while the batch is resumed."""
    tally = kill.run(200 if FULL else 5, seed=3)
    assert (tally.lost, tally.twice, tally.wrong) == (0, 0, [])
