"""The public names and signatures change only on purpose: they are compared with a text that is reviewed."""

from __future__ import annotations

import difflib
import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("griffe", reason="it is not installed: pip install griffelib")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """The program that writes the text."""
    return runpy.run_path(str(ROOT / ".ci" / "public_names.py"), run_name="public_names")


def test_public_names_are_as_the_text_has_them(script: dict[str, Any]) -> None:
    """A difference is shown; who means it renews the text and tells of it in docs/changes/."""
    told = script["SNAPSHOT"].read_text(encoding="utf-8").splitlines()
    difference = list(
        difflib.unified_diff(told, script["text"]().splitlines(), "public_names.txt", "now", "", "", 2, "")
    )
    assert not difference, "\n".join(
        [
            *difference,
            "",
            "Meant? Renew the text: python .ci/public_names.py --write",
            "and add a file to docs/changes/.",
        ]
    )


def test_every_name_of_the_package_is_in_the_text(script: dict[str, Any]) -> None:
    """What `toolrt.__all__` has is found without importing it, with its members."""
    import toolrt

    top = script["text"]().split("\n\n")[1]
    named = {line.split("(")[0].split(":")[0].split()[-1] for line in top.splitlines() if line[4:5] != " "}
    assert set(toolrt.__all__) <= named
