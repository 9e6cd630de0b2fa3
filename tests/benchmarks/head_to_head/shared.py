"""What a program is: what its tasks share, the tasks, and what holds once all have ended."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, ClassVar

from tests.benchmarks.head_to_head.libraries import Library, Task

__all__ = ["Shared"]


class Shared:
    """What the tasks of one execution share; a subclass is a program."""

    #: Whether some schedule breaks it.
    wrong: ClassVar[bool]
    #: How many tasks do the same, where it matters.
    n: ClassVar[int] = 2

    def __init__(self, library: Library) -> None:
        self.library = library
        self.pause = library.pause
        self.begin()

    def begin(self) -> None:
        """Set up what is shared."""

    def tasks(self) -> list[Task]:
        """The tasks, in the order in which they are started."""
        raise NotImplementedError

    def holds(self) -> bool:
        """Whether all is as it should be, once every task has ended.  A deadlock is wrong by itself."""
        return True

    def lock_if_correct(self) -> Any:
        """The lock that the wrong variant forgets."""
        return nullcontext() if self.wrong else self.library.lock()
