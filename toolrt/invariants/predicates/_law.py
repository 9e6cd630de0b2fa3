"""Laws and their violations.

A law is a predicate over one trace: it gives the violations that it finds.  It does not raise for a trace that breaks
it, and it does not need the runtime that made the trace: a trace read from a file will do.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.invariants.predicates._story import Breach, TraceStory, story_of
from toolrt.trace import Trace


class LawVerdict(enum.StrEnum):
    """What a law says of one trace."""

    #: It found nothing wrong, and the trace has what it compares with.
    HELD = "held"
    #: It found at least one violation.
    BROKEN = "broken"
    #: The trace lacks what the law compares with, such as the serial run of the same calls.
    NOT_CHECKED = "not checked"
    #: The lane policy of each batch in the trace declares that it gives the law up.
    GIVEN_UP = "given up"

    def __repr__(self) -> str:
        return self.name


@attrs.frozen
class Violation:
    """One place where a law does not hold."""

    #: The law's name, as `LAWS` has it.
    law: str
    #: The law's sentence.
    sentence: str
    #: What was expected and what was seen instead.
    detail: str
    #: The batch it happened in, or None where it is no batch's.
    batch: str | None = None
    #: The `call_index` of the call it happened to, or None.
    call: int | None = None
    #: The place in the trace of the event that shows it, or None where something is missing.
    seq: int | None = None

    @property
    def where(self) -> str:
        """The place in words: batch, call and event, as far as they are known."""
        parts = [] if self.batch is None else [f"batch {self.batch}"]
        parts += [] if self.call is None else [f"call {self.call}"]
        parts += [] if self.seq is None else [f"event {self.seq}"]
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """The violation as a JSON object."""
        return attrs.asdict(self)

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"law {self.law} does not hold: {self.sentence}\n  {self.detail}{place}"


#: What finds the places where a law does not hold.
Predicate = Callable[[Trace], "list[Violation]"]


def is_given_up(name: str, trace: Trace) -> bool:
    """Whether the lane policy of every batch in `trace` gives up the law of this `name`."""
    batches = story_of(trace).batches
    return bool(batches) and all(name in (batch.gives_up or ()) for batch in batches)


def not_given_up(name: str, trace: Trace, found: list[Violation]) -> list[Violation]:
    """What of the violations `found` of one law counts: not those in a batch whose lane policy gives the law up."""
    if not found:
        return found
    given_up = {batch.id for batch in story_of(trace).batches if name in (batch.gives_up or ())}
    if not given_up:
        return found
    nowhere = is_given_up(name, trace)
    return [one for one in found if not (nowhere if one.batch is None else one.batch in given_up)]


def _always(trace: Trace) -> bool:
    return True


@attrs.frozen
class Law:
    """A named predicate over one trace; calling it gives every violation found, in trace order."""

    #: The name it is known by: the key in `LAWS`.
    name: str
    #: The law in words.
    sentence: str
    #: The predicate.
    predicate: Predicate = attrs.field(repr=False)
    #: Its number among the laws of the design, or None for a law of a user's own.
    number: int | None = None
    #: Says whether a trace has what the law compares with; where it has not, the law is not checked.
    sees: Callable[[Trace], bool] = attrs.field(default=_always, repr=False)

    def __call__(self, trace: Trace) -> list[Violation]:
        return not_given_up(self.name, trace, self.predicate(trace))

    def verdict(self, trace: Trace) -> LawVerdict:
        """Whether the law holds in `trace`, is broken there, is given up there, or could not be checked."""
        if self(trace):
            return LawVerdict.BROKEN
        if is_given_up(self.name, trace):
            return LawVerdict.GIVEN_UP
        return LawVerdict.HELD if self.sees(trace) else LawVerdict.NOT_CHECKED

    def violation(
        self, detail: str, batch: str | None = None, call: int | None = None, seq: int | None = None
    ) -> Violation:
        """A violation of this law, with its `detail`: where it is (`batch`, `call`, `seq`), as far as that is known."""
        return Violation(self.name, self.sentence, detail, batch, call, seq)


def told(
    number: int, name: str, sentence: str, sees: Callable[[Trace], bool] = _always
) -> Callable[[Callable[[TraceStory, Trace], Iterator[Breach]]], Law]:
    """Make one of the laws of the design of a function over the trace's story; `sees` as of `Law`."""

    def decorate(function: Callable[[TraceStory, Trace], Iterator[Breach]]) -> Law:
        def predicate(trace: Trace) -> list[Violation]:
            return [Violation(name, sentence, *found) for found in function(story_of(trace), trace)]

        return Law(name, sentence, predicate, number, sees)

    return decorate


def law(name: str, sentence: str, sees: Callable[[Trace], bool] = _always) -> Callable[[Callable[[Trace], Any]], Law]:
    """Make a law of your own of a function from a trace to what is wrong with it.

    The function yields a text for each place where the law does not hold, which becomes the detail of a violation,
    or a `Violation`; a list of them will do.  Nothing found is nothing wrong.  What the function raises is raised by
    the check, with a note that names the law.  The law is not registered anywhere: hand it to `check`.

    Args:
        name: what it is known by, in violations and tables.
        sentence: what holds, in words.
        sees: says whether a trace has what the law looks at; where it has not, `verdicts` says "not checked" of the
            law, and not "held".

    Raises:
        DefinitionRefused: the name or the sentence is no text; in a check, that the function gave one text, a bool
            or something else that is no iterable of texts.

    Example::

        @invariants.law("no_errors", "No call ends in an error.")
        def no_errors(trace):
            for event in trace.of_kind(events.CallSettled):
                if event.fields["outcome"] == "error":
                    yield f"call {event.fields['call']} failed"

        check(trace, laws={**LAWS, "no_errors": no_errors})
    """
    for what, value in (("a law's name", name), ("a law's sentence", sentence)):
        if not isinstance(value, str) or not value:
            raise DefinitionRefused(what, "a text that is not empty", value)

    def decorate(function: Callable[[Trace], Any]) -> Law:
        def predicate(trace: Trace) -> list[Violation]:
            try:
                found = function(trace)
                given = found if isinstance(found, str) or not isinstance(found, Iterable) else list(found)
            except Exception as error:
                error.add_note(f"law {name} raised this. A law yields a text for each violation, and raises nothing.")
                raise
            if given is not None and not isinstance(given, list):
                raise DefinitionRefused(f"law {name}", "an iterable of texts, one for each violation", given)
            return [
                item if isinstance(item, Violation) else Violation(name, sentence, str(item)) for item in given or ()
            ]

        return Law(name, sentence, predicate, sees=sees)

    return decorate


def laws_by_name(laws: Mapping[str, Predicate] | None, default: Mapping[str, Predicate]) -> Mapping[str, Predicate]:
    """The laws to check: `default`, unless others are given.

    Raises:
        DefinitionRefused: `laws` is no mapping from names to predicates.
    """
    if laws is None:
        return default
    if not isinstance(laws, Mapping) or not all(callable(predicate) for predicate in laws.values()):
        raise DefinitionRefused("laws", "a mapping from names to predicates over a trace", laws)
    return laws
