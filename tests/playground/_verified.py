"""What litmus programs give: run here, and as a script in a browser's Python."""

from __future__ import annotations

from typing import Any

from toolrt.teaching.litmus import LITMUS, verify


def verified(names: list[str]) -> dict[str, Any]:
    """Give verdict, outcomes, counts and claim of each program."""
    found = {}
    for name in names:
        one = verify(LITMUS[name])
        seen = {repr(outcome): count for outcome, count in one.seen.items()}
        found[name] = [one.method, one.executions, one.classes, seen, list(one.problems), one.claim]
    return found
