"""Who may do what, from the command line: rules as options, questions on the terminal.

Rules.  ``--deny`` outranks ``--ask``, which outranks ``--allow``; what none of them speaks of is allowed, or, where
there is an ``--allow``, asked about.  Questions come one at a time, those that wait in call order, while other calls
go on.  An answer is one line of standard input.  Where standard input has ended, or holds the response, no question
can be asked, and the calls that need an answer are denied.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import trio

from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._plan import in_words
from toolrt.cli.screen._screen import Screen
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.model import ToolCall
from toolrt.workspace import Permissions, Permit, Question, Rule, Workspace

_ANSWERS: dict[str, object] = {
    "y": Permit.ONCE,
    "yes": Permit.ONCE,
    "p": Permit.PATH,
    "s": Permit.SESSION,
    "n": "The user said no.",
    "no": "The user said no.",
}

_NO_ANSWER = "Standard input has ended, so no person can answer."

#: Bytes that a line of an answer is read with.
_BLOCK = 4096


def permissions_of(
    workspace: Workspace,
    allow: Sequence[str],
    ask: Sequence[str],
    deny: Sequence[str],
    put: Callable[[Question], Awaitable[object]],
) -> Permissions | None:
    """The approval check that the options ask for; None when they ask for none.

    Args:
        allow, ask, deny: patterns of paths, each with or without ``TOOL:`` before it.
        put: asks a question, and gives the answer.

    Raises:
        InputRefused: a pattern cannot be meant.
    """
    rules = [
        *(_rule("--deny", text, "deny") for text in deny),
        *(_rule("--ask", text, "ask") for text in ask),
        *(_rule("--allow", text, "allow") for text in allow),
    ]
    if not rules:
        return None
    return Permissions(workspace, rules, put, "ask" if allow else "allow")


def _rule(option: str, text: str, answer: Any) -> Rule:
    tool, colon, path = text.partition(":")
    if not colon:
        tool, path = "*", text
    try:
        # Nothing behind the colon: every call of the tool, also of one that has no paths, such as an MCP server's.
        return Rule(tool, None if colon and tool and not path else path, answer)
    except DefinitionRefused as error:
        raise InputRefused(
            f"{option} {on_one_line(text, 200)}",
            str(error),
            "Write PATTERN or TOOL:PATTERN, such as edit_file:src/**, or TOOL: for all of its calls.",
        ) from None


class TerminalQuestions:
    """Asks questions on the terminal and reads the answers from standard input.

    Args:
        screen: where a question is printed.
        input_is_free: whether standard input can be asked.
    """

    def __init__(self, screen: Screen, input_is_free: bool) -> None:
        self._screen = screen
        self._open = input_is_free
        self._read = b""
        # The places of the calls that are to be asked about, and those who wait for the one before.
        self._waiting: list[int] = []
        self._lot = trio.lowlevel.ParkingLot()
        self._is_asking = False

    async def put(self, question: Question) -> object:
        """Ask, and give the answer."""
        place = question.request.call_index
        self._waiting.append(place)
        try:
            # All calls that are asked about at one time come here before any of them goes on, in whatever order.
            await trio.lowlevel.checkpoint()
            while self._is_asking or min(self._waiting) != place:
                await self._lot.park()
            self._is_asking = True
            try:
                return await self._answer(question)
            finally:
                self._is_asking = False
        finally:
            self._waiting.remove(place)
            self._lot.unpark_all()

    async def _answer(self, question: Question) -> object:
        asked = question.request
        call = in_words(ToolCall(asked.call_id, asked.name, dict(asked.input)))
        paths = on_one_line(", ".join(question.paths), 300) or "no path that is known"
        with self._screen.held():
            self._screen.say(f"[{asked.call_index}] {call}: may it touch {paths}?", "bold")
            self._screen.say(on_one_line(question.why, 300), "dim", indent=2)
            while True:
                self._screen.say("[y]es once, [p]ath from now on, [s]ession: every path, [n]o:", indent=2)
                line = await self._line()
                if line is None:
                    self._screen.say("no answer: denied", "yellow", indent=2)
                    return _NO_ANSWER
                answer = _ANSWERS.get(line.strip().lower())
                if answer is not None:
                    return answer

    async def _line(self) -> str | None:
        """The next line of standard input, or None at its end."""
        while b"\n" not in self._read and self._open:
            try:
                descriptor = sys.stdin.fileno()
                await trio.lowlevel.wait_readable(descriptor)
                block = os.read(descriptor, _BLOCK)
            except OSError as error:
                # A regular file cannot be waited for, and need not be.
                block = os.read(descriptor, _BLOCK) if error.errno == errno.EPERM else b""
            except (AttributeError, ValueError):
                block = b""
            self._read += block
            self._open = bool(block)
        if not self._read:
            await trio.lowlevel.checkpoint()
            return None
        line, _, self._read = self._read.partition(b"\n")
        return line.decode(errors="replace")
