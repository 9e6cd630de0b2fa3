"""Experiments that compare searches, and exercises that grade themselves.

Experiments give rows, which `toolrt.view.plot` draws and pandas and polars take::

    from toolrt import view
    from toolrt.teaching import lab
    from toolrt.teaching.litmus import LITMUS

    lost = LITMUS["lost_update_3x2"]
    rows = lab.schedules_to_bug(lost.program, lost.check)
    view.plot(rows, x="policy", y="schedules", hollow="gave_up", log="y")

Exercises grade themselves, against every schedule and against mutants that stand in no notebook::

    lab.SHEET["two_adders"].grade({0, 1, 2})
"""

from toolrt.teaching.lab._exercise import Exercise, Finding, Grade, GradeStatus
from toolrt.teaching.lab._experiments import Collected, classes_against_calls, collect, schedules_to_bug
from toolrt.teaching.lab._sheet import SHEET, Sheet, summary

__all__ = [
    "SHEET",
    "Collected",
    "Exercise",
    "Finding",
    "Grade",
    "GradeStatus",
    "Sheet",
    "Status",
    "classes_against_calls",
    "collect",
    "schedules_to_bug",
    "summary",
]

#: The former name of `GradeStatus`.
Status = GradeStatus
