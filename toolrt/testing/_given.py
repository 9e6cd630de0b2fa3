"""Being called by Hypothesis: it picks the workload, the explorer the schedules.

Rules.
    1. What a drawn value holds in lists, dicts, sets and deques is copied for each execution: one that a test empties
       is full again in the next.  Other objects are shared.
    2. `data.draw` inside a test draws in the first execution; the later ones of the same example are given the same
       values in the same order.
    3. Whatever Hypothesis raises to stop or discard an example ends the exploration and is raised outside of Trio.
    4. The deadline counts the slowest execution of an example, not their sum.
    5. Notes are printed for the last execution only, the one that is reported.
    6. Hypothesis traces no line of an exploration: that would take eight times as long, and which lines every failing
       example runs says less than the explorer's own explanation.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

from hypothesis import control, note
from hypothesis.errors import StopTest, UnsatisfiedAssumption
from hypothesis.internal import scrutineer

from toolrt.errors import DefinitionRefused

#: What Hypothesis raises to steer itself.
CONTROL: tuple[type[BaseException], ...] = (StopTest, UnsatisfiedAssumption)

_CONTAINERS = (list, dict, set, deque, bytearray)


class Example:
    """The example that Hypothesis is at."""

    def __init__(self, context: Any) -> None:
        self._context = context
        #: True when this call is the one that is shown to a person.
        self.is_final: bool = bool(getattr(context, "is_final", True))

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Have notes not printed, and no line traced."""
        self._context.is_final = False
        try:
            with untraced():
                yield
        finally:
            self._context.is_final = self.is_final

    def loud(self) -> None:
        """Have notes printed again, for the execution that is reported."""
        self._context.is_final = self.is_final

    def spent(self, seconds: float, slowest: float) -> None:
        """Have the deadline count `slowest` of the wall `seconds` that were spent."""
        # Hypothesis takes from an example's time what it counts here: the one such account that no health check reads.
        account = getattr(getattr(self._context, "data", None), "_stateful_run_times", None)
        if account is not None:
            account["explore"] = account.get("explore", 0.0) + max(0.0, seconds - slowest)


def current_example() -> Example | None:
    """Give the example, or None where Hypothesis is not running a test."""
    if not control.currently_in_test_context():
        return None
    return Example(control.current_build_context())


@contextlib.contextmanager
def untraced() -> Iterator[None]:
    """Have Hypothesis, and it alone, trace no lines."""
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        tracer = sys.gettrace()
        if not isinstance(getattr(tracer, "__self__", None), scrutineer.Tracer):
            yield
            return
        sys.settrace(None)
        try:
            yield
        finally:
            sys.settrace(tracer)
        return
    tool = scrutineer.MONITORING_TOOL_ID
    if monitoring.get_tool(tool) != "scrutineer":
        yield
        return
    events = monitoring.get_events(tool)
    monitoring.set_events(tool, 0)
    try:
        yield
    finally:
        monitoring.set_events(tool, events)


def fresh(value: Any) -> Any:
    """Give `value` with the containers in it copied, and all else as it is."""
    if type(value) in _CONTAINERS or type(value) is tuple:
        if isinstance(value, dict):
            return {key: fresh(item) for key, item in value.items()}
        if isinstance(value, bytearray | set):
            return copy.copy(value)
        if isinstance(value, deque):
            return deque(map(fresh, value), value.maxlen)
        return type(value)(map(fresh, value))
    if isinstance(value, _Draws):
        value.rewind()
    return value


def replayable(value: Any) -> Any:
    """Give what stands for `value` in all executions of an example."""
    return _Draws(value) if type(value).__name__ == "DataObject" and hasattr(value, "draw") else value


class _Draws:
    """`data` of Hypothesis: draws once, and gives the same again."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self._drawn: list[tuple[str, Any]] = []
        self._place = 0

    def rewind(self) -> None:
        """Begin again."""
        self._place = 0

    def draw(self, strategy: Any, label: Any = None) -> Any:
        """Draw from `strategy`, or give what was drawn at this place.

        Raises:
            DefinitionRefused: another strategy was drawn from here in an earlier execution.
        """
        place = self._place
        if place == len(self._drawn):
            self._drawn.append((repr(strategy), self._data.draw(strategy, label)))
        else:
            note(f"Draw {place + 1}{'' if label is None else f' ({label})'}: {self._drawn[place][1]!r}")
        known, value = self._drawn[place]
        self._place += 1
        if known != repr(strategy):
            raise DefinitionRefused(
                f"draw {place + 1} of an explored test",
                f"the same strategy under every schedule ({known}); draw before tasks are started",
                repr(strategy),
            )
        return fresh(value)

    def __repr__(self) -> str:
        return "data(...)"
