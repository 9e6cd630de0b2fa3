"""Short texts, one of them in every match: a fast program looks for them before the search itself does.

Rules.  A factor is some sequences of characters, each position a set; every match has one of the sequences in it.  It
may be found where there is no match, and then the search decides.  A set is exact below U+0080, or one character; it
has all other characters otherwise.  No set has the end of a line.

Theory.  A sequence of sets has a fixed length, so no expression for it goes back and forth: `re` and ripgrep take
linear time for each, and find it tens of times faster than an automaton in Python goes through the text.  Of all
factors of an expression the one is chosen that ordinary text has most rarely.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable

import attrs

#: How long a sequence is at most, and how many a factor has.
_LONGEST = 24
_SEQUENCES_MOST = 64

#: How many bits of rarity a factor is worth that is a text.
_TEXT_IS_WORTH = 14

#: The characters that a set tells exactly; no set has the two that end lines.
_ASCII = [chr(number) for number in range(128) if chr(number) not in "\n\r"]
_BEYOND = "\x80-\U0010ffff"


@attrs.frozen
class Characters:
    """A set of characters."""

    #: Those that it has: one beyond ASCII, or any in ASCII.
    known: str
    #: Whether all beyond ASCII are in it too.
    beyond: bool

    @classmethod
    def that(cls, test: Callable[[str], object]) -> Characters:
        """At least those that pass a test."""
        return cls("".join(filter(test, _ASCII)), True)

    @property
    def bits(self) -> float:
        """How much it tells, by the number of characters that it has of ASCII."""
        return math.log2(128 / max(1, len(self.known)))

    def expression(self, escape: Callable[[int], str]) -> str:
        """The set as a regular expression; `escape` writes one character."""
        if len(self.known) == 1 and not self.beyond:
            return escape(ord(self.known))
        numbers = sorted(map(ord, self.known))
        starts = [one for one in numbers if one - 1 not in numbers]
        ends = [one for one in numbers if one + 1 not in numbers]
        ranges = [f"{escape(a)}-{escape(b)}" for a, b in zip(starts, ends, strict=True)]
        return f"[{''.join(ranges)}{f'{escape(0x80)}-{escape(0x10FFFF)}' if self.beyond else ''}]"


BEYOND_ASCII = Characters("", True)


@attrs.frozen
class Factor:
    """Sequences; every match has one of them."""

    sequences: tuple[tuple[Characters, ...], ...]

    @classmethod
    def of(cls, text: str) -> Factor:
        """The text itself."""
        return cls((tuple(Characters(one, False) for one in text),))

    @classmethod
    def any_of(cls, factors: Iterable[Factor]) -> Factor | None:
        """A factor of what has one of these; None: they are too many."""
        sequences = tuple(dict.fromkeys(one for factor in factors for one in factor.sequences))
        return cls(sequences) if len(sequences) <= _SEQUENCES_MOST else None

    @property
    def bits(self) -> float:
        """How rare it is: each bit halves the places in ordinary text where it may be."""
        least = min(sum(one.bits for one in sequence) for sequence in self.sequences)
        return least - math.log2(len(self.sequences))

    @property
    def literals(self) -> tuple[str, ...]:
        """The texts that it stands for, where each of them is written out; else none."""
        if any(one.beyond or len(one.known) != 1 for sequence in self.sequences for one in sequence):
            return ()
        return tuple("".join(one.known for one in sequence) for sequence in self.sequences)

    @property
    def lower_literal(self) -> str:
        """The longest text of ASCII that every text of ASCII which has it has in lower case; "": there is none."""
        ascii_ones = [one for one in self.sequences if all(each.known for each in one)]
        if len(ascii_ones) != 1:
            return ""
        letters = ["".join(set(one.known.lower())) for one in ascii_ones[0]]
        runs = itertools.groupby(letters, lambda one: len(one) == 1 and one.isascii())
        return max(("".join(run) for single, run in runs if single), key=len, default="")

    def expression(self, escape: Callable[[int], str]) -> str:
        """It as a regular expression; `escape` writes one character, by its number."""
        return "|".join("".join(one.expression(escape) for one in sequence) for sequence in self.sequences)

    def compiled(self) -> re.Pattern[str]:
        """It for Python."""
        return re.compile(self.expression(lambda number: re.escape(chr(number))))


class FactorOfSequence:
    """Finds the rarest factor of parts that follow one another."""

    def __init__(self) -> None:
        self._best: Factor | None = None
        self._run: list[Characters] = []

    def character(self, characters: Characters) -> None:
        """The next part is one of these characters."""
        if len(self._run) == _LONGEST:
            self.gap()
        self._run.append(characters)

    def gap(self, inside: Factor | None = None) -> None:
        """The next part may be anything; or anything that has this factor."""
        if self._run:
            self._offer(Factor((tuple(self._run),)))
        for single, group in itertools.groupby(self._run, lambda one: len(one.known) == 1 and not one.beyond):
            if single:
                self._offer(Factor((tuple(group),)))
        if inside is not None:
            self._offer(inside)
        self._run = []

    def _offer(self, factor: Factor) -> None:
        if self._best is None or _rank(factor) > _rank(self._best):
            self._best = factor

    def best(self) -> Factor | None:
        """The rarest factor of all parts; None: there is none."""
        self.gap()
        return self._best


def _rank(factor: Factor) -> float:
    """How good a factor is; a text is found much faster than anything else."""
    return factor.bits + (_TEXT_IS_WORTH if len(factor.literals) == 1 else 0)
