"""``toolrt litmus NAME --play``: be the scheduler of a litmus program.

Rules.  On a terminal one key is one answer.  Elsewhere, and where a task has a number above nine, one line is; where
input ends, so does the game.  The story may give the bug away, so the game tells it once the bug was found or shown.
Everything can be taken back.  Hints and the proof are there at any time.  Numbers, names
and counts are those of the page (`toolrt.view.play`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from textwrap import wrap
from typing import TextIO

from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._screen import Screen
from toolrt.teaching.litmus import Litmus, in_order
from toolrt.teaching.play import Game

_WIDTH = 100
_HELP = "a number or a task lets it run; h hint, b undo, r begin again, p proof, s show one that goes wrong, q quit"

#: A key does not name a task with a number above this.
_MOST_KEYS = 9


def play(program: Litmus, screen: Screen, given: TextIO | None) -> None:
    """Play until the player quits or the input ends.

    Args:
        given: where answers come from; None: there are none.
    """
    say_what_it_is(program, screen, story=False)
    wrong = ", ".join(repr(outcome) for outcome in in_order(program.wrong))
    aim = f"Try to make it end in {wrong}." if wrong else "No schedule is known to go wrong: try, or see the proof (p)."
    screen.say(on_one_line(f"You are the scheduler. {aim}"), "bold")
    screen.say(_HELP)
    _GameSession(Game(program), screen).play(given)


def say_what_it_is(program: Litmus, screen: Screen, story: bool = True) -> None:
    """Print the program's name, its `story` and its source."""
    screen.say(program.name, "bold")
    if story:
        _tell(program, screen)
    for line in program.source.splitlines():
        screen.say(on_one_line(line), indent=4)
    screen.say()


def _tell(program: Litmus, screen: Screen) -> None:
    for line in wrap(program.story, _WIDTH):
        screen.say(on_one_line(line))
    screen.say()


class _GameSession:
    """One game, and where it is shown."""

    def __init__(self, game: Game, screen: Screen) -> None:
        self._game = game
        self._screen = screen
        # How many of its steps have been printed.
        self._shown = 0
        self._told_end = False

    def play(self, given: TextIO | None) -> None:
        actions: Mapping[str, Callable[[], None]] = {
            "h": self._hint,
            "b": self._back,
            "r": self._restart,
            "p": self._prove,
            "s": self._show_failing,
            "?": lambda: self._screen.say(_HELP),
        }
        while True:
            self._show()
            answer = _answer(given, self._takes_keys)
            if answer is None or answer in ("q", "quit"):
                self._screen.say()
                return
            if answer in actions:
                actions[answer]()
            elif answer:
                self._choose(answer)

    @property
    def _takes_keys(self) -> bool:
        return all(option.number <= _MOST_KEYS for option in self._game.options)

    def _named(self, task: str) -> str:
        """The task, and the function that it runs."""
        functions = self._game.execution.trace.notes["details"].get("functions", {})
        column = task.partition("=")[0]
        function = functions.get(column, "") if column != "main" else ""
        return f"{task} {function}" if function.isidentifier() else task

    def _show(self) -> None:
        game, screen = self._game, self._screen
        steps = game.steps
        for number in range(self._shown, len(steps)):
            step = steps[number]
            mark = ">" if step.chosen else " "
            time = f"  at {step.time:g} s" if any(each.time for each in steps) else ""
            screen.say(on_one_line(f"{mark} {number:>3}  {self._named(step.task):16}  {step.does}{time}", 200))
        self._shown = len(steps)
        if game.over:
            if not self._told_end:
                self._told_end = True
                self._end()
            screen.say("b undo, r begin again, p proof, q quit:", "bold")
            return
        screen.say("Who runs next?", "bold")
        for option in game.options:
            screen.say(on_one_line(f"{option.number}  {self._named(option.task):16}  {option.does}", 200), indent=2)

    def _end(self) -> None:
        game, screen = self._game, self._screen
        outcome = on_one_line(repr(game.outcome))
        if game.broken:
            switches = game.execution.schedule.switches
            count = f"{switches} preemption{'' if switches == 1 else 's'}"
            screen.say(f"It ended in {outcome}: the bug. You broke it, with {count}.", "bold red")
            screen.say("The schedule:", indent=2)
            screen.say(on_one_line(game.execution.schedule.short), indent=4)
            for line in game.why():
                screen.say(on_one_line(line), indent=2)
            _tell(game.litmus, screen)
        else:
            screen.say(f"It ended in {outcome}, as it should.", "green")
        unseen = game.classes_unseen
        seen = f"{game.classes_seen:,} class{'' if game.classes_seen == 1 else 'es'} of schedules seen"
        screen.say(seen + ("" if unseen is None else f", {unseen:,} still unseen"), indent=2)

    def _choose(self, answer: str) -> None:
        game, screen = self._game, self._screen
        named = [option.task for option in game.options if answer in (str(option.number), option.task)]
        if named:
            game.choose(named[0])
        elif game.over:
            screen.say("It is over: b undo, r begin again.", "yellow")
        else:
            screen.say(on_one_line(f"{answer!r:.60} is no answer: {_HELP}"), "yellow")

    def _hint(self) -> None:
        if self._game.over:
            self._screen.say("It is over: go back, or begin again.")
            return
        self._screen.say(on_one_line(f"Hint: {self._game.hint()}."), "yellow")

    def _back(self) -> None:
        self._game.back()
        self._again()

    def _restart(self) -> None:
        self._game.restart()
        self._again()

    def _again(self) -> None:
        self._shown, self._told_end = 0, False
        self._screen.say("-" * 20)

    def _prove(self) -> None:
        program, screen = self._game.litmus, self._screen
        found, unseen = self._game.proof(), self._game.classes_unseen
        screen.say(f"{found.claim}: {found.method}, {found.executions:,} executions", "bold")
        if unseen is not None:
            screen.say(f"{self._game.classes_seen + unseen:,} classes, {unseen:,} of them unseen")
        for outcome in in_order(found.seen):
            bug = "   the bug" if outcome in program.wrong else ""
            screen.say(on_one_line(f"{found.seen[outcome]:>9,} x {outcome!r}{bug}"), "red" if bug else "")
        _tell(program, screen)
        if found.method == "sampled":
            screen.say(on_one_line(f"A sample; that there are no others: {program.proof}"))
        elif program.wrong:
            screen.say("Some go wrong: go and find one, or see one (s).")
        else:
            screen.say("None goes wrong, and none is left: there is nothing to find.", "green")

    def _show_failing(self) -> None:
        failure, screen = self._game.proof().failure, self._screen
        if failure is None:
            screen.say("None was found that goes wrong.")
            return
        screen.say("The simplest schedule found that goes wrong:", "bold")
        for line in failure.explain().splitlines():
            screen.say(on_one_line(line), indent=2)


def _answer(given: TextIO | None, by_key: bool) -> str | None:
    """The next answer; None where there is none."""
    if given is None:
        return None
    if by_key and given.isatty() and (key := _key(given)) is not None:
        return key
    line = given.readline()
    return line.strip().lower() if line else None


def _key(given: TextIO) -> str | None:
    """The next key of a terminal, without Enter; None where this system has no such thing."""
    try:
        import termios
        import tty
    except ImportError:
        return None
    number = given.fileno()
    try:
        before = termios.tcgetattr(number)
        tty.setcbreak(number, termios.TCSADRAIN)
    except termios.error:
        return None
    try:
        read = os.read(number, 32)
    except InterruptedError:
        read = b""
    finally:
        with suppress(termios.error):
            termios.tcsetattr(number, termios.TCSADRAIN, before)
    # The end of input as a terminal has it; an arrow or another key that sends several characters is no answer.
    if read in (b"", b"\x04"):
        return "q"
    text = read.decode("utf-8", "replace").strip().lower()
    return {"\x7f": "b", "\x08": "b"}.get(text, text)
