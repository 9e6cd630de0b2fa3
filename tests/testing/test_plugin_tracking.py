"""A marked test whose plain objects are tracked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.testing.conftest import Inner, ended

_TESTS = """
import pytest
import trio

class Box:
    def __init__(self):
        self.n = 0

async def add(box):
    seen = box.n
    await trio.lowlevel.checkpoint()
    box.n = seen + 1

@pytest.mark.explore(strategy="dpor"@TRACK)
async def test_own():
    boxes = Box(), Box()
    async with trio.open_nursery() as nursery:
        for box in boxes:
            nursery.start_soon(add, box)
    assert boxes[0].n == 1

@pytest.mark.explore(strategy="dpor"@TRACK)
async def test_shared():
    box = Box()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(add, box)
        nursery.start_soon(add, box)
    assert box.n == 2
"""


@pytest.mark.process
def test_track_has_plain_objects_seen_and_assertions_explained(inner: Inner) -> None:
    code, output = inner(_TESTS.replace("@TRACK", ", track=True"), "-rA")
    assert code == 1
    assert "PASS: exhaustive(traces=1) with track=test_it" in output, output
    assert "assert 1 == 2" in output
    assert "lost update of box.n: add (main.0) reads box.n = 0" in " ".join(output.split())
    code, output = inner(_TESTS.replace("@TRACK", ", track=False"), "-rA", "--explore-track", "test_it")
    assert "PASS: exhaustive(traces=1) with track=test_it" in output, output


@pytest.mark.process
def test_the_tests_own_module_is_tracked_unless_told_otherwise(inner: Inner) -> None:
    tests = _TESTS.replace("@TRACK", "")
    code, output = inner(tests, "-rA")
    assert "PASS: exhaustive(traces=1) with track=test_it" in output, output
    code, output = inner(tests, "-rA", "--explore-track", "none")
    assert code == 1
    assert "with track" not in output, output


@pytest.mark.process
def test_packages_of_the_rootdir_that_a_test_imports_are_tracked(inner: Inner, tmp_path: Path) -> None:
    """The test of a library imports it: boxes of their own leave one trace, where code that is not seen leaves more."""
    package = tmp_path / "bank"
    package.mkdir()
    (package / "__init__.py").write_text("")
    head, _, tests = _TESTS.replace("@TRACK", "").partition("@pytest")
    (package / "boxes.py").write_text(head)
    code, output = inner(f"import pytest, trio\nfrom bank.boxes import Box, add\n@pytest{tests}", "-rA")
    assert code == 1
    assert "PASS: exhaustive(traces=1) with track=test_it, bank" in output, output


@pytest.mark.process
def test_failure_that_only_tracking_brings_about_is_none(inner: Inner) -> None:
    """The test did not ask to be tracked, and its own code does nothing wrong; with ``track=True`` it did ask."""
    text = """
import gc, inspect, pytest, trio

@pytest.mark.explore(OPTIONS)
async def test_it():
    def function():
        return [1].pop()
    await trio.lowlevel.checkpoint()
    assert inspect.currentframe().f_code is not None
    assert function.__code__.co_names == ("pop",)
"""
    ended(inner(text.replace("OPTIONS", "executions=3")), 0)
    ended(inner(text.replace("OPTIONS", "executions=3, track=True")), 1)


@pytest.mark.process
def test_threads_that_race_at_accesses_fail_the_test(inner: Inner) -> None:
    """Without tracking a thread hands over nowhere within the line, so nothing could show there what was found."""
    text = """
import pytest, trio

@pytest.mark.explore
async def test_it():
    sold = {"tea": 0}
    def sell():
        sold["tea"] += 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, sell)
        nursery.start_soon(trio.to_thread.run_sync, sell)
    assert sold["tea"] == 2
"""
    ended(inner(text), 1, "assert 1 == 2")


@pytest.mark.process
def test_schedule_that_was_found_without_tracking_is_run_again_without_it(inner: Inner) -> None:
    """Tracked, the test has more steps; what it did with them was thrown away, and the schedule has none of them."""
    text = """
import pytest, trio

@pytest.mark.explore
async def test_it():
    def function():
        return [1].pop()
    if function.__code__.co_names != ("pop",):
        await trio.lowlevel.checkpoint()
    order = []
    async def come(name):
        order.append(name)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(come, "a")
        nursery.start_soon(come, "b")
    assert order == ["a", "b"]
"""
    _, output = inner(text)
    again = re.search("--explore-replay '(.*)'", output)
    assert again is not None, output
    ended(inner(text, "--explore-replay", again[1]), 1, "assert ['b', 'a'] == ['a', 'b']")


@pytest.mark.process
def test_doubt_that_only_tracking_brings_about_is_none(inner: Inner) -> None:
    """The test does the same twice where its code is its own."""
    text = """
import itertools, trio

count = itertools.count()

async def test_it():
    def function():
        return [1].pop()
    if function.__code__.co_names != ("pop",) and next(count) % 2:
        await trio.lowlevel.checkpoint()
"""
    ended(inner(text, "--explore=3"), 0, "explored          1")
