"""``toolrt timeline``: a trace as a page, a picture, a log, or a text.

Rules.  The input is a trace (``toolrt run --trace``, ``Trace.to_json()``) or a replay file of ``toolrt explore``, told
apart by what is in it; a replay file is replayed, on a copy in memory.  Everything is read and drawn before anything
is written.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from toolrt import sim, view
from toolrt.cli._arguments import STANDARD_INPUT
from toolrt.cli._exit import Exit
from toolrt.cli.experiment._about import about_batch, verdict_of
from toolrt.cli.experiment._experiment import Experiment
from toolrt.cli.experiment._failure import FailureFile
from toolrt.cli.experiment._input import checked_target, read_limited, write_target
from toolrt.cli.experiment._options import Whole, at_least_one
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._screen import Screen, forgiving
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.interop import parse_response
from toolrt.trace import Trace

#: Bytes of a trace: a page of it would be as large.
_MAX_BYTES = 256 * 1024 * 1024

_REMEDY = "Give a trace of toolrt run --trace, or the file that toolrt explore wrote."


def timeline(
    trace: Annotated[str, Parameter(help="The trace, or a replay file; - reads standard input.")],
    /,
    *,
    against: Annotated[str | None, Parameter(help="Another one, to stand beside it on the page.")] = None,
    html: Annotated[str | None, Parameter(help="Write a page to step through; it loads nothing.")] = None,
    svg: Annotated[str | None, Parameter(help="Write a picture.")] = None,
    text: Annotated[str | None, Parameter(help="Write what is printed when nothing else is asked for.")] = None,
    chrome: Annotated[str | None, Parameter(help="Write Chrome trace events, which Perfetto opens.")] = None,
    mermaid: Annotated[str | None, Parameter(help="Write a Mermaid sequence diagram.")] = None,
    by: Annotated[view.By | None, Parameter(help="A row for each call, or a column for each task.")] = None,
    scale: Annotated[
        view.Scale, Parameter(help="Whether lengths in text and picture are events or seconds.")
    ] = "order",
    width: Annotated[Whole | None, Parameter(help="Characters in a line of text; the terminal's unless given.")] = None,
    workspace: Annotated[
        str | None, Parameter(help="The directory of a replay file, if it is no longer where it was; it is only read.")
    ] = None,
) -> int:
    """Draw what happened in one execution.

    The trace is what toolrt run --trace wrote, or a failure that toolrt explore kept, which is replayed. Without an
    option a timeline is printed as text: a row for each call, or a column for each task where there are no calls. With
    --html a page is written that holds everything it shows: lanes, calls and steps, to be stepped through; with
    --against, two executions side by side.
    """
    if width is not None:
        at_least_one("--width", width)
    if against is not None and html is None:
        raise InputRefused("--against", "only a page has room for two", "Add --html OUT.")
    targets = {
        option: checked_target(path, option)
        for option, path in {
            "--html": html,
            "--svg": svg,
            "--text": text,
            "--chrome": chrome,
            "--mermaid": mermaid,
        }.items()
        if path is not None
    }
    if against == trace == STANDARD_INPUT:
        raise InputRefused("--against", "standard input can be read only once", "Name a file.")
    first, about = _load(trace, workspace)
    other, of_other = (None, ()) if against is None else _load(against, workspace)
    columns = shutil.get_terminal_size((100, 24)).columns if width is None else width

    def page() -> str:
        names = [_name(trace)] if other is None else _told_apart(_name(trace), _name(against or ""))
        return view.show(first, other, names=names, title=" and ".join(names), about=about or of_other).html

    drawn: dict[str, Callable[[], str]] = {
        "--html": page,
        "--svg": lambda: view.svg(first, by=by, scale=scale, title=_name(trace)),
        "--text": lambda: view.text(first, by=by, scale=scale, width=columns),
        "--chrome": lambda: view.chrome(first),
        "--mermaid": lambda: view.mermaid(first, by=by),
    }
    try:
        written = {option: drawn[option]() for option in targets or ["--text"]}
    except DefinitionRefused as error:
        raise InputRefused(f"--{error.what}", f"expected {error.expected}", "See --help.") from None
    if not targets:
        screen = Screen(forgiving(sys.stdout))
        for line in written["--text"].splitlines():
            screen.say(line)
    for option, target in targets.items():
        write_target(target, written[option].removesuffix("\n"), option)
    return Exit.OK


def _name(path: str) -> str:
    return "standard input" if path == STANDARD_INPUT else on_one_line(Path(path).name, 60)


def _told_apart(one: str, other: str) -> list[str]:
    return [one, other] if one != other else [f"{one} (1)", f"{other} (2)"]


def _load(path: str, workspace: str | None) -> tuple[Trace, Sequence[tuple[str, str]]]:
    """The trace in a file, or that of the execution which a replay file repeats, and what a page says of it.

    Raises:
        InputRefused: it is neither.
        ReplayDiverged: the execution cannot be repeated.
    """
    content = read_limited(path, _MAX_BYTES, _REMEDY)
    name = "standard input" if path == STANDARD_INPUT else path
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputRefused(name, f"it cannot be read as JSON: {error}", _REMEDY) from None
    if isinstance(document, dict) and "toolrt_replay" in document:
        if path == STANDARD_INPUT:
            raise InputRefused(name, "a replay file has to be a file", "Name it.")
        return _replayed(path, workspace)
    try:
        return Trace.from_json(content.decode()), ()
    except InputRefused as error:
        raise InputRefused(name, error.why, _REMEDY) from None


def _replayed(path: str, workspace: str | None) -> tuple[Trace, Sequence[tuple[str, str]]]:
    kept = FailureFile.load(path)
    calls = parse_response(kept.response, f"{path}: its response").calls
    roots = kept.roots(workspace)
    experiment = Experiment.on(roots, calls, kept.lanes, kept.limit, kept.variation, kept.slots)
    execution = experiment.replay(kept.schedule)
    violations = experiment.check(execution, twice=True)
    verdict = verdict_of(execution, violations)
    again = f"toolrt replay {shlex.quote(path)}"
    held = "every law holds" if verdict is sim.PASS else "it was stopped before it ended"
    about = about_batch(kept.response_name, experiment, execution, violations, verdict, held, again)
    return execution.trace, about
