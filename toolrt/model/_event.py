"""What a tool may say of its work in words that programs understand: events.

Rules.  An event is a value: it says what happened and never changes.  Who emits one leaves its identity open; the
context fills in which call it came from, so no event can name another's.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import TypeVar

import attrs

E = TypeVar("E", bound="Event")


@attrs.frozen(kw_only=True)
class Event:
    """Something that happened in a call.  Make a kind of your own with ``@attrs.frozen class Cloned(Event): ...``."""

    #: The batch of the call; like the other two, None until the event is emitted.
    batch_id: str | None = None
    #: The call's place in its batch, from 0.
    call_index: int | None = None
    #: The id the model gave the call.
    call_id: str | None = None

    def of_call(self: E, batch_id: str, call_index: int, call_id: str) -> E:
        """The same event, with the identity of a call."""
        return attrs.evolve(self, batch_id=batch_id, call_index=call_index, call_id=call_id)


@attrs.frozen
class OutputChunk(Event):
    """A command wrote something."""

    #: How many bytes it had written before.
    offset: int
    #: The text; bytes that are no UTF-8 are U+FFFD, and no chunk ends within a character.
    text: str


class FileChange(enum.StrEnum):
    """What became of a file or directory."""

    #: It was not there before.
    CREATED = "created"
    #: It has another content.
    MODIFIED = "modified"
    #: It is not there any more.
    DELETED = "deleted"
    #: It stands at another name now, with all that is below it.
    MOVED = "moved"

    def __repr__(self) -> str:
        return self.name


@attrs.frozen
class FileChanged(Event):
    """A file or directory of the workspace is not what it was."""

    #: Which, relative to the workspace's root, with slashes; "." is the root itself.
    path: str
    #: What became of it.
    change: FileChange = attrs.field(default=FileChange.MODIFIED, converter=FileChange)
    #: Where a moved one stands now; None for all others.
    target: str | None = None
    #: Whether it is a directory: what is below it has changed as it did.
    is_directory: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """The names at which something is not what it was."""
        return (self.path,) if self.target is None else (self.path, self.target)


@attrs.frozen
class DirectoryChanged(Event):
    """The working directory of later calls is another one."""

    #: Which, relative to the workspace's root, with slashes; "." is the root itself.
    path: str


class Severity(enum.IntEnum):
    """How bad a finding is; the numbers are those of the Language Server Protocol."""

    #: What is wrong, what may be, what is worth knowing, and what could be better.
    ERROR = 1
    WARNING = 2
    INFORMATION = 3
    HINT = 4


@attrs.frozen
class Diagnostic:
    """One finding of a language server or a checker."""

    #: The line, from 1.
    line: int
    #: The column, from 1, in characters.
    column: int
    #: What is found.
    message: str
    #: How bad it is.
    severity: Severity = attrs.field(default=Severity.ERROR, converter=Severity)
    #: Who found it; None is unknown.
    source: str | None = None
    #: The finder's name for this kind of finding; None: it has none.
    code: str | None = None


def _findings(value: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(value)


@attrs.frozen
class Diagnostics(Event):
    """All findings on one file, which replace those told before."""

    #: The file, relative to the workspace's root, with slashes.
    path: str
    #: The findings, in the order of their places.
    findings: tuple[Diagnostic, ...] = attrs.field(default=(), converter=_findings)
