"""Asks plain functions that may take their time, such as a question to a person, where they hold up nothing.

Rules.
    1. A thread asks one function after the other, in the order in which they were given: prompts on one terminal do not
       mix.  What is an ``async def`` is called where it stands.  In a simulation each is one step, in place.
    2. Answers that come at once reach the loop together, so that what they allow begins at one instant.  One that takes
       its time keeps those before it waiting for `_TOGETHER` at most.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
import trio

from toolrt import probe

#: Wall seconds for which an answer waits for those behind it.
_TOGETHER = 0.05


@attrs.define(eq=False)
class _Question:
    """One call of a plain function."""

    function: Callable[[], Any]
    token: trio.lowlevel.TrioToken
    #: What it returned or raised, once `is_answered`.
    answer: Any = None
    error: BaseException | None = None
    is_answered: trio.Event = attrs.field(factory=trio.Event)
    #: Whether its batch has stopped waiting for it.
    is_dropped: bool = False

    def ask(self) -> None:
        try:
            self.answer = self.function()
        except BaseException as error:  # noqa: ASYNC103  it is not async: the task that waits raises it
            self.error = error
        if self.is_dropped:
            self.drop()

    def drop(self) -> None:
        """Close an answer that was to be awaited, because no task will."""
        self.is_dropped = True
        if inspect.isawaitable(self.answer) and hasattr(self.answer, "close"):
            self.answer.close()


class Aside:
    """Asks plain functions in a thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: deque[_Question] = deque()
        self._answered: list[_Question] = []
        #: Whether a thread is at it.
        self._works = False
        #: Whether the task that began the thread waits for its end, and hands over then.
        self._awaited = False

    def ask(self, function: Callable[..., Any], *args: Any) -> Any:
        """What `function` answers to `args`, or an awaitable of it, to be awaited once.

        A cancel of the wait leaves the thread to itself, and what it answers is dropped.  Checkpoint: never.
        """
        if probe.threads_inline or not _is_plain(function):
            return function(*args)
        question = _Question(functools.partial(function, *args), trio.lowlevel.current_trio_token())
        self._asked.append(question)
        return self._answer(question)

    async def _answer(self, question: _Question) -> Any:
        with self._lock:
            begins, self._works = not self._works, True
            self._awaited = self._awaited or begins
        try:
            if begins:
                await self._until_all_are_asked()
            await question.is_answered.wait()
        except BaseException:
            question.drop()
            raise
        if question.error is not None:
            raise question.error
        return await question.answer if inspect.isawaitable(question.answer) else question.answer

    async def _until_all_are_asked(self) -> None:
        # The end of the thread comes to the loop by a way of its own, so this task hands the answers over when it knows
        # of that.  Else it would go on at another instant than those who wait with it.
        try:
            await trio.to_thread.run_sync(self._work, abandon_on_cancel=True)
        finally:
            with self._lock:
                self._awaited = False
            self._hand_over()

    def _work(self) -> None:
        """Ask all that there are, in the thread."""
        while True:
            with self._lock:
                if not self._asked:
                    self._works, awaited = False, self._awaited
                    break
                question = self._asked.popleft()
            patience = threading.Timer(_TOGETHER, self._hand_over)
            patience.daemon = True
            patience.start()
            question.ask()
            patience.cancel()
            with self._lock:
                self._answered.append(question)
        if not awaited:
            self._hand_over()

    def _hand_over(self) -> None:
        with self._lock:
            answered, self._answered = self._answered, []
        by_loop: dict[trio.lowlevel.TrioToken, list[_Question]] = {}
        for question in answered:
            by_loop.setdefault(question.token, []).append(question)
        for token, questions in by_loop.items():
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(_tell, questions)


def _tell(questions: list[_Question]) -> None:
    """Let those go on who wait for an answer, in one step of the loop: a clock that jumps comes behind all of them."""
    for question in questions:
        question.is_answered.set()


def _is_plain(function: Any) -> bool:
    function = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)
    return not any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))
