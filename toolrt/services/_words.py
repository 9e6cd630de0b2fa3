"""The words of a command, where a shell could take them for nothing else.

Rules.  It fails closed: text in which anything is expanded, substituted, assigned, put in the background or written to
a file has no words here (`Unclear`).  What is left is the same for every POSIX shell: commands of plain words, in a
pipeline or one after the other.

Theory.  A shell's language is large and what it does with a text depends on its state; so this accepts a small part
that does not, and the tests hold the words against bash's own.
"""

from __future__ import annotations

import re

import attrs


class Unclear(Exception):
    """The text may do more than its words say."""


@attrs.frozen
class Word:
    """One word of a command."""

    #: What it is after its quotes have been taken away.
    text: str
    #: Whether file names may be put in its place: it has ``*``, ``?`` or ``[`` outside of quotes.
    glob: bool = False
    #: Whether such a sign is its first.
    glob_first: bool = False


#: Signs that make a shell do more than split words, wherever they stand outside of quotes.
_REFUSED = frozenset("$`(){}!^\\")

#: Signs that do so at a word's beginning; the second also where a part of a word may begin.
_REFUSED_FIRST = frozenset("#~=")

#: The characters that may separate words; others that look like them might, in some language.
_BLANKS = frozenset(" \t")

_OPERATORS = frozenset(";|&<>\n")
_GLOBS = frozenset("*?[")


def simple_commands(text: str) -> list[list[Word]]:
    """The commands in `text`, each as its words, without redirections that change nothing.

    Raises:
        Unclear: it may do more than run these.
    """
    reader = _WordReader(text)
    commands: list[list[Word]] = [[]]
    while (item := reader.next()) is not None:
        if isinstance(item, Word):
            commands[-1].append(item)
        elif not commands[-1]:
            raise Unclear("an operator without a command before it")
        else:
            commands.append([])
    if not commands[-1]:
        # Only ; and a line's end may be last.
        commands.pop()
        if not reader.may_end:
            raise Unclear("an operator without a command behind it")
    if not commands:
        raise Unclear("no command")
    return commands


class _WordReader:
    """Gives words and operators, one after the other."""

    def __init__(self, text: str) -> None:
        for char in text:
            if (char < " " and char not in "\t\n") or char == "\x7f" or (char > "\x7f" and not char.isprintable()):
                raise Unclear("a character that is not shown")
        self._text = text
        self._at = 0
        #: Whether the text may end behind the last operator.
        self.may_end = False

    def _peek(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def next(self) -> Word | str | None:
        while True:
            while self._peek() and self._peek() in _BLANKS:
                self._at += 1
            char = self._peek()
            if not char:
                return None
            if char in "<>":
                self._redirection()
            elif char in "12" and self._text[self._at + 1 : self._at + 2] == ">" and self._begins_word():
                self._at += 1
                self._redirection()
            elif char in _OPERATORS:
                return self._operator()
            else:
                return self._word()

    def _begins_word(self) -> bool:
        return self._at == 0 or self._text[self._at - 1] in _BLANKS or self._text[self._at - 1] in _OPERATORS

    def _operator(self) -> str:
        two = self._peek(2)
        operator = two if two in ("&&", "||") else self._peek()
        if operator == "&":
            raise Unclear("a command in the background")
        if two in ("|&", ";;"):
            raise Unclear("an operator that not every shell has")
        self._at += len(operator)
        self.may_end = operator in (";", "\n")
        if operator == "\n":
            while self._peek() and self._peek() in "\n \t":
                self._at += 1
        return operator

    def _redirection(self) -> None:
        """Pass over one that changes nothing: nothing is thrown away but output, and nothing read but a file."""
        operator = self._peek()
        self._at += 1
        if operator == ">" and self._peek(2) in ("&1", "&2"):
            self._at += 2
            if self._peek() and self._peek() not in _BLANKS and self._peek() not in _OPERATORS:
                raise Unclear("a redirection to somewhere else")
            return
        if self._peek() and self._peek() in "<>&|":
            raise Unclear("a redirection to somewhere else")
        while self._peek() and self._peek() in _BLANKS:
            self._at += 1
        if not self._peek() or self._peek() in _OPERATORS:
            raise Unclear("a redirection to nothing")
        target = self._word()
        if target.glob or target.text != "/dev/null":
            raise Unclear("a redirection to a file")

    def _word(self) -> Word:
        begin, glob, glob_first = self._at, False, False
        parts: list[str] = []
        while char := self._peek():
            if char in _BLANKS or char in _OPERATORS:
                if char in "<>" and "".join(parts).isdigit():
                    raise Unclear("a number that is no word but a file's")
                break
            if char == "'":
                end = self._text.find("'", self._at + 1)
                if end < 0:
                    raise Unclear("a quote that does not end")
                parts.append(self._text[self._at + 1 : end])
                self._at = end + 1
            elif char == '"':
                parts.append(self._double_quoted())
            elif char in _REFUSED or (char in _REFUSED_FIRST and self._at == begin):
                raise Unclear(f"{char} outside of quotes")
            elif char == "~" and self._text[self._at - 1] in ":=":
                raise Unclear("a home directory")
            else:
                if char in _GLOBS:
                    glob, glob_first = True, glob_first or self._at == begin
                parts.append(char)
                self._at += 1
        return Word("".join(parts), glob, glob_first)

    def _double_quoted(self) -> str:
        end = self._text.find('"', self._at + 1)
        if end < 0:
            raise Unclear("a quote that does not end")
        inside = self._text[self._at + 1 : end]
        if _DOUBLE.search(inside):
            raise Unclear("something that is put in place within quotes")
        self._at = end + 1
        return inside


#: What means something within double quotes; a backslash does so before some signs only.
_DOUBLE = re.compile(r"[$`!]|\\(?:[\\\n]|\Z)")


def leading_cd(text: str) -> tuple[str, str] | None:
    """The directory and the rest of ``cd DIR`` and ``cd DIR && rest``; None: the text does not begin so.

    A directory that a shell would have to find out (``cd -``, ``cd $x``, ``cd``) is none.
    """
    try:
        reader = _WordReader(text)
        words: list[Word] = []
        while isinstance(item := reader.next(), Word):
            words.append(item)
            if len(words) > 3:
                return None
    except Unclear:
        return None
    if item not in (None, "&&", ";", "\n") or not words or words[0] != Word("cd"):
        return None
    arguments = words[2:] if words[1:2] == [Word("--")] else words[1:]
    if len(arguments) != 1 or arguments[0].glob or not arguments[0].text or arguments[0].text.startswith("-"):
        return None
    rest = text[reader._at :].strip()
    if item in (";", "\n") and rest:
        # What comes behind runs also where there is no such directory.
        return None
    return None if item == "&&" and not rest else (arguments[0].text, rest)
