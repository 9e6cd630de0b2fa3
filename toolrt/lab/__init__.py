"""What a class, or a person who studies schedules, does with all this: experiments on searches.

Experiments give rows, which `toolrt.view.plot` draws and pandas and polars take::

    from toolrt import lab, view
    from toolrt.invariants.litmus import LITMUS

    lost = LITMUS["lost_update_3x2"]
    rows = lab.schedules_to_bug(lost.program, lost.check)
    view.plot(rows, x="policy", y="schedules", hollow="gave_up", log="y")
"""

from toolrt.lab._experiments import Collected, classes_against_calls, collect, schedules_to_bug

__all__ = ["Collected", "classes_against_calls", "collect", "schedules_to_bug"]
