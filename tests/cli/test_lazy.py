"""What is imported only when it is needed."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import toolrt
from toolrt.cli._app import _COMMANDS


def _imported_by(program: str) -> set[str]:
    """The modules that a fresh interpreter has after `program`."""
    printed = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sorted(sys.modules), file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(printed.stderr.split())


@pytest.mark.process
def test_import_toolrt_imports_no_room() -> None:
    """``import toolrt`` imports neither Trio nor any room; a name imports what it needs."""
    assert not {"trio", "attrs", "toolrt.model", "toolrt.runtime"} & _imported_by("import toolrt")
    after_a_value = _imported_by("import toolrt; toolrt.ToolCall")
    assert "toolrt.model" in after_a_value
    assert "toolrt.workspace" not in after_a_value


def test_every_name_of_the_top_level_is_there() -> None:
    """Each name of ``__all__`` resolves, twice to the same object, and ``dir`` lists it."""
    for name in toolrt.__all__:
        assert getattr(toolrt, name) is getattr(toolrt, name)
    assert {*toolrt.__all__, "sim", "testing"} <= set(dir(toolrt))
    with pytest.raises(AttributeError, match="no attribute 'Absent'"):
        toolrt.Absent  # noqa: B018


@pytest.mark.process
def test_help_imports_no_room() -> None:
    """``toolrt --help`` lists the commands without importing what they run."""
    imported = _imported_by("from toolrt.cli import main\nmain(['--help'])")
    assert not {"trio", "toolrt.model", "toolrt.sim", "toolrt.workspace"} & imported


@pytest.mark.parametrize("command", _COMMANDS)
def test_the_summary_is_the_first_paragraph_of_the_help(command: str) -> None:
    """The list of commands says of each what its own help begins with."""
    module, summary = _COMMANDS[command]
    function = getattr(importlib.import_module(f"toolrt.cli.commands.{module}"), command)
    assert inspect.getdoc(function).split("\n\n")[0].replace("\n", " ").rstrip(".") == summary.rstrip(".")
