"""What tools and disks report, so that the laws can see effects."""

from __future__ import annotations

from typing import ClassVar

import attrs

from toolrt.events._base import CallEvent, EventRecord


@attrs.frozen(slots=False)
class FileRead(CallEvent):
    """The content of `file` was read; `version` is a short digest of it."""

    kind: ClassVar[str] = "file.read"
    file: str
    version: str


@attrs.frozen(slots=False)
class MutationBegan(CallEvent):
    """A mutation of `file` is about to touch it for the first time."""

    kind: ClassVar[str] = "file.mutation_began"
    file: str


@attrs.frozen(slots=False)
class MutationEnded(CallEvent):
    """A mutation of `file` has touched it for the last time; `ok` is false when nothing was changed.

    `version` is a short digest of the content that is there; null: there is none, or it is not known.
    """

    kind: ClassVar[str] = "file.mutation_ended"
    file: str
    version: str | None
    ok: bool


@attrs.frozen(slots=False)
class DiskFailed(EventRecord):
    """`toolrt explore --faults` let an operation of the disk on `file` fail.

    `effect` is one of `MemoryDisk`'s, such as `write`, `error` a name of `errno`.
    """

    kind: ClassVar[str] = "disk.failed"
    effect: str
    file: str
    error: str


@attrs.frozen(slots=False)
class ToolEffect(CallEvent):
    """A scripted tool did something, named `effect`; used to see that nothing runs when nothing may.

    `shield`: from here on it goes on although it is asked to end. `returns`: its next act is to return or to raise.
    """

    kind: ClassVar[str] = "tool.effect"
    effect: str
