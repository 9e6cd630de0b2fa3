"""``pytest --explore-reproduce DIR`` writes each failure as a program that needs Trio alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.testing.conftest import SELL, Inner

pytestmark = pytest.mark.process

_SUITE = (
    """
import pytest
import trio
from toolrt import testing

"""
    + SELL
    + """

async def shop(buyers):
    stock, sold = {"tea": 1}, []
    async with trio.open_nursery() as nursery:
        for _ in range(buyers):
            nursery.start_soon(sell, stock, sold)
    assert len(sold) == 1


@pytest.mark.explore(strategy="dpor")
@pytest.mark.parametrize("buyers", [2])
async def test_shop(buyers):
    await shop(buyers)


@testing.explored(executions=20)
async def test_decorated():
    await shop(2)


class TestShop:
    buyers = 2

    @pytest.mark.explore(strategy="dpor")
    async def test_method(self):
        await shop(self.buyers)


@pytest.fixture
def stock():
    return {"tea": 1}


@pytest.mark.explore(strategy="dpor")
async def test_with_fixture(stock):
    sold = []
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(sell, stock, sold)
    assert len(sold) == 1
"""
)


@pytest.mark.seldom
@pytest.mark.parametrize("name", ["test_shop[2]", "test_decorated", "test_method"])
def test_failure_is_written_as_a_program_of_its_own(name: str, inner: Inner, tmp_path: Path) -> None:
    """It has the test with its arguments, fails without toolrt, and the report says how often it did."""
    code, output = inner(_SUITE, "--explore-reproduce", "alone", "-k", name)
    assert code == 1
    (written,) = (tmp_path / "alone").iterdir()
    assert "On plain Trio it failed in 20 of 20 runs:" in output
    assert str(Path("alone", written.name)) in output
    assert "toolrt" not in written.read_text()
    ended = subprocess.run(
        [sys.executable, "-I", str(written)], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert ended.returncode == 1
    assert "AssertionError" in ended.stderr


def test_what_cannot_be_written_is_said(inner: Inner, tmp_path: Path) -> None:
    """A fixture has no source that could stand in the file."""
    code, output = inner(_SUITE, "--explore-reproduce", "alone", "-k", "test_with_fixture")
    assert code == 1
    assert "No program without toolrt was written: its argument stock is <fixture stock, " in output
    assert not (tmp_path / "alone").exists()


def test_nothing_is_written_unless_it_is_wanted(inner: Inner, tmp_path: Path) -> None:
    """It takes some seconds."""
    before = set(tmp_path.iterdir())
    code, output = inner(_SUITE, "-k", "test_shop")
    assert code == 1
    assert "plain Trio" not in output
    assert not any(path.suffix == ".py" and path.name != "test_it.py" for path in set(tmp_path.iterdir()) - before)
