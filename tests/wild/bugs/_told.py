"""Runs in a bug's own environment: writes its failure as a file without toolrt, asks what would mend it, prints JSON.

Started as `python -m tests.wild.bugs._told NAME EXECUTIONS SEED`, as `_inside` is.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from typing import Any

from tests.wild.bugs._folders import bug
from tests.wild.bugs._inside import program_of
from toolrt import sim
from toolrt.errors import NotReproducible


def _is_of(text: str, expects: str) -> bool:
    """Whether a file fails with the error that is this bug, not with another one of its type."""
    try:
        exec(compile(text, "<reproduction>", "exec"), {"__name__": "__main__"})
    except BaseException as error:
        return expects in repr(error)
    return False


def main(name: str, executions: int, seed: int) -> dict[str, Any]:
    """Tell the first failure of one bug."""
    one = bug(name)
    report = sim.explore(program_of(one).program, sim.Portfolio(executions, seed), **one.options)  # type: ignore[arg-type]
    failure = report.failures[0]
    if one.expects not in repr(failure.error):
        raise failure.error or AssertionError("the program failed without an error")
    found: dict[str, Any] = {}
    began = time.perf_counter()
    try:
        made = failure.reproduce()
    except NotReproducible as refused:
        found["refused"] = str(refused)
    else:
        found["file"] = {"runs": made.runs, "failed": made.failed, "is_of_trio": made.is_of_trio, "text": made}
    found["seconds_to_write"] = round(time.perf_counter() - began, 1)
    began = time.perf_counter()
    found["repairs"] = [
        {"code": one.constraint.code, "text": str(one), "may_overfit": one.may_overfit} for one in failure.repairs()
    ]
    found["seconds_to_mend"] = round(time.perf_counter() - began, 1)
    if "file" in found:
        # Last: it leaves Trio's coins replaced.
        found["file"]["is_the_bug"] = _is_of(found["file"]["text"], one.expects)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # A world that is given up in the middle leaves generators behind, which complain where they are collected.
    sys.unraisablehook = lambda unraisable: None
    logging.disable(logging.CRITICAL)
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
