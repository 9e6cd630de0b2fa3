"""Exercises, and the grade of an answer.

Rules.
    1. An exercise grades an answer by running it: on the right program, where it must find nothing, and on mutants,
       where it must catch each; or under every schedule, or against what was enumerated.  Texts are never compared.
    2. The mutants are hidden: no notebook has them.  A finding says what the answer does not catch or what goes wrong,
       and never what the right answer is.
    3. None, ``...``, and code that still raises NotImplementedError are no answers: they are not graded, and not wrong.
    4. Whatever an answer raises is a finding.

Limits.  An answer runs in this process: one that never ends in sync code never ends.  Async code that never ends is
stopped by the simulator.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

import attrs

from toolrt import sim, view
from toolrt.errors import MissingExtra, MisuseError, errors_in
from toolrt.model import Tool
from toolrt.trace import stable_text


class GradeStatus(Enum):
    """How an answer stands."""

    #: Every finding is good.
    RIGHT = "right"
    #: At least one is not.
    WRONG = "wrong"
    #: There is nothing to grade.
    UNANSWERED = "not answered yet"


@attrs.frozen
class Finding:
    """One thing that was tried with an answer."""

    #: Whether it came out as it should.
    good: bool
    #: What was tried.
    what: str
    #: What came of it, and where to look; "" when it is good.
    detail: str = ""
    #: The execution that shows it, if there is one.
    evidence: sim.Execution | None = attrs.field(default=None, repr=False)

    def __str__(self) -> str:
        head = f"  {'✓' if self.good else '✗'} {self.what}"
        return head if self.good or not self.detail else head + "\n      " + self.detail.replace("\n", "\n      ")


@attrs.frozen(repr=False)
class Grade:
    """The grade of an answer.  A notebook shows its `str()`."""

    #: The exercise's name.
    exercise: str
    status: GradeStatus
    #: What was tried, in order.
    findings: tuple[Finding, ...] = ()

    @property
    def right(self) -> bool:
        """Whether the answer is right."""
        return self.status is GradeStatus.RIGHT

    def show(self) -> view.Page:
        """Give a page with the first execution that shows what is wrong: a notebook displays it.

        Raises:
            MisuseError: there is none.
        """
        found = next((one for one in self.findings if not one.good and one.evidence is not None), None)
        if found is None or found.evidence is None:
            raise MisuseError(f"exercise {self.exercise}: no execution shows what is wrong; print the grade")
        execution = found.evidence
        about = [
            ("FAIL", found.what),
            *([("Violation", found.detail)] if found.detail else []),
            ("Value" if execution.error is None else "Error", stable_text(execution.error or execution.value)),
            ("Program", f"your answer to {self.exercise}"),
            ("Schedule", execution.schedule.short),
        ]
        return view.show(execution, title=self.exercise, about=about)

    def __str__(self) -> str:
        if self.status is GradeStatus.UNANSWERED:
            return f"{self.exercise}: not answered yet"
        good = sum(one.good for one in self.findings)
        head = f"{self.exercise}: {self.status.value}, {good} of {len(self.findings)}"
        lines = [head, *map(str, self.findings)]
        if any(not one.good and one.evidence is not None for one in self.findings):
            lines.append("  grade.show() steps through the execution that shows it")
        return "\n".join(lines)

    __repr__ = __str__


#: What tries an answer, by the exercise's name.
Graders = Mapping[str, Callable[[Any], Iterable[Finding]]]


@attrs.frozen(repr=False)
class Exercise:
    """One exercise of the sheet.  A notebook shows its text as the value of a cell."""

    #: What it is known by.
    name: str
    #: The week of the semester it is meant for, from 1.
    week: int
    #: What it is about, in a few words.
    title: str
    #: The task, in Markdown.
    task: str
    #: What a student begins with: Python that gives `answer`.
    template: str
    #: Grades an answer that is one.
    findings: Callable[[Any], Iterable[Finding]] = attrs.field(repr=False)

    def grade(self, answer: Any = None) -> Grade:
        """Say whether `answer` is right, and if not, what goes wrong with it.

        Args:
            answer: what the task asks for; None, ``...``, or code that raises NotImplementedError is not graded.

        Raises:
            MissingExtra: the answer is a tool, and its promises cannot be checked without the "testing" extra.

        Checkpoint: never; call it outside Trio.
        """
        if answer is None or answer is ... or _is_template(answer):
            return Grade(self.name, GradeStatus.UNANSWERED)
        found: list[Finding] = []
        try:
            found += self.findings(answer)
        except MissingExtra:
            raise
        except Exception as error:
            # An error that the grader did not expect; KeyboardInterrupt goes on.
            found.append(Finding(False, "your answer can be graded", f"it raised {told(error)}"))
        right = bool(found) and all(one.good for one in found)
        return Grade(self.name, GradeStatus.RIGHT if right else GradeStatus.WRONG, tuple(found))

    def _repr_markdown_(self) -> str:
        return f"### Week {self.week}: {self.title} (`{self.name}`)\n\n{self.task}"

    def __repr__(self) -> str:
        return f"<Exercise {self.name}, week {self.week}: {self.title}>"


def told(error: BaseException) -> str:
    """Give an error in words; of a group its first error, which is the news."""
    error = errors_in(error)[0]
    text = stable_text(error, str).split("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_template(answer: Any) -> bool:
    """Say whether some of it still raises NotImplementedError, so that it is not answered yet."""
    if isinstance(answer, Tool):
        answer = answer.function
    parts = vars(answer).values() if isinstance(answer, type) else (answer,)
    codes = [code for part in parts if isinstance(code := getattr(part, "__code__", None), types.CodeType)]
    while codes:
        code = codes.pop()
        if "NotImplementedError" in code.co_names:
            return True
        codes += [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return False
