"""The import paths that the teaching rooms had before stay valid."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import toolrt
from toolrt.teaching import lab, litmus, play

_MOVED = {"toolrt.lab": (lab,), "toolrt.invariants.litmus": (litmus, play)}


@pytest.mark.parametrize("path", _MOVED)
def test_alias_has_every_name_of_the_rooms(path: str) -> None:
    """By attribute and by ``from ... import *`` alike, each the same object."""
    alias = importlib.import_module(path)
    wanted = {name: getattr(room, name) for room in _MOVED[path] for name in room.__all__}
    assert {name: getattr(alias, name) for name in wanted} == wanted
    namespace: dict[str, object] = {}
    exec(f"from {path} import *", namespace)
    assert wanted.items() <= namespace.items()


@pytest.mark.process
@pytest.mark.parametrize(
    "program",
    [
        "import toolrt; toolrt.lab.SHEET",
        "from toolrt import lab; lab.collect",
        "from toolrt.lab import SHEET, Exercise, Finding, Sheet",
        "import toolrt.lab as lab; lab.schedules_to_bug",
        "from toolrt.invariants import litmus; litmus.LITMUS",
        "from toolrt.invariants.litmus import LITMUS, Count, Game, Litmus, verify",
        "import toolrt.invariants.litmus; toolrt.invariants.litmus.Game",
        "import toolrt; toolrt.teaching",
    ],
)
def test_former_import_works_in_a_fresh_interpreter(program: str) -> None:
    """Each form that documents and notebooks have shown."""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr == ""


@pytest.mark.process
@pytest.mark.parametrize("path", _MOVED)
def test_alias_imports_nothing_before_a_name_is_asked_for(path: str) -> None:
    """So a low room can keep the path of one that moved up."""
    program = f"import sys, {path}; print('toolrt.teaching' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"


def test_alias_names_itself_when_it_has_no_such_name() -> None:
    """The error has the path that was asked."""
    with pytest.raises(AttributeError, match=r"module 'toolrt\.lab' has no attribute 'absent'"):
        toolrt.lab.absent  # noqa: B018
