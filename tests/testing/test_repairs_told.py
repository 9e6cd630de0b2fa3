"""``pytest --explore-repair`` says of each failure what would mend it."""

from __future__ import annotations

import pytest

from tests.testing.conftest import SELL, Inner

_SUITE = (
    """
import pytest
import trio

"""
    + SELL
    + """

@pytest.mark.explore(strategy="dpor")
async def test_shop():
    stock, sold = {"tea": 1}, []
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(sell, stock, sold)
    assert len(sold) == 1


@pytest.mark.explore(strategy="dpor")
async def test_start():
    said = []

    async def say(word):
        said.append(word)

    async with trio.open_nursery() as nursery:
        for word in "ab":
            nursery.start_soon(say, word)
    assert said == ["a", "b"]
"""
)


def test_failure_is_told_with_what_would_mend_it(inner: Inner) -> None:
    """The lines are those of the test's file; a kept schedule that fails again is told so, too."""
    for _ in range(2):
        code, output = inner(_SUITE, "--explore-repair", "-k", "test_shop")
        assert code == 1
        assert "What would mend it:" in output
        assert "`async with lock:` round lines 7 to 9 of sell: " in output
        assert "exhaustive(traces=" in output.split("What would mend it:")[1]


def test_no_repair_is_said(inner: Inner) -> None:
    """Where the order in which tasks start decides, no lock does."""
    _, output = inner(_SUITE, "--explore-repair", "-k", "test_start")
    assert "no lock, look, shield or order of its lines" in output.split("What would mend it:")[1]


@pytest.mark.parametrize("arguments", [[], ["--explore=20"]])
def test_nothing_is_asked_unless_it_is_wanted(inner: Inner, arguments: list[str]) -> None:
    """It takes some times as long as the failure took."""
    code, output = inner(_SUITE, *arguments)
    assert code == 1
    assert "What would mend it:" not in output
