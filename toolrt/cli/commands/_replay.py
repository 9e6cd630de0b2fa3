"""``toolrt replay``: repeat one execution exactly.

Rules.  The replay file says which response, directory and options; the directory is copied, never written to.
When the program offers other choices than the schedule has, the command says so and shows nothing.
"""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from toolrt import sim
from toolrt.cli._exit import Exit
from toolrt.cli.experiment._about import title_of, verdict_of
from toolrt.cli.experiment._experiment import Experiment, ExperimentEnding
from toolrt.cli.experiment._failure import FailureFile
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._screen import Screen, forgiving
from toolrt.cli.screen._timeline import print_timeline, print_violations
from toolrt.errors import ReplayDiverged
from toolrt.interop import parse_response


def replay(
    file: Annotated[str, Parameter(help="The file that toolrt explore wrote.")],
    /,
    *,
    workspace: Annotated[
        str | None, Parameter(help="The directory, if it is no longer where it was; it is only read.")
    ] = None,
) -> int:
    """Repeat one execution exactly, and print what happens in it and which laws it breaks.

    The directory has to be as it was when the file was written. When the execution cannot be repeated, because the
    directory or toolrt has changed, the command says so and exits with 3.
    """
    kept = FailureFile.load(file)
    calls = parse_response(kept.response, f"{file}: its response").calls
    roots = kept.roots(workspace)
    screen = Screen(forgiving(sys.stdout))
    experiment = Experiment.on(roots, calls, kept.lanes, kept.limit, kept.variation, kept.slots)
    changed = experiment.tree_digest != kept.tree
    if changed:
        screen.say("The workspace is not as it was when this file was written.", "yellow")
    screen.say(title_of(kept.response_name, experiment), "bold")
    try:
        execution = experiment.replay(kept.schedule)
    except ReplayDiverged as error:
        screen.say(on_one_line(str(error), 2_000), "red")
        screen.say("INCONCLUSIVE: the execution cannot be repeated", "bold yellow")
        return Exit.INCONCLUSIVE
    violations = experiment.check(execution, twice=True)
    print_timeline(execution, calls, violations, screen)
    print_violations(violations, execution.error, screen)
    verdict = verdict_of(execution, violations)
    if verdict is sim.INCONCLUSIVE:
        screen.say("INCONCLUSIVE: it was stopped before it ended", "bold yellow")
        return Exit.INCONCLUSIVE
    if verdict is sim.FAIL:
        screen.say("FAIL: a law does not hold", "bold red")
        return Exit.FAILED
    ending = f", {on_one_line(repr(execution.value))}" if isinstance(execution.value, ExperimentEnding) else ""
    screen.say(f"PASS: no law is broken{ending}", "bold green")
    unchecked = [law for law in experiment.unchecked if law != "same_schedule_same_trace"]
    if unchecked:
        screen.say(f"not checked: {', '.join(unchecked)}", indent=2)
    if kept.violations:
        screen.say("What the file tells of did not happen again:")
        for text in kept.violations[:1]:
            screen.say(on_one_line(text), indent=2)
    return Exit.OK
