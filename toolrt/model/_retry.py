"""A tool's function that is called again where it fails, as tenacity has it.

Rules.
    1. All attempts are one execution of the call: it keeps its tickets between them, or a later call could overtake it,
       and its timeout counts them all.
    2. Only the last attempt's answer is the call's, with its modifiers.
    3. What is no `Exception` is never tried again: a cancel, Ctrl-C, an exit.
    4. A function is called again only if its author says that this does no harm: ``idempotent``, ``pure``, or ``safe``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from toolrt.errors import DefinitionRefused, error_text


def retried(what: str, function: Callable[..., Any], retry: Any, harmless: bool) -> Callable[..., Any]:
    """`function`, called again as `retry`, a ``tenacity.AsyncRetrying``, says; its context is told of each wait.

    Raises:
        DefinitionRefused: it is another object, the function is not async, or a second call could do harm.
    """
    if not (inspect.iscoroutinefunction(getattr(type(retry), "__call__", None)) and hasattr(retry, "copy")):  # noqa: B004
        raise DefinitionRefused(f"{what}: retry", "a tenacity.AsyncRetrying", retry)
    if not inspect.iscoroutinefunction(function):
        raise DefinitionRefused(f"{what}: retry", "an async def to be called again", function)
    if not harmless:
        raise DefinitionRefused(
            f"{what}: retry",
            "idempotent=True, pure=True or safe=True beside it",
            "a tool whose effects could come twice",
        )

    @functools.wraps(function)
    async def attempts(context: Any, *args: Any, **named: Any) -> Any:
        async def is_wanted(state: Any) -> Any:
            outcome = state.outcome
            return not (outcome.failed and not isinstance(outcome.exception(), Exception)) and await _now(
                retry.retry, state
            )

        async def tell(state: Any) -> None:
            outcome = state.outcome
            failed = error_text(outcome.exception()) if outcome.failed else "its answer is not wanted"
            context.progress({"attempt": state.attempt_number, "failed": failed, "seconds": state.upcoming_sleep})
            if retry.before_sleep is not None:
                await _now(retry.before_sleep, state)

        return await retry.copy(retry=is_wanted, before_sleep=tell, reraise=True)(function, context, *args, **named)

    return attempts


async def _now(asked: Callable[[Any], Any], state: Any) -> Any:
    answer = asked(state)
    return await answer if inspect.isawaitable(answer) else answer
