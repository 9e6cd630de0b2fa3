"""What can be drawn: a trace, or whatever has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from toolrt.errors import DefinitionRefused
from toolrt.trace import Trace


class HasTrace(Protocol):
    """An execution, a failure: anything with a `Trace`."""

    @property
    def trace(self) -> Trace:
        """Everything that was observed."""


def trace_of(source: Trace | HasTrace, what: str) -> Trace:
    """Give the trace of `source`; of a failure the one that was made again with lines and values.

    Raises:
        DefinitionRefused: it is no trace and has none.
    """
    detailed = getattr(source, "detailed", None)
    trace = (
        source if isinstance(source, Trace) else detailed() if callable(detailed) else getattr(source, "trace", None)
    )
    if not isinstance(trace, Trace):
        raise DefinitionRefused(what, "a Trace, or what has one (an execution, a failure)", source)
    return trace


def check_names(what: str, names: Sequence[str], count: int) -> None:
    """Refuse what is not `count` texts.

    Raises:
        DefinitionRefused: it is something else.
    """
    if isinstance(names, str) or len(names) != count or not all(isinstance(name, str) for name in names):
        raise DefinitionRefused(what, f"{count} texts", names)
