"""``toolrt litmus``: the gallery of small programs, and exactly what can come of each.

Rules.  Without a name the programs are listed, and ``--site`` writes them as pages to be played.  With one, its story,
its source, every outcome and one schedule that goes wrong are shown.  With ``--verify`` nothing is shown but whether
what is stated is so.  The exit code is that of the verification in both: a program whose bug is found, as stated, has
been verified.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from toolrt import sim, view
from toolrt._plain import counted
from toolrt.cli._exit import Exit
from toolrt.cli.commands._play import play as play_it
from toolrt.cli.commands._play import say_what_it_is
from toolrt.cli.experiment._cluster import cluster_of
from toolrt.cli.experiment._input import checked_target, write_target
from toolrt.cli.experiment._options import Cluster, Whole, at_least_one
from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._screen import Screen, forgiving, print_json
from toolrt.errors import DefinitionRefused, InputRefused, NotReproducible
from toolrt.teaching.litmus import LITMUS, MOST, THEMES, Litmus, Verified, in_order, method_of
from toolrt.teaching.litmus import verify as verified
from toolrt.teaching.litmus._verify import verified_on
from toolrt.teaching.play import MOST_ON_A_PAGE, Game, write_site
from toolrt.trace import stable_text

#: Of the outcomes of one program so many are printed.
_OUTCOMES = 30

#: Of the problems of one program so many are printed.
_PROBLEMS = 5


def litmus(
    name: Annotated[str | None, Parameter(help="A program of the gallery; all of them unless given.")] = None,
    /,
    *,
    verify: Annotated[
        bool, Parameter(help="Check outcomes and counts, and say only whether they are so.", negative=())
    ] = False,
    most: Annotated[
        Whole | None,
        Parameter(
            help="A program with more schedules and more classes than this is sampled; with --site: so many schedules "
            f"of each program. {MOST:,} unless given, {MOST_ON_A_PAGE} with --site."
        ),
    ] = None,
    cluster: Cluster = None,
    json: Annotated[bool, Parameter(help="Print what was shown as JSON.", negative=())] = False,
    play: Annotated[bool, Parameter(help="Choose yourself who runs next, and try to break it.", negative=())] = False,
    html: Annotated[
        str | None, Parameter(help="Write a page: a schedule that goes wrong beside the nearest one that does not.")
    ] = None,
    reproduce: Annotated[
        str | None, Parameter(help="Write the schedule that goes wrong as a program that needs Trio alone.")
    ] = None,
    site: Annotated[
        str | None, Parameter(help="Write the whole gallery as a site into this directory, to be played in a browser.")
    ] = None,
) -> int:
    """List small concurrent programs, show one, or verify them.

    Each program of the gallery has a story and an exact set of outcomes. With a name, its story and its source are
    shown, it is run under every schedule (or once for each class of them, or a sample, where there are too many), and
    one that goes wrong is shown step by step. With --play you choose who runs next, and try to break it. With
    --verify, every outcome that is stated has to come, no other may, and the schedules and classes have to be as many
    as stated.
    """
    if most is not None:
        at_least_one("--most", most)
    if site is not None:
        if name is not None or verify or play or json or html is not None or reproduce is not None:
            raise InputRefused("--site", "a site has the whole gallery", "Leave out all but --most.")
        return _write_site(site, MOST_ON_A_PAGE if most is None else most, Screen(forgiving(sys.stdout)))
    most = MOST if most is None else most
    if cluster is not None and not verify:
        raise InputRefused("--cluster", "it is for --verify", "Add --verify, or leave it out.")
    if html is not None and (name is None or verify):
        raise InputRefused("--html", "a page shows one program", "Name it, without --verify.")
    if reproduce is not None and (name is None or verify or play):
        raise InputRefused("--reproduce", "it writes one program", "Name it, without --verify and --play.")
    if play and (name is None or verify or json):
        raise InputRefused("--play", "one program is played, and nothing else", "Name it, with --html at most.")
    target = None if html is None else checked_target(html, "--html")
    alone = None if reproduce is None else checked_target(reproduce, "--reproduce")
    programs = list(LITMUS.values()) if name is None else [_named(name)]
    screen = Screen(forgiving(sys.stderr if json else sys.stdout))
    if play and target is not None:
        write_target(target, view.play(Game(programs[0])).html.rstrip(), "--html", private=False)
        return Exit.OK
    if play:
        play_it(programs[0], screen, sys.stdin)
        return Exit.OK
    if name is None and not verify:
        _list(screen)
        if json:
            print_json([_stated(program) for program in programs])
        return Exit.OK
    if verify:
        with cluster_of(cluster) as client:
            found = _verify(programs, verified_on(client, programs, most), screen)
    else:
        found = [_show(programs[0], most, screen)]
        if target is not None:
            write_target(target, _page(programs[0], found[0]).html.rstrip(), "--html", private=False)
        if alone is not None:
            _reproduce(found[0], alone, screen)
    if json:
        print_json({"ok": all(one.ok for one in found), "programs": [one.to_json() for one in found]})
    return Exit.OK if all(one.ok for one in found) else Exit.FAILED


def _write_site(directory: str, most: int, screen: Screen) -> int:
    began = time.perf_counter()
    try:
        written = write_site(directory, most, THEMES)
    except DefinitionRefused:
        remedy = "Name a directory that has no index.html of its own."
        raise InputRefused(f"--site {directory!r}", "it has an index.html that is no gallery's", remedy) from None
    except OSError as error:
        raise InputRefused(
            f"--site {directory!r}", f"it cannot be written ({error.strerror})", "Name another."
        ) from None
    seconds = time.perf_counter() - began
    screen.say(f"{written.programs} programs, {written.size / 1e6:.1f} MB, in {seconds:.0f} s")
    if count := len(written.in_part):
        has, pages = ("has", "its page has") if count == 1 else ("have", "their pages have")
        screen.say(f"{count} of them {has} more than {most:,} schedules: {pages} a part of them.")
    screen.say(on_one_line(f"Open {written.directory / 'index.html'} in a browser.", 300))
    return Exit.OK


def _named(name: str) -> Litmus:
    program = LITMUS.get(name)
    if program is None:
        close = [known for known in LITMUS if name.lower() in known or known in name.lower()]
        remedy = f"Did you mean {', '.join(close[:5])}?" if close else "toolrt litmus lists them."
        raise InputRefused("NAME", f"there is no litmus program {name!r:.60}", remedy)
    return program


def _list(screen: Screen) -> None:
    width = max(map(len, LITMUS))
    for theme, programs in THEMES.items():
        screen.say(theme, "bold")
        for program in programs:
            first = program.story.partition(". ")[0].rstrip(".")
            screen.say(on_one_line(f"{program.name:{width}}  {first}"), indent=2)
    wrong = sum(bool(program.wrong) for program in LITMUS.values())
    screen.say(f"{len(LITMUS)} programs; {wrong} of them have schedules that go wrong. toolrt litmus NAME shows one.")


def _verify(programs: Iterable[Litmus], verifications: Iterable[Verified], screen: Screen) -> list[Verified]:
    found, began = [], time.perf_counter()
    for program, one in zip(programs, verifications, strict=True):
        found.append(one)
        counts = f"{counted(one.executions, 'execution')}, {counted(len(one.seen), 'outcome')}"
        if one.classes is not None:
            counts += f", {one.classes:,} classes"
        style = "" if one.ok else "red"
        screen.say(on_one_line(f"{'ok' if one.ok else 'FAILED':6}  {program.name:26} {one.method}: {counts}"), style)
        _print_problems(one, screen)
    wrong = sum(not one.ok for one in found)
    executions = sum(one.executions for one in found)
    seconds = time.perf_counter() - began
    screen.say(f"{counted(len(found), 'program')}, {counted(executions, 'execution')} in {seconds:.1f} s")
    screen.say(f"FAIL: {wrong} are not as stated" if wrong else "PASS: all are as stated", _style(not wrong))
    return found


def _show(program: Litmus, most: int, screen: Screen) -> Verified:
    say_what_it_is(program, screen)
    for what, count in (("interleavings", program.interleavings), ("classes", program.classes)):
        if count is not None:
            screen.say(f"{what}: {count}")
    if program.proof and method_of(program, most) == "sampled":
        screen.say(on_one_line(f"outcomes known by: {program.proof}"))
    one = verified(program, most)
    screen.say(f"{one.claim}:")
    stated = in_order({*one.seen, *program.outcomes})
    for outcome in stated[:_OUTCOMES]:
        is_wrong = outcome in program.wrong
        text = f"{one.seen.get(outcome, 0):>9,} x {outcome!r}{'   the bug' if is_wrong else ''}"
        screen.say(on_one_line(text), "red" if is_wrong else "")
    if len(stated) > _OUTCOMES:
        screen.say(f"... and {len(stated) - _OUTCOMES} more outcomes", indent=2)
    if one.failure is not None:
        screen.say()
        screen.say("The simplest schedule found that goes wrong:", "bold")
        named, schedule = f'LITMUS["{program.name}"].program', one.failure.minimal.short
        again = f'sim.replay({named}, "{schedule}"{_settings_of(program)})  # from toolrt.teaching.litmus import LITMUS'
        for line in one.failure.explain(again=again, heads=1).splitlines():
            screen.say(on_one_line(line), indent=2)
    screen.say()
    _print_problems(one, screen)
    screen.say("PASS: outcomes and counts are as stated" if one.ok else "FAIL: not as stated", _style(one.ok))
    return one


def _reproduce(one: Verified, target: Path, screen: Screen) -> None:
    """Write the schedule that goes wrong for plain Trio, or say why that cannot be."""
    try:
        if one.failure is None:
            raise NotReproducible("no schedule goes wrong")
        made = one.failure.reproduce()
    except NotReproducible as refused:
        screen.say(on_one_line(f"No program without toolrt was written: {refused}", 300), "yellow")
        return
    write_target(target, made.rstrip(), "--reproduce", private=False)
    screen.say(f"On plain Trio it failed in {made.failed} of {counted(made.runs, 'run')}.")


def _settings_of(program: Litmus) -> str:
    """What a replay of it takes besides, as a caller writes it."""
    return "".join(f", {name}={value!r}" for name, value in program.settings.items() if value not in ("any", False))


def _page(program: Litmus, one: Verified) -> view.Page:
    """A schedule that goes wrong beside the nearest one that does not; where none does, the simplest one."""
    named = f'LITMUS["{program.name}"].program'
    if one.failure is None:
        meant = _settings_of(program)
        execution = sim.run(program.program, sim.Choices(), details=True, **program.settings)
        about = [
            ("PASS", one.claim) if one.ok else ("FAIL", one.problems[0]),
            ("Value", stable_text(execution.outcome)),
            ("Program", f"{program.name}: {program.story}"),
            ("Schedule", execution.schedule.short),
            ("Run it again", f'sim.replay({named}, "{execution.schedule.short}"{meant})'),
        ]
        return view.show(execution, names=["right"], title=program.name, about=about)
    wrong, right = one.failure.compared
    told = {"Program": f"{program.name}: {program.story}"}
    about = [
        (name, text.replace("(program,", f"({named},", 1) if name == "Run it again" else told.get(name, text))
        for name, text in one.failure.about_minimal
    ]
    names = ["wrong", "right"][: 1 if right is None else 2]
    return view.show(wrong, right, names=names, title=f"{program.name}: {one.failure.headline}", about=about)


def _print_problems(one: Verified, screen: Screen) -> None:
    for problem in one.problems[:_PROBLEMS]:
        screen.say(on_one_line(problem), "red", indent=8)
    if len(one.problems) > _PROBLEMS:
        screen.say(f"... and {len(one.problems) - _PROBLEMS} more", "red", indent=8)


def _style(ok: bool) -> str:
    return "bold green" if ok else "bold red"


def _stated(program: Litmus) -> dict[str, Any]:
    return {
        "name": program.name,
        "story": program.story,
        "right": [str(outcome) for outcome in in_order(program.right)],
        "wrong": [str(outcome) for outcome in in_order(program.wrong)],
        "interleavings": None if program.interleavings is None else program.interleavings.number,
        "classes": None if program.classes is None else program.classes.number,
    }
