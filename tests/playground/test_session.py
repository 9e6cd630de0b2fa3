"""What the worker answers, asked on this Python, and the texts that a reader starts from."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import _profile
from toolrt.playground._programs import starting_points
from toolrt.playground._session import PlaygroundSession
from toolrt.teaching.litmus import LITMUS

DOCS = Path(__file__).parents[2] / "docs"

_POINTS = {one.name: one for one in starting_points()}

#: More schedules than this are not run for one program.
_MOST = 150


def _answer(session: PlaygroundSession, **question: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(session.answer(json.dumps(question), lambda told: None))
    return found


@pytest.mark.seldom
def test_programs_of_the_gallery_stand_alone() -> None:
    """More than a hundred do, and each text runs and comes out as its program is stated to."""
    gallery = [one for one in _POINTS.values() if one.group.startswith("litmus")]
    assert len(gallery) > 100
    session = PlaygroundSession()
    for one in gallery if _profile.FULL else gallery[::4]:
        counted = LITMUS[one.name].interleavings
        if counted is None or counted.number > _MOST:
            continue
        settings = {"track": one.track, "order": one.order, "strategy": "schedules"}
        found = _answer(session, kind="explore", source=one.source, **settings)
        assert found.get("verdict") == ("fail" if LITMUS[one.name].wrong else "pass"), (one.name, found)
        assert found["executions"] == counted.number


@pytest.mark.parametrize("name", [one.name for one in _POINTS.values() if one.group == "begin here"])
def test_written_text_shows_what_its_story_says(name: str) -> None:
    """A program fails; a batch ends in one way under every schedule that is tried."""
    one = _POINTS[name]
    if one.kind == "batch":
        found = _answer(PlaygroundSession(), kind="batch", source=one.source)
        assert found["text"].startswith("1 outcome in 200 schedules"), found
        assert [row[0] for row in found["results"]] == ["0", "1", "2", "3"]
    else:
        assert _answer(PlaygroundSession(), kind="explore", source=one.source, track=one.track)["verdict"] == "fail"


def test_edits_without_claims_in_parallel_lanes_lose_one() -> None:
    """What the story of the two edits says: then timing decides."""
    source = _POINTS["two edits of one file"].source
    for mode in ("WRITE", "READ"):
        source = source.replace(f"claims=touches(toolrt.{mode})", "safe=True")
    found = _answer(PlaygroundSession(), kind="batch", source=source, lanes="parallel")
    assert not found["text"].startswith("1 outcome"), found


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ("sim.explore(two)", "PASS: exhaustive"),  # it has a program, and keeps no report
        ("sim.explore(one); report = sim.explore(two)", "2 outcomes, nothing was checked"),
        ("del program; sim.explore(one); sim.explore(two)", "2 outcomes, nothing was checked"),
        ("del program; print(sim.run(two).value)", "It explored nothing."),
    ],
)
def test_text_that_explores_by_itself_shows_its_last_report(more: str, text: str) -> None:
    """Else its program is explored; a text with neither shows what it printed."""
    source = """
from toolrt import sim
async def one(): return 1
async def two(): return sim.choose(2)
async def program(): return 1
def check(execution): return True
"""
    assert _answer(PlaygroundSession(), kind="explore", source=source + more)["text"].startswith(text)


def test_second_text_is_told_with_its_own_lines() -> None:
    """Nothing of what was learned of the first text's lines is told of the second."""
    session, source = PlaygroundSession(), _POINTS["lost update"].source
    assert "counter.get()" in _answer(session, kind="explore", source=source)["explanation"]
    second = _answer(session, kind="explore", source=source.replace("counter", "apples"))["explanation"]
    assert "apples.get()" in second
    assert "counter" not in second
    assert _answer(session, kind="repairs", source=source)["repairs"][0]["verdict"] == "pass"


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("name", "kinds"),
    [("two forks", {"Atomic", "LockOrder"}), ("stolen_wakeup", {"Before", "Again"}), ("cleanup", {"Shielded"})],
)
def test_repair_is_a_world_that_a_link_can_hold(name: str, kinds: set[str]) -> None:
    """Each repair, sent back as JSON to another session, gives its verdict and its outcomes again."""
    source = _POINTS[name].source
    session = PlaygroundSession()
    _answer(session, kind="explore", source=source)
    repairs = _answer(session, kind="repairs", source=source)["repairs"]
    assert {one["given"][0]["kind"] for one in repairs} == kinds
    for one in repairs:
        again = _answer(PlaygroundSession(), kind="explore", source=source, given=one["given"])
        assert (again["text"], again["outcomes"]) == (one["text"], one["outcomes"])


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = 1\ndef program(:", "line 2\n    def program(:\n                ^\nSyntaxError: invalid syntax"),
        (
            "import no_such_thing",
            "No module named 'no_such_thing'\nThe page has Python's standard library, Trio and toolrt",
        ),
        ("import trio\n1 / 0", "ZeroDivisionError: division by zero\nline 2, in <module>"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "there is no program: write `async def program():`"),
        ("async def main(): ...", "there is no program: write `async def program():`; the text has main"),
    ],
)
def test_text_that_is_no_program_is_an_answer(source: str, told: str) -> None:
    """It says what is wrong, and where."""
    assert told in _answer(PlaygroundSession(), kind="explore", source=source)["error"]


def test_schedule_of_another_program_is_refused_in_words() -> None:
    """A link's schedule that does not fit its program diverges, and says so."""
    source = _POINTS["two forks"].source
    found = _answer(PlaygroundSession(), kind="replay", source=source, schedule="main main.7 main")
    assert "main.7" in found["error"]


_TRIED = runpy.run_path(str(DOCS / "_site" / "try_it.py"))["examples"]

#: The pages whose every example can be tried and fails: there is something to see.
_SEEN = {"index.md", "how-to/mend-a-failure.md", "how-to/playground.md", "how-to/track-plain-python.md"}


def _examples() -> Iterator[tuple[str, str]]:
    for page in sorted(DOCS.rglob("*.md")):
        for source in _TRIED(page.read_text(encoding="utf-8")):
            yield page.relative_to(DOCS).as_posix(), source


def test_pages_of_the_explorer_offer_what_can_be_tried() -> None:
    """Forty examples and more, on the pages about searches, orders, networks, processes, repairs and histories."""
    names = [name for name, _ in _examples()]
    assert len(names) > 40
    assert {"tutorial/01-first-batch.md", "explanation/simulator.md", "explanation/network.md", *_SEEN} <= set(names)


@pytest.mark.drawn(3)
@pytest.mark.parametrize(
    ("name", "source"),
    [one for number, one in enumerate(_examples()) if _profile.FULL or one[0] in _SEEN or number % 8 == 0],
)
def test_example_of_a_page_can_be_tried(
    name: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a page offers to be tried is explored as the link has it."""
    monkeypatch.chdir(tmp_path)  # some save a page
    told = _answer(PlaygroundSession(), kind="explore", source=source)
    assert told.get("verdict") in ({"fail"} if name in _SEEN else {"pass", "fail"}), told
