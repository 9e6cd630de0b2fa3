"""Writes a failing schedule as a program that needs Trio alone, and says how often that fails.

Rules.
    1. If an order that Trio itself makes fails, the file has the coins that Trio flips: each says whether the tasks
       that can run are turned round.
    2. Else the file has the task of each step.  Others that could run wait for a turn of the loop more: Trio promises
       no order, so any version of it may do this.
    3. Time is Trio's mock clock, as it is virtual in the simulation.
    4. The file is run in processes of its own before it is handed out.

Limits.  A schedule in which a cancel, the clock, a thread, a process or a choice of the program is a step has no such
file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from toolrt._plain import counted
from toolrt.errors import Deadlock, NotReproducible, StepLimit
from toolrt.sim.exploring._standalone import HEADER, standalone

if TYPE_CHECKING:
    from toolrt.sim.engine._execution import Execution

#: How often the file is run, and how many orders of Trio's own are tried.
_RUNS, _ORDERS = 20, 300
#: Seconds that one process may take.
_PATIENCE = 60

_COINS = '''
class Coins(random.Random):
    """Trio's own coin: where it says so, the tasks that can run are turned round."""

    def __init__(self, flips):
        super().__init__(0)
        self.flips = iter(flips)

    def random(self):
        return 0.0 if next(self.flips, False) else 1.0
'''

_PICKS = '''
class Picks(random.Random, trio.abc.Instrument):
    """Which task takes each step; another one that could run waits for a turn of Trio's loop more."""

    def __init__(self, picks):
        super().__init__(0)
        self.picks, self.names, self.spawned, self.waited = list(picks), {{}}, {{}}, 0

    def task_spawned(self, task):
        try:
            parent = trio.lowlevel.current_task()
        except RuntimeError:
            return
        if getattr(task.coro, "cr_code", None) is _main.__code__:
            self.names[task] = "main"
        elif parent in self.names:
            number = self.spawned.get(parent, 0)
            self.spawned[parent], self.names[task] = number + 1, f"{{self.names[parent]}}.{{number}}"

    def random(self):
        loop = sys._getframe(1).f_locals
        batch, runner = loop["batch"], loop["runner"]
        mine = [task for task in batch if task in self.names]
        if mine and self.picks:
            chosen = [task for task in mine if self.names[task] == self.picks[0]]
            self.waited += not chosen
            if chosen or self.waited < 100:
                others = [task for task in mine if task not in chosen]
                batch[:] = [task for task in batch if task not in others]
                runner.runq.extend(others)
                del self.picks[: len(chosen)]
        return 1.0


order = trio._core._run._r = Picks({picks})
'''

_MAIN = """
async def _main():
    with trio.move_on_after(1e6) as for_ever:
        return await {call}
    if for_ever.cancelled_caught:
        sys.exit("Deadlock: every task waits for ever")


if __name__ == "__main__":
    outcome = trio.run(_main, clock=trio.testing.MockClock(autojump_threshold=0), instruments={instruments})
{ending}"""

#: Runs behind `_COINS`: looks for flips that fail, turns as many of them back as it can, and prints them.
_SEARCH = """
import itertools, json

text, wanted, orders = json.loads(sys.stdin.read())
code = compile(text, "<program>", "exec")


def fails(flips):
    \"\"\"Give the flips that were asked for where they fail; else nothing.\"\"\"
    used = []
    trio._core._run._r = Coins(used.append(flip) or flip for flip in itertools.chain(flips, itertools.repeat(False)))
    try:
        exec(code, {"__name__": "__main__"})
    except BaseException as error:
        left = [error]
        while left:
            one = left.pop()
            if wanted in (type(one).__name__, str(one)):
                return used
            left += getattr(one, "exceptions", ())


for seed in range(orders):
    drawn = random.Random(seed)
    flips = fails(() if seed == 0 else iter(lambda: drawn.random() < 0.5, None))
    if flips is not None:
        for place in reversed(range(len(flips))):
            if flips[place] and fails([*flips[:place], False, *flips[place + 1 :]]) is not None:
                flips[place] = False
        print(json.dumps(flips))
        break
"""


class Reproduction(str):
    """The text of a file that imports no toolrt and fails as the schedule did.

    Attributes:
        runs: how often it was run, in a process of its own each.
        failed: how often it failed in the same way.
        is_of_trio: whether it fails in an order that Trio itself makes; else the file says which task takes each step.
    """

    runs: int
    failed: int
    is_of_trio: bool


def reproduce(program: Any, execution: Execution, headline: str) -> Reproduction:
    """Write the file for an `execution` of `program` that failed; `headline` says how.

    Raises:
        NotReproducible: there is no such file, with the reason.
    """
    source, call = standalone(program)
    steps = [step.task for step in execution.schedule.steps]
    if odd := next((name for name in steps if not re.fullmatch(r"main(\.\d+)*", name)), None):
        raise NotReproducible(f"its schedule has the step {odd!r}, which is none of a task of the program's")
    wanted, ending = _failure(execution)
    names = {"call": call, "ending": ending}
    begins = "\n".join((*HEADER, "", "", source))
    flips = _flips_of(begins + _MAIN.format(instruments="()", **names), wanted)
    if flips is None:
        order, instruments = _PICKS.format(picks=_wrapped(steps)), "(order,)"
    else:
        order, instruments = f"{_COINS}\n\ntrio._core._run._r = Coins({_wrapped(flips)})\n", "()"
    body = f"{begins}\n{order}\n{_MAIN.format(instruments=instruments, **names)}"
    failed = sum(_fails(body, wanted) for _ in range(_RUNS))
    if not failed:
        raise NotReproducible(f"its schedule did not fail in {_RUNS} runs of plain Trio {trio.__version__}")
    kind = "an order that Trio itself makes" if flips is not None else "an order that Trio does not promise against"
    about = f'"""{headline.strip().splitlines()[0]:.100}\n\nFails in {failed} of {counted(_RUNS, "run")} on plain Trio '
    made = Reproduction(f'{about}{trio.__version__}, in {kind}.\n"""\n\n{body}')
    made.runs, made.failed, made.is_of_trio = _RUNS, failed, flips is not None
    return made


def _failure(execution: Execution) -> tuple[str, str]:
    """What the process says where it fails in this way, and what the file ends with."""
    error = execution.error
    if isinstance(error, StepLimit):
        raise NotReproducible("it came to no end, and nothing says how long to wait for that")
    if isinstance(error, Deadlock):
        return "Deadlock: every task waits for ever", ""
    if error is not None:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return type(error).__name__, ""
    value = execution.value
    try:
        same = eval(repr(value), {"__builtins__": {"frozenset": frozenset}}) == value
    except Exception:
        same = False
    if not same:
        raise NotReproducible(f"its outcome {value!r:.60} has no literal to be compared with")
    said = "the outcome of the failing schedule"
    return said, f"    if outcome == {value!r}:\n        sys.exit({said!r})\n"


def _flips_of(text: str, wanted: str) -> list[bool] | None:
    """The coins that make plain Trio fail in this way, few as far as is tried; None: none were found."""
    found = _python(["-c", "\n".join((*HEADER, _COINS, _SEARCH))], json.dumps([text, wanted, _ORDERS]))
    if not found.stdout.startswith("["):
        return None
    flips: list[bool] = json.loads(found.stdout)
    while flips and not flips[-1]:
        flips.pop()
    return flips


def _fails(text: str, wanted: str) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "reproduction.py"
        path.write_text(text, encoding="utf-8")
        ended = _python([str(path)], "")
    return ended.returncode != 0 and wanted in ended.stderr


def _python(arguments: list[str], given: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", *arguments]
    # What is found here is found there, too: a project that is not installed.
    path = os.pathsep.join(str(Path(place).absolute()) for place in sys.path)
    how: Any = {"capture_output": True, "text": True, "timeout": _PATIENCE, "env": {**os.environ, "PYTHONPATH": path}}
    try:
        return subprocess.run(command, input=given, check=False, **how)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 0, "", "")


def _wrapped(values: list[Any]) -> str:
    lines = textwrap.wrap(", ".join(map(repr, values)), 100)
    return f"[{lines[0] if lines else ''}]" if len(lines) < 2 else "[\n    " + "\n    ".join(lines) + "\n]"
