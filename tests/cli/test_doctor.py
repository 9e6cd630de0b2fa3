"""What is installed and what works here; and the scripts for shells."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from toolrt.cli._app import _COMMANDS
from toolrt.cli.commands import _doctor


def test_doctor_tells_what_works(toolrt: Command) -> None:
    """Each probe runs, and the text and the JSON say the same."""
    ended = toolrt("doctor", "--json")
    assert ended.code == 0
    found = json.loads(ended.out)
    assert found["simulator"] == dict.fromkeys(_doctor.PROBES)
    assert {"toolrt", "trio", "attrs", "python", "system"} == set(found["versions"])
    text = toolrt("doctor").out
    assert all(name in text for name in (*found["simulator"], *(extra["name"] for extra in found["extras"])))


def test_doctor_says_what_does_not_work(toolrt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("no clock here")

    monkeypatch.setitem(_doctor.PROBES, "the clock", broken)
    ended = toolrt("doctor")
    assert ended.code == 1
    assert "NO: RuntimeError: no clock here" in ended.out


def test_each_extra_is_told_of() -> None:
    text = Path(__file__).parents[2].joinpath("pyproject.toml").read_text(encoding="utf-8")
    extras = {name.replace("-", "_") for name in tomllib.loads(text)["project"]["optional-dependencies"]}
    assert extras - {"dev", "docs"} == set(_doctor.EXTRAS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(toolrt: Command, shell: str) -> None:
    ended = toolrt("completion", shell)
    assert ended.code == 0
    assert all(name in ended.out for name in _COMMANDS)
    assert "workspace" in ended.out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=ended.out, text=True, check=True)
