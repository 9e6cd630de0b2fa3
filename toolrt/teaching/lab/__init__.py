"""Experiments that compare searches, and exercises that grade themselves.

Experiments give rows, which `toolrt.view.plot` draws and pandas and polars take::

    from toolrt import view
    from toolrt.teaching import lab
    from toolrt.teaching.litmus import LITMUS

    lost = LITMUS["lost_update_3x2"]
    rows = lab.schedules_to_bug(lost.program, lost.check)
    view.plot(rows, x="policy", y="schedules", hollow="gave_up", log="y")

They also measure how long batches take by policy, against what their calls allow::

    rows = lab.makespans(lab.WORKLOADS["retail"])
    lab.spread(rows)

A reader predicts before a result is shown, and the guess is kept::

    lab.Prediction("How many lanes?", None, 4)

Exercises grade themselves, against every schedule and against mutants that stand in no notebook::

    lab.SHEET["two_adders"].grade({0, 1, 2})
"""

from toolrt.teaching.lab._exercise import Exercise, Finding, Grade, GradeStatus
from toolrt.teaching.lab._experiments import Collected, classes_against_calls, collect, schedules_to_bug
from toolrt.teaching.lab._makespan import (
    AT_ONCE,
    Ran,
    conflicts,
    critical_path,
    length,
    makespans,
    order_of,
    ran_under,
    spread,
)
from toolrt.teaching.lab._prediction import Prediction
from toolrt.teaching.lab._sheet import NOTEBOOK_EXERCISES, SHEET, Sheet, summary
from toolrt.teaching.lab._workloads import WORKLOADS, TimedCall, ToolShape, Workload, random_mixes

__all__ = [
    "AT_ONCE",
    "NOTEBOOK_EXERCISES",
    "SHEET",
    "WORKLOADS",
    "Collected",
    "Exercise",
    "Finding",
    "Grade",
    "GradeStatus",
    "Prediction",
    "Ran",
    "Sheet",
    "TimedCall",
    "ToolShape",
    "Workload",
    "classes_against_calls",
    "collect",
    "conflicts",
    "critical_path",
    "length",
    "makespans",
    "order_of",
    "ran_under",
    "random_mixes",
    "schedules_to_bug",
    "spread",
    "summary",
]
