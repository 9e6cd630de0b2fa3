"""``toolrt run --allow``, ``--ask`` and ``--deny``."""

import json
from pathlib import Path
from typing import Any

import pytest


def calls(tmp_path: Path, *inputs: dict[str, str]) -> Path:
    recorded = tmp_path / "calls.json"
    recorded.write_text(
        json.dumps([{"call_id": str(n), "name": "write_file", "input": one} for n, one in enumerate(inputs)])
    )
    return recorded


def outcomes(out: str) -> list[str]:
    return [result["outcome"] for result in json.loads(out)]


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two calls: one writes src/a, one writes b."""
    return calls(tmp_path, {"path": "src/a", "content": "1"}, {"path": "b", "content": "2"})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty directory."""
    made = tmp_path / "place"
    made.mkdir()
    return made


def test_deny_denies_what_matches_and_nothing_else(toolrt: Any, two: Path, place: Path) -> None:
    """The other call runs."""
    ended = toolrt("run", two, "--workspace", place, "--deny", "src/**", "--format", "json")
    assert (ended.code, outcomes(ended.out)) == (1, ["denied", "ok"])
    assert not (place / "src").exists()
    assert (place / "b").read_text() == "2"


def test_deny_of_a_tool_speaks_of_that_tool_only(toolrt: Any, two: Path, place: Path) -> None:
    """The name before the colon is a tool's."""
    ended = toolrt("run", two, "--workspace", place, "--deny", "edit_file:**", "--format", "json")
    assert outcomes(ended.out) == ["ok", "ok"]


def test_deny_outranks_allow(toolrt: Any, two: Path, place: Path) -> None:
    """Whatever their order."""
    ended = toolrt("run", two, "--workspace", place, "--allow", "**", "--deny", "b", "--format", "json")
    assert outcomes(ended.out) == ["ok", "denied"]


@pytest.mark.drawn(2)
@pytest.mark.process
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"y\nn\n", ["ok", "denied"]),
        (b"n\ny\n", ["denied", "ok"]),
        (b"what?\ny\nYES\n", ["ok", "ok"]),
        (b"s\ny\n", ["ok", "ok"]),
        (b"y", ["ok", "denied"]),
        (b"", ["denied", "denied"]),
    ],
)
def test_ask_asks_in_order_and_takes_lines_for_answers(
    toolrt: Any, two: Path, place: Path, given: bytes, expected: list[str]
) -> None:
    """A line each; what nobody answers is denied."""
    ended = toolrt.spawned("run", two, "--workspace", place, "--ask", "**", "--format", "json", given=given)
    assert outcomes(ended.out) == expected
    assert "may it touch src/a?" in ended.err


@pytest.mark.seldom
@pytest.mark.process
def test_allow_asks_about_all_else(toolrt: Any, two: Path, place: Path) -> None:
    """Only the other call is asked about."""
    ended = toolrt.spawned("run", two, "--workspace", place, "--allow", "src/**", "--format", "json", given=b"n\n")
    assert outcomes(ended.out) == ["ok", "denied"]
    assert "may it touch b?" in ended.err
    assert "src/a?" not in ended.err


@pytest.mark.seldom
@pytest.mark.process
def test_a_response_on_standard_input_leaves_nobody_to_ask(toolrt: Any, two: Path, place: Path) -> None:
    """The response is not taken for answers."""
    ended = toolrt.spawned(
        "run", "-", "--workspace", place, "--ask", "**", "--format", "json", given=two.read_bytes() + b"\ny\ny\n"
    )
    # What follows the JSON makes the input no JSON.
    assert ended.code == 2
    ended = toolrt.spawned("run", "-", "--workspace", place, "--ask", "**", "--format", "json", given=two.read_bytes())
    assert outcomes(ended.out) == ["denied", "denied"]


@pytest.mark.parametrize("pattern", ["/etc/**", "", ":", ":a", "../a", "a/"])
def test_a_pattern_that_cannot_be_meant_is_refused(toolrt: Any, two: Path, place: Path, pattern: str) -> None:
    """Nothing is run."""
    ended = toolrt("run", two, "--workspace", place, "--deny", pattern)
    assert (ended.code, list(place.iterdir())) == (2, [])
    assert "--deny" in ended.err
    assert "Traceback" not in ended.err
