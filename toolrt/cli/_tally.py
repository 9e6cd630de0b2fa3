"""How the calls of a batch ended, in one line.  `toolrt run` imports this and not the experiments, which import sim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from toolrt._plain import counted
from toolrt.model import ToolResult


def tally(results: Sequence[ToolResult]) -> str:
    """How many calls ended in which way: ``12 ok, 1 error``."""
    counts = Counter(result.outcome.value for result in results)
    return ", ".join(f"{count:,} {outcome}" for outcome, count in counts.most_common()) or "no calls"


def calls_of(number: int) -> str:
    """So many calls, in words: ``1 call``, ``1,000 calls``."""
    return counted(number, "call")
