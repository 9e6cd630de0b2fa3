"""``toolrt litmus``: the gallery is listed, one program is shown, all are verified."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from toolrt.cli.commands import _litmus as command
from toolrt.sim.exploring import _reproduction
from toolrt.teaching.litmus import LITMUS


@pytest.fixture
def misstated(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a program of which an outcome is stated that never comes."""
    wrong = attrs.evolve(LITMUS["lost_update_2x1"], wrong={0, 1})
    monkeypatch.setattr(command, "LITMUS", {"lost_update_2x1": wrong, "overdraw": LITMUS["overdraw"]})
    return "lost_update_2x1"


def test_litmus_lists_all(toolrt: Any) -> None:
    """Every program has a line."""
    ended = toolrt("litmus")
    assert ended.code == 0
    listed = [line.split()[0] for line in ended.out.splitlines() if line.startswith("  ")]
    assert listed == list(LITMUS)


def test_litmus_shows_a_program(toolrt: Any) -> None:
    """Its story, its source, its counts, every outcome, and a schedule that goes wrong, step by step."""
    ended = toolrt("litmus", "lost_update_2x1")
    assert ended.code == 0
    for words in (
        "Two tasks add one to a counter",
        "counter.set(seen + 1)",
        "interleavings: 6 (4! / (2! 2!))",
        "classes: 4 (enumerated)",
        "4 x 1   the bug",
        "2 x 2",
        ">2  main.1 add  reads counter = 0",
        'sim.replay(LITMUS["lost_update_2x1"].program, "main main.0 main.1*2 main.0 main")  # from toolrt.teaching',
        "PASS",
    ):
        assert words in ended.out


def test_litmus_shows_a_program_without_a_bug(toolrt: Any) -> None:
    """There is no schedule to show."""
    ended = toolrt("litmus", "store_buffering")
    assert ended.code == 0
    assert "goes wrong:" not in ended.out


@pytest.mark.seldom
def test_litmus_says_how_the_outcomes_of_a_sample_are_known(toolrt: Any) -> None:
    """A program that is not run under every schedule says why its outcomes are all there are."""
    ended = toolrt("litmus", "two_stages_6")
    assert ended.code == 0
    assert "outcomes known by: a reader between two stages of a writer, or not" in ended.out


@pytest.mark.seldom
def test_litmus_verifies_one(toolrt: Any) -> None:
    """One line, and the verdict."""
    ended = toolrt("litmus", "lost_update_3x2", "--verify")
    assert ended.code == 0
    assert "every schedule: 1,680 executions, 5 outcomes, 762 classes" in ended.out
    assert "PASS: all are as stated" in ended.out


def test_litmus_verifies_all(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name every program of the gallery is verified."""
    few = {name: LITMUS[name] for name in ("overdraw", "dining_2", "cleanup")}
    monkeypatch.setattr(command, "LITMUS", few)
    ended = toolrt("litmus", "--verify")
    assert ended.code == 0
    assert [line.split()[:2] for line in ended.out.splitlines()[:3]] == [["ok", name] for name in few]


@pytest.mark.parametrize("arguments", [["--verify"], ["lost_update_2x1", "--verify"], ["lost_update_2x1"]])
def test_litmus_exits_1_when_a_program_is_not_as_stated(toolrt: Any, misstated: str, arguments: list[str]) -> None:
    """An outcome is missing: that is said, and is the exit code."""
    ended = toolrt("litmus", *arguments)
    assert ended.code == 1
    assert "missing outcome 0" in ended.out
    assert "FAIL" in ended.out


def test_litmus_of_another_size_is_sampled(toolrt: Any) -> None:
    """--most says how many schedules are not too many."""
    once_each = toolrt("litmus", "dining_3", "--verify", "--most", 100)
    assert "every class: 37 executions" in once_each.out
    sampled = toolrt("litmus", "dining_3", "--verify", "--most", 30)
    assert "sampled: 1,000 executions" in sampled.out
    assert once_each.code == sampled.code == 0


def test_litmus_is_json(toolrt: Any) -> None:
    """A machine reads the same from standard output."""
    listed = json.loads(toolrt("litmus", "--json").out)
    assert [entry["name"] for entry in listed] == list(LITMUS)
    shown = json.loads(toolrt("litmus", "overdraw", "--json").out)
    assert shown["ok"] is True
    assert shown["programs"][0]["outcomes"] == [
        {"outcome": "-100", "count": 4, "wrong": True},
        {"outcome": "0", "count": 2, "wrong": False},
    ]


def test_litmus_writes_a_site(toolrt: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how many pages there are, which have a part, and where to begin."""
    few = {"shared memory": (LITMUS["lost_update_2x1"], LITMUS["lost_update_3x1"])}
    monkeypatch.setattr(command, "THEMES", few)
    ended = toolrt("litmus", "--site", tmp_path / "site", "--most", 20)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("2 programs, 0.1 MB, in ")
    assert "1 of them has more than 20 schedules: its page has a part of them." in ended.out
    assert f"Open {tmp_path / 'site' / 'index.html'} in a browser." in ended.out
    assert "toolrt.Gallery" in (tmp_path / "site" / "index.html").read_text()


@pytest.mark.seldom
@pytest.mark.process
def test_litmus_writes_the_bug_as_a_program_without_toolrt(
    toolrt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails on plain Trio, and the command says how often it did; what cannot be written changes no exit code."""
    monkeypatch.setattr(_reproduction, "_RUNS", 2)
    ended = toolrt("litmus", "lost_update_2x1", "--reproduce", tmp_path / "lost.py")
    assert (ended.code, "On plain Trio it failed in 2 of 2 runs" in ended.out) == (0, True)
    written = (tmp_path / "lost.py").read_text()
    assert "toolrt" not in written
    alone = subprocess.run([sys.executable, "-c", written], capture_output=True, text=True, timeout=60, check=False)
    assert (alone.returncode, alone.stderr) == (1, "the outcome of the failing schedule\n")
    for name, why in (
        ("check_then_thread", "its schedule has the step 'thread."),
        ("lock_2", "no schedule goes wrong"),
    ):
        ended = toolrt("litmus", name, "--reproduce", tmp_path / "none.py")
        assert (ended.code, f"No program without toolrt was written: {why}" in ended.out) == (0, True)
    assert not (tmp_path / "none.py").exists()


@pytest.mark.parametrize("arguments", [["lock_2"], ["--verify"], ["--json"], ["--play"], ["--html", "a.html"]])
def test_site_is_of_the_whole_gallery(toolrt: Any, tmp_path: Any, arguments: list[str]) -> None:
    """With anything else but --most it is refused, and nothing is written."""
    ended = toolrt("litmus", *arguments, "--site", tmp_path / "site")
    assert (ended.code, ended.out) == (2, "")
    assert "--site" in ended.err
    assert not (tmp_path / "site").exists()


def test_site_replaces_no_other_site(toolrt: Any, tmp_path: Any) -> None:
    """An index.html that is no gallery's stays; a file is no directory."""
    (tmp_path / "index.html").write_text("mine")
    ended = toolrt("litmus", "--site", tmp_path)
    assert ended.code == 2
    assert "no gallery's" in ended.err
    assert (tmp_path / "index.html").read_text() == "mine"
    assert toolrt("litmus", "--site", tmp_path / "index.html").code == 2
