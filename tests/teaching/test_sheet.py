"""The exercise sheet: for each exercise an answer that is right, and wrong ones that are told what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

import toolrt
from tests.teaching._right_answers import RIGHT
from tests.teaching._wrong_answers import SHOWN, TOLD
from toolrt import sim, view
from toolrt.errors import MisuseError
from toolrt.teaching import lab
from toolrt.teaching.lab import SHEET, GradeStatus
from toolrt.teaching.lab._by_program import tried
from toolrt.teaching.litmus import LITMUS

ROOT = Path(__file__).parents[2]

WRONG = [*((*one, True) for one in SHOWN), *((*one, False) for one in TOLD)]


@pytest.mark.drawn(5)
@pytest.mark.parametrize("name", list(SHEET))
def test_right_answer_is_right(name: str) -> None:
    """Every finding is good, and there are some."""
    grade = SHEET[name].grade(RIGHT[name])
    assert grade.right, str(grade)
    assert grade.findings
    assert str(grade).startswith(f"{name}: right, {len(grade.findings)} of {len(grade.findings)}\n")


@pytest.mark.drawn(12)
@pytest.mark.parametrize(
    ("name", "answer", "said", "shown"), WRONG, ids=[f"{name}-{said.lstrip('✗ ')[:24]}" for name, _, said, _ in WRONG]
)
def test_wrong_answer_is_told_what_is_wrong(name: str, answer: Any, said: str, shown: bool) -> None:
    """It is wrong, and the text says why; an execution that shows it can be looked at."""
    grade = SHEET[name].grade(answer)
    assert grade.status is GradeStatus.WRONG
    assert said in str(grade), str(grade)
    assert any(not one.good and one.evidence is not None for one in grade.findings) is shown
    if shown:
        assert isinstance(grade.show(), view.Page)
    else:
        with pytest.raises(MisuseError, match=f"exercise {name}"):
            grade.show()


def test_answer_that_goes_wrong_once_is_told_what_is_wrong() -> None:
    """It keeps something from run to run, so nothing that is tried again shows it; the run that did is the evidence."""
    runs = 0

    async def goes_wrong_once() -> str:
        nonlocal runs
        runs += 1
        await checkpoint()
        return "the second run" if runs == 2 else ""

    finding = tried("it keeps nothing", goes_wrong_once)
    assert not finding.good
    assert "the second run" in str(finding)


def test_every_exercise_has_several_wrong_answers() -> None:
    """So that each is known to see something."""
    counts = {name: sum(name == one for one, *_ in WRONG) for name in SHEET}
    assert min(counts.values()) >= 2, counts


def test_sheet_is_in_the_order_of_weeks() -> None:
    """Fifteen exercises, one for each week of a semester."""
    assert [exercise.week for exercise in SHEET.values()] == list(range(1, 16))
    assert all(SHEET[name].name == name for name in SHEET)


@pytest.mark.parametrize("name", list(SHEET))
def test_template_is_not_an_answer(name: str) -> None:
    """What a student begins with runs, gives `answer`, and is not answered yet: neither right nor wrong."""
    namespace: dict[str, Any] = {"toolrt": toolrt, "trio": trio, "sim": sim}
    exec(SHEET[name].template, namespace)
    for answer in (namespace["answer"], None, ...):
        grade = SHEET[name].grade(answer)
        assert (grade.status, str(grade)) == (GradeStatus.UNANSWERED, f"{name}: not answered yet")
    assert not grade.right


def test_part_that_is_not_written_yet_is_no_answer() -> None:
    """Also where it stands in a function inside, in a class, or in a tool."""

    def outer(workspace: Any) -> Any:
        def inner() -> None:
            raise NotImplementedError

        return inner

    class Halves:
        def done(self) -> int:
            return 1

        def missing(self) -> int:
            raise NotImplementedError

    @toolrt.tool
    async def unwritten(ctx: toolrt.ToolContext) -> str:
        """Not yet."""
        raise NotImplementedError

    for answer in (outer, Halves, unwritten):
        assert SHEET["honest_tool"].grade(answer).status is GradeStatus.UNANSWERED


def test_answer_that_raises_is_told_what_it_raised() -> None:
    """Where nobody expects it, as where it is run."""

    def raises(*anything: Any) -> Any:
        raise KeyError("nobody knows")

    for name in ("in_call_order", "merge", "needle", "honest_tool", "file_law", "gather", "mend_it"):
        grade = SHEET[name].grade(raises)
        assert grade.status is GradeStatus.WRONG
        assert "nobody knows" in str(grade)


def test_runtime_that_never_ends_is_stopped() -> None:
    """A task that spins at a checkpoint is ended by the step limit, and that is told."""

    async def spins(functions: Any) -> Any:
        while True:
            await checkpoint()

    grade = SHEET["gather"].grade(spins)
    assert grade.status is GradeStatus.WRONG
    assert "step" in str(grade)


def test_tasks_name_programs_and_files_that_are_there() -> None:
    """A litmus program or a page that a task sends its reader to exists."""
    text = "\n".join(exercise.task for exercise in SHEET.values())
    names = [part.split('"')[1] for part in text.split("LITMUS[")[1:]]
    pages = [word.strip("()*.,;") for word in text.split() if "docs/" in word]
    assert names
    assert pages
    assert set(names) <= set(LITMUS)
    assert all((ROOT / page).is_file() for page in pages)


def test_summary_counts_what_is_right() -> None:
    """A line for each grade, and how many are right."""
    grades = [SHEET["two_adders"].grade({1, 2}), SHEET["lose_it"].grade()]
    assert lab.summary(*grades) == "✓ two_adders     right\n  lose_it        not answered yet\n1 of 2 right"


def test_exercise_that_is_not_there_names_those_that_are() -> None:
    """A misspelt name is a KeyError, as of any mapping, and is told the names."""
    with pytest.raises(KeyError) as caught:
        SHEET["two_adder"]
    assert caught.value.__notes__[0].startswith("The exercises are: two_adders, lose_it, ")
    assert "two_adder" not in SHEET


def test_exercise_is_shown_in_a_notebook_with_its_week_and_its_task() -> None:
    """As Markdown; the sheet is a list."""
    shown = SHEET["tickets"]._repr_markdown_()
    assert shown.startswith("### Week 13: Tickets (`tickets`)\n\n**Write `run(calls)`")
    assert str(SHEET).splitlines()[0] == "week  1  two_adders     Two add one"


def test_notebook_has_each_task_and_its_template_alone() -> None:
    """The sheet's notebook has every task as it is graded, and a template in place of an answer."""
    document = json.loads((ROOT / "notebooks/10-exercise-sheet.ipynb").read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    text = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "markdown"]
    for exercise in SHEET.values():
        assert f"## Week {exercise.week}: {exercise.title}\n\n{exercise.task}" in text
        (cell,) = [one for one in code if f'SHEET["{exercise.name}"].grade(' in one]
        assert cell.startswith(exercise.template)
