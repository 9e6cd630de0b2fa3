r"""Regular expressions whose time is bounded, for patterns that a model wrote.

Rules.  Known are what regular expressions have without looking back or ahead: literals, ``.``, sets, ``\d \w \s \b``
and their opposites, ``^ $``, groups, ``|``, and ``* + ? {m,n}``, each with Python's meaning; a ``?`` behind a repeat is
taken and changes nothing, for the only question is whether a line has a match.  A set takes the ASCII classes that
POSIX names (``[[:digit:]]``, ``[[:^digit:]]``); ``\p{Lu}`` is a general category of Unicode; a group may have a name; a
leading ``(?i)``, or ``(?i:...)``, ignores case.  All else is refused by name.  A pattern goes over several lines where
a ``\n`` (or ``\r\n``, ``\r?\n``, or a line's end itself) stands outside of groups and sets: no other part passes a
line's end, so lines behind one another that match the parts are what the whole matches.

Theory.  A nondeterministic automaton is walked as a deterministic one whose states are made when they are first met
(Thompson 1968; lazily as in RE2).  So a line takes time proportional to its length, whatever the pattern: Python's own
`re` takes exponential time for ``(a+)+$``, holds the interpreter meanwhile and cannot be stopped, so one pattern would
hang the whole program.

Limits.  What a search may make of new states is bounded (`WORK_MOST`), counted rather than timed, so that the refusal
is the same on every machine.  No references, no looking around; of the flags ``i``, and ``m``, which lines have anyway;
of the properties of Unicode the general categories.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Literal, NoReturn

import attrs

from toolrt.workspace.finding._factor import Characters, Factor, FactorOfSequence
from toolrt.workspace.rules._patterns import POSIX

#: How long a pattern may be, how deep its groups may nest, how many places its automaton may have, and how many of
#: those may be visited to make states of, in all: some seconds.
_LONGEST = 1000
_DEEPEST = 50
_PLACES_MOST = 2000
WORK_MOST = 10_000_000

#: How many copies of what is repeated count for what every match has.
_COPIES = 8

#: How many steps are remembered before all are forgotten.
_STEPS_REMEMBERED = 50_000

Test = Callable[[str], bool]


class RegexRefused(ValueError):
    """A pattern cannot be used; the text says why."""


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


_CLASSES: dict[str, Test] = {"d": str.isdecimal, "w": _is_word, "s": str.isspace}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
#: A class that POSIX names: inside the brackets of a set, and as a set of its own, which is a slip.
_POSIX_CLASS = re.compile(r"\[:(\^?)(\w*):\]")
#: A property: with its name in braces, or of one letter.
_PROPERTY = re.compile(r"[pP](?:\{(\^?\w*)\}|(\w))")
#: The general categories of Unicode, and the groups of them that their first letters are.
_CATEGORIES = (
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe", "Pi",
    "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "C", "Cc", "Cf", "Cs", "Co", "Cn",
)  # fmt: skip
#: Flags for a whole pattern, flags anywhere, and what may stand behind the parenthesis that opens a group: nothing, a
#: name, or flags for the group alone.
_LEADING_FLAGS = re.compile(r"\(\?([a-zA-Z]+)\)")
_SOME_FLAGS = re.compile(r"\?[a-zA-Z-]+[:)]")
_GROUP = re.compile(r"(?!\?)|\?P?<([A-Za-z_]\w*)>|\?([a-zA-Z]*)(-[a-zA-Z]+)?:")
#: A line's end as a pattern has it.
_LINE_END = re.compile(r"(?:\\r\??|\r\??)?(?:\\n|\n)|\r")
_ASSERTIONS = {"b": "b", "B": "B", "A": "^", "Z": "$", "z": "$"}

# The tree of a pattern.


@attrs.frozen
class _One:
    """One character."""

    test: Test
    #: All characters that pass the test, where they are known.
    known: str | None = None


@attrs.frozen
class _Where:
    """A place between characters: "^", "$", "b" or "B"."""

    kind: str


@attrs.frozen
class _All:
    """One after another."""

    parts: tuple[_Node, ...]


@attrs.frozen
class _Any:
    """One of several."""

    parts: tuple[_Node, ...]


@attrs.frozen
class _Repeat:
    """One several times."""

    part: _Node
    least: int
    #: None: as often as it is there.
    most: int | None


_Node = _One | _Where | _All | _Any | _Repeat


class _Parser:
    """Reads a pattern; the first character not read yet is at `at`."""

    def __init__(self, pattern: str, ignore_case: bool) -> None:
        self._pattern = pattern
        self._ignore_case = ignore_case
        self._at = 0
        self._depth = 0
        self._names: set[str] = set()
        #: The lines that have ended.
        self._lines: list[_Node] = []

    def parsed(self) -> list[_Node]:
        """The tree of each line that it goes over."""
        if len(self._pattern) > _LONGEST:
            raise RegexRefused(f"it has {len(self._pattern)} characters, and {_LONGEST} are the most")
        flags = _LEADING_FLAGS.match(self._pattern)
        if flags is not None:
            self._flags(flags[1])
            self._at = flags.end()
        node = self._alternatives()
        if self._at < len(self._pattern):
            self._refuse("a closing parenthesis that none opened")
        ended = [_All((line, _Where("$"))) for line in self._lines]
        first, *others = *ended, node
        return [first, *(_All((_Where("^"), line)) for line in others)]

    def _refuse(self, what: str) -> NoReturn:
        raise RegexRefused(f"it has {what} at character {self._at}")

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self, what: str) -> bool:
        found = self._pattern.startswith(what, self._at)
        self._at += len(what) * found
        return found

    def _alternatives(self) -> _Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse(f"more than {_DEEPEST} groups in each other")
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        if self._depth == 1 and len(parts) > 1 and self._lines:
            self._refuse_line_end()
        self._depth -= 1
        return parts[0] if len(parts) == 1 else _Any(tuple(parts))

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._peek() not in ("", "|", ")"):
            end = _LINE_END.match(self._pattern, self._at)
            if end is None:
                parts.append(self._repeated(self._atom()))
                continue
            self._at = end.end()
            if self._peek() in ("*", "+", "?", "{"):
                self._refuse("a line's end that is repeated, which is not known here (write each)")
            if self._depth > 1:
                self._refuse_line_end()
            self._lines.append(_All(tuple(parts)))
            parts = []
        return parts[0] if len(parts) == 1 else _All(tuple(parts))

    def _refuse_line_end(self) -> NoReturn:
        self._refuse(r"a line's end in a group or beside |, which is not known here (write \n outside of groups)")

    def _repeated(self, node: _Node) -> _Node:
        repeats = 0
        while True:
            before = self._at
            bounds = self._bounds()
            if bounds is None:
                return node
            if repeats or isinstance(node, _Where):
                self._at = before
                self._refuse("a repeat of what cannot be repeated")
            if self._peek() == "+":
                self._refuse("a repeat that gives nothing back, which is not known here")
            self._take("?")
            node = _Repeat(node, *bounds)
            repeats += 1

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        if self._peek() != "{":
            return None
        end = self._pattern.find("}", self._at)
        least, comma, most = self._pattern[self._at + 1 : max(end, self._at + 1)].partition(",")
        numbers = [number for number in (least, most) if number]
        if end < 0 or not (numbers or comma) or not all(number.isascii() and number.isdecimal() for number in numbers):
            return None  # then the brace is one
        if any(len(number) > 4 for number in numbers):
            self._refuse("a repeat of more than 9999 times")
        low = int(least or 0)
        high = low if not comma else (int(most) if most else None)
        if high is not None and high < low:
            self._refuse("a repeat whose bounds are the wrong way round")
        self._at = end + 1
        return low, high

    def _atom(self) -> _Node:
        character = self._peek()
        if self._take("("):
            return self._group()
        if self._take("["):
            return self._set()
        if self._take("\\"):
            return self._escape()
        before = self._at
        if character in "*+?{" and self._bounds() is not None:
            self._at = before
            self._refuse("a repeat of nothing")
        self._at += 1
        if character == ".":
            return _One(lambda character: True)
        if character in "^$":
            return _Where(character)
        return self._literal(character)

    def _group(self) -> _Node:
        """A group, whose parenthesis is behind us."""
        ignore_case = self._ignore_case
        opened = _GROUP.match(self._pattern, self._at)
        if opened is None:
            if _SOME_FLAGS.match(self._pattern, self._at):
                self._refuse("a flag behind the beginning (set ignore_case, or write (?i:...) or begin with (?i))")
            self._refuse("a group of a kind that is not known here (known are (...), (?:...), (?<name>...), (?i:...))")
        name, flags, off = opened.groups()
        if name is not None:
            if name in self._names:
                self._refuse(f"two groups with the name {name}")
            self._names.add(name)
        self._flags(flags or "")
        if off:
            self._flags(off[1:])
            self._ignore_case = self._ignore_case and "i" not in off
        self._at = opened.end()
        node = self._alternatives()
        if not self._take(")"):
            self._refuse("the end where a group should be closed")
        self._ignore_case = ignore_case
        return _All((node,)) if isinstance(node, _Where) else node  # in a group it may be repeated

    def _flags(self, flags: str) -> None:
        """Heed these flags from here on."""
        for flag in flags:
            if flag == "s":
                self._refuse("the flag s, but lines are searched one by one: no dot passes a line's end (leave s away)")
            if flag not in "im":
                self._refuse(f"a flag that is not known here ({flag}; known are i and m; or set ignore_case)")
        self._ignore_case = self._ignore_case or "i" in flags

    def _literal(self, character: str) -> _One:
        if not self._ignore_case:
            return _One(character.__eq__, character)
        if character.isascii() and character not in "kK":  # the sign of Kelvin, beyond ASCII, is a k as well
            cases = "".join(sorted({character.lower(), character.upper()}))
            return _One(lambda other: other in cases, cases)
        folded = character.casefold()
        return _One(lambda other: other.casefold() == folded)

    def _escape(self) -> _Node:
        character = self._peek()
        if character in _ASSERTIONS:
            self._at += 1
            return _Where(_ASSERTIONS[character])
        test = self._class()
        if test is not None:
            return _One(test)
        return self._literal(self._escaped())

    def _class(self) -> Test | None:
        """The test of a class such as ``d`` or ``D`` that is here, if one is."""
        character = self._peek()
        test = self._property() if character in ("p", "P") else _CLASSES.get(character.lower())
        if test is None:
            return None
        self._at += 1
        return test if character.islower() else lambda other: not test(other)

    def _property(self) -> Test:
        """The test of a property such as ``p{Lu}`` that is here; its last character is left to be passed."""
        found = _PROPERTY.match(self._pattern, self._at)
        name = "" if found is None else found[1] or found[2]
        negated = name.startswith("^")
        category = name.removeprefix("^")
        if found is None or category not in _CATEGORIES:
            self._refuse(f"a property that is not known here (\\p{{{category}}}; known are {', '.join(_CATEGORIES)})")
        if self._ignore_case and category in ("Lu", "Ll", "Lt"):
            self._refuse("a property of one case in a search that ignores case (write \\p{L})")
        self._at = found.end() - 1
        return lambda character: unicodedata.category(character).startswith(category) is not negated

    def _escaped(self) -> str:
        """The character that an escape stands for; the backslash is behind us."""
        character = self._peek()
        if not character:
            self._refuse("a backslash with nothing behind it")
        self._at += 1
        digits = {"x": 2, "u": 4, "U": 8}.get(character)
        if digits is not None:
            text = self._pattern[self._at : self._at + digits]
            if len(text) < digits or not all(digit in "0123456789abcdefABCDEF" for digit in text):
                self._refuse(f"an escape that wants {digits} hexadecimal digits")
            self._at += digits
            number = int(text, 16)
            if number > 0x10FFFF:
                self._refuse("a character that does not exist")
            return chr(number)
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character in "<>":
            self._refuse(f"the edge of a word as some programs write it (write \\b, or {character} for the character)")
        if character.isalnum():
            self._refuse(f"an escape that is not known here (\\{character})")
        return character

    def _set(self) -> _Node:
        slip = _POSIX_CLASS.match(self._pattern, self._at - 1)
        if slip is not None and slip[2] in POSIX:
            self._refuse(f"a class outside of a set (write [{slip[0]}])")
        negated = self._take("^")
        tests: list[Test] = []
        first = True
        while first or self._peek() != "]":
            first = False
            if not self._peek():
                self._refuse("the end where a set should be closed")
            low = self._member(tests)
            if low is None:
                continue
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("", "]"):
                self._at += 1
                high = self._member([])
                if high is None or high < low:
                    self._refuse("a range whose ends are the wrong way round, or are no characters")
                tests.append(_range(low, high))
            else:
                tests.append(low.__eq__)
        self._at += 1
        any_of = tuple(tests)

        def inside(character: str) -> bool:
            return any(test(character) for test in any_of)

        if not self._ignore_case:
            return _One((lambda character: not inside(character)) if negated else inside)

        def inside_any_case(character: str) -> bool:
            return inside(character) or inside(character.lower()) or inside(character.upper())

        return _One((lambda character: not inside_any_case(character)) if negated else inside_any_case)

    def _member(self, tests: list[Test]) -> str | None:
        """The next character of a set; None: it was a class, and its test is among `tests`."""
        posix = _POSIX_CLASS.match(self._pattern, self._at)
        if posix is not None:
            if posix[2] not in POSIX:
                self._refuse(f"a class that is not known here ({posix[0]}; known are {', '.join(POSIX)})")
            self._at = posix.end()
            named = re.compile(f"[{posix[1]}{POSIX[posix[2]]}]", re.DOTALL)
            tests.append(lambda character: named.fullmatch(character) is not None)
            return None
        if self._pattern.startswith(("[.", "[="), self._at):
            self._refuse("a collating element, which is not known here (write the characters themselves)")
        if not self._take("\\"):
            character = self._peek()
            self._at += 1
            return character
        if self._peek() == "b":
            self._at += 1
            return "\b"
        test = self._class()
        if test is None:
            return self._escaped()
        tests.append(test)
        return None


def _range(low: str, high: str) -> Test:
    # What upper() gives may be two characters, which are in no range.
    return lambda character: len(character) == 1 and low <= character <= high


# The automaton.


@attrs.frozen
class _NfaState:
    """A place of the nondeterministic automaton: it wants a character, or that we are somewhere, or nothing."""

    #: Which character leads on, or None: none is needed.
    test: Test | None
    #: What must hold here, or None.
    where: str | None
    #: The places it leads to.
    to: tuple[int, ...]


_Side = Literal["edge", "word", "other"]


@attrs.define(eq=False)
class _State:
    """A set of places, before what needs no character is passed."""

    places: tuple[int, ...]
    #: What the character before was.
    before: _Side
    #: The state after each character met so far; None: the line has a match.
    steps: dict[str, _State | None] = attrs.field(factory=dict)
    #: Whether the line has a match if it ends here, once that was asked.
    at_end: bool | None = None


def expressions(pattern: str, ignore_case: bool = False) -> list[Expression]:
    """The expression for each line, the first of all that the pattern goes over.

    Raises:
        RegexRefused: the pattern is none, or is too large.
    """
    return [Expression(tree) for tree in _Parser(pattern, ignore_case).parsed()]


class Expression:
    """A compiled pattern for one line."""

    def __init__(self, tree: _Node) -> None:
        #: Whether nothing is wanted of its line but that it begins.
        self.begins_alone = tree == _All((_Where("^"), _All(())))
        self._nodes = 0
        self._places: list[_NfaState] = [_NfaState(None, None, ())]
        self._first = self._compiled(tree, 0)
        #: What every match has, if anything is known of it.
        self.factor = _factor_of(tree)
        #: How many places were visited to make states.
        self.work = 0
        self._forget()

    def _forget(self) -> None:
        self._states: dict[tuple[tuple[int, ...], _Side], _State] = {}
        self._remembered = 0
        self._start = self._state((self._first,), "edge")

    def _add(self, place: _NfaState) -> int:
        if len(self._places) >= _PLACES_MOST:
            raise RegexRefused("it is too large once its repeats are written out")
        self._places.append(place)
        return len(self._places) - 1

    def _compiled(self, node: _Node, to: int) -> int:
        """The place where `node` begins, if `to` is where it leads."""
        self._nodes += 1
        if self._nodes > 10 * _PLACES_MOST:
            raise RegexRefused("it is too large once its repeats are written out")
        if isinstance(node, _One):
            return self._add(_NfaState(node.test, None, (to,)))
        if isinstance(node, _Where):
            return self._add(_NfaState(None, node.kind, (to,)))
        if isinstance(node, _All):
            for part in reversed(node.parts):
                to = self._compiled(part, to)
            return to
        if isinstance(node, _Any):
            return self._add(_NfaState(None, None, tuple(self._compiled(part, to) for part in node.parts)))
        if node.most is None:
            loop = self._add(_NfaState(None, None, ()))
            self._places[loop] = _NfaState(None, None, (self._compiled(node.part, loop), to))
            to = loop
        else:
            after = to
            for _ in range(node.most - node.least):
                to = self._add(_NfaState(None, None, (self._compiled(node.part, to), after)))
        for _ in range(node.least):
            to = self._compiled(node.part, to)
        return to

    def matches(self, line: str) -> bool:
        """Whether `line`, which has no line end, has a match.

        Raises:
            RegexRefused: the work is more than `WORK_MOST`.
        """
        state = self._start
        for character in line:
            try:
                after = state.steps[character]
            except KeyError:
                after = self._step(state, character)
            if after is None:
                return True
            state = after
        if state.at_end is None:
            state.at_end = 0 in self._passed(state, "edge")
        return state.at_end

    def _step(self, state: _State, character: str) -> _State | None:
        side: _Side = "word" if _is_word(character) else "other"
        passed = self._passed(state, side)
        after: _State | None = None
        if 0 not in passed:
            reached = {self._first}
            for place in passed:
                test = self._places[place].test
                if test is not None and test(character):
                    reached.add(self._places[place].to[0])
            after = self._state(tuple(sorted(reached)), side)
        self._remembered += 1
        if self._remembered > _STEPS_REMEMBERED:
            places = None if after is None else (after.places, after.before)
            self._forget()
            after = None if places is None else self._state(*places)
        else:
            state.steps[character] = after
        return after

    def _state(self, places: tuple[int, ...], before: _Side) -> _State:
        return self._states.setdefault((places, before), _State(places, before))

    def _passed(self, state: _State, after: _Side) -> set[int]:
        """The places of `state`, and those that need no character, between what was before and what comes."""
        between = state.before
        holds = {
            "^": between == "edge",
            "$": after == "edge",
            "b": (between == "word") != (after == "word"),
            "B": (between == "word") == (after == "word"),
        }
        passed: set[int] = set()
        pending = list(state.places)
        while pending:
            number = pending.pop()
            if number in passed:
                continue
            passed.add(number)
            place = self._places[number]
            if place.test is None and (place.where is None or holds[place.where]):
                pending += place.to
        self.work += len(passed)
        if self.work > WORK_MOST:
            raise RegexRefused("it makes too much work in these files")
        return passed


def _factor_of(tree: _Node) -> Factor | None:
    """What every match of `tree` has; None: nothing is known of it."""
    found = FactorOfSequence()
    _tell(tree, found)
    return found.best()


def _tell(node: _Node, found: FactorOfSequence) -> None:
    """Tell the next part, `node`."""
    if isinstance(node, _One):
        found.character(_characters(node))
    elif isinstance(node, _All):
        for part in node.parts:
            _tell(part, found)
    elif isinstance(node, _Any):
        factors = [_factor_of(part) for part in node.parts]
        known = [factor for factor in factors if factor is not None]
        found.gap(Factor.any_of(known) if len(known) == len(factors) else None)
    elif isinstance(node, _Repeat):
        times = min(node.least, _COPIES)
        for _ in range(times):
            _tell(node.part, found)
        if node.least != node.most or times != node.least:
            found.gap()
            # The last ones stand before what follows.
            for _ in range(times if isinstance(node.part, _One) else 0):
                _tell(node.part, found)


def _characters(one: _One) -> Characters:
    return Characters.that(one.test) if one.known is None else Characters(one.known, False)
