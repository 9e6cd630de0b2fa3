"""The public names and signatures change only on purpose: they are compared with a text that is reviewed."""

from __future__ import annotations

import difflib
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("griffe", reason="it is not installed: pip install griffelib")

ROOT = Path(__file__).parents[2]

DESIGN = {
    "toolrt": "tool Tool ToolCall ToolOutput ToolResult ToolContext Outcome Runtime Registry Claim READ WRITE "
    "EVERYTHING State run_sync Workspace MemoryDisk Permissions Rule by_claims by_safety serial parallel",
    "toolrt.sim": "explore run replay PASS FAIL INCONCLUSIVE Cell watch tracked Exhaustive DPOR Bounded Random "
    "RandomWalk PCT Portfolio Hybrid Choices eventually always sometimes reachable linearizable serializable Network",
    "toolrt.invariants": "check MUTANTS Mutant Mix",
    "toolrt.testing": "tool_mixes schedules simulate batches check_tool",
    "toolrt.view": "text svg",
    "toolrt.aio": "run open_batch tool CallOrder",
}


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """The program that writes the text."""
    return runpy.run_path(str(ROOT / ".ci" / "public_names.py"), run_name="public_names")


def test_public_names_are_as_the_text_has_them(script: dict[str, Any]) -> None:
    """A difference is shown; a change that is meant renews the text."""
    told = script["SNAPSHOT"].read_text(encoding="utf-8").splitlines()
    difference = list(
        difflib.unified_diff(told, script["text"]().splitlines(), "public_names.txt", "now", "", "", 2, "")
    )
    assert not difference, "\n".join(
        [
            *difference,
            "",
            "Meant? Renew the text: python .ci/public_names.py --write",
        ]
    )


def test_pages_of_names_say_what_each_name_is(script: dict[str, Any]) -> None:
    """In the checkout too, where no site fills them in."""
    for path, text in script["pages"]().items():
        assert path.read_text(encoding="utf-8") == text, "Renew the pages: python .ci/public_names.py --write"
        assert re.search(r"^\| `\w+` \| \S.* \|$", text, re.MULTILINE), path


def test_what_is_promised_is_about_two_hundred_names(script: dict[str, Any]) -> None:
    """A reader oversees so many names and no more: who adds one takes one away, or says why the limit rises.

    It was 230 before `Change`, `Journal` and `JournalRefused`, which a crash-safe program writes.
    """
    names = [f"{room}.{name}" for room, names in script["PROMISED"].items() for name in names.split()]
    assert len(names) == len(set(names)) <= 233


def test_names_of_the_design_are_promised(script: dict[str, Any]) -> None:
    """What the design says stays public, whatever else becomes internal."""
    for room, names in DESIGN.items():
        assert set(names.split()) <= set(script["PROMISED"][room].split())
