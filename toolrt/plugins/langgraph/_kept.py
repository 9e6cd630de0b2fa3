"""What a tool node keeps of a message whose calls did not all come to an end: answers, and what people answered.

LangGraph runs a node again from its beginning when it was interrupted, or failed and is tried again.  It saves one list
for a node's task, the values that ``interrupt()`` was answered with, with every interrupt and every error, and gives it
back to the task when it runs again.  A tool node asks nothing itself, so the only value in that list is a `Ledger`.

Rules.
    1. Each call has a namespace and a scratchpad of its own: the interrupts of two calls have distinct ids, and an
       answer goes to the call that asked.
    2. A call that came to an end keeps its answer, and is not run again for this message.
    3. An answer counts as used when the tool has taken it, as in LangGraph: one that does not fit can be given anew.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
from langgraph.types import Interrupt

# LangGraph's names of what it hands to a task (langgraph._internal._constants).
_SCRATCHPAD = "__pregel_scratchpad"
_SEND = "__pregel_send"
_RESUME = "__resume__"
_RESUME_MAP = "__pregel_resume_map"
_NAMESPACE = "checkpoint_ns"

_MARK = "toolrt"


@attrs.define
class Ledger:
    """The answers of the calls of one message, by call index.

    Args:
        config: of the node's task.
        message: what tells this message's calls from another's.
    """

    _conf: Mapping[str, Any]
    _message: list[Any]
    #: What finished calls gave.
    kept: dict[int, Any] = attrs.field(factory=dict, init=False)
    #: How often the calls of this message were begun before: after an interrupt, or an error, they begin once more.
    attempt: int = attrs.field(default=0, init=False)
    #: The calls that were interrupted when this was saved; None: nothing was saved.
    asked: set[int] | None = attrs.field(default=None, init=False)
    #: What each unfinished call's interrupts were answered with, as far as its tool has taken it.
    _taken: dict[int, list[Any]] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        scratchpad = self._conf.get(_SCRATCHPAD)
        saved = scratchpad.resume[0] if scratchpad is not None and scratchpad.resume else None
        if isinstance(saved, dict) and saved.get(_MARK) == self._message:
            self.kept = {int(index): answer for index, answer in saved["kept"]}
            self._taken = {int(index): list(values) for index, values in saved["taken"]}
            self.asked = set(saved["asked"])
            self.attempt = saved["attempt"] + 1

    @property
    def batch_id(self) -> str | None:
        """Names the batch of these calls: a checkpointer gives the node's task the same name in a later process."""
        task = self._conf.get(_NAMESPACE)
        return f"{task}/{self.attempt}" if task else None

    def configurable(self, index: int) -> dict[str, Any]:
        """What LangGraph is to know of the call at `index`, in place of what it knows of the node."""
        scratchpad = self._conf.get(_SCRATCHPAD)
        if scratchpad is None:
            return {}
        namespace = f"{self._conf.get(_NAMESPACE, '')}|call:{index}"
        answers = list(self._taken.get(index, ()))
        named = f"{namespace}|{len(answers)}" if answers else namespace
        given = self._conf.get(_RESUME_MAP) or {}
        if (id := Interrupt.from_ns(None, named).id) in given:
            answers.append(given[id])

        def send(writes: Sequence[tuple[str, Any]]) -> None:
            others = []
            for channel, value in writes:
                if channel == _RESUME:
                    self._taken[index] = list(value)
                else:
                    others.append((channel, value))
            self._conf[_SEND](others)

        own = dataclasses.replace(
            scratchpad,
            call_counter=itertools.count().__next__,
            interrupt_counter=itertools.count().__next__,
            subgraph_counter=itertools.count().__next__,
            resume=answers,
            # An answer without a name is for the call that asked.
            get_null_resume=(
                scratchpad.get_null_resume if self.asked is None or index in self.asked else lambda consume=False: None
            ),
        )
        return {_SCRATCHPAD: own, _SEND: send, _NAMESPACE: namespace}

    def save(self, asked: Iterable[int]) -> None:
        """Let LangGraph save this with the interrupt or the error that the node is about to raise.

        Args:
            asked: the calls that were interrupted.
        """
        scratchpad = self._conf.get(_SCRATCHPAD)
        if scratchpad is None:
            return
        saved = {
            _MARK: self._message,
            "attempt": self.attempt,
            "asked": list(asked),
            "kept": list(map(list, self.kept.items())),
            "taken": [[index, values] for index, values in self._taken.items() if index not in self.kept],
        }
        scratchpad.resume[:] = [saved]
        self._conf[_SEND]([(_RESUME, [saved])])
