"""Who reads private names of Trio, and whether each is looked for before a simulation."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from toolrt import sim
from toolrt.sim import _trio_internals
from toolrt.sim._trio_internals._required import REQUIRED

INTERNALS = Path(_trio_internals.__file__).parent
SIM = Path(sim.__file__).parent

#: The names that the self-test looks for, and the classes it looks for them in.
REQUIRED_NAMES = {name for names in REQUIRED.values() for name in names.split()}
REQUIRED_NAMES |= {path.rpartition(".")[2] for path in REQUIRED if path not in sys.modules}

#: The modules that the others are found by, and Python's own.
KNOWN = {"_core", "_run", "_getframe"}


def _private_names(file: Path) -> Iterator[str]:
    """Each private name that `file` reads of anything but an object of its own classes."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    own = {node for made in ast.walk(tree) if isinstance(made, ast.ClassDef) for node in ast.walk(made)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        if node in own and isinstance(node.value, ast.Name) and node.value.id == "self":
            continue
        yield node.attr


def test_every_private_name_of_trio_is_looked_for() -> None:
    """What the package of Trio's private names reads is in the self-test."""
    read = {name for file in INTERNALS.glob("*.py") for name in _private_names(file)}
    assert "_cancel_status" in read
    assert read - REQUIRED_NAMES - KNOWN == set()


def test_nobody_else_reads_private_names_of_trio() -> None:
    """No other module of the simulator reads one of them."""
    others = [file for file in SIM.rglob("*.py") if INTERNALS not in file.parents]
    assert {name for file in others for name in _private_names(file)} & {*REQUIRED_NAMES, "_core", "_run"} == set()
