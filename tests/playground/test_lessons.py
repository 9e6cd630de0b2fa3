"""Lessons: the notebooks' own cells, run as the page runs them; guesses come before results; exercises grade."""

from __future__ import annotations

import html
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import _profile
from tests.teaching import _right_answers, _wrong_programs, test_notebook_exercises
from toolrt.playground._lessons import Lesson, lessons
from toolrt.playground._session import PlaygroundSession
from toolrt.teaching.lab import NOTEBOOK_EXERCISES, SHEET

_ROOT = Path(__file__).parents[2]
_LESSONS = {one.number: one for one in lessons()}

_RUN = list(_LESSONS) if _profile.FULL else ["03"]


def _cells(lesson: Lesson) -> list[str]:
    return [html.unescape(found) for found in re.findall('<pre class="cell">(.*?)</pre>', lesson.body, re.DOTALL)]


def _run(session: PlaygroundSession, source: str, **more: Any) -> dict[str, Any]:
    asked = {"kind": "cell", "source": source, "begins": False, "guess": None, "first": None} | more
    found: dict[str, Any] = json.loads(session.answer(json.dumps(asked), len))
    return found


@pytest.mark.seldom
@pytest.mark.parametrize("number", _RUN)
def test_each_cell_of_a_lesson_runs(number: str) -> None:
    """None goes wrong; each lesson asks for a guess, and ends with an exercise that has no answer yet."""
    session = PlaygroundSession()
    cells = _cells(_LESSONS[number])
    came = [_run(session, source, begins=at == 0) for at, source in enumerate(cells)]
    assert [one["error"] for one in came if "error" in one] == []
    asking = [one for one in came if "question" in one]
    assert asking
    assert all(one.keys() == {"printed", "question"} for one in asking)
    assert came[-1]["status"] == "UNANSWERED"


def test_six_notebooks_are_lessons() -> None:
    """A wheel has them; links lead to other lessons, or nowhere; the three whose sliders are moved are among them."""
    built = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert all(to == f"toolrt/playground/{which}" for which, to in built["force-include"].items())
    assert [which[len("notebooks/") :][:2] for which in built["force-include"]] == list(_LESSONS)
    assert len(_LESSONS) == 6
    assert {number for number, one in _LESSONS.items() if "axes=" in one.body} == {"03", "06", "11"}
    led = {to for one in _LESSONS.values() for to in re.findall('href="([^"]*)"', one.body)}
    assert led <= {one.page for one in _LESSONS.values()}


def test_exercises_of_lessons_are_graded_without_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has no room of testing: right answers are right all the same."""
    monkeypatch.setitem(sys.modules, "toolrt.testing", None)
    known = {**SHEET, **NOTEBOOK_EXERCISES}
    right = {**_right_answers.RIGHT, **test_notebook_exercises.RIGHT}
    for number in _LESSONS if _profile.FULL else ["04"]:
        names = re.findall(r'\["(\w+)"\]\.grade\(', html.unescape(_LESSONS[number].body))
        assert names, number
        for name in names:
            assert str(known[name].grade(right[name])).startswith(f"{name}: right")


def test_guess_is_compared_beside_the_first_one() -> None:
    """What came is told with the guess; the first one may be of an earlier day."""
    session = PlaygroundSession()
    asks = "from toolrt.teaching import lab\nlab.Prediction('How many lanes?', None, 4)"
    assert "4" not in json.dumps(_run(session, asks))
    first = _run(session, asks, guess="3", first="3")
    assert (first["text"], first["right"]) == ("You said 3. It came out as 4.", False)
    again = _run(PlaygroundSession(), asks, guess="4", first="3")
    assert (again["text"], again["right"]) == ("You said 4, and so it came. Your first guess was 3.", True)


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (_right_answers.add, "RIGHT"),
        (_wrong_programs.add_lets_go_to_think, "WRONG"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_lock_that_is_not_held_while_thinking_is_refused(answer: Callable[..., Any], status: str) -> None:
    """The lesson's exercise explores the reader's code, and shows an execution that goes wrong."""
    source = _cells(_LESSONS["01"])[-1]
    template = source[source.index("async def") : source.index("SHEET[")]
    written = inspect.getsource(answer).replace(answer.__name__, "answer", 1)
    imports = "from typing import Any\nimport trio\n"
    graded = _run(PlaygroundSession(), imports + source.replace(template, f"{written}\n\n"))
    assert (graded["exercise"], graded["status"]) == ("mend_it", status), graded
    assert ("page" in graded) is (status == "WRONG")
