"""Reads ``.gitignore`` files, and says which files they leave out.

Rules (gitignore(5)).  Each directory may have a ``.gitignore``, which speaks of what is below it; of all patterns
that match a path the last one decides, and a deeper file comes after those above it.  A pattern with a slash before
its end is anchored in its file's directory, any other matches a name at any depth below.  One with a slash at its end
matches directories alone.  ``!`` takes back.  Nothing below a directory that is left out can be taken back, so a walk
does not enter one.  ``.git`` itself is always left out.

Theory.  Written here rather than taken from `pathspec`, whose presence would decide answers: a workspace must find
the same files with the core alone.  Held against git itself by a property test (tests/workspace/test_ignore.py).

Limits.  Only the files of the workspace count: no ``.git/info/exclude``, no user's own list, nothing above the root.
A ``.gitignore`` that is a symbolic link counts for nothing, as for git.  Names are compared as text, where git
compares bytes: so ``?`` is one letter.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

import attrs

from toolrt.workspace.rules._patterns import Glob, name_matcher

IGNORE_FILE = ".gitignore"

#: A pattern whose first wildcard is two or more stars that end a name they do not begin; ``**`` alone may follow often.
_STARS_IN_NAME = re.compile(r"([^*?\[\\]*[^*?\[\\/])\*{2,}(?:(\\?/)(?:\*{2,}/)*(.+)|)", re.DOTALL)

#: A last name that stands for any number of directories.
_STARS_AT_END = re.compile(r"(?:\A|/)\*{2,}\Z")

#: How many names of that kind are taken as git does, one after the other; no real pattern has two.
_REWRITTEN_MOST = 20

#: The names that no walk enters.
_ALWAYS = frozenset({".git"})


@attrs.frozen
class _Rule:
    """One line."""

    #: Whether it takes back what others left out.
    negated: bool
    #: Whether it is about directories alone.
    directories: bool
    #: For a pattern that matches a name at any depth.
    name: re.Pattern[str] | None
    #: For one that is anchored: one of them has to match.
    paths: tuple[Glob, ...] = ()

    def matches(self, names: tuple[str, ...], is_directory: bool) -> bool:
        """Whether it is about the path of `names` from its file's directory."""
        if self.directories and not is_directory:
            return False
        if self.name is not None:
            return self.name.match(names[-1]) is not None
        return any(path.matches(names) for path in self.paths)


@attrs.frozen
class IgnoreFile:
    """The patterns of one ``.gitignore``."""

    _rules: tuple[_Rule, ...]

    @classmethod
    def of(cls, content: bytes) -> IgnoreFile:
        """The patterns in `content`; a line that is none counts for nothing, as for git."""
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
        rules = (_rule(line.removesuffix("\r")) for line in text.split("\n"))
        return cls(tuple(rule for rule in rules if rule is not None))

    def verdict(self, names: tuple[str, ...], is_directory: bool) -> bool | None:
        """Whether the path of `names` from this file's directory is left out; None: this file does not say."""
        for rule in reversed(self._rules):
            if rule.matches(names, is_directory):
                return not rule.negated
        return None


def _rule(line: str) -> _Rule | None:
    if line.startswith("#"):
        return None
    line = _without_spaces_at_end(line)
    negated = line.startswith("!")
    line = line[negated:]
    directories = line.endswith("/")
    if directories:
        line = line[:-1]
    if not line:
        return None
    if "/" not in line:
        return _Rule(negated, directories, name_matcher(line, as_git=True))
    line = line.removeprefix("/")
    if not line or "//" in line or line.endswith("/") or line.startswith("/"):
        return None  # git matches nothing with an empty name
    return _Rule(negated, directories, None, tuple(_globs(line)))


def _globs(pattern: str) -> Iterator[Glob]:
    """What an anchored pattern means.

    git takes away the beginning that has no wildcard before it looks at the rest, whose first stars then stand at its
    beginning: so ``foo**/bar`` is about ``foobar``, and about ``bar`` anywhere below what begins with ``foo``.
    """
    for _ in range(_REWRITTEN_MOST):
        found = _STARS_IN_NAME.fullmatch(pattern)
        if found is None:
            break
        begin, slash, rest = found.groups()
        if not slash:
            yield Glob.of(f"{begin}*/**", as_git=True)
            return
        yield _glob(f"{begin}*/**/{rest}")
        if slash != "/":
            return
        pattern = begin + rest
    yield _glob(pattern)


def _glob(pattern: str) -> Glob:
    if _STARS_AT_END.search(pattern):
        pattern += "/*"  # all that is inside, and not the directory itself
    return Glob.of(pattern, as_git=True)


def _without_spaces_at_end(line: str) -> str:
    end = len(line)
    while end and line[end - 1] == " ":
        end -= 1
    backslashes = end - len(line[:end].rstrip("\\"))
    # An odd one takes the space behind it for itself.
    return line[: end + 1] if backslashes % 2 and end < len(line) else line[:end]


@attrs.frozen
class Ignored:
    """What is left out below one directory: its own ``.gitignore`` and those of the directories above it."""

    #: Each file with how many names it is above here, the nearest first.
    _files: tuple[tuple[int, IgnoreFile], ...] = ()
    #: The names that lead here from the topmost of them.
    _names: tuple[str, ...] = ()

    def enter(self, name: str) -> Ignored:
        """The same for the directory `name` of this one, before its own file is known."""
        return Ignored(tuple((depth + 1, file) for depth, file in self._files), (*self._names, name))

    def including(self, file: IgnoreFile) -> Ignored:
        """The same with this directory's own file."""
        return Ignored(((0, file), *self._files), self._names)

    def leaves_out(self, name: str, is_directory: bool) -> bool:
        """Whether `name` in this directory is left out."""
        if name in _ALWAYS:
            return True
        names = (*self._names, name)
        for depth, file in self._files:
            verdict = file.verdict(names[len(names) - 1 - depth :], is_directory)
            if verdict is not None:
                return verdict
        return False
