"""Splits exception groups into Trio's cancellations and real errors."""

from __future__ import annotations

import trio


def split_cancelled(error: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """What of `error` is Trio's cancellation, and what is not."""
    if isinstance(error, trio.Cancelled):
        return error, None
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)
    return None, error


def bare(error: BaseException) -> BaseException:
    """What `error` is about, out of the groups that nurseries put around it."""
    cancelled, rest = split_cancelled(error)
    found: BaseException | None = cancelled if rest is None else rest
    while isinstance(found, BaseExceptionGroup) and (rest is None or len(found.exceptions) == 1):
        found = found.exceptions[0]
    return error if found is None else found
